// load/ranges.h — the bytes of a file that have arrived: a sorted list of ranges that neither touch
// nor overlap. Feeding in file order keeps a single range; each open gap adds one.
#ifndef WICK_LOAD_RANGES_H
#define WICK_LOAD_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

enum { LOAD_RANGES_MAX = 1024 };

typedef struct load_range {
  uint64_t first, end;  // bytes [first, end)
} load_range;

typedef struct load_ranges {
  load_range *items;
  size_t count, capacity;
} load_ranges;

// Reserves memory so that ranges_add(first, end) will succeed. WICK_E_NOMEM, or WICK_E_FULL if
// there would be LOAD_RANGES_MAX + 1 ranges. The list does not change.
wick_status ranges_reserve(load_ranges *ranges, memory_gate *memory, uint64_t first, uint64_t end,
                           wick_error *error);
// Adds [first, end), parts of which may already be in the list. Call ranges_reserve() for the same
// range first.
void ranges_add(load_ranges *ranges, uint64_t first, uint64_t end);

// Returns the first byte at or after `from` that has not arrived.
uint64_t ranges_next_missing(const load_ranges *ranges, uint64_t from);
// Returns the first byte at or after `from` that has arrived, or UINT64_MAX.
uint64_t ranges_next_present(const load_ranges *ranges, uint64_t from);

#endif

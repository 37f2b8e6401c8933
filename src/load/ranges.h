// load/ranges.h — which bytes of a file have come: a sorted list of ranges that neither touch nor
// overlap. Feeding in order keeps it at one range; each gap that is left open costs one more.
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

// Makes sure that ranges_add(first, end) will succeed: WICK_E_NOMEM, or WICK_E_FULL when that would
// make LOAD_RANGES_MAX + 1 ranges. Changes nothing that is seen.
wick_status ranges_reserve(load_ranges *ranges, wick_memory *memory, uint64_t first, uint64_t end,
                           wick_error *error);
// [first, end) has come; parts of it may have come before. After ranges_reserve() of the same.
void ranges_add(load_ranges *ranges, uint64_t first, uint64_t end);

// The first byte at or after `from` that has not come.
uint64_t ranges_next_missing(const load_ranges *ranges, uint64_t from);
// The first byte at or after `from` that has come; UINT64_MAX when none has.
uint64_t ranges_next_present(const load_ranges *ranges, uint64_t from);

#endif

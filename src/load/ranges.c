// load/ranges.c — the sorted list of ranges. Lookups are binary searches.
#include "load/ranges.h"

#include <string.h>

enum { CAPACITY_MIN = 8 };

// Returns the first range that ends at or after `from`: the range that contains or touches it, if
// any.
static size_t find_from(const load_ranges *ranges, uint64_t from) {
  size_t low = 0, high = ranges->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ranges->items[middle].end < from) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

wick_status ranges_reserve(load_ranges *ranges, memory_gate *memory, uint64_t first, uint64_t end,
                           wick_error *error) {
  const size_t at = find_from(ranges, first);
  const bool joins = at < ranges->count && ranges->items[at].first <= end;
  if (joins) return WICK_OK;
  if (ranges->count == LOAD_RANGES_MAX) {
    return fail_with(error, WICK_E_FULL, first,
                     "%d separate pieces arrived: fill the gaps between them first",
                     LOAD_RANGES_MAX);
  }
  if (ranges->count < ranges->capacity) return WICK_OK;
  const size_t capacity = ranges->count == 0 ? CAPACITY_MIN : 2 * ranges->count;
  load_range *moved = memory_resize(memory, ranges->items, capacity * sizeof *moved);
  if (moved == NULL) {
    return memory_fail(memory, error, "the list of loaded ranges");
  }
  ranges->items = moved;
  ranges->capacity = capacity;
  return WICK_OK;
}

void ranges_add(load_ranges *ranges, uint64_t first, uint64_t end) {
  const size_t at = find_from(ranges, first);
  load_range *items = ranges->items;
  size_t after = at;  // the first range that stays separate
  while (after < ranges->count && items[after].first <= end) {
    if (items[after].first < first) first = items[after].first;
    if (items[after].end > end) end = items[after].end;
    after++;
  }
  memmove(&items[at + 1], &items[after], (ranges->count - after) * sizeof *items);
  items[at] = (load_range){first, end};
  ranges->count = ranges->count - (after - at) + 1;
}

uint64_t ranges_next_missing(const load_ranges *ranges, uint64_t from) {
  const size_t at = find_from(ranges, from);
  if (at == ranges->count || ranges->items[at].first > from) return from;
  return ranges->items[at].end;
}

uint64_t ranges_next_present(const load_ranges *ranges, uint64_t from) {
  size_t at = find_from(ranges, from);
  if (at < ranges->count && ranges->items[at].end == from) at++;
  if (at == ranges->count) return UINT64_MAX;
  return ranges->items[at].first > from ? ranges->items[at].first : from;
}

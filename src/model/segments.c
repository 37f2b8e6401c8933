// model/segments.c — see segments.h.
#include "model/segments.h"

static uint32_t rows_of_sequence(const model_pass *pass, uint32_t first) {
  uint32_t count = 1;
  while (first + count < pass->count &&
         pass->inputs[first + count].sequence == pass->inputs[first].sequence) {
    count++;
  }
  return count;
}

bool segments_next(segment_walk *walk, state_segment *segment) {
  const model_pass *pass = walk->pass;
  if (walk->has_rest) {
    *segment = walk->rest;
    walk->has_rest = false;
    return true;
  }
  if (walk->next >= pass->count) return false;
  const uint32_t first = walk->next, count = rows_of_sequence(pass, first);
  const store_states states =
      store_states_of(pass->store, pass->inputs[first].sequence, walk->offset_bytes);
  walk->next = first + count;
  *segment = (state_segment){first, count, states.from, states.to};
  if (states.mid == NULL) return true;
  segment->count = states.mid_rows;
  segment->to = states.mid;
  walk->rest =
      (state_segment){first + states.mid_rows, count - states.mid_rows, states.mid, states.to};
  walk->has_rest = true;
  return true;
}

// model/segments.h — the rows of a pass as a recurrent block reads them: sequence by sequence,
// split where a state within a sequence's rows is kept.
#ifndef WICK_MODEL_SEGMENTS_H
#define WICK_MODEL_SEGMENTS_H

#include "model/pass.h"

// Rows [first, first + count) of one sequence: `from` is the state before them, `to` receives the
// state after them.
typedef struct state_segment {
  uint32_t first, count;
  const float *from;
  float *to;
} state_segment;

typedef struct segment_walk {
  const model_pass *pass;
  uint64_t offset_bytes;  // of the block's part in the states
  uint32_t next;          // row
  bool has_rest;          // `rest` has the remaining rows of the last sequence
  state_segment rest;
} segment_walk;

static inline segment_walk segments_begin(const model_pass *pass, uint64_t offset_bytes) {
  return (segment_walk){.pass = pass, .offset_bytes = offset_bytes};
}

// Returns the next segment; false after the last one.
bool segments_next(segment_walk *walk, state_segment *segment);

#endif

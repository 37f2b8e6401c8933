// model/blocks/side_by_side.h — parallel blocks that do not read each other's output; their sum is
// normalised before it is added (Gemma 4's feed-forward and experts):
//
//   hidden += norm(a(hidden) + b(hidden) + ...)
//
// One block runs before the parallel blocks and one after them. Each parallel block reads the input
// that was set aside and adds to hidden, which starts at zero.
#ifndef WICK_MODEL_BLOCKS_SIDE_BY_SIDE_H
#define WICK_MODEL_BLOCKS_SIDE_BY_SIDE_H

#include "model/family.h"

model_block *side_by_side_begin_make(model_plan *plan);
// Creates the second block. Tensor: `norm` [hidden].
model_block *side_by_side_end_make(model_plan *plan, const char *norm);

#endif

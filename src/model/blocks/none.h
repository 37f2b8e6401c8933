// model/blocks/none.h — layers that have only a mixer (Mamba) or only a feed-forward (Nemotron-H).
#ifndef WICK_MODEL_BLOCKS_NONE_H
#define WICK_MODEL_BLOCKS_NONE_H

#include "model/family.h"

// Creates a block in place of a mixer: in the last layer it drops the rows whose logits are not
// needed.
model_block *none_make_mixer(model_plan *plan);
// Creates a block in place of a feed-forward.
model_block *none_make(model_plan *plan);

#endif

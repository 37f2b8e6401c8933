// model/blocks/none.h — layers that have only a mixer (Mamba) or only a feed-forward (Nemotron-H).
#ifndef WICK_MODEL_BLOCKS_NONE_H
#define WICK_MODEL_BLOCKS_NONE_H

#include "model/family.h"

// Stands for the mixer: in the last layer it drops the rows whose logits nobody wants.
model_block *none_make_mixer(model_plan *plan);
// Stands for the feed-forward.
model_block *none_make(model_plan *plan);

#endif

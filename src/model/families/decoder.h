// model/families/decoder.h — families whose layers all have the same blocks: attention, then a
// feed-forward.
#ifndef WICK_MODEL_FAMILIES_DECODER_H
#define WICK_MODEL_FAMILIES_DECODER_H

#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/family.h"

// Plans config.layers layers of attention and a dense feed-forward.
void plan_dense_decoder(model_plan *plan, const attention_settings *attention,
                        const dense_settings *dense);
// Plans such layers with different attention in the last of every `period` layers.
void plan_periodic_decoder(model_plan *plan, uint32_t period, const attention_settings *last,
                           const attention_settings *others, const dense_settings *dense);
// Plans layers with a mixture of experts instead of the dense feed-forward, except for the first
// "leading_dense_block_count" layers, which `dense` describes; NULL: there are none.
void plan_experts_decoder(model_plan *plan, const attention_settings *attention,
                          const experts_settings *experts, const dense_settings *dense);

#endif

// model/blocks/relative_attention.h — attention of T5's encoder (Raffel et al. 2020): each token
// attends to its whole sequence, and the term added to a score depends on the head and on the
// distance of the two tokens, in buckets that widen with the distance. Scores are not scaled.
#ifndef WICK_MODEL_BLOCKS_RELATIVE_ATTENTION_H
#define WICK_MODEL_BLOCKS_RELATIVE_ATTENTION_H

#include "model/blocks/attention.h"

// Creates the block. Tensors: attn_norm, attn_q, attn_k, attn_v [heads * head_dim, hidden], attn_o
// [hidden, heads * head_dim]. `first`: the block of layer 0, whose attn_rel_b [buckets, heads] is
// used by all layers; NULL to create the block of layer 0.
model_block *relative_attention_make(model_plan *plan, const attention_settings *settings,
                                     uint32_t buckets, const model_block *first);

#endif

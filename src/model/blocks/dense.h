// model/blocks/dense.h — the feed-forward with a gate: hidden += down(silu(gate(x)) * up(x))
// (SwiGLU, Shazeer 2020).
#ifndef WICK_MODEL_BLOCKS_DENSE_H
#define WICK_MODEL_BLOCKS_DENSE_H

#include "model/family.h"

// `norm`: the name of the norm before it, "ffn_norm.weight". Tensors ffn_gate, ffn_up [ffn, hidden]
// and ffn_down [hidden, ffn], each with an optional bias.
model_block *dense_make(model_plan *plan, const char *norm, uint32_t ffn);

#endif

// model/blocks/short_conv.h — the gated short convolution of LFM2 (Liquid AI 2025):
//   b, c, x = in_proj(norm(hidden));  hidden += out_proj(c * conv(b * x))
// conv is causal, with one filter of a few taps per channel. State per sequence: the last inputs of
// the convolution, [taps - 1, hidden].
#ifndef WICK_MODEL_BLOCKS_SHORT_CONV_H
#define WICK_MODEL_BLOCKS_SHORT_CONV_H

#include "model/family.h"

// Creates the block. `taps`: 2 to KERNEL_CONV_WIDTH_MAX. Tensors: attn_norm, shortconv.in_proj [3 *
// hidden, hidden], shortconv.conv [hidden, taps], shortconv.out_proj [hidden, hidden].
model_block *short_conv_make(model_plan *plan, uint32_t taps);

#endif

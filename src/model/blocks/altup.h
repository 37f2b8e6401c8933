// model/blocks/altup.h — alternating updates (AltUp: Baykal et al. 2023) as in Gemma 3n: a token
// has four rows s as wide as the model, and a layer computes only on the first row:
//
//   p_i = s_i + sum over j of c_ij s_j     the predicted result of the layer for each row
//   x = layer(p_0)
//   s_i = p_i + (1 + d_i) (x - p_0)        corrected by the layer's result for the first row
//
// where c = predict tanh(r(s_0)), d = correct tanh(r(x)), and r(x) = router norm(x) / hidden. The
// first row is stored in model_pass.hidden, the others in model_pass.streams.
#ifndef WICK_MODEL_BLOCKS_ALTUP_H
#define WICK_MODEL_BLOCKS_ALTUP_H

#include "model/family.h"

enum { ALTUP_STREAMS = 4 };

// Creates the block before the first layer: s_i = proj_i s_0, scaled to the length of s_0. Tensor:
// altup_proj [3][hidden, hidden].
model_block *altup_spread_make(model_plan *plan);
// Creates the block before the mixer of a layer. Tensors: altup_router_norm [hidden], altup_router
// [4, hidden], altup_predict_coef [16, 4].
model_block *altup_predict_make(model_plan *plan);
// Creates the block after the feed-forward. Tensor: altup_correct_coef [4, 4]; it uses the router
// of `predict`.
model_block *altup_correct_make(model_plan *plan, const model_block *predict);
// Creates the block after the last layer: s_0 = (s_0 + the sum of unembd_i s_i, each scaled to the
// length of s_0) / 4. Tensor: altup_unembd_proj [3][hidden, hidden].
model_block *altup_merge_make(model_plan *plan);

#endif

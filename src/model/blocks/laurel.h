// model/blocks/laurel.h — learned augmented residuals (LAuReL: Menghani et al. 2024) as in Gemma
// 3n: a low-rank map runs in parallel with a mixer, and the residual is the mean of both:
//
//   x = norm(hidden); hidden = (hidden + x + norm(r(l(x)))) * LAUREL_SCALE
//
// The mixer, which reads x, adds LAUREL_SCALE times its result.
#ifndef WICK_MODEL_BLOCKS_LAUREL_H
#define WICK_MODEL_BLOCKS_LAUREL_H

#include "model/family.h"

#define LAUREL_SCALE 0.70710678f  // 1 / sqrt(2)

// Creates the block, which runs before the mixer and sets x aside for it (pass_set_aside). Tensors:
// attn_norm [hidden], laurel_l [rank, hidden], laurel_r [hidden, rank], laurel_post_norm [hidden].
model_block *laurel_make(model_plan *plan, uint32_t rank);

#endif

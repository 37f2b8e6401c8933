// model/blocks/ssm.h — selective state spaces: Mamba (Gu and Dao 2023), Mamba 2 (Dao and Gu 2024)
// and PLaMo 2's combination of both (Preferred Networks 2025).
//   z, x (and b, c, dt in Mamba 2) = in(norm(hidden));  x (b, c) = silu(conv(x (b, c)))
//   b, c, dt = dt_proj(norms(x_proj(x))) in Mamba and PLaMo 2;  dt = softplus(dt)
//   S = e^(dt a) S + dt b x^T;  y = S^T c + d x;  hidden += out(norm(y * silu(z)))
// Mamba has one decay per value of the state, the other two have one per head. State per sequence:
// the last inputs of the convolution [taps - 1, channels], and S: [inner, states] in Mamba,
// otherwise [heads, states, inner / heads].
#ifndef WICK_MODEL_BLOCKS_SSM_H
#define WICK_MODEL_BLOCKS_SSM_H

#include "model/family.h"

typedef enum ssm_form { SSM_MAMBA, SSM_MAMBA2, SSM_PLAMO2 } ssm_form;

typedef enum ssm_norms { SSM_NO_NORMS, SSM_PLAIN_NORMS, SSM_WEIGHTED_NORMS } ssm_norms;

typedef struct ssm_settings {
  ssm_form form;
  uint32_t inner, states, taps;
  uint32_t heads;         // Mamba: equal to `inner`, with heads of one channel
  uint32_t groups;        // Mamba 2: heads / groups heads share b and c; otherwise 1
  uint32_t rank;          // of the projection of dt; Mamba 2: 0
  ssm_norms norms;        // of dt, b and c, if they are projected
  bool may_lack_norm;     // Mamba 2: ssm_norm is optional
  const char *post_norm;  // name of the norm of its result; NULL: none
  float residual_scale;   // factor of the block's result
  bool is_aside;          // its input was stored by the previous mixer of its layer
} ssm_settings;

// Reads "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank" (the rank in
// Mamba, otherwise the number of heads) and for Mamba 2 "ssm.group_count". Norms are off.
ssm_settings ssm_read(model_plan *plan, ssm_form form);
// Creates the block. Tensors: attn_norm, ssm_in, ssm_conv1d with an optional bias, ssm_dt.bias,
// ssm_a, ssm_d, ssm_out; in Mamba 2 ssm_norm; otherwise ssm_x, ssm_dt and the norms ssm_dt_norm,
// ssm_b_norm and ssm_c_norm.
model_block *ssm_make(model_plan *plan, const ssm_settings *settings);

#endif

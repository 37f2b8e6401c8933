// model/blocks/dense.h — the feed-forward: hidden += down(act(gate(x)) * up(x)) with a gate (GLU
// variants: Shazeer 2020), or hidden += down(act(up(x))).
#ifndef WICK_MODEL_BLOCKS_DENSE_H
#define WICK_MODEL_BLOCKS_DENSE_H

#include "model/family.h"

typedef enum dense_activation {
  DENSE_SILU = 0,
  DENSE_GELU,
  DENSE_GELU_ERF,  // the exact form
  DENSE_RELU,
  DENSE_RELU_SQUARE,
  DENSE_XIELU
} dense_activation;

typedef struct dense_settings {
  const char *norm;       // name of the norm before it, "ffn_norm.weight"; NULL: none
  const char *post_norm;  // name of the norm of its result; NULL: none
  const char *sub_norm;   // name of the norm before ffn_down; NULL: none
  const char *sum_norm;   // name of a norm of hidden after the addition (post-norm); NULL: none
  uint32_t ffn;
  dense_activation activation;
  kernel_xielu xielu;  // with DENSE_XIELU
  // not 0: of a gate's values x, which are assumed to be normally distributed, only those above c =
  // mean + sparsity * deviation are used, as x - c (Gaussian top-k: You et al. 2025)
  float sparsity;
  bool is_plain;         // no gate
  bool may_fuse_gate;    // the rows of the gate may come first in ffn_up
  bool is_aside;         // reads the input that the mixer stored (attention_settings.aside)
  float residual_scale;  // factor of the block's result
} dense_settings;

// Reads "feed_forward_length". Selects a gated SiLU with "ffn_norm.weight"; everything else is off.
dense_settings dense_read(model_plan *plan);
// Creates the block. Tensors: ffn_gate, ffn_up [ffn, hidden] and ffn_down [hidden, ffn], each with
// an optional bias.
model_block *dense_make(model_plan *plan, const dense_settings *settings);

#endif

// model/blocks/expert_adapters.h — the adapters' part of a mixture's experts: y += B_e (factor *
// A_e x), with a pair of matrices for each expert of a stack (llama.cpp's build_lora_mm_id). A
// row's result depends only on its own adapters, in their order.
#ifndef WICK_MODEL_BLOCKS_EXPERT_ADAPTERS_H
#define WICK_MODEL_BLOCKS_EXPERT_ADAPTERS_H

#include "model/pass.h"

// The product of a stack: y[row] = x[row] W_e^T, with a row for each choice of a token.
typedef struct expert_product {
  const weight_tensor *stack;
  uint32_t used;           // choices of a token
  const uint32_t *chosen;  // [tokens, used] experts
  const uint32_t *row_of;  // [tokens, used] rows of y, and of x without is_by_token
  const float *x;          // x_stride floats apart
  bool is_by_token;        // x has a row for each token instead
  float *y;                // y_stride floats apart
  size_t x_stride, y_stride;
} expert_product;

// Adds the products of the adapters of each row of the pass. Called after the product.
void expert_adapters_add(model_pass *pass, const expert_product *product);

#endif

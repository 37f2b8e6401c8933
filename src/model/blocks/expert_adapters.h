// model/blocks/expert_adapters.h — adds adapters to a mixture's experts: y += B_e (factor * A_e x),
// with a pair of matrices for each expert of a stack (llama.cpp's build_lora_mm_id). A row's result
// depends only on its own adapters, in their order.
#ifndef WICK_MODEL_BLOCKS_EXPERT_ADAPTERS_H
#define WICK_MODEL_BLOCKS_EXPERT_ADAPTERS_H

#include "model/pass.h"

// The product with a stack: y[row] = x[row] W_e^T, with one row for each expert of a token.
typedef struct expert_product {
  const weight_tensor *stack;
  uint32_t used;           // experts per token
  const uint32_t *chosen;  // [tokens, used] experts
  const uint32_t *row_of;  // [tokens, used] rows of y; also of x unless is_by_token
  const float *x;          // x_stride floats apart
  bool is_by_token;        // x has one row per token instead of one per expert of a token
  float *y;                // y_stride floats apart
  size_t x_stride, y_stride;
} expert_product;

// Adds the products of each row's adapters. Called after the product with the stack.
void expert_adapters_add(model_pass *pass, const expert_product *product);

#endif

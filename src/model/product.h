// model/product.h — multiplies activations by one or several weight matrices, on all threads, in
// one parallel region: activations are quantised once and shared by the matrices, and bias and
// residual are added while a strip is in the cache.
#ifndef WICK_MODEL_PRODUCT_H
#define WICK_MODEL_PRODUCT_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "model/adapter.h"
#include "tensor/tensor.h"
#include "thread/pool.h"

enum { PRODUCT_MATRICES_MAX = 4 };

typedef struct product_target {
  kernel_matrix matrix;
  const float *scale;  // a factor, or NULL
  const float *bias;   // [rows] or NULL, added after the factor
  float *y;            // [count, rows], y_stride floats apart
  size_t y_stride;
  float *residual;        // += y if not NULL; same stride as y
  uint32_t first, count;  // rows of x to multiply
  uint32_t number;        // weight_tensor.number if its rows are the product's rows, or 0
} product_target;

typedef struct model_product {
  const kernel_table *kernels;
  thread_pool *threads;
  const float *x;   // [tokens, cols], rows on cache lines
  size_t x_stride;  // floats
  uint32_t cols, tokens;
  uint8_t *act;  // room for `tokens` rows in quantised form
  product_target few[PRODUCT_MATRICES_MAX];
  product_target *many;  // room for more targets, owned by the caller; NULL: `few` is used
  uint32_t target_count;
  const adapter_set *const
      *adapters;  // [tokens], NULL for rows without adapters; NULL if no row has any
} model_product;

static inline const product_target *product_targets(const model_product *product) {
  return product->many == NULL ? product->few : product->many;
}

// Adds y = x W^T + bias. The rows' adapters are added before the bias.
void product_add(model_product *product, const weight_tensor *matrix, const float *bias, float *y,
                 size_t y_stride);
// Adds y = x W^T + bias, and residual += y if it is not NULL.
void product_add_residual(model_product *product, const weight_tensor *matrix, const float *bias,
                          float *y, float *residual, size_t stride);
// Adds y = x[first ... first + count] W^T + bias with matrix `index` of a stack: one expert and the
// rows that are routed to it. Several targets may have the same rows.
void product_add_rows(model_product *product, const weight_tensor *stack, uint32_t index,
                      const float *bias, uint32_t first, uint32_t count, float *y, size_t y_stride);
void product_run(model_product *product);

#endif

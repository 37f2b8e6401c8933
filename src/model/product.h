// model/product.h — activations times one or several weight matrices, over threads, in one parallel
// region: quantise once, share among the matrices, add bias and residual while a strip is warm.
#ifndef WICK_MODEL_PRODUCT_H
#define WICK_MODEL_PRODUCT_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "thread/pool.h"

enum { PRODUCT_MATRICES_MAX = 3 };

typedef struct product_target {
  const kernel_matrix *matrix;
  const float *bias;  // [rows] or NULL
  float *y;           // [tokens, rows], y_stride floats apart
  size_t y_stride;
  float *residual;  // += y when not NULL, same stride
} product_target;

typedef struct model_product {
  const wick_kernels *kernels;
  thread_pool *threads;
  const float *x;   // [tokens, cols], rows on cache lines
  size_t x_stride;  // floats
  uint32_t cols, tokens;
  uint8_t *act;  // room for `tokens` rows in a quantised form
  product_target targets[PRODUCT_MATRICES_MAX];
  uint32_t target_count;
} model_product;

// y = x W^T + bias
void product_add(model_product *product, const kernel_matrix *matrix, const float *bias, float *y,
                 size_t y_stride);
// residual += x W^T + bias; `y` is room for the product.
void product_add_residual(model_product *product, const kernel_matrix *matrix, const float *bias,
                          float *y, float *residual, size_t stride);
void product_run(model_product *product);

#endif

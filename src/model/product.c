// model/product.c — see product.h. Work is divided into groups of 8 rows over all matrices of a
// region.
#include "model/product.h"

#include "base/checked.h"
#include "model/adapter_product.h"

// Groups of rows per kernel call: few enough that a call is short (an engine that compiles hot
// functions between calls, as V8 does, soon runs its best code) and that the weights stay in the
// cache for all tokens of a batch, but enough that kernels can read them at several positions at
// the same time.
enum { STRIP_GROUPS = 32 };
// Groups of rows per piece of a thread (thread/pool.h): enough that the overhead of a kernel call,
// which begins to read at several positions, is small. The size is in MACs for one token.
enum { PIECE_MACS = 1 << 17, PIECE_GROUPS_MIN = 4 };
_Static_assert(STRIP_GROUPS *KERNEL_ROW_GROUP <= ADAPTER_STRIP_ROWS, "adapters add to a strip");

static void add_target(model_product *product, const product_target *target) {
  product_target *targets = product->many == NULL ? product->few : product->many;
  targets[product->target_count++] = *target;
}

static product_target whole_target(const model_product *product, const weight_tensor *matrix,
                                   const float *bias, float *y, size_t y_stride) {
  return (product_target){.matrix = tensor_matrix(matrix, 0),
                          .scale = matrix->scales,
                          .bias = bias,
                          .y = y,
                          .y_stride = y_stride,
                          .count = product->tokens,
                          .number = matrix->number};
}

void product_add(model_product *product, const weight_tensor *matrix, const float *bias, float *y,
                 size_t y_stride) {
  const product_target target = whole_target(product, matrix, bias, y, y_stride);
  add_target(product, &target);
}

void product_add_residual(model_product *product, const weight_tensor *matrix, const float *bias,
                          float *y, float *residual, size_t stride) {
  product_target target = whole_target(product, matrix, bias, y, stride);
  target.residual = residual;
  add_target(product, &target);
}

void product_add_rows(model_product *product, const weight_tensor *stack, uint32_t index,
                      const float *bias, uint32_t first, uint32_t count, float *y,
                      size_t y_stride) {
  const product_target target = {.matrix = tensor_matrix(stack, index),
                                 .bias = bias,
                                 .scale = stack->scales == NULL ? NULL : stack->scales + index,
                                 .y = y,
                                 .y_stride = y_stride,
                                 .first = first,
                                 .count = count};
  add_target(product, &target);
}

static void make_activations(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_product *product = context;
  const size_t stride = product->kernels->act_bytes(KERNEL_ACT_Q8, product->cols);
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    product->kernels->act_make(KERNEL_ACT_Q8, product->x + t * product->x_stride, product->cols,
                               product->act + t * stride);
  }
}

static void run_strip(const model_product *product, const product_target *target,
                      uint32_t row_first, uint32_t row_last) {
  const kernel_type_ops *ops = &product->kernels->types[target->matrix.type];
  if (ops->act_form == KERNEL_ACT_Q8) {
    const size_t stride_bytes = product->kernels->act_bytes(KERNEL_ACT_Q8, product->cols);
    ops->matmul(&target->matrix, row_first, row_last, product->act + target->first * stride_bytes,
                stride_bytes, target->count, target->y, target->y_stride);
  } else {
    ops->matmul(&target->matrix, row_first, row_last,
                product->x + target->first * product->x_stride, product->x_stride * sizeof(float),
                target->count, target->y, target->y_stride);
  }
  const uint32_t rows = row_last - row_first;
  for (uint32_t t = 0; t < target->count && target->scale != NULL; t++) {
    product->kernels->scale(target->y + t * target->y_stride + row_first, *target->scale, rows);
  }
  if (product->adapters != NULL && target->number != 0) {
    adapter_add(product, (uint32_t)(target - product->few), row_first, row_last);
  }
  for (uint32_t t = 0; t < target->count; t++) {
    float *y = target->y + t * target->y_stride + row_first;
    if (target->bias != NULL) product->kernels->add(y, target->bias + row_first, rows);
    if (target->residual != NULL) {
      product->kernels->add(target->residual + t * target->y_stride + row_first, y, rows);
    }
  }
}

static void run_groups(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_product *product = context;
  const product_target *targets = product_targets(product);
  (void)thread;
  uint32_t base = 0;  // first group of this target
  for (uint32_t i = 0; i < product->target_count && base < last; i++) {
    const product_target *target = &targets[i];
    const uint32_t rows = target->matrix.rows;
    const uint32_t groups = ceil_div_u32(rows, KERNEL_ROW_GROUP);
    uint32_t group = first > base ? first - base : 0;
    const uint32_t end = last - base < groups ? last - base : groups;
    while (group < end) {
      const uint32_t stop = end - group > STRIP_GROUPS ? group + STRIP_GROUPS : end;
      const uint32_t row_last = stop * KERNEL_ROW_GROUP < rows ? stop * KERNEL_ROW_GROUP : rows;
      run_strip(product, target, group * KERNEL_ROW_GROUP, row_last);
      group = stop;
    }
    base += groups;
  }
}

static uint32_t piece_groups(uint32_t cols) {
  const uint32_t groups = PIECE_MACS / KERNEL_ROW_GROUP / cols;
  if (groups > STRIP_GROUPS) return STRIP_GROUPS;
  return groups < PIECE_GROUPS_MIN ? PIECE_GROUPS_MIN : groups;
}

void product_run(model_product *product) {
  bool needs_act = false;
  uint32_t groups = 0;
  for (uint32_t i = 0; i < product->target_count; i++) {
    const kernel_matrix *matrix = &product_targets(product)[i].matrix;
    needs_act |= product->kernels->types[matrix->type].act_form == KERNEL_ACT_Q8;
    groups += ceil_div_u32(matrix->rows, KERNEL_ROW_GROUP);
  }
  if (needs_act) thread_pool_for(product->threads, product->tokens, make_activations, product);
  if (product->adapters != NULL) {
    const uint32_t units = adapter_low_units(product);
    if (units != 0) thread_pool_for(product->threads, units, adapter_low_run, product);
  }
  thread_pool_for_pieces(product->threads, groups, piece_groups(product->cols), run_groups,
                         product);
}

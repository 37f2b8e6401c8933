// A memory that has the last rows of matrices (model/shards.h), as a worker
// has: activations are copied into it, products are computed from the copies, and outputs are
// copied back.
#ifndef WICK_TESTS_SHARD_RIG_H
#define WICK_TESTS_SHARD_RIG_H

#include "check.h"
#include "model/product.h"

enum { SHARD_MATRICES = 1024, SHARD_LINE_BYTES = 64 };

typedef struct shard_matrices {
  kernel_matrix rows;     // of one matrix of the tensor
  uint64_t matrix_bytes;  // from one to the next
} shard_matrices;

typedef struct shard_rig {
  const kernel_table *kernels;
  uint32_t groups_here;  // of 8 rows, of each matrix, at most; the others are in the rig
  shard_matrices matrices[SHARD_MATRICES];  // by number
  uint8_t *act[KERNEL_ACT_FORM_COUNT];      // of the product under way
  uint32_t products, look_ups;
} shard_rig;

static inline void *rig_alloc(uint64_t bytes) {
  const uint64_t lines = bytes / SHARD_LINE_BYTES + 1;
  void *block = aligned_alloc(SHARD_LINE_BYTES, (size_t)(lines * SHARD_LINE_BYTES));
  memset(block, 0, (size_t)(lines * SHARD_LINE_BYTES));
  return block;
}

static inline uint32_t shard_rows_away(void *context, const weight_tensor *matrix) {
  shard_rig *rig = context;
  const uint32_t here = rig->groups_here * KERNEL_ROW_GROUP, rows = matrix->dims[1];
  if (rows <= here) return 0;
  shard_matrices *to = &rig->matrices[matrix->number];
  to->rows = (kernel_matrix){.rows = rows - here, .cols = matrix->dims[0], .type = matrix->type};
  rig->kernels->types[matrix->type].matrix_bytes(rows - here, matrix->dims[0], &to->matrix_bytes);
  to->matrix_bytes += SHARD_LINE_BYTES - to->matrix_bytes % SHARD_LINE_BYTES;
  to->rows.data = rig_alloc(to->matrix_bytes * matrix->dims[2]);
  return rows - here;
}

static inline void shard_place(void *context, const weight_tensor *matrix, uint32_t row,
                               uint32_t first_block, uint32_t block_count, const uint8_t *blocks) {
  shard_rig *rig = context;
  shard_matrices *to = &rig->matrices[matrix->number];
  const uint32_t rows = matrix->dims[1], here = rows - to->rows.rows;
  uint8_t *data = (uint8_t *)(uintptr_t)to->rows.data + row / rows * to->matrix_bytes;
  to->rows.flags |= rig->kernels->types[matrix->type].repack(
      data, matrix->dims[0], row % rows - here, first_block, block_count, blocks);
}

// Of rows of activations in a form.
static inline size_t shard_stride(const model_product *product, kernel_act_form form) {
  return form == KERNEL_ACT_F32 ? product->x_stride * sizeof(float)
                                : product->kernels->act_bytes(form, product->cols);
}

static inline void shard_begin(void *context, const model_product *product) {
  shard_rig *rig = context;
  bool is_wanted[KERNEL_ACT_FORM_COUNT] = {false};
  for (uint32_t i = 0; i < product->target_count; i++) {
    const uint32_t type = product_targets(product)[i].matrix.type;
    is_wanted[rig->kernels->types[type].act_form] = true;
  }
  for (kernel_act_form form = 0; form < KERNEL_ACT_FORM_COUNT; form++) {
    const size_t row_bytes =
        form == KERNEL_ACT_F32 ? product->cols * sizeof(float) : shard_stride(product, form);
    const size_t bytes = shard_stride(product, form) * (product->tokens - 1) + row_bytes;
    const void *from = form == KERNEL_ACT_F32 ? (const void *)product->x : product->act;
    CHECK(rig->act[form] == NULL);
    if (!is_wanted[form]) continue;
    rig->act[form] = rig_alloc(bytes);
    memcpy(rig->act[form], from, bytes);
  }
  rig->products++;
}

static inline void shard_multiply(const shard_rig *rig, const model_product *product,
                                  const product_target *target) {
  const shard_matrices *has = &rig->matrices[target->from->number];
  const kernel_type_ops *ops = &rig->kernels->types[target->matrix.type];
  const size_t stride = shard_stride(product, ops->act_form);
  kernel_matrix matrix = has->rows;
  matrix.data += target->index * has->matrix_bytes;
  float *outputs = rig_alloc((uint64_t)target->count * matrix.rows * sizeof *outputs);
  ops->matmul(&matrix, 0, matrix.rows, rig->act[ops->act_form] + target->first * stride, stride,
              target->count, outputs, matrix.rows);
  for (uint32_t t = 0; t < target->count; t++) {
    memcpy(target->y + t * target->y_stride + target->matrix.rows,
           outputs + (size_t)t * matrix.rows, matrix.rows * sizeof *outputs);
  }
  free(outputs);
}

static inline void shard_finish(void *context, const model_product *product) {
  shard_rig *rig = context;
  for (uint32_t i = 0; i < product->target_count; i++) {
    const product_target *target = &product_targets(product)[i];
    if (target->from->rows_away != 0) shard_multiply(rig, product, target);
  }
  for (kernel_act_form form = 0; form < KERNEL_ACT_FORM_COUNT; form++) {
    free(rig->act[form]);
    rig->act[form] = NULL;
  }
}

static inline void shard_look_up(void *context, const weight_tensor *matrix, uint32_t row,
                                 float *out) {
  shard_rig *rig = context;
  const kernel_matrix *has = &rig->matrices[matrix->number].rows;
  rig->look_ups++;
  rig->kernels->types[has->type].row_dequant(has, row - (matrix->dims[1] - has->rows), out);
}

static inline void shard_finish_look_ups(void *context) { (void)context; }

static inline shard_host shard_rig_host(shard_rig *rig) {
  return (shard_host){rig,          shard_rows_away, shard_place,          shard_begin,
                      shard_finish, shard_look_up,   shard_finish_look_ups};
}

static inline void shard_rig_free(shard_rig *rig) {
  for (uint32_t i = 0; i < SHARD_MATRICES; i++) {
    free((void *)(uintptr_t)rig->matrices[i].rows.data);
  }
}

#endif

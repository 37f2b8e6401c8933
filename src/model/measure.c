// model/measure.c — see measure.h.
#include "model/measure.h"

void measure_product(op_records *ops, op_kind op, const model_product *product) {
  if (ops == NULL) return;
  uint64_t bytes = 0, macs = 0;
  for (uint32_t i = 0; i < product->target_count; i++) {
    const product_target *target = &product_targets(product)[i];
    const kernel_matrix *matrix = &target->matrix;
    uint64_t matrix_bytes = 0;
    product->kernels->types[matrix->type].matrix_bytes(matrix->rows, matrix->cols, &matrix_bytes);
    bytes += matrix_bytes;
    macs += (uint64_t)matrix->rows * matrix->cols * target->count;
  }
  ops_lap(ops, op, bytes, macs);
}

void measure_rows(op_records *ops, op_kind op, uint32_t tokens, uint64_t values) {
  if (ops != NULL) ops_lap(ops, op, tokens * values * sizeof(float), 0);
}

// Returns the size in bytes of one position in one layer, for all heads.
static uint64_t position_bytes(const paged_attention *attention) {
  const kv_shape *shape = kv_pool_shape(attention->pool);
  const kernel_kv_ops *kv = attention->kernels->kv;
  const uint64_t head_page_bytes = kv[shape->k_type].k_bytes(shape->head_dim) +
                                   (uint64_t)kv[shape->v_type].v_bytes(shape->head_dim);
  return head_page_bytes * shape->kv_heads / KERNEL_PAGE_TOKENS;
}

void measure_store(op_records *ops, const paged_attention *attention) {
  if (ops == NULL) return;
  ops_lap(ops, OP_KV_STORE, attention->count * position_bytes(attention), 0);
}

void measure_attention(op_records *ops, const paged_attention *attention) {
  if (ops == NULL) return;
  uint64_t positions = 0;
  for (uint32_t t = 0; t < attention->count; t++) {
    const uint32_t position = attention->inputs[t].position;
    positions += position + 1 - attention_first(attention, position);
  }
  ops_lap(ops, OP_ATTENTION, positions * position_bytes(attention),
          2 * positions * attention->heads * attention->head_dim);
}

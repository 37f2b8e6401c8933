// tensor/tensor.c — see tensor.h.
#include "tensor/tensor.h"

#include <string.h>

#include "base/checked.h"

wick_status tensor_expect(const tensor_ref *ref, uint32_t in, uint32_t out, uint32_t count,
                          weight_tensor *tensor, wick_error *error) {
  uint64_t row_bytes, bytes;
  *tensor = (weight_tensor){.type = ref->type, .dims = {in, out, count, 1}};
  if (type_row_bytes(ref->type, in, &row_bytes) && checked_mul_u64(row_bytes, out, &bytes) &&
      checked_mul_u64(bytes, count, &bytes) && bytes == ref->size_bytes) {
    return WICK_OK;
  }
  return fail_with(error, WICK_E_SHAPE, ref->offset_bytes,
                   "%llu bytes are not %llu rows of %u values of type %u",
                   (unsigned long long)ref->size_bytes, (unsigned long long)out * count, in,
                   (unsigned)ref->type);
}

wick_status tensor_interleave(weight_tensor *tensor, const kernel_table *kernels,
                              wick_error *error) {
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  if (ops->matmul == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "no kernel for type %s",
                     type_facts(tensor->type)->name);
  }
  if (!ops->matrix_bytes(tensor->dims[1], tensor->dims[0], &tensor->matrix_bytes) ||
      !checked_align_u64(tensor->matrix_bytes, CACHE_LINE_BYTES, &tensor->matrix_bytes) ||
      !checked_mul_u64(tensor->matrix_bytes, tensor->dims[2], &tensor->size_bytes)) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u rows of %u values do not fit",
                     tensor->dims[1], tensor->dims[0]);
  }
  tensor->is_interleaved = true;
  return WICK_OK;
}

// Clears the rows that pad the last group of a matrix, because they never arrive.
static void clear_padding(const weight_tensor *tensor, uint8_t *data) {
  const uint32_t rows = tensor->dims[1];
  if (rows % KERNEL_ROW_GROUP == 0) return;
  const uint64_t group_bytes = tensor->matrix_bytes / ceil_div_u32(rows, KERNEL_ROW_GROUP);
  // matrix_bytes is rounded up to a cache line, so the padding may begin up to one line earlier:
  // clear one more line.
  uint64_t clear_bytes = group_bytes + CACHE_LINE_BYTES;
  if (clear_bytes > tensor->matrix_bytes) clear_bytes = tensor->matrix_bytes;
  for (uint32_t i = 1; i <= tensor->dims[2]; i++) {
    memset(data + (i * tensor->matrix_bytes - clear_bytes), 0, (size_t)clear_bytes);
  }
}

void tensor_settle(weight_tensor *tensor, uint8_t *data) {
  tensor->data = data;
  clear_padding(tensor, data);
}

void tensor_place(weight_tensor *tensor, const kernel_table *kernels, uint32_t row,
                  uint32_t first_block, uint32_t block_count, const uint8_t *blocks) {
  uint8_t *data = (uint8_t *)(uintptr_t)tensor->data;
  if (row >= tensor->dims[1]) {
    data += row / tensor->dims[1] * tensor->matrix_bytes;
    row %= tensor->dims[1];
  }
  tensor->flags |= kernels->types[tensor->type].repack(data, tensor->dims[0], row, first_block,
                                                       block_count, blocks);
}

// ---- Query, key and value projections ----

wick_status qkv_split(const qkv_projection *qkv, uint32_t heads, uint32_t kv_heads,
                      uint32_t head_dim, qkv_rows *rows, wick_error *error) {
  uint64_t q, kv, row_bytes = 0;
  *rows = (qkv_rows){0};
  if (!checked_mul_u64(heads, head_dim, &q) || !checked_mul_u64(kv_heads, head_dim, &kv) ||
      q > INT32_MAX || kv > INT32_MAX) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u and %u heads of %u do not fit",
                     heads, kv_heads, head_dim);
  }
  const weight_tensor *fused = &qkv->fused;
  const bool fits =
      qkv->is_fused
          ? q + 2 * kv == fused->dims[1] && type_row_bytes(fused->type, fused->dims[0], &row_bytes)
          : q == qkv->q.dims[1] && kv == qkv->k.dims[1] && kv == qkv->v.dims[1];
  if (!fits) {
    return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET,
                     "%llu rows do not match %u heads and %u KV heads of %u",
                     (unsigned long long)qkv_out_rows(qkv), heads, kv_heads, head_dim);
  }
  *rows = (qkv_rows){(uint32_t)q, (uint32_t)kv, (uint32_t)kv, q * row_bytes, (q + kv) * row_bytes};
  return WICK_OK;
}

uint64_t qkv_out_rows(const qkv_projection *qkv) {
  if (qkv->is_fused) return qkv->fused.dims[1];
  return (uint64_t)qkv->q.dims[1] + qkv->k.dims[1] + qkv->v.dims[1];
}

// ---- A layer ----

uint32_t layer_up_rows(const layer_dims *dims, bool has_gate) {
  return dims->is_gated && !has_gate ? 2 * dims->ffn : dims->ffn;
}

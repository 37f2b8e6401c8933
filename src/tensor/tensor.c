// tensor/tensor.c — see tensor.h.
#include "tensor/tensor.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

wick_status tensor_check(const tensor_ref *ref, wick_error *error) {
  uint64_t bytes;
  if (type_row_bytes(ref->type, ref->values, &bytes) && bytes == ref->size_bytes) return WICK_OK;
  return fail_with(error, WICK_E_SHAPE, ref->offset_bytes,
                   "%llu bytes are not %llu values of type %u", (unsigned long long)ref->size_bytes,
                   (unsigned long long)ref->values, (unsigned)ref->type);
}

wick_status tensor_slice(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                         uint32_t in, uint32_t out, weight_tensor *tensor, wick_error *error) {
  *tensor = (weight_tensor){.type = ref->type, .dims = {in, out, 1, 1}};
  uint64_t end;
  if (!checked_add_u64(ref->offset_bytes, ref->size_bytes, &end) || end > UINT32_MAX) {
    return fail_with(error, WICK_E_OVERFLOW, ref->offset_bytes,
                     "%llu bytes at %llu lie beyond 4 GiB", (unsigned long long)ref->size_bytes,
                     (unsigned long long)ref->offset_bytes);
  }
  if (end > image_bytes) {
    return fail_with(error, WICK_E_RANGE, ref->offset_bytes, "%llu bytes at %llu: there are %llu",
                     (unsigned long long)ref->size_bytes, (unsigned long long)ref->offset_bytes,
                     (unsigned long long)image_bytes);
  }
  tensor->data = image + ref->offset_bytes;
  tensor->size_bytes = ref->size_bytes;
  return WICK_OK;
}

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

wick_status tensor_from_ref(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                            uint32_t in, uint32_t out, weight_tensor *tensor, wick_error *error) {
  const wick_status status = tensor_expect(ref, in, out, 1, tensor, error);
  if (status != WICK_OK) return status;
  return tensor_slice(ref, image, image_bytes, in, out, tensor, error);
}

// ---- Weights that stream in ----

wick_status tensor_interleave(weight_tensor *tensor, const kernel_table *kernels,
                              wick_error *error) {
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  if (ops->matmul == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET, "no product of type %s",
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

// The rows that pad the last group of a matrix never arrive: they must be zeros.
static void clear_padding(const weight_tensor *tensor, uint8_t *data) {
  const uint32_t rows = tensor->dims[1];
  if (rows % KERNEL_ROW_GROUP == 0) return;
  const uint64_t group_bytes = tensor->matrix_bytes / ceil_div_u32(rows, KERNEL_ROW_GROUP);
  // matrix_bytes is rounded up to a cache line, so this may begin a little late: clear a line more.
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

// ---- Views ----

void tensor_free(memory_gate *memory, weight_tensor *tensor) {
  if (tensor->is_owned) memory_free(memory, (void *)(uintptr_t)tensor->data);
  tensor->data = NULL;
  tensor->size_bytes = 0;
  tensor->is_freed = true;
}

// 8 rows in kernel layout, the activation, and the 8 products.
typedef struct matvec_room {
  uint8_t *group, *act;
  float *y;
  uint64_t group_bytes;
} matvec_room;

static bool take_room(const kernel_type_ops *ops, const kernel_table *kernels, memory_gate *memory,
                      uint32_t cols, matvec_room *room) {
  size_t bytes;
  if (!ops->matrix_bytes(KERNEL_ROW_GROUP, cols, &room->group_bytes) ||
      !checked_to_size(room->group_bytes, &bytes)) {
    return false;
  }
  room->group = memory_alloc(memory, bytes);
  room->act = memory_alloc(memory, kernels->act_bytes(ops->act_form, cols));
  room->y = memory_alloc(memory, KERNEL_ROW_GROUP * sizeof(float));
  return room->group != NULL && room->act != NULL && room->y != NULL;
}

static void multiply(const weight_tensor *tensor, const kernel_type_ops *ops, uint64_t row_bytes,
                     const matvec_room *room, float *y) {
  const uint32_t cols = tensor->dims[0], rows = tensor->dims[1];
  const uint32_t blocks = cols / type_facts(tensor->type)->block_values;
  for (uint32_t first = 0; first < rows; first += KERNEL_ROW_GROUP) {
    const uint32_t count = rows - first < KERNEL_ROW_GROUP ? rows - first : KERNEL_ROW_GROUP;
    kernel_matrix group = {room->group, count, cols, tensor->type, 0};
    memset(room->group, 0, (size_t)room->group_bytes);
    for (uint32_t r = 0; r < count; r++) {
      group.flags |= ops->repack(room->group, cols, r, 0, blocks,
                                 tensor->data + (size_t)(first + r) * (size_t)row_bytes);
    }
    ops->matmul(&group, 0, count, room->act, 0, 1, room->y, KERNEL_ROW_GROUP);
    memcpy(y + first, room->y, count * sizeof *y);
  }
}

wick_status tensor_matvec(const weight_tensor *tensor, const kernel_table *kernels,
                          memory_gate *memory, const float *x, float *y, wick_error *error) {
  uint64_t row_bytes;
  if (tensor->is_freed || tensor->data == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "the tensor has no data");
  }
  if (tensor->is_interleaved || (unsigned)tensor->type >= GGML_TYPE_COUNT ||
      kernels->types[tensor->type].matmul == NULL || tensor->dims[0] == 0 || tensor->dims[1] == 0 ||
      !type_row_bytes(tensor->type, tensor->dims[0], &row_bytes) ||
      tensor->size_bytes / tensor->dims[1] < row_bytes) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "no product with %u rows of %u values of type %u", tensor->dims[1],
                     tensor->dims[0], (unsigned)tensor->type);
  }
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  matvec_room room = {0};
  wick_status status = WICK_OK;
  if (take_room(ops, kernels, memory, tensor->dims[0], &room)) {
    kernels->act_make(ops->act_form, x, tensor->dims[0], room.act);
    multiply(tensor, ops, row_bytes, &room, y);
  } else {
    status = memory_fail(memory, error, "a product", room.group_bytes);
  }
  memory_free(memory, room.group);
  memory_free(memory, room.act);
  memory_free(memory, room.y);
  return status;
}

// ---- Query, key and value projections ----

static wick_status rows_of(uint64_t values, uint32_t hidden, uint64_t *rows, wick_error *error) {
  if (hidden != 0 && values % hidden == 0) {
    *rows = values / hidden;
    return WICK_OK;
  }
  return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET, "%llu values are not rows of %u",
                   (unsigned long long)values, hidden);
}

wick_status qkv_out_dim(const qkv_ref *qkv, uint32_t hidden, uint64_t *rows, wick_error *error) {
  if (qkv->is_fused) return rows_of(qkv->fused.values, hidden, rows, error);
  uint64_t q, k, v;
  wick_status status = rows_of(qkv->q.values, hidden, &q, error);
  if (status == WICK_OK) status = rows_of(qkv->k.values, hidden, &k, error);
  if (status == WICK_OK) status = rows_of(qkv->v.values, hidden, &v, error);
  if (status == WICK_OK) *rows = q + k + v;
  return status;
}

wick_status qkv_q_dim_mha(const qkv_ref *qkv, uint32_t hidden, uint64_t *rows, wick_error *error) {
  if (!qkv->is_fused) return rows_of(qkv->q.values, hidden, rows, error);
  uint64_t all;
  const wick_status status = rows_of(qkv->fused.values, hidden, &all, error);
  if (status != WICK_OK) return status;
  return rows_of(all, 3, rows, error);
}

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
                     "%llu rows are not those of %u heads and %u KV heads of %u",
                     (unsigned long long)qkv_out_rows(qkv), heads, kv_heads, head_dim);
  }
  *rows = (qkv_rows){(uint32_t)q, (uint32_t)kv, (uint32_t)kv, q * row_bytes, (q + kv) * row_bytes};
  return WICK_OK;
}

static wick_status bind_rows(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                             uint32_t hidden, weight_tensor *tensor, wick_error *error) {
  uint64_t rows;
  const wick_status status = rows_of(ref->values, hidden, &rows, error);
  if (status != WICK_OK) return status;
  if (rows > UINT32_MAX) {
    return fail_with(error, WICK_E_OVERFLOW, ref->offset_bytes, "%llu rows do not fit",
                     (unsigned long long)rows);
  }
  return tensor_slice(ref, image, image_bytes, hidden, (uint32_t)rows, tensor, error);
}

wick_status qkv_bind(const qkv_ref *ref, const uint8_t *image, uint64_t image_bytes,
                     uint32_t hidden, uint32_t fused_out, qkv_projection *qkv, wick_error *error) {
  *qkv = (qkv_projection){.is_fused = ref->is_fused};
  if (ref->is_fused) {
    return tensor_slice(&ref->fused, image, image_bytes, hidden, fused_out, &qkv->fused, error);
  }
  wick_status status = bind_rows(&ref->q, image, image_bytes, hidden, &qkv->q, error);
  if (status == WICK_OK) status = bind_rows(&ref->k, image, image_bytes, hidden, &qkv->k, error);
  if (status == WICK_OK) status = bind_rows(&ref->v, image, image_bytes, hidden, &qkv->v, error);
  return status;
}

uint64_t qkv_out_rows(const qkv_projection *qkv) {
  if (qkv->is_fused) return qkv->fused.dims[1];
  return (uint64_t)qkv->q.dims[1] + qkv->k.dims[1] + qkv->v.dims[1];
}

uint64_t qkv_bytes(const qkv_projection *qkv) {
  return qkv->fused.size_bytes + qkv->q.size_bytes + qkv->k.size_bytes + qkv->v.size_bytes;
}

void qkv_free_data(memory_gate *memory, qkv_projection *qkv) {
  tensor_free(memory, &qkv->fused);
  tensor_free(memory, &qkv->q);
  tensor_free(memory, &qkv->k);
  tensor_free(memory, &qkv->v);
}

// ---- A layer ----

uint32_t layer_up_rows(const layer_dims *dims, bool has_gate) {
  return dims->is_gated && !has_gate ? 2 * dims->ffn : dims->ffn;
}

wick_status layer_bind(const layer_refs *refs, const uint8_t *image, uint64_t image_bytes,
                       const layer_dims *dims, tensor_layer *layer, wick_error *error) {
  const uint32_t q = dims->heads * dims->head_dim, kv = dims->kv_heads * dims->head_dim;
  const uint32_t hidden = dims->hidden, ffn = dims->ffn;
  *layer = (tensor_layer){.ffn.has_gate = refs->ffn_gate.is_present};
  qkv_projection *qkv = &layer->attention.qkv;
  qkv_rows rows;
  wick_status status = qkv_bind(&refs->qkv, image, image_bytes, hidden, q + 2 * kv, qkv, error);
  if (status == WICK_OK) {
    status = qkv_split(qkv, dims->heads, dims->kv_heads, dims->head_dim, &rows, error);
  }
  const struct {
    const tensor_ref *ref;
    weight_tensor *tensor;
    uint32_t in, out;
  } parts[] = {{&refs->attn_output, &layer->attention.output, q, hidden},
               {&refs->ffn_up, &layer->ffn.up, hidden, layer_up_rows(dims, layer->ffn.has_gate)},
               {&refs->ffn_down, &layer->ffn.down, ffn, hidden},
               {&refs->ffn_gate.ref, &layer->ffn.gate, hidden, ffn}};
  const uint32_t count = layer->ffn.has_gate ? 4 : 3;
  for (uint32_t i = 0; i < count && status == WICK_OK; i++) {
    status = tensor_from_ref(parts[i].ref, image, image_bytes, parts[i].in, parts[i].out,
                             parts[i].tensor, error);
  }
  return status;
}

void layer_free_projections(memory_gate *memory, tensor_layer *layer) {
  qkv_free_data(memory, &layer->attention.qkv);
  tensor_free(memory, &layer->attention.output);
  tensor_free(memory, &layer->ffn.up);
  tensor_free(memory, &layer->ffn.down);
  tensor_free(memory, &layer->ffn.gate);
}

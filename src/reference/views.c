// reference/views.c — see views.h.
#include "reference/views.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

// ---- Tensors ----

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
    return fail_with(error, WICK_E_RANGE, ref->offset_bytes,
                     "%llu bytes at %llu exceed the size, %llu",
                     (unsigned long long)ref->size_bytes, (unsigned long long)ref->offset_bytes,
                     (unsigned long long)image_bytes);
  }
  tensor->data = image + ref->offset_bytes;
  tensor->size_bytes = ref->size_bytes;
  return WICK_OK;
}

wick_status tensor_from_ref(const tensor_ref *ref, const uint8_t *image, uint64_t image_bytes,
                            uint32_t in, uint32_t out, weight_tensor *tensor, wick_error *error) {
  const wick_status status = tensor_expect(ref, in, out, 1, tensor, error);
  if (status != WICK_OK) return status;
  return tensor_slice(ref, image, image_bytes, in, out, tensor, error);
}

void tensor_free(memory_gate *memory, weight_tensor *tensor) {
  if (tensor->is_owned) memory_free(memory, (void *)(uintptr_t)tensor->data);
  tensor->data = NULL;
  tensor->size_bytes = 0;
  tensor->is_freed = true;
}

// Buffers for 8 rows in kernel layout, the activation, and the 8 products.
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
    status = memory_fail(memory, error, "a product");
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
  return fail_with(error, WICK_E_SHAPE, WICK_NO_OFFSET, "%llu values are not whole rows of %u",
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

// model/binder.c — see binder.h.
#include "model/binder.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

// What a block asks for.
typedef struct tensor_wish {
  const char *name;  // in a layer: behind "blk.N."
  uint32_t rows, cols, count;
  bool is_vector;
  binding_need need;
} tensor_wish;

static void make_name(const model_binder *binder, const char *own,
                      char name[GGUF_TENSOR_NAME_BYTES_MAX]) {
  if (binder->layer == MODEL_LAYER_NONE) {
    text_format(name, GGUF_TENSOR_NAME_BYTES_MAX, "%s", own);
  } else {
    text_format(name, GGUF_TENSOR_NAME_BYTES_MAX, "blk.%d.%s", (int)binder->layer, own);
  }
}

static wick_status check_shape(const gguf_tensor *tensor, const tensor_wish *wish,
                               wick_error *error) {
  if (tensor->dims[0] == wish->cols && tensor->dims[1] == wish->rows &&
      tensor->dims[2] == wish->count && tensor->dims[3] == 1) {
    return WICK_OK;
  }
  if (wish->count != 1) {
    return fail_with(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                     "the tensor '%.*s' is %llu x %llu x %llu, expected %u x %u x %u (row length x "
                     "rows x matrices)",
                     (int)tensor->name.size_bytes, tensor->name.bytes,
                     (unsigned long long)tensor->dims[0], (unsigned long long)tensor->dims[1],
                     (unsigned long long)tensor->dims[2], wish->cols, wish->rows, wish->count);
  }
  return fail_with(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                   "the tensor '%.*s' is %llu x %llu, expected %u x %u (row length x rows)",
                   (int)tensor->name.size_bytes, tensor->name.bytes,
                   (unsigned long long)tensor->dims[0], (unsigned long long)tensor->dims[1],
                   wish->cols, wish->rows);
}

static bool is_vector_type(uint32_t type) {
  return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

// Bytes of one matrix, or of the whole vector.
static wick_status tensor_bytes(const kernel_table *kernels, const gguf_tensor *tensor,
                                bool is_vector, uint64_t *bytes, wick_error *error) {
  const uint32_t cols = (uint32_t)tensor->dims[0], rows = (uint32_t)tensor->dims[1];
  if (is_vector && is_vector_type(tensor->type)) {
    *bytes = (uint64_t)cols * rows * sizeof(float);
    return WICK_OK;
  }
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  if (is_vector || ops->matmul == NULL) {
    return fail_with(error, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                     "the tensor '%.*s' is of type %s, which is not supported%s",
                     (int)tensor->name.size_bytes, tensor->name.bytes,
                     type_facts(tensor->type)->name, is_vector ? " for a vector" : " yet");
  }
  if (!ops->matrix_bytes(rows, cols, bytes)) {
    return fail_with(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                     "the tensor '%.*s' does not fit: %u x %u of type %s",
                     (int)tensor->name.size_bytes, tensor->name.bytes, cols, rows,
                     type_facts(tensor->type)->name);
  }
  return WICK_OK;
}

// Finds and checks the tensor, and counts its place in; NULL when it is absent or wrong.
static model_binding *bind_tensor(model_binder *binder, const tensor_wish *wish,
                                  const gguf_tensor **found) {
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  loaded_model *model = binder->model;
  if (binder->status != WICK_OK) return NULL;
  make_name(binder, wish->name, name);
  const int32_t index = binder->tensors->find(binder->tensors->context, name);
  if (index < 0) {
    if (wish->need == BINDING_REQUIRED) {
      binder->status = fail_with(binder->error, WICK_E_FORMAT, WICK_NO_OFFSET,
                                 "the tensor '%s' is missing", name);
    }
    return NULL;
  }
  const gguf_tensor *tensor = binder->tensors->at(binder->tensors->context, (uint32_t)index);
  uint64_t part_bytes = 0, bytes = 0;
  binder->status = check_shape(tensor, wish, binder->error);
  if (binder->status == WICK_OK) {
    binder->status =
        tensor_bytes(model->kernels, tensor, wish->is_vector, &part_bytes, binder->error);
  }
  if (binder->status != WICK_OK) return NULL;
  if (!checked_align_u64(part_bytes, CACHE_LINE_BYTES, &part_bytes) ||
      !checked_mul_u64(part_bytes, wish->count, &bytes) ||
      !checked_add_u64(model->weights_bytes, bytes, &model->weights_bytes)) {
    binder->status = fail_with(binder->error, WICK_E_OVERFLOW, tensor->entry_offset_bytes,
                               "the weights up to '%s' do not fit 64 bits", name);
    return NULL;
  }
  model_binding *binding = &model->bindings[index];
  *binding = (model_binding){.size_bytes = bytes,
                             .part_bytes = part_bytes,
                             .part_rows = wish->rows,
                             .layer = binder->waits};
  const int32_t outside = (int32_t)model->config.layers;
  model->layer_missing[binder->waits < 0 ? outside : binder->waits]++;
  *found = tensor;
  return binding;
}

static model_binding *bind_matrices(model_binder *binder, const tensor_wish *wish,
                                    kernel_matrix *matrix) {
  const gguf_tensor *tensor;
  model_binding *binding = bind_tensor(binder, wish, &tensor);
  if (binding == NULL) return NULL;
  *matrix = (kernel_matrix){.rows = wish->rows, .cols = wish->cols, .type = tensor->type};
  binding->matrix = matrix;
  return binding;
}

void bind_matrix(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, kernel_matrix *matrix) {
  const tensor_wish wish = {name, rows, cols, 1, false, need};
  bind_matrices(binder, &wish, matrix);
}

void bind_stack(model_binder *binder, const char *name, uint32_t count, uint32_t rows,
                uint32_t cols, binding_need need, model_stack *stack) {
  const tensor_wish wish = {name, rows, cols, count, false, need};
  const model_binding *binding = bind_matrices(binder, &wish, &stack->matrix);
  if (binding == NULL) return;
  stack->matrix_bytes = binding->part_bytes;
  stack->count = count;
}

void bind_vector(model_binder *binder, const char *name, uint32_t count, binding_need need,
                 float **vector) {
  const tensor_wish wish = {name, 1, count, 1, true, need};
  const gguf_tensor *tensor;
  model_binding *binding = bind_tensor(binder, &wish, &tensor);
  if (binding != NULL) binding->vector = vector;
}

void bind_turned(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, float **out) {
  const tensor_wish wish = {name, rows, cols, 1, true, need};
  const gguf_tensor *tensor;
  model_binding *binding = bind_tensor(binder, &wish, &tensor);
  if (binding == NULL) return;
  binding->vector = out;
  binding->turned_rows = rows;
}

bool binder_has(const model_binder *binder, const char *own) {
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  make_name(binder, own, name);
  return binder->tensors->find(binder->tensors->context, name) >= 0;
}

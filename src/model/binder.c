// model/binder.c — see binder.h.
#include "model/binder.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

// A weight that a block requests.
typedef struct tensor_wish {
  const char *name;  // in a layer: after "blk.N."
  uint32_t rows, cols, count;
  binding_need need;
} tensor_wish;

static void make_name(const model_binder *binder, const char *own,
                      char name[GGUF_TENSOR_NAME_BYTES_MAX]) {
  if (binder->layer == MODEL_LAYER_NONE) {
    text_format(name, GGUF_TENSOR_NAME_BYTES_MAX, "%s", own);
  } else {
    const char *prefix = binder->model->layer_prefix;
    text_format(name, GGUF_TENSOR_NAME_BYTES_MAX, "%sblk.%d.%s", prefix == NULL ? "" : prefix,
                (int)binder->layer, own);
  }
}

// Checks the shape. is_flat: rows may be in any dimension except the first (RWKV's mixes are 64 x 1
// x 1 x 6).
static wick_status check_shape(const gguf_tensor *tensor, const tensor_wish *wish, bool is_flat,
                               wick_error *error) {
  if (is_flat && tensor->dims[0] == wish->cols &&
      tensor->dims[1] * tensor->dims[2] * tensor->dims[3] == wish->rows) {
    return WICK_OK;
  }
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

static wick_status refuse_type(const gguf_tensor *tensor, const char *why, wick_error *error) {
  return fail_with(error, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                   "the tensor '%.*s' is of type %s, which is not supported%s",
                   (int)tensor->name.size_bytes, tensor->name.bytes, type_facts(tensor->type)->name,
                   why);
}

// Determines the layout of the file's tensor in the weights, and its size there.
static wick_status make_matrix(const kernel_table *kernels, const gguf_tensor *tensor,
                               const tensor_wish *wish, weight_tensor *matrix, wick_error *error) {
  const tensor_ref ref = {tensor->offset_bytes, tensor->size_bytes,
                          tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3],
                          tensor->type};
  wick_status status = tensor_expect(&ref, wish->cols, wish->rows, wish->count, matrix, error);
  if (status != WICK_OK) return status;
  status = tensor_interleave(matrix, kernels, error);
  if (status == WICK_E_UNSUPPORTED) return refuse_type(tensor, " yet", error);
  if (status == WICK_OK) return status;
  return fail_with(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                   "the tensor '%.*s' is too large: %u x %u of type %s",
                   (int)tensor->name.size_bytes, tensor->name.bytes, wish->cols, wish->rows,
                   type_facts(tensor->type)->name);
}

// Finds and checks the tensor, and adds its size to the total. Returns NULL if it is absent or
// invalid. `matrix` is NULL for a vector.
static model_binding *bind_tensor(model_binder *binder, const tensor_wish *wish,
                                  weight_tensor *matrix) {
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
  uint64_t bytes = (uint64_t)wish->cols * wish->rows * sizeof(float);
  weight_tensor made = {.size_bytes = 0};
  binder->status = check_shape(tensor, wish, matrix == NULL, binder->error);
  if (binder->status == WICK_OK && matrix != NULL) {
    binder->status = make_matrix(model->kernels, tensor, wish, &made, binder->error);
    bytes = made.size_bytes;
  } else if (binder->status == WICK_OK && !is_vector_type(tensor->type)) {
    binder->status = refuse_type(tensor, " for a vector", binder->error);
  }
  if (binder->status != WICK_OK) return NULL;
  if (!checked_align_u64(bytes, CACHE_LINE_BYTES, &bytes) ||
      !checked_add_u64(model->weights_bytes, bytes, &model->weights_bytes)) {
    binder->status = fail_with(binder->error, WICK_E_OVERFLOW, tensor->entry_offset_bytes,
                               "the weights up to '%s' exceed 64 bits", name);
    return NULL;
  }
  made.number = (uint32_t)index + 1;
  if (matrix != NULL) *matrix = made;
  model_binding *binding = &model->bindings[index];
  *binding = (model_binding){.matrix = matrix,
                             .size_bytes = bytes,
                             .layer = binder->waits,
                             .is_adaptable = matrix != NULL && !binder->is_apart &&
                                             (wish->count == 1 || binder->is_routed)};
  const int32_t outside = (int32_t)model->config.layers;
  model->layer_missing[binder->waits < 0 ? outside : binder->waits]++;
  return binding;
}

void bind_matrix(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, weight_tensor *matrix) {
  bind_stack(binder, name, 1, rows, cols, need, matrix);
}

void bind_lookup(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 weight_tensor *matrix) {
  const bool was_apart = binder->is_apart;
  binder->is_apart = true;
  bind_matrix(binder, name, rows, cols, BINDING_REQUIRED, matrix);
  binder->is_apart = was_apart;
}

// Makes the name of the tensor that belongs to `name`, which ends in ".weight": ".bias", ".scale".
// Returns false if `name` ends differently.
static bool name_beside(const char *name, const char *suffix,
                        char out[GGUF_TENSOR_NAME_BYTES_MAX]) {
  static const char WEIGHT[] = ".weight";
  const size_t length = strlen(name), end = sizeof WEIGHT - 1;
  if (length <= end || memcmp(name + length - end, WEIGHT, end) != 0) return false;
  text_format(out, GGUF_TENSOR_NAME_BYTES_MAX, "%.*s%s", (int)(length - end), name, suffix);
  return true;
}

void bind_stack(model_binder *binder, const char *name, uint32_t count, uint32_t rows,
                uint32_t cols, binding_need need, weight_tensor *stack) {
  const tensor_wish wish = {name, rows, cols, count, need};
  char scales[GGUF_TENSOR_NAME_BYTES_MAX];
  if (bind_tensor(binder, &wish, stack) == NULL || binder->is_unscaled) return;
  if (!name_beside(name, ".scale", scales)) return;
  bind_vector(binder, scales, count, BINDING_OPTIONAL, &stack->scales);
}

void bind_vector(model_binder *binder, const char *name, uint32_t count, binding_need need,
                 float **vector) {
  bind_table(binder, name, 1, count, need, vector);
}

void bind_table(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                binding_need need, float **out) {
  const tensor_wish wish = {name, rows, cols, 1, need};
  model_binding *binding = bind_tensor(binder, &wish, NULL);
  if (binding == NULL) return;
  binding->vector = out;
  binding->cols = cols;
}

void bind_norm(model_binder *binder, const char *name, uint32_t count, float **weight,
               float **bias) {
  char beside[GGUF_TENSOR_NAME_BYTES_MAX];
  if (name == NULL) return;
  bind_vector(binder, name, count, BINDING_REQUIRED, weight);
  if (!name_beside(name, ".bias", beside)) return;
  bind_vector(binder, beside, count, BINDING_OPTIONAL, bias);
}

void bind_turned(model_binder *binder, const char *name, uint32_t rows, uint32_t cols,
                 binding_need need, float **out) {
  const tensor_wish wish = {name, rows, cols, 1, need};
  model_binding *binding = bind_tensor(binder, &wish, NULL);
  if (binding == NULL) return;
  binding->vector = out;
  binding->turned_rows = rows;
}

// Finds a tensor of the file. Returns NULL if it is absent.
static const gguf_tensor *find_tensor(const model_binder *binder, const char *own) {
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  make_name(binder, own, name);
  const int32_t index = binder->tensors->find(binder->tensors->context, name);
  return index < 0 ? NULL : binder->tensors->at(binder->tensors->context, (uint32_t)index);
}

uint32_t binder_rows(const model_binder *binder, const char *own) {
  const gguf_tensor *tensor = find_tensor(binder, own);
  if (tensor == NULL) return 0;
  return tensor->dims[1] > MODEL_HIDDEN_MAX ? MODEL_HIDDEN_MAX : (uint32_t)tensor->dims[1];
}

bool binder_has(const model_binder *binder, const char *own) {
  return find_tensor(binder, own) != NULL;
}

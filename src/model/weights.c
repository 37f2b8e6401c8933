// model/weights.c — binding: one list says which tensors a layer has, their shapes, and where they
// go.
#include "model/weights.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "base/text.h"

typedef enum dimension {
  DIM_ONE,
  DIM_HIDDEN,
  DIM_Q,
  DIM_KV,
  DIM_FFN,
  DIM_VOCAB,
  DIM_ROPE
} dimension;

typedef struct tensor_spec {
  const char *name;      // after "blk.N." for a layer's
  size_t member;         // offset in model_layer or wick_model
  dimension rows, cols;  // a vector has rows DIM_ONE
  bool is_required;
} tensor_spec;

#define LAYER(member) offsetof(model_layer, member)
static const tensor_spec LAYER_SPECS[] = {
    {"attn_norm.weight", LAYER(attn_norm), DIM_ONE, DIM_HIDDEN, true},
    {"attn_q.weight", LAYER(q), DIM_Q, DIM_HIDDEN, true},
    {"attn_k.weight", LAYER(k), DIM_KV, DIM_HIDDEN, true},
    {"attn_v.weight", LAYER(v), DIM_KV, DIM_HIDDEN, true},
    {"attn_q.bias", LAYER(q_bias), DIM_ONE, DIM_Q, false},
    {"attn_k.bias", LAYER(k_bias), DIM_ONE, DIM_KV, false},
    {"attn_v.bias", LAYER(v_bias), DIM_ONE, DIM_KV, false},
    {"attn_output.weight", LAYER(attn_output), DIM_HIDDEN, DIM_Q, true},
    {"attn_output.bias", LAYER(attn_output_bias), DIM_ONE, DIM_HIDDEN, false},
    {"ffn_norm.weight", LAYER(ffn_norm), DIM_ONE, DIM_HIDDEN, true},
    {"ffn_gate.weight", LAYER(gate), DIM_FFN, DIM_HIDDEN, true},
    {"ffn_up.weight", LAYER(up), DIM_FFN, DIM_HIDDEN, true},
    {"ffn_gate.bias", LAYER(gate_bias), DIM_ONE, DIM_FFN, false},
    {"ffn_up.bias", LAYER(up_bias), DIM_ONE, DIM_FFN, false},
    {"ffn_down.weight", LAYER(down), DIM_HIDDEN, DIM_FFN, true},
    {"ffn_down.bias", LAYER(down_bias), DIM_ONE, DIM_HIDDEN, false},
};
#undef LAYER

#define MODEL(member) offsetof(wick_model, member)
static const tensor_spec MODEL_SPECS[] = {
    {"token_embd.weight", MODEL(embedding), DIM_VOCAB, DIM_HIDDEN, true},
    {"output_norm.weight", MODEL(output_norm), DIM_ONE, DIM_HIDDEN, true},
    {"output.weight", MODEL(output), DIM_VOCAB, DIM_HIDDEN, false},
    {"output.bias", MODEL(output_bias), DIM_ONE, DIM_VOCAB, false},
    {"rope_freqs.weight", MODEL(rope_factors), DIM_ONE, DIM_ROPE, false},
};
#undef MODEL

enum { LAYER_SPEC_COUNT = sizeof LAYER_SPECS / sizeof *LAYER_SPECS };
enum { MODEL_SPEC_COUNT = sizeof MODEL_SPECS / sizeof *MODEL_SPECS };

static uint32_t size_of_dimension(const wick_model_config *config, dimension which) {
  switch (which) {
    case DIM_ONE:
      return 1;
    case DIM_HIDDEN:
      return config->hidden;
    case DIM_Q:
      return wick_q_dim(config);
    case DIM_KV:
      return wick_kv_dim(config);
    case DIM_FFN:
      return config->ffn;
    case DIM_VOCAB:
      return config->vocab;
    case DIM_ROPE:
      return config->rope_dims / 2;
  }
  return 0;
}

static wick_status check_shape(const gguf_tensor *tensor, uint32_t rows, uint32_t cols,
                               wick_error *error) {
  if (tensor->dims[0] == cols && tensor->dims[1] == rows && tensor->dims[2] == 1 &&
      tensor->dims[3] == 1) {
    return WICK_OK;
  }
  return wick_fail(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                   "the tensor '%.*s' is %llu x %llu, expected %u x %u (row length x rows)",
                   (int)tensor->name.size_bytes, tensor->name.bytes,
                   (unsigned long long)tensor->dims[0], (unsigned long long)tensor->dims[1], cols,
                   rows);
}

static bool is_vector_type(uint32_t type) {
  return type == WICK_TYPE_F32 || type == WICK_TYPE_F16 || type == WICK_TYPE_BF16;
}

static wick_status tensor_bytes(const wick_kernels *kernels, const gguf_tensor *tensor,
                                bool is_vector, uint64_t *bytes, wick_error *error) {
  const uint32_t cols = (uint32_t)tensor->dims[0], rows = (uint32_t)tensor->dims[1];
  if (is_vector && is_vector_type(tensor->type)) {
    *bytes = (uint64_t)cols * sizeof(float);
    return WICK_OK;
  }
  const kernel_type_ops *ops = &kernels->types[tensor->type];
  if (is_vector || ops->matmul == NULL) {
    return wick_fail(error, WICK_E_UNSUPPORTED, tensor->entry_offset_bytes,
                     "the tensor '%.*s' is of type %s, which is not supported%s",
                     (int)tensor->name.size_bytes, tensor->name.bytes,
                     type_facts(tensor->type)->name, is_vector ? " for a vector" : " yet");
  }
  if (!ops->matrix_bytes(rows, cols, bytes)) {
    return wick_fail(error, WICK_E_SHAPE, tensor->entry_offset_bytes,
                     "the tensor '%.*s' does not fit: %u x %u of type %s",
                     (int)tensor->name.size_bytes, tensor->name.bytes, cols, rows,
                     type_facts(tensor->type)->name);
  }
  return WICK_OK;
}

static void set_target(model_binding *binding, uint8_t *target, const gguf_tensor *tensor,
                       bool is_vector) {
  if (is_vector) {
    binding->vector = (float **)(void *)target;
    return;
  }
  kernel_matrix *matrix = (kernel_matrix *)(void *)target;
  matrix->rows = (uint32_t)tensor->dims[1];
  matrix->cols = (uint32_t)tensor->dims[0];
  matrix->type = tensor->type;
  binding->matrix = matrix;
}

// Checks one tensor and notes its need; the place follows in model_allocate_weights.
static wick_status bind_tensor(wick_model *model, const model_tensors *tensors,
                               const tensor_spec *spec, const char *name, int32_t layer,
                               wick_error *error) {
  const int32_t index = tensors->find(tensors->context, name);
  if (index < 0) {
    if (!spec->is_required) return WICK_OK;
    return wick_fail(error, WICK_E_FORMAT, WICK_NO_OFFSET, "the tensor '%s' is missing", name);
  }
  const gguf_tensor *tensor = tensors->at(tensors->context, (uint32_t)index);
  const bool is_vector = spec->rows == DIM_ONE;
  wick_status status = check_shape(tensor, size_of_dimension(&model->config, spec->rows),
                                   size_of_dimension(&model->config, spec->cols), error);
  if (status != WICK_OK) return status;
  uint64_t bytes;
  status = tensor_bytes(model->kernels, tensor, is_vector, &bytes, error);
  if (status != WICK_OK) return status;
  if (!checked_align_u64(bytes, WICK_CACHE_LINE_BYTES, &bytes) ||
      !checked_add_u64(model->weights_bytes, bytes, &model->weights_bytes)) {
    return wick_fail(error, WICK_E_OVERFLOW, tensor->entry_offset_bytes,
                     "the weights up to '%s' do not fit 64 bits", name);
  }
  model_binding *binding = &model->bindings[index];
  uint8_t *base = layer < 0 ? (uint8_t *)model : (uint8_t *)&model->layers[layer];
  set_target(binding, base + spec->member, tensor, is_vector);
  binding->size_bytes = bytes;
  binding->layer = layer;
  model->layer_missing[layer < 0 ? (int32_t)model->config.layers : layer]++;
  return WICK_OK;
}

static wick_status bind_all(wick_model *model, const model_tensors *tensors, wick_error *error) {
  char name[GGUF_TENSOR_NAME_BYTES_MAX];
  for (uint32_t i = 0; i < MODEL_SPEC_COUNT; i++) {
    const wick_status status =
        bind_tensor(model, tensors, &MODEL_SPECS[i], MODEL_SPECS[i].name, MODEL_LAYER_NONE, error);
    if (status != WICK_OK) return status;
  }
  for (uint32_t layer = 0; layer < model->config.layers; layer++) {
    const size_t prefix_bytes = text_format(name, sizeof name, "blk.%u.", layer);
    for (uint32_t i = 0; i < LAYER_SPEC_COUNT; i++) {
      const char *own = LAYER_SPECS[i].name;
      memcpy(name + prefix_bytes, own, strlen(own) + 1);
      const wick_status status =
          bind_tensor(model, tensors, &LAYER_SPECS[i], name, (int32_t)layer, error);
      if (status != WICK_OK) return status;
    }
  }
  model->is_tied = model->output.rows == 0;
  return WICK_OK;
}

static wick_status allocate_lists(wick_model *model, const model_tensors *tensors,
                                  wick_error *error) {
  const uint32_t layers = model->config.layers;
  // A file that promises layers without their tensors must not make us allocate for them.
  if (layers > tensors->count) {
    return wick_fail(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "%s.block_count is %u, the file has %u tensors", model->config.family->name,
                     layers, tensors->count);
  }
  model->binding_count = tensors->count;
  model->layers = memory_alloc_zeroed(model->memory, layers * sizeof(model_layer));
  model->layer_missing = memory_alloc_zeroed(model->memory, (layers + 1) * sizeof(uint32_t));
  model->bindings = memory_alloc_zeroed(model->memory, tensors->count * sizeof(model_binding));
  if (model->layers == NULL || model->layer_missing == NULL || model->bindings == NULL) {
    return memory_fail(model->memory, error, "the list of weights", layers * sizeof(model_layer));
  }
  return WICK_OK;
}

wick_status model_create(wick_memory *memory, const wick_kernels *kernels,
                         const gguf_directory *directory, const model_tensors *tensors,
                         wick_model **out, wick_error *error) {
  wick_model *model = memory_alloc_zeroed(memory, sizeof *model);
  if (model == NULL) return memory_fail(memory, error, "the model", sizeof *model);
  model->memory = memory;
  model->kernels = kernels;
  const int32_t at = tensors->find(tensors->context, "token_embd.weight");
  const gguf_tensor *embedding = at < 0 ? NULL : tensors->at(tensors->context, (uint32_t)at);
  wick_status status = model_config_read(directory, embedding, &model->config, error);
  if (status == WICK_OK) status = allocate_lists(model, tensors, error);
  if (status == WICK_OK) status = bind_all(model, tensors, error);
  if (status != WICK_OK) {
    model_destroy(model);
    return status;
  }
  *out = model;
  return WICK_OK;
}

void model_destroy(wick_model *model) {
  if (model == NULL) return;
  memory_free(model->memory, model->weights);
  memory_free(model->memory, model->bindings);
  memory_free(model->memory, model->layer_missing);
  memory_free(model->memory, model->layers);
  memory_free(model->memory, model);
}

// The rows that pad the last group of a matrix never arrive: they must be zeros.
static void clear_padding(const model_binding *binding) {
  const uint32_t rows = binding->matrix->rows;
  if (rows % KERNEL_ROW_GROUP == 0) return;
  const uint64_t group_bytes = binding->size_bytes / ceil_div_u32(rows, KERNEL_ROW_GROUP);
  // size_bytes is rounded up to a cache line, so this may begin a little late: clear a line more.
  uint64_t clear_bytes = group_bytes + WICK_CACHE_LINE_BYTES;
  if (clear_bytes > binding->size_bytes) clear_bytes = binding->size_bytes;
  memset(binding->data + (binding->size_bytes - clear_bytes), 0, (size_t)clear_bytes);
}

wick_status model_allocate_weights(wick_model *model, wick_error *error) {
  size_t bytes;
  if (!checked_to_size(model->weights_bytes, &bytes)) {
    return wick_fail(error, WICK_E_NOMEM, WICK_NO_OFFSET,
                     "the weights take %llu bytes, more than this build can address",
                     (unsigned long long)model->weights_bytes);
  }
  model->weights = memory_alloc(model->memory, bytes);
  if (model->weights == NULL) return memory_fail(model->memory, error, "the weights", bytes);
  uint8_t *at = model->weights;
  for (uint32_t i = 0; i < model->binding_count; i++) {
    model_binding *binding = &model->bindings[i];
    binding->data = at;
    if (binding->matrix != NULL) {
      binding->matrix->data = at;
      clear_padding(binding);
    }
    if (binding->vector != NULL) *binding->vector = (float *)(void *)at;
    at += binding->size_bytes;
  }
  if (model->is_tied) model->output = model->embedding;
  return WICK_OK;
}

bool model_wants(const wick_model *model, uint32_t tensor) {
  const model_binding *binding = &model->bindings[tensor];
  return binding->matrix != NULL || binding->vector != NULL;
}

static void place_vector(float *out, uint32_t type, uint32_t count, const uint8_t *bytes) {
  for (uint32_t i = 0; i < count; i++) {
    uint16_t half;
    memcpy(&half, bytes + 2 * i, sizeof half);
    out[i] = type == WICK_TYPE_F16 ? f32_of_f16(half) : f32_of_bf16(half);
  }
}

wick_status model_place(wick_model *model, uint32_t tensor, uint32_t type, uint32_t row,
                        uint32_t first_block, uint32_t block_count, const uint8_t *blocks) {
  const model_binding *binding = &model->bindings[tensor];
  if (binding->matrix != NULL) {
    const kernel_type_ops *ops = &model->kernels->types[type];
    const uint32_t flags =
        ops->repack(binding->data, binding->matrix->cols, row, first_block, block_count, blocks);
    binding->matrix->flags |= flags;
  } else if (type == WICK_TYPE_F32) {
    memcpy(*binding->vector + first_block, blocks, block_count * sizeof(float));
  } else {
    place_vector(*binding->vector + first_block, type, block_count, blocks);
  }
  return WICK_OK;
}

void model_tensor_done(wick_model *model, uint32_t tensor) {
  const int32_t layer = model->bindings[tensor].layer;
  const uint32_t slot = layer == MODEL_LAYER_NONE ? model->config.layers : (uint32_t)layer;
  model->layer_missing[slot]--;
  if (model->bindings[tensor].matrix == &model->embedding) model->is_embedding_ready = true;
  // The flags of a matrix grow while it streams in; a tied output shares them at the end.
  if (model->is_tied) model->output.flags = model->embedding.flags;
}

uint32_t model_layers_ready(const wick_model *model) {
  if (!model->is_embedding_ready) return 0;
  uint32_t ready = 0;
  while (ready < model->config.layers && model->layer_missing[ready] == 0) ready++;
  return ready;
}

bool model_is_ready(const wick_model *model) {
  return model->layer_missing[model->config.layers] == 0 &&
         model_layers_ready(model) == model->config.layers;
}

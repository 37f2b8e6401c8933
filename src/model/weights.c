// model/weights.c — builds a model from its directory, and fills in its tensors.
#include "model/weights.h"

#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "base/text.h"
#include "model/binder.h"
#include "model/blocks/predictor.h"
#include "model/family.h"

// ---- Hyper-parameters ----

static wick_status read_family(loaded_model *model, const gguf_directory *directory,
                               wick_error *error) {
  gguf_string name;
  const wick_status status = gguf_get_string(directory, "general.architecture", &name, error);
  if (status == WICK_E_NODATA) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "the key 'general.architecture' is missing");
  }
  if (status != WICK_OK) return status;
  model->family = family_find(name);
  if (model->family != NULL) return WICK_OK;
  const int shown = name.size_bytes > 48 ? 48 : (int)name.size_bytes;
  return fail_with(
      error, WICK_E_UNSUPPORTED, gguf_find(directory, "general.architecture")->offset_bytes,
      "the architecture '%.*s' (general.architecture) is not supported", shown, name.bytes);
}

// Reads the size of the vocabulary. A missing embedding is reported when it is bound.
static void read_vocab(model_keys *keys, const gguf_tensor *embedding, model_config *config) {
  if (keys->status != WICK_OK || embedding == NULL) return;
  if (embedding->dims[1] < 1 || embedding->dims[1] > MODEL_VOCAB_MAX) {
    keys->status = fail_with(keys->error, WICK_E_SHAPE, embedding->entry_offset_bytes,
                             "the tensor 'token_embd.weight' has %llu rows, the limit is %d",
                             (unsigned long long)embedding->dims[1], (int)MODEL_VOCAB_MAX);
  } else {
    config->vocab = (uint32_t)embedding->dims[1];
  }
}

// Checks the number of layers. A file that declares layers without their tensors must not cause
// allocations for them. A file with more layers than it declares would run without its last layers
// and generate nonsense.
static void check_layers(model_keys *keys, uint32_t layers, const model_tensors *tensors) {
  char after[GGUF_TENSOR_NAME_BYTES_MAX];
  const size_t size_bytes = text_format(after, sizeof after, "blk.%u.", layers);
  gguf_string has = {"fewer tensors", layers > tensors->count ? 13 : 0};
  for (uint32_t i = 0; i < tensors->count; i++) {
    const gguf_string name = tensors->at(tensors->context, i)->name;
    if (name.size_bytes > size_bytes && memcmp(name.bytes, after, size_bytes) == 0) has = name;
  }
  if (keys->status != WICK_OK || has.size_bytes == 0) return;
  keys->status = fail_with(keys->error, WICK_E_FORMAT, WICK_NO_OFFSET,
                           "%s.block_count is %u, but the file has %.*s", keys->architecture,
                           layers, (int)has.size_bytes, has.bytes);
}

static void read_config(loaded_model *model, model_keys *keys, const model_tensors *tensors) {
  model_config *config = &model->config;
  const int32_t at = tensors->find(tensors->context, "token_embd.weight");
  const gguf_tensor *embedding = at < 0 ? NULL : tensors->at(tensors->context, (uint32_t)at);
  config->hidden = keys_size(keys, "embedding_length", MODEL_HIDDEN_MAX);
  config->layers = keys_size(keys, "block_count", MODEL_LAYERS_MAX);
  config->context_trained = keys_size(keys, "context_length", UINT32_MAX);
  config->has_layer_norms = model->family->has_layer_norms;
  config->norm_epsilon = (float)keys_number(
      keys,
      config->has_layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
      0);
  config->embedding_scale = config->logit_scale = 1;
  read_vocab(keys, embedding, config);
  config->deepstack_layers = keys_count_or_none(keys, "n_deepstack_layers", config->layers);
  check_layers(keys, config->layers, tensors);
}

// ---- Lists and tensors ----

static wick_status allocate_lists(loaded_model *model, uint32_t tensors, wick_error *error) {
  const uint32_t layers = model->config.layers;
  model->binding_count = tensors;
  model->layers = memory_alloc_zeroed(model->memory, layers * sizeof(model_layer));
  model->layer_missing = memory_alloc_zeroed(model->memory, (layers + 1) * sizeof(uint32_t));
  model->bindings = memory_alloc_zeroed(model->memory, tensors * sizeof(model_binding));
  if (model->layers == NULL || model->layer_missing == NULL || model->bindings == NULL) {
    return memory_fail(model->memory, error, "the list of weights");
  }
  return WICK_OK;
}

// Makes the first layer wait for the tensors that a pass needs before this layer: factors of rotary
// positions, and tensors applied to the embeddings.
static void bind_beginning(model_binder *binder) {
  loaded_model *model = binder->model;
  const uint32_t hidden = model->config.hidden;
  binder->waits = 0;
  if (model->has_positions) {
    bind_lookup(binder, "position_embd.weight", model->config.context_trained, hidden,
                &model->positions);
  }
  const uint32_t types = binder_rows(binder, "token_types.weight");
  if (types != 0) {
    bind_lookup(binder, "token_types.weight", types, hidden, &model->types);
  }
  bind_norm(binder, model->embedding_norm_name, hidden, &model->embedding_norm,
            &model->embedding_norm_bias);
  if (model->rope_count == 0) return;
  model_rope *rope = &model->ropes[0];
  bind_vector(binder, "rope_freqs.weight", rope->dims / 2, BINDING_OPTIONAL, &rope->factors);
  if (rope->original_context == 0) return;
  bind_vector(binder, "rope_factors_short.weight", rope->dims / 2, BINDING_OPTIONAL,
              &rope->short_factors);
  bind_vector(binder, "rope_factors_long.weight", rope->dims / 2, BINDING_OPTIONAL,
              &rope->long_factors);
}

static wick_status bind_all(loaded_model *model, const model_tensors *tensors, wick_error *error) {
  const uint32_t hidden = model->config.hidden, vocab = model->config.vocab;
  model_binder binder = {.model = model,
                         .tensors = tensors,
                         .layer = MODEL_LAYER_NONE,
                         .waits = MODEL_LAYER_NONE,
                         .error = error,
                         .status = WICK_OK};
  bind_lookup(&binder, "token_embd.weight", vocab, hidden, &model->embedding);
  bind_norm(&binder, model->output_norm_name, hidden, &model->output_norm,
            &model->output_norm_bias);
  bind_matrix(&binder, "output.weight", vocab, hidden, BINDING_OPTIONAL, &model->output);
  bind_vector(&binder, "output.bias", vocab, BINDING_OPTIONAL, &model->output_bias);
  binder.is_apart = true;
  head_bind(&binder, &model->head);
  binder.is_apart = false;
  bind_beginning(&binder);
  for (uint32_t layer = 0; layer < model->config.layers && binder.status == WICK_OK; layer++) {
    binder.layer = binder.waits = (int32_t)layer;
    for (model_block *block = model->layers[layer].first; block != NULL; block = block->next) {
      block->ops->bind(block, &binder);
    }
  }
  if (model->predictor.first != NULL) predictor_bind(&binder);
  model->is_tied = !tensor_is_present(&model->output);
  return binder.status;
}

// Sets properties that follow from the layers: an encoder has no state that continues from token to
// token.
static void finish_plan(model_plan *plan) {
  loaded_model *model = plan->model;
  model_keys *keys = plan->keys;
  if (!model->is_encoder && model->head.score_pooling == WICK_POOLING_MODEL) {
    model->head.score_pooling = WICK_POOLING_LAST;
    model->head.is_softmax = true;
  }
  if (model->head.score_pooling == WICK_POOLING_MODEL) model->head.score_pooling = WICK_POOLING_CLS;
  head_read(keys, &model->head);
  if (keys->status != WICK_OK || !model->is_encoder) return;
  if (model->group_count == 0 && model->state_bytes == 0) return;
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.causal",
            "'%s.attention.causal' is false, but the model has recurrent layers",
            keys->architecture);
}

wick_status model_create(memory_gate *memory, const kernel_table *kernels,
                         const gguf_directory *directory, const model_tensors *tensors,
                         bool with_predictor, loaded_model **out, wick_error *error) {
  loaded_model *model = memory_alloc_zeroed(memory, sizeof *model);
  if (model == NULL) return memory_fail(memory, error, "the model");
  model->memory = memory;
  model->kernels = kernels;
  model->output_norm_name = "output_norm.weight";
  wick_status status = read_family(model, directory, error);
  if (status == WICK_OK) {
    model_keys keys = {directory, model->family->name, error, WICK_OK};
    model_plan plan = {
        .model = model, .keys = &keys, .tensors = tensors, .with_predictor = with_predictor};
    read_config(model, &keys, tensors);
    if (keys.status == WICK_OK) keys.status = allocate_lists(model, tensors->count, error);
    if (keys.status == WICK_OK) model->family->plan(&plan);
    if (keys.status == WICK_OK) finish_plan(&plan);
    status = keys.status;
  }
  if (status == WICK_OK) status = bind_all(model, tensors, error);
  if (status != WICK_OK) {
    model_destroy(model);
    return status;
  }
  *out = model;
  return WICK_OK;
}

static void destroy_blocks(memory_gate *memory, model_block *first) {
  for (model_block *block = first, *next; block != NULL; block = next) {
    next = block->next;
    memory_free(memory, block);
  }
}

void model_destroy(loaded_model *model) {
  if (model == NULL) return;
  for (uint32_t i = 0; model->layers != NULL && i < model->config.layers; i++) {
    destroy_blocks(model->memory, model->layers[i].first);
  }
  destroy_blocks(model->memory, model->predictor.first);
  for (uint32_t i = 0; i < model->rope_count; i++) rope_destroy(model->memory, &model->ropes[i]);
  memory_free(model->memory, model->weights);
  memory_free(model->memory, model->bindings);
  memory_free(model->memory, model->layer_missing);
  memory_free(model->memory, model->layers);
  memory_free(model->memory, model);
}

wick_status model_allocate_weights(loaded_model *model, wick_error *error) {
  size_t bytes;
  if (!checked_to_size(model->weights_bytes, &bytes)) {
    return fail_with(error, WICK_E_NOMEM, WICK_NO_OFFSET,
                     "the weights take %llu bytes, more than this build can address",
                     (unsigned long long)model->weights_bytes);
  }
  model->weights = memory_alloc(model->memory, bytes);
  if (model->weights == NULL) return memory_fail(model->memory, error, "the weights");
  uint8_t *at = model->weights;
  for (uint32_t i = 0; i < model->binding_count; i++) {
    const model_binding *binding = &model->bindings[i];
    if (binding->matrix != NULL && binding->size_bytes != 0) tensor_settle(binding->matrix, at);
    if (binding->vector != NULL) *binding->vector = (float *)(void *)at;
    at += binding->size_bytes;
  }
  if (model->is_tied) model->output = model->embedding;
  return WICK_OK;
}

bool model_wants(void *model, uint32_t tensor) {
  const model_binding *binding = &((const loaded_model *)model)->bindings[tensor];
  return binding->matrix != NULL || binding->vector != NULL;
}

static float float_of(uint32_t type, const uint8_t *bytes, uint32_t index) {
  float value;
  uint16_t half;
  if (type == GGML_TYPE_F32) {
    memcpy(&value, bytes + 4 * (size_t)index, sizeof value);
    return value;
  }
  memcpy(&half, bytes + 2 * (size_t)index, sizeof half);
  return type == GGML_TYPE_F16 ? f32_of_f16(half) : f32_of_bf16(half);
}

// Stores the values [first, first + count) of a row.
static void place_vector(const model_binding *binding, uint32_t type, uint32_t row, uint32_t first,
                         uint32_t count, const uint8_t *bytes) {
  float *out = *binding->vector;
  const size_t stride = binding->turned_rows == 0 ? 1 : binding->turned_rows;
  const size_t at =
      binding->turned_rows == 0 ? (size_t)row * binding->cols + first : first * stride + row;
  if (type == GGML_TYPE_F32 && stride == 1) {
    memcpy(out + at, bytes, count * sizeof *out);
    return;
  }
  for (uint32_t i = 0; i < count; i++) out[at + i * stride] = float_of(type, bytes, i);
}

wick_status model_place(void *model, uint32_t tensor, uint32_t type, uint32_t row,
                        uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                        wick_error *error) {
  const loaded_model *to = model;
  const model_binding *binding = &to->bindings[tensor];
  (void)error;
  if (binding->matrix == NULL) {
    place_vector(binding, type, row, first_block, block_count, blocks);
  } else if (binding->matrix->outside == NULL) {
    tensor_place(binding->matrix, to->kernels, row, first_block, block_count, blocks);
  }
  return WICK_OK;
}

void model_tensor_done(void *receiver, uint32_t tensor) {
  loaded_model *model = receiver;
  const int32_t layer = model->bindings[tensor].layer;
  const uint32_t slot = layer == MODEL_LAYER_NONE ? model->config.layers : (uint32_t)layer;
  model->layer_missing[slot]--;
  if (model->bindings[tensor].matrix == &model->embedding) model->is_embedding_ready = true;
  // The flags of a matrix are set while it is streamed in; a tied output copies them at the end.
  if (model->is_tied) model->output.flags = model->embedding.flags;
}

uint32_t model_layers_ready(const loaded_model *model) {
  if (!model->is_embedding_ready) return 0;
  uint32_t ready = 0;
  while (ready < model->config.layers && model->layer_missing[ready] == 0) ready++;
  return ready;
}

bool model_is_ready(const loaded_model *model) {
  return model->layer_missing[model->config.layers] == 0 &&
         model_layers_ready(model) == model->config.layers;
}

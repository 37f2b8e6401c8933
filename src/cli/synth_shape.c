// cli/synth_shape.c — shapes from the models' published configurations; types as llama-quant.cpp of
// llama.cpp chooses them.
#include "cli/synth_shape.h"

#include <stdio.h>
#include <string.h>

static const synth_shape shapes[] = {
    {"tiny", "llama", 2, 256, 512, 4, 2, 1024, 2048, 10000, 1e-5f, "gpt-2", false, false},
    {"wick-2.6m", "llama", 4, 256, 512, 4, 2, 1024, 4096, 10000, 1e-5f, "gpt-2", false, false},
    {"100mb", "llama", 13, 768, 2048, 12, 4, 16384, 4096, 10000, 1e-5f, "gpt-2", false, false},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 49152, 8192, 100000, 1e-5f, "gpt-2", false,
     false},
    {"smollm2-360m", "llama", 32, 960, 2560, 15, 5, 49152, 8192, 100000, 1e-5f, "gpt-2", false,
     false},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 151936, 32768, 1000000, 1e-6f, "qwen2", true,
     false},
    {"llama3.2-1b", "llama", 16, 2048, 8192, 32, 8, 128256, 131072, 500000, 1e-5f, "llama-bpe",
     false, true},
};

static const synth_mix mixes[] = {
    {"f32", GGML_TYPE_F32, 0, false},     {"f16", GGML_TYPE_F16, 1, false},
    {"bf16", GGML_TYPE_BF16, 32, false},  {"q8_0", GGML_TYPE_Q8_0, 7, false},
    {"q4_0", GGML_TYPE_Q4_0, 2, false},   {"q6_k", GGML_TYPE_Q6_K, 18, false},
    {"q4_k_m", GGML_TYPE_Q4_K, 15, true},
};

typedef enum part {
  PART_EMBEDDING,
  PART_ATTN_NORM,
  PART_Q,
  PART_Q_BIAS,
  PART_K,
  PART_K_BIAS,
  PART_V,
  PART_V_BIAS,
  PART_ATTN_OUTPUT,
  PART_FFN_NORM,
  PART_GATE,
  PART_UP,
  PART_DOWN,
  PART_OUTPUT_NORM,
  PART_ROPE_FACTORS
} part;

static const char *const part_names[] = {
    "token_embd.weight",  "attn_norm.weight",   "attn_q.weight",    "attn_q.bias",
    "attn_k.weight",      "attn_k.bias",        "attn_v.weight",    "attn_v.bias",
    "attn_output.weight", "ffn_norm.weight",    "ffn_gate.weight",  "ffn_up.weight",
    "ffn_down.weight",    "output_norm.weight", "rope_freqs.weight"};

static const part plain_layer[] = {PART_ATTN_NORM, PART_Q,    PART_K,  PART_V,   PART_ATTN_OUTPUT,
                                   PART_FFN_NORM,  PART_GATE, PART_UP, PART_DOWN};
static const part biased_layer[] = {PART_ATTN_NORM, PART_Q,    PART_Q_BIAS, PART_K,
                                    PART_K_BIAS,    PART_V,    PART_V_BIAS, PART_ATTN_OUTPUT,
                                    PART_FFN_NORM,  PART_GATE, PART_UP,     PART_DOWN};

const synth_shape *synth_shape_at(uint32_t index) {
  return index < sizeof shapes / sizeof shapes[0] ? &shapes[index] : NULL;
}

const synth_mix *synth_mix_at(uint32_t index) {
  return index < sizeof mixes / sizeof mixes[0] ? &mixes[index] : NULL;
}

const synth_shape *synth_find_shape(const char *name) {
  const synth_shape *shape;
  for (uint32_t i = 0; (shape = synth_shape_at(i)) != NULL; i++) {
    if (strcmp(shape->name, name) == 0) return shape;
  }
  return NULL;
}

const synth_mix *synth_find_mix(const char *name) {
  const synth_mix *mix;
  for (uint32_t i = 0; (mix = synth_mix_at(i)) != NULL; i++) {
    if (strcmp(mix->name, name) == 0) return mix;
  }
  return NULL;
}

static uint32_t layer_part_count(const synth_shape *shape) {
  return shape->has_qkv_bias ? sizeof biased_layer / sizeof biased_layer[0]
                             : sizeof plain_layer / sizeof plain_layer[0];
}

uint32_t synth_tensor_count(const synth_shape *shape) {
  return 2 + (shape->has_rope_factors ? 1 : 0) + shape->layers * layer_part_count(shape);
}

// ---- types, after llama_tensor_get_type and its fallback in llama-quant.cpp ----

static bool uses_more_bits(uint32_t layer, uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static uint32_t block_values(ggml_type type) { return type_facts(type)->block_values; }

// For rows that are no multiple of the type's block.
static ggml_type fallback_type(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q4_K:
      return GGML_TYPE_Q5_0;
    case GGML_TYPE_Q6_K:
      return GGML_TYPE_Q8_0;
    default:
      return GGML_TYPE_F16;
  }
}

static ggml_type matrix_type(const synth_shape *shape, const synth_mix *mix, part which,
                             uint32_t layer, uint64_t cols) {
  ggml_type type = mix->type;
  if (block_values(type) == 1) return type;
  if (which == PART_EMBEDDING) {  // it is the output, too
    if (cols % block_values(type) != 0) return GGML_TYPE_Q8_0;
    if (type != GGML_TYPE_Q8_0) type = GGML_TYPE_Q6_K;
  } else if (mix->has_more_bits && (which == PART_V || which == PART_DOWN) &&
             uses_more_bits(layer, shape->layers)) {
    type = GGML_TYPE_Q6_K;
  }
  return cols % block_values(type) == 0 ? type : fallback_type(type);
}

// ---- tensors ----

static void set_vector(synth_tensor *tensor, synth_content content, uint64_t values) {
  tensor->content = content;
  tensor->type = GGML_TYPE_F32;
  tensor->dim_count = 1;
  tensor->dims[0] = values;
  tensor->deviation = 0.1f;
}

// The deviation with which rows of length `cols` keep the size of the vector that they multiply.
static void set_matrix(synth_tensor *tensor, uint64_t cols, uint64_t rows) {
  tensor->content = SYNTH_MATRIX;
  tensor->dim_count = 2;
  tensor->dims[0] = cols;
  tensor->dims[1] = rows;
  tensor->deviation = 1.0f / __builtin_sqrtf((float)cols);
}

static void set_part(synth_tensor *tensor, const synth_shape *s, part which) {
  const uint64_t kv_dim = (uint64_t)s->hidden / s->heads * s->kv_heads;
  // However many there are, the layers together outweigh the embedding. Otherwise the tied output
  // would repeat its input.
  const float residual = 4.0f / __builtin_sqrtf(2.0f * (float)s->layers);
  switch (which) {
    case PART_EMBEDDING:
      set_matrix(tensor, s->hidden, s->vocab);
      tensor->deviation *= 3;  // of the logits
      return;
    case PART_Q:
      set_matrix(tensor, s->hidden, s->hidden);
      return;
    case PART_K:
    case PART_V:
      set_matrix(tensor, s->hidden, kv_dim);
      return;
    case PART_ATTN_OUTPUT:
      set_matrix(tensor, s->hidden, s->hidden);
      tensor->deviation *= residual;
      return;
    case PART_GATE:
    case PART_UP:
      set_matrix(tensor, s->hidden, s->ffn);
      return;
    case PART_DOWN:
      set_matrix(tensor, s->ffn, s->hidden);
      tensor->deviation *= residual;
      return;
    case PART_Q_BIAS:
      set_vector(tensor, SYNTH_BIAS, s->hidden);
      return;
    case PART_K_BIAS:
    case PART_V_BIAS:
      set_vector(tensor, SYNTH_BIAS, kv_dim);
      return;
    case PART_ROPE_FACTORS:
      set_vector(tensor, SYNTH_ROPE_FACTORS, s->hidden / s->heads / 2);
      return;
    case PART_ATTN_NORM:
    case PART_FFN_NORM:
    case PART_OUTPUT_NORM:
      set_vector(tensor, SYNTH_NORM, s->hidden);
      return;
  }
}

void synth_tensor_at(const synth_shape *shape, const synth_mix *mix, uint32_t index,
                     synth_tensor *tensor) {
  const uint32_t in_layer = layer_part_count(shape);
  const uint32_t behind = 1 + shape->layers * in_layer;
  const uint32_t layer = index == 0 ? 0 : (index - 1) / in_layer;
  const bool is_in_layer = index > 0 && index < behind;
  part which = index == 0 ? PART_EMBEDDING : index == behind ? PART_OUTPUT_NORM : PART_ROPE_FACTORS;
  if (is_in_layer) {
    which = (shape->has_qkv_bias ? biased_layer : plain_layer)[(index - 1) % in_layer];
  }
  *tensor = (synth_tensor){0};
  set_part(tensor, shape, which);
  if (tensor->content == SYNTH_MATRIX) {
    tensor->type = matrix_type(shape, mix, which, layer, tensor->dims[0]);
  }
  if (is_in_layer) {
    snprintf(tensor->name, sizeof tensor->name, "blk.%u.%s", (unsigned)layer, part_names[which]);
  } else {
    snprintf(tensor->name, sizeof tensor->name, "%s", part_names[which]);
  }
}

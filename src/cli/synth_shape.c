// cli/synth_shape.c — shapes from the models' published configurations; types as llama-quant.cpp of
// llama.cpp chooses them.
#include "cli/synth_shape.h"

#include <stdio.h>
#include <string.h>

static const synth_shape shapes[] = {
    {"tiny", "llama", 2, 256, 512, 4, 2, 1024, 2048, 10000, 1e-5f, "gpt-2", 0, 0, 0},
    {"wick-2.6m", "llama", 4, 256, 512, 4, 2, 1024, 4096, 10000, 1e-5f, "gpt-2", 0, 0, 0},
    {"100mb", "llama", 13, 768, 2048, 12, 4, 16384, 4096, 10000, 1e-5f, "gpt-2", 0, 0, 0},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 49152, 8192, 100000, 1e-5f, "gpt-2", 0, 0, 0},
    {"smollm2-360m", "llama", 32, 960, 2560, 15, 5, 49152, 8192, 100000, 1e-5f, "gpt-2", 0, 0, 0},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 151936, 32768, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QKV_BIAS, 0, 0},
    {"llama3.2-1b", "llama", 16, 2048, 8192, 32, 8, 128256, 131072, 500000, 1e-5f, "llama-bpe",
     SYNTH_HAS_ROPE_FACTORS, 0, 0},
    {"qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 151936, 40960, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QK_NORMS, 128, 0},
    {"qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 151936, 40960, 1000000, 1e-6f, "qwen2",
     SYNTH_HAS_QK_NORMS, 128, 0},
    {"gemma3-270m", "gemma3", 18, 640, 2048, 4, 1, 262144, 32768, 1000000, 1e-6f, "gpt-2",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_POST_NORMS, 256, 512},
    {"gemma3-1b", "gemma3", 26, 1152, 6912, 4, 1, 262144, 32768, 1000000, 1e-6f, "gpt-2",
     SYNTH_HAS_QK_NORMS | SYNTH_HAS_POST_NORMS, 256, 512},
    {"smollm3-3b", "smollm3", 36, 2048, 11008, 16, 4, 128256, 65536, 5000000, 1e-6f, "llama-bpe", 0,
     0, 0},
};

static const synth_mix mixes[] = {
    {"f32", GGML_TYPE_F32, 0, false, false},     {"f16", GGML_TYPE_F16, 1, false, false},
    {"bf16", GGML_TYPE_BF16, 32, false, false},  {"q8_0", GGML_TYPE_Q8_0, 7, false, false},
    {"q4_0", GGML_TYPE_Q4_0, 2, false, false},   {"q6_k", GGML_TYPE_Q6_K, 18, false, false},
    {"q4_k_m", GGML_TYPE_Q4_K, 15, true, false}, {"q1_0", GGML_TYPE_Q1_0, 40, false, true},
};

typedef enum part {
  PART_EMBEDDING,
  PART_ATTN_NORM,
  PART_Q,
  PART_Q_BIAS,
  PART_Q_NORM,
  PART_K,
  PART_K_BIAS,
  PART_K_NORM,
  PART_V,
  PART_V_BIAS,
  PART_ATTN_OUTPUT,
  PART_ATTN_POST_NORM,
  PART_FFN_NORM,
  PART_GATE,
  PART_UP,
  PART_DOWN,
  PART_FFN_POST_NORM,
  PART_OUTPUT_NORM,
  PART_ROPE_FACTORS
} part;

// A layer has those between the embedding and the final norm whose flag its shape has; 0: always.
typedef struct part_facts {
  const char *name;
  uint32_t flag;
} part_facts;

static const part_facts parts[] = {
    [PART_EMBEDDING] = {"token_embd.weight", 0},
    [PART_ATTN_NORM] = {"attn_norm.weight", 0},
    [PART_Q] = {"attn_q.weight", 0},
    [PART_Q_BIAS] = {"attn_q.bias", SYNTH_HAS_QKV_BIAS},
    [PART_Q_NORM] = {"attn_q_norm.weight", SYNTH_HAS_QK_NORMS},
    [PART_K] = {"attn_k.weight", 0},
    [PART_K_BIAS] = {"attn_k.bias", SYNTH_HAS_QKV_BIAS},
    [PART_K_NORM] = {"attn_k_norm.weight", SYNTH_HAS_QK_NORMS},
    [PART_V] = {"attn_v.weight", 0},
    [PART_V_BIAS] = {"attn_v.bias", SYNTH_HAS_QKV_BIAS},
    [PART_ATTN_OUTPUT] = {"attn_output.weight", 0},
    [PART_ATTN_POST_NORM] = {"post_attention_norm.weight", SYNTH_HAS_POST_NORMS},
    [PART_FFN_NORM] = {"ffn_norm.weight", 0},
    [PART_GATE] = {"ffn_gate.weight", 0},
    [PART_UP] = {"ffn_up.weight", 0},
    [PART_DOWN] = {"ffn_down.weight", 0},
    [PART_FFN_POST_NORM] = {"post_ffw_norm.weight", SYNTH_HAS_POST_NORMS},
    [PART_OUTPUT_NORM] = {"output_norm.weight", 0},
    [PART_ROPE_FACTORS] = {"rope_freqs.weight", SYNTH_HAS_ROPE_FACTORS}};

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

uint32_t synth_head_dim(const synth_shape *shape) {
  return shape->head_dim != 0 ? shape->head_dim : shape->hidden / shape->heads;
}

static bool has_part(const synth_shape *shape, uint32_t which) {
  return (parts[which].flag & ~shape->flags) == 0;
}

// Part `index` of a layer, and PART_OUTPUT_NORM behind the last one.
static part layer_part(const synth_shape *shape, uint32_t index) {
  uint32_t which = PART_ATTN_NORM;
  while (!has_part(shape, which) || (which < PART_OUTPUT_NORM && index-- > 0)) which++;
  return (part)which;
}

static uint32_t layer_part_count(const synth_shape *shape) {
  uint32_t count = 0;
  for (uint32_t which = PART_ATTN_NORM; which < PART_OUTPUT_NORM; which++) {
    count += has_part(shape, which) ? 1 : 0;
  }
  return count;
}

uint32_t synth_tensor_count(const synth_shape *shape) {
  return 2 + (has_part(shape, PART_ROPE_FACTORS) ? 1 : 0) + shape->layers * layer_part_count(shape);
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
  if (block_values(type) == 1 || mix->is_whole) return type;
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
  const uint64_t head_dim = synth_head_dim(s);
  const uint64_t q_dim = head_dim * s->heads, kv_dim = head_dim * s->kv_heads;
  // However many there are, the layers together outweigh the embedding. Otherwise the tied output
  // would repeat its input.
  const float residual = 4.0f / __builtin_sqrtf(2.0f * (float)s->layers);
  switch (which) {
    case PART_EMBEDDING:
      set_matrix(tensor, s->hidden, s->vocab);
      tensor->deviation *= 3;  // of the logits
      return;
    case PART_Q:
      set_matrix(tensor, s->hidden, q_dim);
      return;
    case PART_K:
    case PART_V:
      set_matrix(tensor, s->hidden, kv_dim);
      return;
    case PART_ATTN_OUTPUT:
      set_matrix(tensor, q_dim, s->hidden);
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
      set_vector(tensor, SYNTH_BIAS, q_dim);
      return;
    case PART_K_BIAS:
    case PART_V_BIAS:
      set_vector(tensor, SYNTH_BIAS, kv_dim);
      return;
    case PART_ROPE_FACTORS:
      set_vector(tensor, SYNTH_ROPE_FACTORS, head_dim / 2);
      return;
    case PART_Q_NORM:
    case PART_K_NORM:
      set_vector(tensor, SYNTH_NORM, head_dim);
      return;
    case PART_ATTN_NORM:
    case PART_FFN_NORM:
    case PART_ATTN_POST_NORM:
    case PART_FFN_POST_NORM:
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
  if (is_in_layer) which = layer_part(shape, (index - 1) % in_layer);
  *tensor = (synth_tensor){0};
  set_part(tensor, shape, which);
  if (tensor->content == SYNTH_MATRIX) {
    tensor->type = matrix_type(shape, mix, which, layer, tensor->dims[0]);
  }
  if (is_in_layer) {
    snprintf(tensor->name, sizeof tensor->name, "blk.%u.%s", (unsigned)layer, parts[which].name);
  } else {
    snprintf(tensor->name, sizeof tensor->name, "%s", parts[which].name);
  }
}

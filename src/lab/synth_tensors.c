// lab/synth_tensors.c — the tensors of a shape, with the types that llama-quant.cpp of llama.cpp
// chooses.
#include <stdio.h>
#include <string.h>

#include "lab/synth_shape.h"

// The matrices come first. Output: the matrix of the logits.
typedef enum part_kind {
  MATRIX,
  MATRIX_OF_VALUES,
  RESIDUAL,
  RESIDUAL_DOWN,
  EXPERTS,
  EXPERTS_DOWN,
  EMBEDDING,
  OUTPUT,
  NORM,
  BIAS,
  DECAY,
  ROPE_FACTORS
} part_kind;

enum {
  MIX_ANY = SYNTH_ATTENTION | SYNTH_SHORT_CONV | SYNTH_MAMBA2 | SYNTH_DELTA_NET,
  MIX_SCAN = SYNTH_MAMBA2 | SYNTH_DELTA_NET,
  FEEDS_DENSE = 1,
  FEEDS_EXPERTS = 2,
  FEEDS_ANY = FEEDS_DENSE | FEEDS_EXPERTS,
  PARTS = 53,
  FIRST_IN_LAYER = 1,  // the embedding precedes the layers
  FIRST_AFTER = PARTS - 4
};

// A tensor between the embedding and the final norm is part of a layer if the shape has its `flag`
// and lacks its `without`, and the layer uses one of its mixers and feed-forward kinds.
typedef struct part {
  const char *name;
  uint32_t flag, without;
  uint32_t mixers, feeds;
  part_kind kind;
  uint64_t cols, rows;  // rows 0: a vector
} part;

#define ALWAYS(name, kind, cols, rows) {name, 0, 0, MIX_ANY, FEEDS_ANY, kind, cols, rows}
#define WITH(flag, name, kind, cols, rows) {name, flag, 0, MIX_ANY, FEEDS_ANY, kind, cols, rows}
#define WITHOUT(flag, name, kind, cols) {name, 0, flag, MIX_ANY, FEEDS_ANY, kind, cols, 0}
#define MIXING(mixers, name, kind, cols, rows) {name, 0, 0, mixers, FEEDS_ANY, kind, cols, rows}
#define ATTENDING(flag, name, kind, cols) {name, flag, 0, SYNTH_ATTENTION, FEEDS_ANY, kind, cols, 0}
#define FEEDING(feeds, name, kind, cols, rows) {name, 0, 0, MIX_ANY, feeds, kind, cols, rows}

// Lists the tensors of the shape in the order of a converted file.
static void list_parts(const synth_shape *s, part list[PARTS]) {
  static const synth_hybrid NO_STATES = {.mixer = SYNTH_ATTENTION};
  const synth_hybrid *h = s->hybrid == NULL ? &NO_STATES : s->hybrid;
  const uint64_t hidden = s->hidden, head_dim = synth_head_dim(s);
  const uint64_t q_dim = head_dim * s->heads, kv_dim = head_dim * s->kv_heads;
  const uint64_t queries = (s->flags & SYNTH_HAS_QUERY_GATES) != 0 ? 2 * q_dim : q_dim;
  const uint64_t experts = s->experts == NULL ? 0 : s->experts->count;
  const uint64_t ffn = s->experts == NULL ? s->ffn : s->experts->ffn;
  const uint64_t inner = (uint64_t)h->heads * h->head_dim;
  const uint64_t mixed = inner + 2 * (uint64_t)h->groups * h->state_size;  // and keys
  const uint64_t group = h->groups == 0 ? 0 : inner / h->groups;
  const part parts[PARTS] = {
      ALWAYS("token_embd.weight", EMBEDDING, hidden, s->vocab),
      ALWAYS("attn_norm.weight", NORM, hidden, 0),
      MIXING(SYNTH_SHORT_CONV, "shortconv.conv.weight", BIAS, h->conv_kernel, hidden),
      MIXING(SYNTH_SHORT_CONV, "shortconv.in_proj.weight", MATRIX, hidden, 3 * hidden),
      MIXING(SYNTH_SHORT_CONV, "shortconv.out_proj.weight", RESIDUAL, hidden, hidden),
      MIXING(SYNTH_DELTA_NET, "attn_qkv.weight", MATRIX, hidden, mixed),
      MIXING(SYNTH_DELTA_NET, "attn_gate.weight", MATRIX, hidden, inner),
      MIXING(SYNTH_MAMBA2, "ssm_in.weight", MATRIX, hidden, inner + mixed + h->heads),
      MIXING(MIX_SCAN, "ssm_conv1d.weight", BIAS, h->conv_kernel, mixed),
      MIXING(SYNTH_MAMBA2, "ssm_conv1d.bias", BIAS, mixed, 0),
      MIXING(MIX_SCAN, "ssm_dt.bias", BIAS, h->heads, 0),
      MIXING(SYNTH_DELTA_NET, "ssm_a", DECAY, h->heads, 0),
      MIXING(SYNTH_MAMBA2, "ssm_a", DECAY, 1, h->heads),
      MIXING(SYNTH_MAMBA2, "ssm_d", NORM, 1, h->heads),
      MIXING(SYNTH_DELTA_NET, "ssm_beta.weight", MATRIX, hidden, h->heads),
      MIXING(SYNTH_DELTA_NET, "ssm_alpha.weight", MATRIX, hidden, h->heads),
      MIXING(SYNTH_DELTA_NET, "ssm_norm.weight", NORM, h->head_dim, 0),
      MIXING(SYNTH_MAMBA2, "ssm_norm.weight", NORM, group, h->groups),
      MIXING(MIX_SCAN, "ssm_out.weight", RESIDUAL, inner, hidden),
      MIXING(SYNTH_ATTENTION, "attn_q.weight", MATRIX, hidden, queries),
      ATTENDING(SYNTH_HAS_QKV_BIAS, "attn_q.bias", BIAS, q_dim),
      ATTENDING(SYNTH_HAS_QK_NORMS, "attn_q_norm.weight", NORM, head_dim),
      MIXING(SYNTH_ATTENTION, "attn_k.weight", MATRIX, hidden, kv_dim),
      ATTENDING(SYNTH_HAS_QKV_BIAS, "attn_k.bias", BIAS, kv_dim),
      ATTENDING(SYNTH_HAS_QK_NORMS, "attn_k_norm.weight", NORM, head_dim),
      MIXING(SYNTH_ATTENTION, "attn_v.weight", MATRIX_OF_VALUES, hidden, kv_dim),
      ATTENDING(SYNTH_HAS_QKV_BIAS, "attn_v.bias", BIAS, kv_dim),
      MIXING(SYNTH_ATTENTION, "attn_output.weight", RESIDUAL, q_dim, hidden),
      ATTENDING(SYNTH_HAS_SINKS, "attn_output.bias", BIAS, hidden),
      ATTENDING(SYNTH_HAS_SINKS, "attn_sinks.weight", BIAS, s->heads),
      WITH(SYNTH_HAS_POST_NORMS, "post_attention_norm.weight", NORM, hidden, 0),
      WITH(SYNTH_HAS_POST_NAMES, "post_attention_norm.weight", NORM, hidden, 0),
      WITHOUT(SYNTH_HAS_POST_NAMES, "ffn_norm.weight", NORM, hidden),
      FEEDING(FEEDS_EXPERTS, "ffn_gate_inp.weight", BIAS, hidden, experts),
      FEEDING(FEEDS_EXPERTS, "ffn_gate_inp.bias", BIAS, experts, 0),
      FEEDING(FEEDS_DENSE, "ffn_gate.weight", MATRIX, hidden, ffn),
      FEEDING(FEEDS_EXPERTS, "ffn_gate_exps.weight", EXPERTS, hidden, ffn),
      FEEDING(FEEDS_EXPERTS, "ffn_gate_exps.bias", BIAS, ffn, experts),
      FEEDING(FEEDS_DENSE, "ffn_up.weight", MATRIX, hidden, ffn),
      FEEDING(FEEDS_EXPERTS, "ffn_up_exps.weight", EXPERTS, hidden, ffn),
      FEEDING(FEEDS_EXPERTS, "ffn_up_exps.bias", BIAS, ffn, experts),
      FEEDING(FEEDS_DENSE, "ffn_down.weight", RESIDUAL_DOWN, ffn, hidden),
      FEEDING(FEEDS_EXPERTS, "ffn_down_exps.weight", EXPERTS_DOWN, ffn, hidden),
      FEEDING(FEEDS_EXPERTS, "ffn_down_exps.bias", BIAS, hidden, experts),
      WITH(SYNTH_HAS_POST_NORMS, "post_ffw_norm.weight", NORM, hidden, 0),
      WITH(SYNTH_HAS_PREDICTOR, "nextn.eh_proj.weight", MATRIX, 2 * hidden, hidden),
      WITH(SYNTH_HAS_PREDICTOR, "nextn.enorm.weight", NORM, hidden, 0),
      WITH(SYNTH_HAS_PREDICTOR, "nextn.hnorm.weight", NORM, hidden, 0),
      WITH(SYNTH_HAS_PREDICTOR, "nextn.shared_head_norm.weight", NORM, hidden, 0),
      WITHOUT(SYNTH_HAS_EMBEDDING_NAMES, "output_norm.weight", NORM, hidden),
      WITH(SYNTH_HAS_EMBEDDING_NAMES, "token_embd_norm.weight", NORM, hidden, 0),
      WITH(SYNTH_HAS_OUTPUT, "output.weight", OUTPUT, hidden, s->vocab),
      WITH(SYNTH_HAS_ROPE_FACTORS, "rope_freqs.weight", ROPE_FACTORS, head_dim / 2, 0),
  };
  memcpy(list, parts, sizeof parts);
}

static bool has_part(const synth_shape *shape, uint32_t layer, const part *which) {
  const uint32_t feeds = shape->experts == NULL ? FEEDS_DENSE : FEEDS_EXPERTS;
  if (which->flag == SYNTH_HAS_PREDICTOR && layer + 1 != shape->layers) return false;
  return (which->flag & ~shape->flags) == 0 && (which->without & shape->flags) == 0 &&
         (which->mixers & synth_mixer_at(shape, layer)) != 0 && (which->feeds & feeds) != 0;
}

// ---- types, after llama_tensor_get_type and its fallback in llama-quant.cpp ----

static bool uses_more_bits(uint32_t layer, uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static uint32_t block_values(ggml_type type) { return type_facts(type)->block_values; }

// Returns the fallback type for rows that are not a multiple of the type's block.
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

static ggml_type matrix_type(const synth_shape *shape, const synth_mix *mix, part_kind kind,
                             uint32_t layer, uint64_t cols) {
  const bool is_expert = kind == EXPERTS || kind == EXPERTS_DOWN;
  ggml_type type = is_expert ? mix->expert_type : mix->type;
  if (block_values(type) == 1 || mix->is_whole) return type;
  const bool is_tied = (shape->flags & SYNTH_HAS_OUTPUT) == 0;
  if (kind == OUTPUT || (kind == EMBEDDING && is_tied)) {
    if (cols % block_values(type) != 0) return GGML_TYPE_Q8_0;
    if (type != GGML_TYPE_Q8_0) type = GGML_TYPE_Q6_K;
  } else if (mix->has_more_bits && (kind == MATRIX_OF_VALUES || kind == RESIDUAL_DOWN) &&
             uses_more_bits(layer, shape->layers)) {
    type = GGML_TYPE_Q6_K;
  }
  return cols % block_values(type) == 0 ? type : fallback_type(type);
}

// ---- tensors ----

// Returns the standard deviation with which rows of length `cols` preserve the magnitude of the
// vector that they multiply. Layers are scaled so that together they outweigh the embedding,
// regardless of their number. Otherwise the tied output would repeat its input.
static float matrix_deviation(const synth_shape *shape, part_kind kind, uint64_t cols) {
  float deviation = 1.0f / __builtin_sqrtf((float)cols);
  if (kind == RESIDUAL || kind == RESIDUAL_DOWN || kind == EXPERTS_DOWN) {
    deviation *= 4.0f / __builtin_sqrtf(2.0f * (float)shape->layers);
  }
  return kind == EMBEDDING || kind == OUTPUT ? deviation * 3 : deviation;  // of the logits
}

static void set_part(synth_tensor *tensor, const synth_shape *shape, const synth_mix *mix,
                     const part *which, uint32_t layer) {
  const part_kind kind = which->kind;
  const bool is_matrix = kind < NORM, is_expert = kind == EXPERTS || kind == EXPERTS_DOWN;
  *tensor = (synth_tensor){.dims = {which->cols, which->rows},
                           .dim_count = which->rows == 0 ? 1 : 2,
                           .content = SYNTH_NORM + (synth_content)(kind - NORM),
                           .type = GGML_TYPE_F32,
                           .deviation = 0.1f};
  if (is_expert) tensor->dims[tensor->dim_count++] = shape->experts->count;
  if (!is_matrix) return;
  tensor->content = SYNTH_MATRIX;
  tensor->type = matrix_type(shape, mix, kind, layer, which->cols);
  tensor->deviation = matrix_deviation(shape, kind, which->cols);
}

bool synth_next_tensor(const synth_shape *shape, const synth_mix *mix, synth_cursor *at,
                       synth_tensor *tensor) {
  part parts[PARTS];
  list_parts(shape, parts);
  while (at->part < PARTS) {
    const uint32_t index = at->part++, layer = at->layer;
    const bool is_in_layer = index >= FIRST_IN_LAYER && index < FIRST_AFTER;
    if (at->part == FIRST_AFTER && ++at->layer < shape->layers) at->part = FIRST_IN_LAYER;
    if (!has_part(shape, is_in_layer ? layer : 0, &parts[index])) continue;
    set_part(tensor, shape, mix, &parts[index], layer);
    snprintf(tensor->name, sizeof tensor->name, "%s", parts[index].name);
    if (is_in_layer) {
      snprintf(tensor->name, sizeof tensor->name, "blk.%u.%s", (unsigned)layer, parts[index].name);
    }
    return true;
  }
  return false;
}

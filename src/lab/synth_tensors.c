// lab/synth_tensors.c — the tensors of a shape, with the types that llama-quant.cpp of llama.cpp
// chooses.
#include <stdio.h>

#include "lab/synth_shape.h"

typedef enum part {
  PART_EMBEDDING,
  PART_ATTN_NORM,
  PART_CONV,
  PART_CONV_IN,
  PART_CONV_OUT,
  PART_DELTA_QKV,
  PART_DELTA_GATE,
  PART_SSM_IN,
  PART_SSM_CONV,
  PART_SSM_CONV_BIAS,
  PART_SSM_DT_BIAS,
  PART_SSM_A,
  PART_SSM_A_ROWS,
  PART_SSM_D,
  PART_SSM_BETA,
  PART_SSM_ALPHA,
  PART_SSM_NORM,
  PART_SSM_NORM_ROWS,
  PART_SSM_OUT,
  PART_Q,
  PART_Q_BIAS,
  PART_Q_NORM,
  PART_K,
  PART_K_BIAS,
  PART_K_NORM,
  PART_V,
  PART_V_BIAS,
  PART_ATTN_OUTPUT,
  PART_ATTN_OUTPUT_BIAS,
  PART_SINKS,
  PART_ATTN_POST_NORM,
  PART_FFN_POST_NAME,
  PART_FFN_NORM,
  PART_ROUTER,
  PART_ROUTER_BIAS,
  PART_GATE,
  PART_GATE_EXPERTS,
  PART_GATE_EXPERTS_BIAS,
  PART_UP,
  PART_UP_EXPERTS,
  PART_UP_EXPERTS_BIAS,
  PART_DOWN,
  PART_DOWN_EXPERTS,
  PART_DOWN_EXPERTS_BIAS,
  PART_FFN_POST_NORM,
  PART_PREDICT_PROJECT,
  PART_PREDICT_INPUT_NORM,
  PART_PREDICT_HIDDEN_NORM,
  PART_PREDICT_NORM,
  PART_OUTPUT_NORM,
  PART_EMBEDDING_NORM,
  PART_OUTPUT,
  PART_ROPE_FACTORS,
  PARTS
} part;

enum {
  MIX_ANY = SYNTH_ATTENTION | SYNTH_SHORT_CONV | SYNTH_MAMBA2 | SYNTH_DELTA_NET,
  MIX_SCAN = SYNTH_MAMBA2 | SYNTH_DELTA_NET,
  FEEDS_DENSE = 1,
  FEEDS_EXPERTS = 2,
  FEEDS_ANY = FEEDS_DENSE | FEEDS_EXPERTS
};

// A tensor between the embedding and the final norm is part of a layer if the shape has its `flag`
// and lacks its `without`, and the layer uses one of its mixers and feed-forward kinds.
typedef struct part_facts {
  const char *name;
  uint32_t flag, without;
  uint32_t mixers, feeds;
} part_facts;

#define ALWAYS(name) {name, 0, 0, MIX_ANY, FEEDS_ANY}
#define WITH(flag, name) {name, flag, 0, MIX_ANY, FEEDS_ANY}
#define WITHOUT(flag, name) {name, 0, flag, MIX_ANY, FEEDS_ANY}
#define MIXING(mixers, flag, name) {name, flag, 0, mixers, FEEDS_ANY}
#define FEEDING(feeds, name) {name, 0, 0, MIX_ANY, feeds}

static const part_facts parts[PARTS] = {
    [PART_EMBEDDING] = ALWAYS("token_embd.weight"),
    [PART_ATTN_NORM] = ALWAYS("attn_norm.weight"),
    [PART_CONV] = MIXING(SYNTH_SHORT_CONV, 0, "shortconv.conv.weight"),
    [PART_CONV_IN] = MIXING(SYNTH_SHORT_CONV, 0, "shortconv.in_proj.weight"),
    [PART_CONV_OUT] = MIXING(SYNTH_SHORT_CONV, 0, "shortconv.out_proj.weight"),
    [PART_DELTA_QKV] = MIXING(SYNTH_DELTA_NET, 0, "attn_qkv.weight"),
    [PART_DELTA_GATE] = MIXING(SYNTH_DELTA_NET, 0, "attn_gate.weight"),
    [PART_SSM_IN] = MIXING(SYNTH_MAMBA2, 0, "ssm_in.weight"),
    [PART_SSM_CONV] = MIXING(MIX_SCAN, 0, "ssm_conv1d.weight"),
    [PART_SSM_CONV_BIAS] = MIXING(SYNTH_MAMBA2, 0, "ssm_conv1d.bias"),
    [PART_SSM_DT_BIAS] = MIXING(MIX_SCAN, 0, "ssm_dt.bias"),
    [PART_SSM_A] = MIXING(SYNTH_DELTA_NET, 0, "ssm_a"),
    [PART_SSM_A_ROWS] = MIXING(SYNTH_MAMBA2, 0, "ssm_a"),
    [PART_SSM_D] = MIXING(SYNTH_MAMBA2, 0, "ssm_d"),
    [PART_SSM_BETA] = MIXING(SYNTH_DELTA_NET, 0, "ssm_beta.weight"),
    [PART_SSM_ALPHA] = MIXING(SYNTH_DELTA_NET, 0, "ssm_alpha.weight"),
    [PART_SSM_NORM] = MIXING(SYNTH_DELTA_NET, 0, "ssm_norm.weight"),
    [PART_SSM_NORM_ROWS] = MIXING(SYNTH_MAMBA2, 0, "ssm_norm.weight"),
    [PART_SSM_OUT] = MIXING(MIX_SCAN, 0, "ssm_out.weight"),
    [PART_Q] = MIXING(SYNTH_ATTENTION, 0, "attn_q.weight"),
    [PART_Q_BIAS] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_QKV_BIAS, "attn_q.bias"),
    [PART_Q_NORM] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_QK_NORMS, "attn_q_norm.weight"),
    [PART_K] = MIXING(SYNTH_ATTENTION, 0, "attn_k.weight"),
    [PART_K_BIAS] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_QKV_BIAS, "attn_k.bias"),
    [PART_K_NORM] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_QK_NORMS, "attn_k_norm.weight"),
    [PART_V] = MIXING(SYNTH_ATTENTION, 0, "attn_v.weight"),
    [PART_V_BIAS] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_QKV_BIAS, "attn_v.bias"),
    [PART_ATTN_OUTPUT] = MIXING(SYNTH_ATTENTION, 0, "attn_output.weight"),
    [PART_ATTN_OUTPUT_BIAS] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_SINKS, "attn_output.bias"),
    [PART_SINKS] = MIXING(SYNTH_ATTENTION, SYNTH_HAS_SINKS, "attn_sinks.weight"),
    [PART_ATTN_POST_NORM] = WITH(SYNTH_HAS_POST_NORMS, "post_attention_norm.weight"),
    [PART_FFN_POST_NAME] = WITH(SYNTH_HAS_POST_NAMES, "post_attention_norm.weight"),
    [PART_FFN_NORM] = WITHOUT(SYNTH_HAS_POST_NAMES, "ffn_norm.weight"),
    [PART_ROUTER] = FEEDING(FEEDS_EXPERTS, "ffn_gate_inp.weight"),
    [PART_ROUTER_BIAS] = FEEDING(FEEDS_EXPERTS, "ffn_gate_inp.bias"),
    [PART_GATE] = FEEDING(FEEDS_DENSE, "ffn_gate.weight"),
    [PART_GATE_EXPERTS] = FEEDING(FEEDS_EXPERTS, "ffn_gate_exps.weight"),
    [PART_GATE_EXPERTS_BIAS] = FEEDING(FEEDS_EXPERTS, "ffn_gate_exps.bias"),
    [PART_UP] = FEEDING(FEEDS_DENSE, "ffn_up.weight"),
    [PART_UP_EXPERTS] = FEEDING(FEEDS_EXPERTS, "ffn_up_exps.weight"),
    [PART_UP_EXPERTS_BIAS] = FEEDING(FEEDS_EXPERTS, "ffn_up_exps.bias"),
    [PART_DOWN] = FEEDING(FEEDS_DENSE, "ffn_down.weight"),
    [PART_DOWN_EXPERTS] = FEEDING(FEEDS_EXPERTS, "ffn_down_exps.weight"),
    [PART_DOWN_EXPERTS_BIAS] = FEEDING(FEEDS_EXPERTS, "ffn_down_exps.bias"),
    [PART_FFN_POST_NORM] = WITH(SYNTH_HAS_POST_NORMS, "post_ffw_norm.weight"),
    [PART_PREDICT_PROJECT] = WITH(SYNTH_HAS_PREDICTOR, "nextn.eh_proj.weight"),
    [PART_PREDICT_INPUT_NORM] = WITH(SYNTH_HAS_PREDICTOR, "nextn.enorm.weight"),
    [PART_PREDICT_HIDDEN_NORM] = WITH(SYNTH_HAS_PREDICTOR, "nextn.hnorm.weight"),
    [PART_PREDICT_NORM] = WITH(SYNTH_HAS_PREDICTOR, "nextn.shared_head_norm.weight"),
    [PART_OUTPUT_NORM] = WITHOUT(SYNTH_HAS_EMBEDDING_NAMES, "output_norm.weight"),
    [PART_EMBEDDING_NORM] = WITH(SYNTH_HAS_EMBEDDING_NAMES, "token_embd_norm.weight"),
    [PART_OUTPUT] = WITH(SYNTH_HAS_OUTPUT, "output.weight"),
    [PART_ROPE_FACTORS] = WITH(SYNTH_HAS_ROPE_FACTORS, "rope_freqs.weight"),
};

static bool has_part(const synth_shape *shape, uint32_t layer, uint32_t which) {
  const part_facts *facts = &parts[which];
  const uint32_t feeds = shape->experts == NULL ? FEEDS_DENSE : FEEDS_EXPERTS;
  if (facts->flag == SYNTH_HAS_PREDICTOR && layer + 1 != shape->layers) return false;
  return (facts->flag & ~shape->flags) == 0 && (facts->without & shape->flags) == 0 &&
         (facts->mixers & synth_mixer_at(shape, layer)) != 0 && (facts->feeds & feeds) != 0;
}

// Returns the number of parts from `first` to `end` (exclusive) that the layer has.
static uint32_t count_parts(const synth_shape *shape, uint32_t layer, part first, part end) {
  uint32_t count = 0;
  for (uint32_t which = first; which < end; which++) {
    count += has_part(shape, layer, which) ? 1 : 0;
  }
  return count;
}

// Returns part `index` of the layer's parts, counted from `first`.
static part part_at(const synth_shape *shape, uint32_t layer, part first, uint32_t index) {
  uint32_t which = first;
  while (!has_part(shape, layer, which) || index-- > 0) which++;
  return (part)which;
}

uint32_t synth_tensor_count(const synth_shape *shape) {
  uint32_t count = 1 + count_parts(shape, 0, PART_OUTPUT_NORM, PARTS);
  for (uint32_t layer = 0; layer < shape->layers; layer++) {
    count += count_parts(shape, layer, PART_ATTN_NORM, PART_OUTPUT_NORM);
  }
  return count;
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

static ggml_type matrix_type(const synth_shape *shape, const synth_mix *mix, part which,
                             uint32_t layer, uint64_t cols) {
  const bool is_expert =
      which == PART_GATE_EXPERTS || which == PART_UP_EXPERTS || which == PART_DOWN_EXPERTS;
  ggml_type type = is_expert ? mix->expert_type : mix->type;
  if (block_values(type) == 1 || mix->is_whole) return type;
  const bool is_output = which == PART_OUTPUT || (shape->flags & SYNTH_HAS_OUTPUT) == 0;
  if (which == PART_OUTPUT || (which == PART_EMBEDDING && is_output)) {
    if (cols % block_values(type) != 0) return GGML_TYPE_Q8_0;
    if (type != GGML_TYPE_Q8_0) type = GGML_TYPE_Q6_K;
  } else if (mix->has_more_bits && (which == PART_V || which == PART_DOWN) &&
             uses_more_bits(layer, shape->layers)) {
    type = GGML_TYPE_Q6_K;
  }
  return cols % block_values(type) == 0 ? type : fallback_type(type);
}

// ---- tensors ----

static void set_values(synth_tensor *tensor, synth_content content, uint64_t cols, uint64_t rows) {
  tensor->content = content;
  tensor->type = GGML_TYPE_F32;
  tensor->dim_count = rows == 0 ? 1 : 2;
  tensor->dims[0] = cols;
  tensor->dims[1] = rows;
  tensor->deviation = 0.1f;
}

static void set_vector(synth_tensor *tensor, synth_content content, uint64_t values) {
  set_values(tensor, content, values, 0);
}

// Sets the standard deviation with which rows of length `cols` preserve the magnitude of the vector
// that they multiply.
static void set_matrix(synth_tensor *tensor, uint64_t cols, uint64_t rows) {
  tensor->content = SYNTH_MATRIX;
  tensor->dim_count = 2;
  tensor->dims[0] = cols;
  tensor->dims[1] = rows;
  tensor->deviation = 1.0f / __builtin_sqrtf((float)cols);
}

// Scales layers so that together they outweigh the embedding, regardless of their number. Otherwise
// the tied output would repeat its input.
static void set_residual(synth_tensor *tensor, const synth_shape *s, uint64_t cols) {
  set_matrix(tensor, cols, s->hidden);
  tensor->deviation *= 4.0f / __builtin_sqrtf(2.0f * (float)s->layers);
}

static void set_attention(synth_tensor *tensor, const synth_shape *s, part which) {
  const uint64_t head_dim = synth_head_dim(s);
  const uint64_t q_dim = head_dim * s->heads, kv_dim = head_dim * s->kv_heads;
  switch (which) {
    case PART_Q:
      set_matrix(tensor, s->hidden, (s->flags & SYNTH_HAS_QUERY_GATES) != 0 ? 2 * q_dim : q_dim);
      return;
    case PART_K:
    case PART_V:
      set_matrix(tensor, s->hidden, kv_dim);
      return;
    case PART_ATTN_OUTPUT:
      set_residual(tensor, s, q_dim);
      return;
    case PART_Q_BIAS:
      set_vector(tensor, SYNTH_BIAS, q_dim);
      return;
    case PART_K_BIAS:
    case PART_V_BIAS:
      set_vector(tensor, SYNTH_BIAS, kv_dim);
      return;
    case PART_ATTN_OUTPUT_BIAS:
      set_vector(tensor, SYNTH_BIAS, s->hidden);
      return;
    case PART_SINKS:
      set_vector(tensor, SYNTH_BIAS, s->heads);
      return;
    default:  // query and key norms
      set_vector(tensor, SYNTH_NORM, head_dim);
      return;
  }
}

// Sets the tensors of convolutions, scans and delta nets.
static void set_mixer(synth_tensor *tensor, const synth_shape *s, part which) {
  const synth_hybrid *h = s->hybrid;
  const uint64_t inner = (uint64_t)h->heads * h->head_dim;
  const uint64_t keys = (uint64_t)h->groups * h->state_size;
  switch (which) {
    case PART_CONV:
      set_values(tensor, SYNTH_BIAS, h->conv_kernel, s->hidden);
      return;
    case PART_CONV_IN:
      set_matrix(tensor, s->hidden, 3 * (uint64_t)s->hidden);
      return;
    case PART_CONV_OUT:
      set_residual(tensor, s, s->hidden);
      return;
    case PART_DELTA_QKV:
      set_matrix(tensor, s->hidden, inner + 2 * keys);
      return;
    case PART_DELTA_GATE:
      set_matrix(tensor, s->hidden, inner);
      return;
    case PART_SSM_IN:
      set_matrix(tensor, s->hidden, 2 * inner + 2 * keys + h->heads);
      return;
    case PART_SSM_CONV:
      set_values(tensor, SYNTH_BIAS, h->conv_kernel, inner + 2 * keys);
      return;
    case PART_SSM_CONV_BIAS:
      set_vector(tensor, SYNTH_BIAS, inner + 2 * keys);
      return;
    case PART_SSM_A:
      set_vector(tensor, SYNTH_DECAY, h->heads);
      return;
    case PART_SSM_A_ROWS:
      set_values(tensor, SYNTH_DECAY, 1, h->heads);
      return;
    case PART_SSM_D:
      set_values(tensor, SYNTH_NORM, 1, h->heads);
      return;
    case PART_SSM_BETA:
    case PART_SSM_ALPHA:
      set_matrix(tensor, s->hidden, h->heads);
      return;
    case PART_SSM_NORM:
      set_vector(tensor, SYNTH_NORM, h->head_dim);
      return;
    case PART_SSM_NORM_ROWS:
      set_values(tensor, SYNTH_NORM, inner / h->groups, h->groups);
      return;
    case PART_SSM_OUT:
      set_residual(tensor, s, inner);
      return;
    default:
      set_vector(tensor, SYNTH_BIAS, h->heads);
      return;
  }
}

static void set_feed_forward(synth_tensor *tensor, const synth_shape *s, part which) {
  const synth_experts dense = {.ffn = s->ffn};
  const synth_experts experts = s->experts == NULL ? dense : *s->experts;
  switch (which) {
    case PART_ROUTER:
      set_values(tensor, SYNTH_BIAS, s->hidden, experts.count);
      return;
    case PART_ROUTER_BIAS:
      set_vector(tensor, SYNTH_BIAS, experts.count);
      return;
    case PART_GATE_EXPERTS_BIAS:
    case PART_UP_EXPERTS_BIAS:
      set_values(tensor, SYNTH_BIAS, experts.ffn, experts.count);
      return;
    case PART_DOWN_EXPERTS_BIAS:
      set_values(tensor, SYNTH_BIAS, s->hidden, experts.count);
      return;
    case PART_DOWN:
    case PART_DOWN_EXPERTS:
      set_residual(tensor, s, experts.ffn);
      break;
    default:  // gate and up
      set_matrix(tensor, s->hidden, experts.ffn);
      break;
  }
  if (s->experts == NULL) return;
  tensor->dim_count = 3;
  tensor->dims[2] = experts.count;
}

static void set_part(synth_tensor *tensor, const synth_shape *s, part which) {
  if (which == PART_EMBEDDING || which == PART_OUTPUT) {
    set_matrix(tensor, s->hidden, s->vocab);
    tensor->deviation *= 3;  // deviation of the logits
  } else if (which == PART_PREDICT_PROJECT) {
    set_matrix(tensor, 2 * (uint64_t)s->hidden, s->hidden);
  } else if (which == PART_ROPE_FACTORS) {
    set_vector(tensor, SYNTH_ROPE_FACTORS, synth_head_dim(s) / 2);
  } else if (which >= PART_CONV && which <= PART_SSM_OUT) {
    set_mixer(tensor, s, which);
  } else if (which >= PART_Q && which <= PART_SINKS) {
    set_attention(tensor, s, which);
  } else if (which >= PART_ROUTER && which <= PART_DOWN_EXPERTS_BIAS) {
    set_feed_forward(tensor, s, which);
  } else {
    set_vector(tensor, SYNTH_NORM, s->hidden);
  }
}

void synth_tensor_at(const synth_shape *shape, const synth_mix *mix, uint32_t index,
                     synth_tensor *tensor) {
  uint32_t layer = 0, left = index - 1;
  bool is_in_layer = index > 0;
  for (; is_in_layer; layer++) {
    const uint32_t in_layer = count_parts(shape, layer, PART_ATTN_NORM, PART_OUTPUT_NORM);
    is_in_layer = layer < shape->layers;
    if (!is_in_layer || left < in_layer) break;
    left -= in_layer;
  }
  part which = PART_EMBEDDING;
  if (is_in_layer) which = part_at(shape, layer, PART_ATTN_NORM, left);
  if (index > 0 && !is_in_layer) which = part_at(shape, 0, PART_OUTPUT_NORM, left);
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

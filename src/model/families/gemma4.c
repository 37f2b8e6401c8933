// model/families/gemma4.c — Gemma 4 (Google DeepMind 2026): Gemma 3's layers with heads of two
// sizes, scores that are not scaled, normalised values, layers that read the keys and values of
// layers before them, and per-layer embeddings; beside the feed-forward there may be experts.
// Gemma 3n (2025) has these but the heads' sizes, four rows a token (blocks/altup.h), a map of low
// rank beside attention (blocks/laurel.h) and sparse gates. As in llama.cpp it says most of its
// numbers here and not in its files.
#include "base/text.h"
#include "model/blocks/altup.h"
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/laurel.h"
#include "model/blocks/layer_inputs.h"
#include "model/blocks/side_by_side.h"
#include "model/families/families.h"

#define PATTERN "attention.sliding_window_pattern"

typedef struct gemma4_plan {
  model_plan *plan;
  uint32_t own;     // layers with keys and values of their own, the first ones
  uint32_t period;  // the last of so many layers sees everything; 0: PATTERN is a list
  bool has_window_heads;
  uint32_t window, window_rope, rope;
} gemma4_plan;

static bool has_window(const gemma4_plan *gemma, uint32_t layer) {
  if (gemma->period != 0) return layer % gemma->period != gemma->period - 1;
  return keys_count_of_layer(gemma->plan->keys, PATTERN, layer, gemma->plan->model->config.layers,
                             1, 0) != 0;
}

static attention_settings read_attention(gemma4_plan *gemma, uint32_t layer) {
  attention_settings is = attention_read(gemma->plan, layer);
  is.post_norm = "post_attention_norm.weight";
  is.qk_norms = ATTENTION_HEAD_NORMS;
  is.norms_values = true;
  is.scale = 1;
  is.rope = gemma->rope;
  if (has_window(gemma, layer)) {
    if (gemma->has_window_heads) attention_read_window_heads(gemma->plan, &is);
    is.window = gemma->window;
    is.rope = gemma->window_rope;
  }
  return is;
}

// The layer whose keys and values a layer behind the first `own` reads: the last of them, or for
// layers with a window the one before it. Both must be of the same shape.
static const model_block *find_source(gemma4_plan *gemma, uint32_t layer,
                                      const attention_settings *is) {
  model_keys *keys = gemma->plan->keys;
  const uint32_t back = is->window != 0 ? 2 : 1;
  if (keys->status != WICK_OK) return NULL;
  if (gemma->own >= back) {
    const uint32_t source = gemma->own - back;
    const attention_settings of = read_attention(gemma, source);
    if (of.window == is->window && of.kv_heads == is->kv_heads) {
      return gemma->plan->model->layers[source].mixer;
    }
  }
  if (keys->status != WICK_OK) return NULL;
  keys->status =
      fail_with(keys->error, WICK_E_FORMAT, keys_offset(keys, "attention.shared_kv_layers"),
                "layer %u has no layer of its shape to read keys and values of "
                "('%s.attention.shared_kv_layers')",
                layer, keys->architecture);
  return NULL;
}

// What both have in common. `heads`: of a layer without a window.
static gemma4_plan read_plan(model_plan *plan, attention_settings *heads) {
  model_config *config = &plan->model->config;
  gemma4_plan gemma = {.plan = plan};
  *heads = attention_read(plan, 0);
  gemma.rope = plan_rope(plan, heads->head_dim, false);
  gemma.window = keys_count(plan->keys, "attention.sliding_window", 1, MODEL_WINDOW_MAX, 0);
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  return gemma;
}

// The mixer, and behind it a feed-forward or, in layers that have a router, both that and experts.
static void plan_gemma4_layer(gemma4_plan *gemma, uint32_t layer, model_block *mixer,
                              const experts_settings *experts) {
  model_plan *plan = gemma->plan;
  char router[sizeof "blk.4294967295.ffn_gate_inp.weight"];
  dense_settings dense = {.norm = "ffn_norm.weight",
                          .post_norm = "post_ffw_norm.weight",
                          .ffn = plan_ffn_of_layer(plan, layer),
                          .activation = DENSE_GELU,
                          .residual_scale = 1};
  text_format(router, sizeof router, "blk.%u.ffn_gate_inp.weight", layer);
  if (experts->experts == 0 || !plan_has_tensor(plan, router)) {
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    return;
  }
  dense.post_norm = "post_ffw_norm_1.weight";
  dense.is_aside = true;
  plan_layer(plan, layer, mixer, side_by_side_begin_make(plan));
  plan_last(plan, layer, dense_make(plan, &dense));
  plan_last(plan, layer, experts_make(plan, experts));
  plan_last(plan, layer, side_by_side_end_make(plan, "post_ffw_norm.weight"));
}

static experts_settings read_gemma4_experts(model_plan *plan) {
  experts_settings is = experts_read(plan, false);
  if (is.experts == 0) return is;
  is.expert_ffn = keys_count(plan->keys, "expert_feed_forward_length", 1, MODEL_FFN_MAX, 0);
  is.norm = "pre_ffw_norm_2.weight";
  is.post_norm = "post_ffw_norm_2.weight";
  is.activation = EXPERTS_GELU;
  is.gating = EXPERTS_SOFTMAX;
  is.is_normalised = is.is_aside = is.norms_routes = true;
  is.scale = 1;
  return is;
}

static void plan_gemma4(model_plan *plan) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  attention_settings heads;
  gemma4_plan gemma = read_plan(plan, &heads);
  const uint32_t dim = layer_inputs_read(plan);
  gemma.own =
      config->layers - keys_count_or_none(keys, "attention.shared_kv_layers", config->layers - 1);
  gemma.has_window_heads = true;
  attention_read_window_heads(plan, &heads);
  gemma.window_rope = plan_window_rope(plan, heads.head_dim, false);
  config->logit_cap = (float)keys_number_or_none(keys, "final_logit_softcapping");
  const experts_settings experts = read_gemma4_experts(plan);
  // a list, which must be there
  if (keys_offset(keys, PATTERN) == WICK_NO_OFFSET) keys_count(keys, PATTERN, 0, 1, 0);
  for (uint32_t layer = 0; layer < config->layers && keys->status == WICK_OK; layer++) {
    attention_settings attention = read_attention(&gemma, layer);
    if (layer >= gemma.own) attention.keys_of = find_source(&gemma, layer, &attention);
    plan_gemma4_layer(&gemma, layer, attention_make(plan, &attention), &experts);
    plan_last(plan, layer, layer_end_make(plan, dim));
    if (layer == 0 && dim != 0) plan_first(plan, layer, layer_inputs_make(plan, dim));
  }
}

static void plan_gemma3n(model_plan *plan) {
  enum { PERIOD = 5, OWN = 20, SPARSE = 10, INPUTS = 256, RANK = 64 };
  model_config *config = &plan->model->config;
  attention_settings heads;
  gemma4_plan gemma = read_plan(plan, &heads);
  gemma.own = config->layers < OWN ? config->layers : OWN;
  gemma.window_rope = plan_window_rope(plan, heads.head_dim, false);
  if (!keys_is_list(plan->keys, PATTERN)) {
    gemma.period = keys_count(plan->keys, PATTERN, 1, MODEL_LAYERS_MAX, PERIOD);
  }
  config->logit_cap = 30;
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    attention_settings attention = read_attention(&gemma, layer);
    const dense_settings dense = {.norm = "ffn_norm.weight",
                                  .post_norm = "post_ffw_norm.weight",
                                  .ffn = plan_ffn_of_layer(plan, layer),
                                  .activation = DENSE_GELU,
                                  .sparsity = layer < SPARSE ? 1.6448533535f : 0,  // 5 % count
                                  .residual_scale = 1};
    attention.norm = NULL;
    attention.is_aside = true;
    attention.residual_scale = LAUREL_SCALE;
    if (layer >= gemma.own) attention.keys_of = find_source(&gemma, layer, &attention);
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    plan_first(plan, layer, laurel_make(plan, RANK));
    model_block *predict = altup_predict_make(plan);
    plan_first(plan, layer, predict);
    if (layer == 0) plan_first(plan, layer, altup_spread_make(plan));
    if (layer == 0) plan_first(plan, layer, layer_inputs_make(plan, INPUTS));
    plan_last(plan, layer, altup_correct_make(plan, predict));
    plan_last(plan, layer, layer_end_make(plan, INPUTS));
    if (layer + 1 == config->layers) plan_last(plan, layer, altup_merge_make(plan));
  }
}

const model_family FAMILY_GEMMA3N = {"gemma3n", plan_gemma3n};
const model_family FAMILY_GEMMA4 = {"gemma4", plan_gemma4};

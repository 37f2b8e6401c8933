// model/families/gemma4.c — Gemma 4 (Google DeepMind 2026): Gemma 3's layers with heads of two
// sizes, scores that are not scaled, normalised values, layers that read the keys and values of
// layers before them, and per-layer embeddings. Its mixtures of experts are refused.
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/layer_inputs.h"
#include "model/families/families.h"

#define PATTERN "attention.sliding_window_pattern"

typedef struct gemma4_plan {
  model_plan *plan;
  uint32_t own;  // layers with keys and values of their own, the first ones
  uint32_t window, window_rope, rope;
} gemma4_plan;

static bool has_window(const gemma4_plan *gemma, uint32_t layer) {
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
    attention_read_window_heads(gemma->plan, &is);
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

static void plan_gemma4(model_plan *plan) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  gemma4_plan gemma = {.plan = plan};
  attention_settings heads = attention_read(plan, 0);
  const uint32_t dim = layer_inputs_read(plan);
  gemma.own =
      config->layers - keys_count_or_none(keys, "attention.shared_kv_layers", config->layers - 1);
  gemma.rope = plan_rope(plan, heads.head_dim, false);
  gemma.window = keys_count(keys, "attention.sliding_window", 1, MODEL_WINDOW_MAX, 0);
  attention_read_window_heads(plan, &heads);
  gemma.window_rope = plan_window_rope(plan, heads.head_dim, false);
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  config->logit_cap = (float)keys_number_or_none(keys, "final_logit_softcapping");
  plan_refuse_experts(plan);
  // a list, which must be there
  if (keys_offset(keys, PATTERN) == WICK_NO_OFFSET) keys_count(keys, PATTERN, 0, 1, 0);
  for (uint32_t layer = 0; layer < config->layers && keys->status == WICK_OK; layer++) {
    attention_settings attention = read_attention(&gemma, layer);
    const dense_settings dense = {.norm = "ffn_norm.weight",
                                  .post_norm = "post_ffw_norm.weight",
                                  .ffn = plan_ffn_of_layer(plan, layer),
                                  .activation = DENSE_GELU,
                                  .residual_scale = 1};
    if (layer >= gemma.own) attention.keys_of = find_source(&gemma, layer, &attention);
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    plan_last(plan, layer, layer_end_make(plan, dim));
    if (layer == 0 && dim != 0) plan_first_mixer(plan, layer, layer_inputs_make(plan, dim));
  }
}

const model_family FAMILY_GEMMA4 = {"gemma4", plan_gemma4};

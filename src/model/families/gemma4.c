// model/families/gemma4.c — Gemma 4 (Google DeepMind 2026): Gemma 3's layers with heads of two
// sizes, the features of gemma_layers.h, and per-layer embeddings; experts may run in parallel with
// the feed-forward.
#include "base/text.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/layer_inputs.h"
#include "model/blocks/side_by_side.h"
#include "model/families/families.h"
#include "model/families/gemma_layers.h"

// Plans the mixer, followed by a feed-forward or, in layers with a router, a feed-forward and
// experts.
static void plan_gemma4_layer(gemma_layers *gemma, uint32_t layer, model_block *mixer,
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
  is.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
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
  // E2B and E4B are also causal within images
  const bool is_small = config->hidden == 1536 || config->hidden == 2560;
  gemma_layers gemma = gemma_layers_read(plan, &heads);
  const uint32_t dim = layer_inputs_read(plan);
  gemma.own =
      config->layers - keys_count_or_none(keys, "attention.shared_kv_layers", config->layers - 1);
  gemma.has_window_heads = true;
  attention_read_window_heads(plan, &heads);
  gemma.window_rope = plan_window_rope(plan, heads.head_dim, false);
  config->logit_cap = (float)keys_number_or_none(keys, "final_logit_softcapping");
  const experts_settings experts = read_gemma4_experts(plan);
  // the key is required, as a list
  if (keys_offset(keys, GEMMA_PATTERN) == WICK_NO_OFFSET) keys_count(keys, GEMMA_PATTERN, 0, 1, 0);
  for (uint32_t layer = 0; layer < config->layers && keys->status == WICK_OK; layer++) {
    attention_settings attention = gemma_layers_attention(&gemma, layer);
    attention.sees_media = attention.window != 0 && !is_small;
    if (layer >= gemma.own) attention.keys_of = gemma_layers_source(&gemma, layer, &attention);
    plan_gemma4_layer(&gemma, layer, attention_make(plan, &attention), &experts);
    plan_last(plan, layer, layer_end_make(plan, dim));
    if (layer == 0 && dim != 0) plan_first(plan, layer, layer_inputs_make(plan, dim));
  }
}

const model_family FAMILY_GEMMA4 = {.name = "gemma4", .plan = plan_gemma4};

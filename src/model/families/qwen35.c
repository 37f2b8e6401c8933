// model/families/qwen35.c — Qwen3.5: gated delta nets, and attention with a gate in every
// "full_attention_interval"th layer. Layers that predict several tokens ahead are left out.
#include "model/blocks/attention.h"
#include "model/blocks/delta_net.h"
#include "model/blocks/dense.h"
#include "model/families/families.h"

// The last layers are for predicting further tokens: they take no memory.
static void leave_out_predictors(model_plan *plan) {
  model_config *config = &plan->model->config;
  const uint32_t predictors =
      keys_count_or_none(plan->keys, "nextn_predict_layers", config->layers - 1);
  if (plan->keys->status == WICK_OK) config->layers -= predictors;
}

static void plan_qwen35(model_plan *plan) {
  const model_config *config = &plan->model->config;
  const uint32_t ffn = keys_count(plan->keys, "feed_forward_length", 1, MODEL_FFN_MAX, 0);
  const uint32_t interval =
      keys_count(plan->keys, "full_attention_interval", 1, MODEL_LAYERS_MAX, 4);
  const delta_net_settings net = delta_net_read(plan);
  attention_settings attention = attention_read(plan, 0);
  attention.has_head_norms = attention.is_gated = true;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  leave_out_predictors(plan);
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer =
        (layer + 1) % interval == 0 ? attention_make(plan, &attention) : delta_net_make(plan, &net);
    plan_layer(plan, layer, mixer, dense_make(plan, "post_attention_norm.weight", ffn));
  }
}

const model_family FAMILY_QWEN35 = {"qwen35", plan_qwen35};

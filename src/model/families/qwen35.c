// model/families/qwen35.c — Qwen3.5, dense and with experts, and Qwen3-Next (Qwen team 2025): gated
// delta nets, and attention with a gate in every "full_attention_interval"th layer. Of the layers
// that predict several tokens ahead, the first can be used for proposals; the others are ignored.
#include "model/blocks/attention.h"
#include "model/blocks/delta_net.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/predictor.h"
#include "model/families/families.h"

// Plans the layers; `experts` NULL: dense layers.
static void plan_layers(model_plan *plan, const experts_settings *experts, bool is_grouped) {
  const model_config *config = &plan->model->config;
  dense_settings dense = {.ffn = 0};
  const uint32_t interval =
      keys_count(plan->keys, "full_attention_interval", 1, MODEL_LAYERS_MAX, 4);
  delta_net_settings net = delta_net_read(plan);
  net.is_grouped = is_grouped;
  attention_settings attention = attention_read_rotated(plan, false);
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  attention.is_gated = true;
  plan_axes(plan, attention.rope, true);
  if (experts == NULL) dense = dense_read(plan);
  dense.norm = "post_attention_norm.weight";
  plan_leave_out_predictors(plan);
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer =
        (layer + 1) % interval == 0 ? attention_make(plan, &attention) : delta_net_make(plan, &net);
    plan_layer(plan, layer, mixer,
               experts == NULL ? dense_make(plan, &dense) : experts_make(plan, experts));
  }
  if (!plan_begins_predictor(plan)) return;
  model_block *input = predictor_make(plan), *mixer = attention_make(plan, &attention);
  plan_predictor(plan, input, mixer,
                 experts == NULL ? dense_make(plan, &dense) : experts_make(plan, experts));
}

static void plan_qwen35(model_plan *plan) { plan_layers(plan, NULL, false); }

static void plan_experts(model_plan *plan, bool is_grouped) {
  model_keys *keys = plan->keys;
  experts_settings experts = experts_read(plan, true);
  experts.norm = "post_attention_norm.weight";
  experts.expert_ffn = keys_size(keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.shared_ffn = keys_size(keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.has_shared_gate = experts.is_normalised = true;
  plan_layers(plan, &experts, is_grouped);
}

static void plan_qwen35moe(model_plan *plan) { plan_experts(plan, false); }

static void plan_qwen3next(model_plan *plan) { plan_experts(plan, true); }

const model_family FAMILY_QWEN3NEXT = {.name = "qwen3next", .plan = plan_qwen3next};
const model_family FAMILY_QWEN35 = {.name = "qwen35", .plan = plan_qwen35};
const model_family FAMILY_QWEN35MOE = {.name = "qwen35moe", .plan = plan_qwen35moe};

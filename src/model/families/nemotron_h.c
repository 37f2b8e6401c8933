// model/families/nemotron_h.c — Nemotron-H (NVIDIA 2025): attention in some layers, state spaces in
// others, and feed-forwards, or experts, as separate layers.
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/none.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

// Plans the layers: a state space, attention, or, if the layer has a width, a feed-forward.
static void plan_layers(model_plan *plan, const experts_settings *experts) {
  const uint32_t layers = plan->model->config.layers;
  const ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  // files have both epsilons
  keys_number(plan->keys, "attention.layer_norm_rms_epsilon", 0);
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    const dense_settings dense = {.norm = "attn_norm.weight",
                                  .ffn = keys_count_of_layer(plan->keys, "feed_forward_length",
                                                             layer, layers, MODEL_FFN_MAX, 0),
                                  .activation = DENSE_RELU_SQUARE,
                                  .is_plain = true,
                                  .residual_scale = 1};
    model_block *mixer;
    if (dense.ffn != 0) {
      mixer = none_make_mixer(plan);
      plan_layer(plan, layer, mixer,
                 experts == NULL ? dense_make(plan, &dense) : experts_make(plan, experts));
      continue;
    }
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = ssm_make(plan, &ssm);
    } else {
      const attention_settings attention = attention_read_layer(plan, layer);
      mixer = attention_make(plan, &attention);
    }
    plan_layer(plan, layer, mixer, none_make(plan));
  }
}

static void plan_nemotron_h(model_plan *plan) { plan_layers(plan, NULL); }

static void plan_nemotron_h_moe(model_plan *plan) {
  model_keys *keys = plan->keys;
  experts_settings experts = experts_read(plan, true);
  experts.norm = "attn_norm.weight";
  experts.expert_ffn = keys_size(keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.shared_ffn = keys_count_or_none(keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.activation = EXPERTS_RELU_SQUARE;
  experts.gating = EXPERTS_SIGMOID;
  experts.scale = experts_read_scale(plan);
  experts.is_normalised = keys_flag(keys, "expert_weights_norm", false);
  plan_layers(plan, &experts);
}

const model_family FAMILY_NEMOTRON_H = {.name = "nemotron_h", .plan = plan_nemotron_h};
const model_family FAMILY_NEMOTRON_H_MOE = {.name = "nemotron_h_moe", .plan = plan_nemotron_h_moe};

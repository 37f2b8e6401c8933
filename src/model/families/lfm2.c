// model/families/lfm2.c — LFM2 (Liquid AI 2025), dense and with experts: layers whose
// "attention.head_count_kv" is 0 mix tokens with a short convolution; the others use attention with
// normalised heads.
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/short_conv.h"
#include "model/families/families.h"

// Plans the layers, with `experts` after the first `leading` layers; NULL: no experts.
static void plan_layers(model_plan *plan, const experts_settings *experts, uint32_t leading) {
  const model_config *config = &plan->model->config;
  const dense_settings dense = dense_read(plan);
  const uint32_t taps = keys_count(plan->keys, "shortconv.l_cache", 2, KERNEL_CONV_WIDTH_MAX, 0);
  uint32_t rope = ATTENTION_ROPE_NONE;
  plan->model->output_norm_name = "token_embd_norm.weight";
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer;
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = short_conv_make(plan, taps);
    } else {
      attention_settings attention = attention_read_layer(plan, layer);
      attention.qk_norms = ATTENTION_HEAD_NORMS;
      attention.window =
          experts != NULL
              ? 0
              : keys_count_or_none(plan->keys, "attention.sliding_window", MODEL_WINDOW_MAX);
      if (rope == ATTENTION_ROPE_NONE) rope = plan_rope(plan, attention.head_dim, false);
      attention.rope = rope;
      mixer = attention_make(plan, &attention);
    }
    const bool is_dense = experts == NULL || layer < leading;
    plan_layer(plan, layer, mixer,
               is_dense ? dense_make(plan, &dense) : experts_make(plan, experts));
  }
}

static void plan_lfm2(model_plan *plan) { plan_layers(plan, NULL, 0); }

static void plan_lfm2moe(model_plan *plan) {
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.gating = experts_read_gating(plan, EXPERTS_SOFTMAX);
  experts.is_normalised = true;
  plan_layers(plan, &experts,
              keys_count_or_none(plan->keys, "leading_dense_block_count", MODEL_LAYERS_MAX));
}

const model_family FAMILY_LFM2 = {.name = "lfm2", .plan = plan_lfm2};
const model_family FAMILY_LFM2MOE = {.name = "lfm2moe", .plan = plan_lfm2moe};

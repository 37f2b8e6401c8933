// model/families/qwen3moe.c — Qwen3's mixtures of experts (Yang et al. 2025): Qwen3's attention,
// and experts whose weights sum 1.
#include "model/blocks/attention.h"
#include "model/blocks/experts.h"
#include "model/families/families.h"

static void plan_qwen3moe(model_plan *plan) {
  const wick_model_config *config = &plan->model->config;
  attention_settings attention = attention_read(plan, 0);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_count(plan->keys, "expert_feed_forward_length", 1, MODEL_FFN_MAX, 0);
  experts.is_normalised = true;
  attention.has_head_norms = true;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    plan_layer(plan, layer, attention_make(plan, &attention), experts_make(plan, &experts));
  }
}

const model_family FAMILY_QWEN3MOE = {"qwen3moe", plan_qwen3moe};

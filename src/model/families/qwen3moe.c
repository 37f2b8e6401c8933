// model/families/qwen3moe.c — Qwen3's mixtures of experts (Yang et al. 2025): Qwen3's attention,
// and experts whose weights sum to 1. The text model of Qwen3-VL is handled as in qwen3.c.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen3moe(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_axes(plan, attention.rope, true);
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_QWEN3MOE = {.name = "qwen3moe", .plan = plan_qwen3moe};
const model_family FAMILY_QWEN3VLMOE = {.name = "qwen3vlmoe", .plan = plan_qwen3moe};

// model/families/qwen2moe.c — Qwen 1.5's and 2's mixtures of experts (Yang et al. 2024): Qwen2's
// attention, experts whose weights do not sum to 1, and a shared expert with a gate.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen2moe(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.shared_ffn = keys_size(plan->keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.has_shared_gate = true;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_QWEN2MOE = {.name = "qwen2moe", .plan = plan_qwen2moe};

// model/families/qwen_moe.c — Qwen's mixtures of experts, with the attention of qwen.c: in Qwen 1.5
// and 2 (Yang et al. 2024) the experts' weights do not sum to 1, and a shared expert has a gate; in
// Qwen3 (Yang et al. 2025) and the text model of Qwen3-VL they sum to 1.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen2moe(model_plan *plan) {
  const attention_settings attention = attention_read_rotated(plan, false);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.shared_ffn = keys_size(plan->keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.has_shared_gate = true;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

static void plan_qwen3moe(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  plan_axes(plan, attention.rope, true);
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_QWEN2MOE = {.name = "qwen2moe", .plan = plan_qwen2moe};
const model_family FAMILY_QWEN3MOE = {.name = "qwen3moe", .plan = plan_qwen3moe};
const model_family FAMILY_QWEN3VLMOE = {.name = "qwen3vlmoe", .plan = plan_qwen3moe};

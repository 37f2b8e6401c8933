// model/families/hunyuan.c — Hunyuan (Tencent 2025), dense and with experts: heads are normalised
// after the rotation.
#include "model/families/decoder.h"
#include "model/families/families.h"

static attention_settings read_attention(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  attention.qk_norms = ATTENTION_NORMS_AFTER;
  // the norm cancels the magnitude of a scaling
  if (plan->keys->status == WICK_OK) plan->model->ropes[attention.rope].magnitude = 1;
  return attention;
}

static void plan_dense(model_plan *plan) {
  const attention_settings attention = read_attention(plan);
  const dense_settings dense = dense_read(plan);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_moe(model_plan *plan) {
  const attention_settings attention = read_attention(plan);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = plan_ffn(plan);
  experts.shared_ffn =
      keys_count_or_none(plan->keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_HUNYUAN_DENSE = {.name = "hunyuan-dense", .plan = plan_dense};
const model_family FAMILY_HUNYUAN_MOE = {.name = "hunyuan-moe", .plan = plan_moe};

// model/families/qwen2.c — Qwen2 and 2.5 (Yang et al. 2024): as LLaMA, with biases of q, k and v,
// and halves of a head rotated instead of neighbours.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen2(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_QWEN2 = {.name = "qwen2", .plan = plan_qwen2};

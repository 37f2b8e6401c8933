// model/families/qwen3.c — Qwen3 (Yang et al. 2025): like Qwen2, with a norm of each head of
// queries and keys instead of biases. The text model of Qwen3-VL (Qwen team 2025) rotates pairs by
// time, y and x alternately.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen3(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_axes(plan, attention.rope, true);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_QWEN3 = {.name = "qwen3", .plan = plan_qwen3};
const model_family FAMILY_QWEN3VL = {.name = "qwen3vl", .plan = plan_qwen3};

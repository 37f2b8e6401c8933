// model/families/qwen.c — Qwen2 and 2.5 (Yang et al. 2024): like LLaMA, with biases of q, k and v,
// and rotated halves of a head instead of adjacent pairs. The text models of Qwen2-VL and 2.5-VL
// (Wang et al. 2024) and of PaddleOCR-VL (2025), which has no biases, rotate pairs by time, y and
// x. Qwen3 (Yang et al. 2025): a norm of each head of queries and keys instead of biases. The text
// model of Qwen3-VL (Qwen team 2025) rotates pairs by time, y and x alternately.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_qwen2(model_plan *plan) {
  const attention_settings attention = attention_read_rotated(plan, false);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  plan_axes(plan, attention.rope, false);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_qwen3(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  plan_axes(plan, attention.rope, true);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_PADDLEOCR = {.name = "paddleocr", .plan = plan_qwen2};
const model_family FAMILY_QWEN2 = {.name = "qwen2", .plan = plan_qwen2};
const model_family FAMILY_QWEN2VL = {.name = "qwen2vl", .plan = plan_qwen2};
const model_family FAMILY_QWEN3 = {.name = "qwen3", .plan = plan_qwen3};
const model_family FAMILY_QWEN3VL = {.name = "qwen3vl", .plan = plan_qwen3};

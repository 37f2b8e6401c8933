// model/families/glm.c — ChatGLM 3 and GLM-4 (GLM team 2024): half of each head is rotated, in
// adjacent pairs; gate and up are one tensor; GLM-4-0414 also normalises the outputs of its blocks.
// GLM-4.5 (GLM team 2025): experts selected by sigmoids, with a shared expert.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_glm(model_plan *plan, const char *attention_norm, const char *ffn_norm,
                     bool is_interleaved) {
  // the text models of GLM-4.1V pair halves: their positions have sections
  attention_settings attention = attention_read_rotated(plan, is_interleaved);
  dense_settings dense = dense_read(plan);
  dense.may_fuse_gate = true;
  attention.post_norm = attention_norm;
  dense.post_norm = ffn_norm;
  if (!is_interleaved) plan_axes(plan, attention.rope, false);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_chatglm(model_plan *plan) { plan_glm(plan, NULL, NULL, true); }

static void plan_glm4(model_plan *plan) {
  const bool has_sections = keys_offset(plan->keys, "rope.dimension_sections") != WICK_NO_OFFSET;
  plan_glm(plan, "post_attention_norm.weight", "post_ffw_norm.weight", !has_sections);
}

static void plan_glm4moe(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  experts_settings experts = experts_read_shared(plan, true, EXPERTS_SIGMOID, true);
  experts.norm = dense.norm = "post_attention_norm.weight";
  if (plan_has_tensor(plan, "blk.0.attn_q_norm.weight")) attention.qk_norms = ATTENTION_HEAD_NORMS;
  plan_axes(plan, attention.rope, false);
  plan_leave_out_predictors(plan);
  plan_experts_decoder(plan, &attention, &experts, &dense);
}

const model_family FAMILY_CHATGLM = {.name = "chatglm", .plan = plan_chatglm};
const model_family FAMILY_GLM4 = {.name = "glm4", .plan = plan_glm4};
const model_family FAMILY_GLM4MOE = {.name = "glm4moe", .plan = plan_glm4moe};

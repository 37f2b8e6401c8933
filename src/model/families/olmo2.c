// model/families/olmo2.c — OLMo 2 (OLMo team 2025) and EXAONE 4 (LG AI 2025): norms of the blocks'
// outputs instead of norms before the blocks; OLMoE (Muennighoff et al. 2024): norms before the
// blocks, and experts whose weights do not sum to 1. OLMo normalises queries and keys of all heads
// together.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_after(model_plan *plan, attention_qk_norms qk_norms) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  attention.norm = dense.norm = NULL;
  attention.post_norm = "post_attention_norm.weight";
  dense.post_norm = "post_ffw_norm.weight";
  attention.qk_norms = qk_norms;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_olmo2(model_plan *plan) {
  plan_refuse_window(plan);
  plan_after(plan, ATTENTION_ROW_NORMS);
}

static void plan_exaone4(model_plan *plan) {
  plan_refuse_window(plan);
  plan_after(plan, ATTENTION_HEAD_NORMS);
}

static void plan_olmoe(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = plan_ffn(plan);
  attention.qk_norms = ATTENTION_ROW_NORMS;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_EXAONE4 = {.name = "exaone4", .plan = plan_exaone4};
const model_family FAMILY_OLMO2 = {.name = "olmo2", .plan = plan_olmo2};
const model_family FAMILY_OLMOE = {.name = "olmoe", .plan = plan_olmoe};

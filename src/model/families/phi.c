// model/families/phi.c — Phi-3, 3.5 and 4-mini (Abdin et al. 2024): the LLaMA architecture with q,
// k, v in one tensor, gate and up in another, and LongRoPE; Phi-3.5-MoE. Phi-2 (Javaheripi et al.
// 2023): attention and a plain feed-forward in parallel after one layer norm.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_phi2(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  attention.aside = ATTENTION_ASIDE_NORMED;
  dense.norm = NULL;
  dense.is_aside = dense.is_plain = true;
  dense.activation = DENSE_GELU;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_phi3(model_plan *plan) {
  const attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  dense.may_fuse_gate = true;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_phimoe(model_plan *plan) {
  const attention_settings attention = attention_read_rotated(plan, false);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = plan_ffn(plan);
  experts.is_normalised = true;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

const model_family FAMILY_PHI2 = {.name = "phi2", .plan = plan_phi2, .has_layer_norms = true};
const model_family FAMILY_PHI3 = {.name = "phi3", .plan = plan_phi3};
const model_family FAMILY_PHIMOE = {.name = "phimoe", .plan = plan_phimoe};

// model/families/falcon_h1.c — Falcon-H1 (Zuo et al. 2025): attention and a state space in parallel
// in every layer.
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

static void plan_falcon_h1(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  attention.aside = ATTENTION_ASIDE_NORMED;
  attention.is_first = true;
  ssm.is_aside = ssm.may_lack_norm = true;
  dense.norm = "ffn_norm";
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = ssm_make(plan, &ssm);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    plan_first(plan, layer, attention_make(plan, &attention));
  }
}

const model_family FAMILY_FALCON_H1 = {.name = "falcon-h1", .plan = plan_falcon_h1};

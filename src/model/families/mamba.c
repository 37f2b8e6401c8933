// model/families/mamba.c — Mamba (Gu and Dao 2023), Falcon Mamba (Zuo et al. 2024), which
// normalises dt, b and c, and Mamba 2 (Dao and Gu 2024): layers that consist of a state space only.
#include "model/blocks/none.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

static void plan_layers(model_plan *plan, const ssm_settings *ssm) {
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = ssm_make(plan, ssm);
    plan_layer(plan, layer, mixer, none_make(plan));
  }
}

static void plan_mamba(model_plan *plan) {
  ssm_settings ssm = ssm_read(plan, SSM_MAMBA);
  if (keys_flag(plan->keys, "ssm.dt_b_c_rms", false)) ssm.norms = SSM_PLAIN_NORMS;
  plan_layers(plan, &ssm);
}

static void plan_mamba2(model_plan *plan) {
  const ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  plan_layers(plan, &ssm);
}

const model_family FAMILY_MAMBA = {.name = "mamba", .plan = plan_mamba};
const model_family FAMILY_MAMBA2 = {.name = "mamba2", .plan = plan_mamba2};

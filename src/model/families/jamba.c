// model/families/jamba.c — Jamba (Lieber et al. 2024): attention in some layers, state spaces in
// the others, and experts after every layer that has a router.
#include "base/text.h"
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

// Plans the layers. In layers with a router, experts are as wide as the dense feed-forwards. No
// layer has positions.
static void plan_jamba(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  const dense_settings dense = dense_read(plan);
  experts_settings experts = experts_read(plan, false);
  ssm_settings ssm = ssm_read(plan, SSM_MAMBA);
  experts.expert_ffn = dense.ffn;
  ssm.norms = SSM_WEIGHTED_NORMS;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    char router[48];
    model_block *mixer;
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = ssm_make(plan, &ssm);
    } else {
      const attention_settings attention = attention_read_layer(plan, layer);
      mixer = attention_make(plan, &attention);
    }
    text_format(router, sizeof router, "blk.%u.ffn_gate_inp.weight", layer);
    const bool is_dense = experts.experts == 0 || !plan_has_tensor(plan, router);
    plan_layer(plan, layer, mixer,
               is_dense ? dense_make(plan, &dense) : experts_make(plan, &experts));
  }
}

const model_family FAMILY_JAMBA = {.name = "jamba", .plan = plan_jamba};

// model/families/plamo2.c — PLaMo 2 (Preferred Networks 2025): attention in some layers and state
// spaces in the others.
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

static void plan_plamo2(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  dense_settings dense = dense_read(plan);
  ssm_settings ssm = ssm_read(plan, SSM_PLAMO2);
  uint32_t rope = ATTENTION_ROPE_NONE;
  dense.may_fuse_gate = true;
  dense.post_norm = "post_ffw_norm";
  ssm.norms = SSM_WEIGHTED_NORMS;
  ssm.post_norm = "post_attention_norm";
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer;
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = ssm_make(plan, &ssm);
    } else {
      attention_settings attention = attention_read_layer(plan, layer);
      attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
      attention.post_norm = ssm.post_norm;
      if (rope == ATTENTION_ROPE_NONE) rope = plan_rope(plan, attention.head_dim, false);
      attention.rope = rope;
      mixer = attention_make(plan, &attention);
    }
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_PLAMO2 = {.name = "plamo2", .plan = plan_plamo2};

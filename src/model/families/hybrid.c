// model/families/hybrid.c — decoders with attention in some layers and state spaces in the others:
// Jamba (Lieber et al. 2024), PLaMo 2 (Preferred Networks 2025) and Nemotron-H (NVIDIA 2025), whose
// feed-forwards are layers of their own; and Falcon-H1 (Zuo et al. 2025), which has both in every
// layer side by side.
#include "base/text.h"
#include "model/blocks/attention.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/none.h"
#include "model/blocks/ssm.h"
#include "model/families/families.h"

// Layers with a router have experts as wide as the others are dense. No layer has positions.
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
      const attention_settings attention = attention_read(plan, layer);
      mixer = attention_make(plan, &attention);
    }
    text_format(router, sizeof router, "blk.%u.ffn_gate_inp.weight", layer);
    const bool is_dense = experts.experts == 0 || !plan_has_tensor(plan, router);
    plan_layer(plan, layer, mixer,
               is_dense ? dense_make(plan, &dense) : experts_make(plan, &experts));
  }
}

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
      attention_settings attention = attention_read(plan, layer);
      attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
      attention.post_norm = ssm.post_norm;
      if (rope == ATTENTION_ROPE_NONE) rope = plan_rope(plan, attention.head_dim, false);
      attention.rope = rope;
      mixer = attention_make(plan, &attention);
    }
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

static void plan_falcon_h1(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  attention_settings attention = attention_read(plan, 0);
  dense_settings dense = dense_read(plan);
  ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  attention.rope = plan_rope(plan, attention.head_dim, false);
  attention.aside = ATTENTION_ASIDE_NORMED;
  attention.is_first = true;
  ssm.is_aside = ssm.may_lack_norm = true;
  dense.norm = "ffn_norm";
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = ssm_make(plan, &ssm);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    plan_first_mixer(plan, layer, attention_make(plan, &attention));
  }
}

// A layer is a state space, attention, or a feed-forward, which has a width.
static void plan_layers(model_plan *plan, const experts_settings *experts) {
  const uint32_t layers = plan->model->config.layers;
  const ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  // files have both epsilons
  keys_number(plan->keys, "attention.layer_norm_rms_epsilon", 0, 0);
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    const dense_settings dense = {.norm = "attn_norm.weight",
                                  .ffn = keys_count_of_layer(plan->keys, "feed_forward_length",
                                                             layer, layers, MODEL_FFN_MAX, 0),
                                  .activation = DENSE_RELU_SQUARE,
                                  .is_plain = true,
                                  .residual_scale = 1};
    model_block *mixer;
    if (dense.ffn != 0) {
      mixer = none_make_mixer(plan);
      plan_layer(plan, layer, mixer,
                 experts == NULL ? dense_make(plan, &dense) : experts_make(plan, experts));
      continue;
    }
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = ssm_make(plan, &ssm);
    } else {
      const attention_settings attention = attention_read(plan, layer);
      mixer = attention_make(plan, &attention);
    }
    plan_layer(plan, layer, mixer, none_make(plan));
  }
}

static void plan_nemotron_h(model_plan *plan) { plan_layers(plan, NULL); }

static void plan_nemotron_h_moe(model_plan *plan) {
  model_keys *keys = plan->keys;
  experts_settings experts = experts_read(plan, true);
  experts.norm = "attn_norm.weight";
  experts.expert_ffn = keys_count(keys, "expert_feed_forward_length", 1, MODEL_FFN_MAX, 0);
  experts.shared_ffn = keys_count_or_none(keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.activation = EXPERTS_RELU_SQUARE;
  experts.gating = EXPERTS_SIGMOID;
  experts.is_normalised = keys_flag(keys, "expert_weights_norm", false);
  plan_layers(plan, &experts);
}

const model_family FAMILY_JAMBA = {"jamba", plan_jamba};
const model_family FAMILY_PLAMO2 = {"plamo2", plan_plamo2};
const model_family FAMILY_FALCON_H1 = {"falcon-h1", plan_falcon_h1};
const model_family FAMILY_NEMOTRON_H = {"nemotron_h", plan_nemotron_h};
const model_family FAMILY_NEMOTRON_H_MOE = {"nemotron_h_moe", plan_nemotron_h_moe};

// model/families/scaled.c — the LLaMA architecture with scales: Granite 3 (IBM 2024), also with
// experts and with Mamba 2, has them for embeddings, residuals, scores and logits; MiniCPM (Hu et
// al. 2024) computes the scales that its older files lack from the sizes.
#include "model/blocks/ssm.h"
#include "model/families/decoder.h"
#include "model/families/families.h"

// Reads the model's scales. Returns the residual scale.
static float read_scales(model_plan *plan) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  config->embedding_scale = (float)keys_number(keys, "embedding_scale", 1);
  config->scales_media = config->deepstack_layers == 0;
  config->logit_scale = (float)(1 / keys_number(keys, "logit_scale", 1));
  return (float)keys_number(keys, "residual_scale", 1);
}

// Reads the settings. `rope`: returned by plan_rope and shared by the layers, or
// ATTENTION_ROPE_NONE before the first.
static attention_settings read_attention(model_plan *plan, uint32_t layer, uint32_t *rope) {
  attention_settings attention = attention_read_layer(plan, layer);
  attention.scale = (float)keys_number_or_none(plan->keys, "attention.scale");
  attention.residual_scale = read_scales(plan);
  if (*rope == ATTENTION_ROPE_NONE && keys_flag(plan->keys, "rope.scaling.finetuned", true)) {
    *rope = plan_rope(plan, attention.head_dim, true);
  }
  attention.rope = *rope;
  return attention;
}

static experts_settings read_experts(model_plan *plan, bool is_required) {
  experts_settings experts = experts_read(plan, is_required);
  experts.expert_ffn = plan_ffn(plan);
  experts.shared_ffn =
      keys_count_or_none(plan->keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  experts.residual_scale = read_scales(plan);
  return experts;
}

static void plan_granite(model_plan *plan) {
  uint32_t rope = ATTENTION_ROPE_NONE;
  const attention_settings attention = read_attention(plan, 0, &rope);
  dense_settings dense = dense_read(plan);
  dense.residual_scale = attention.residual_scale;
  plan_refuse_experts(plan);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_granitemoe(model_plan *plan) {
  uint32_t rope = ATTENTION_ROPE_NONE;
  attention_settings attention = read_attention(plan, 0, &rope);
  if (rope == ATTENTION_ROPE_NONE) attention.rope = plan_rope(plan, attention.head_dim, true);
  const experts_settings experts = read_experts(plan, true);
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

// Plans Granite 4 (IBM 2025): layers without KV heads are Mamba 2 layers.
static void plan_granitehybrid(model_plan *plan) {
  const model_config *config = &plan->model->config;
  const experts_settings experts = read_experts(plan, false);
  dense_settings dense = dense_read(plan);
  ssm_settings ssm = ssm_read(plan, SSM_MAMBA2);
  ssm.residual_scale = dense.residual_scale = experts.residual_scale;
  uint32_t rope = ATTENTION_ROPE_NONE;
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer;
    if (plan_kv_heads(plan, layer) == 0) {
      mixer = ssm_make(plan, &ssm);
    } else {
      const attention_settings attention = read_attention(plan, layer, &rope);
      mixer = attention_make(plan, &attention);
    }
    plan_layer(plan, layer, mixer,
               experts.experts == 0 ? dense_make(plan, &dense) : experts_make(plan, &experts));
  }
}

static void plan_minicpm(model_plan *plan) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  attention_settings attention = attention_read_rotated(plan, true);
  dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  if (keys->status != WICK_OK) return;
  const double residual = 1.4 / __builtin_sqrt((double)config->layers);
  attention.residual_scale = (float)keys_number(keys, "residual_scale", residual);
  dense.residual_scale = attention.residual_scale;
  config->embedding_scale = (float)keys_number(keys, "embedding_scale", 12);
  config->logit_scale = (float)(1 / keys_number(keys, "logit_scale", 256.0 / config->hidden));
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_GRANITE = {.name = "granite", .plan = plan_granite};
const model_family FAMILY_GRANITEHYBRID = {.name = "granitehybrid", .plan = plan_granitehybrid};
const model_family FAMILY_GRANITEMOE = {.name = "granitemoe", .plan = plan_granitemoe};
const model_family FAMILY_MINICPM = {.name = "minicpm", .plan = plan_minicpm};

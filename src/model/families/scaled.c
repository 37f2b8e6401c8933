// model/families/scaled.c — LLaMA's shape with scales: Granite 3 (IBM 2024) has them for
// embeddings, residuals, scores and logits, also with experts; MiniCPM (Hu et al. 2024) computes
// what its older files do not say from the sizes.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void read_granite(model_plan *plan, attention_settings *attention) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  *attention = attention_read(plan, 0);
  attention->scale = (float)keys_number_or_none(keys, "attention.scale");
  attention->residual_scale = (float)keys_number(keys, "residual_scale", 0, 1);
  config->embedding_scale = (float)keys_number(keys, "embedding_scale", 0, 1);
  config->logit_scale = (float)(1 / keys_number(keys, "logit_scale", 0, 1));
  if (keys_flag(keys, "rope.scaling.finetuned", true)) {
    attention->rope = plan_rope(plan, attention->head_dim, true);
  }
}

static void plan_granite(model_plan *plan) {
  attention_settings attention;
  read_granite(plan, &attention);
  dense_settings dense = dense_read(plan);
  dense.residual_scale = attention.residual_scale;
  plan_refuse_experts(plan);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_granitemoe(model_plan *plan) {
  attention_settings attention;
  read_granite(plan, &attention);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = plan_ffn(plan);
  experts.shared_ffn =
      keys_count_or_none(plan->keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  experts.residual_scale = attention.residual_scale;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

static void plan_minicpm(model_plan *plan) {
  model_keys *keys = plan->keys;
  model_config *config = &plan->model->config;
  attention_settings attention = attention_read(plan, 0);
  dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  if (keys->status != WICK_OK) return;
  const double residual = 1.4 / __builtin_sqrt((double)config->layers);
  attention.residual_scale = (float)keys_number(keys, "residual_scale", 0, residual);
  dense.residual_scale = attention.residual_scale;
  config->embedding_scale = (float)keys_number(keys, "embedding_scale", 0, 12);
  config->logit_scale = (float)(1 / keys_number(keys, "logit_scale", 0, 256.0 / config->hidden));
  attention.rope = plan_rope(plan, attention.head_dim, true);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_GRANITE = {"granite", plan_granite};
const model_family FAMILY_GRANITEMOE = {"granitemoe", plan_granitemoe};
const model_family FAMILY_MINICPM = {"minicpm", plan_minicpm};

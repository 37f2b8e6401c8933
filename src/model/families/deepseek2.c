// model/families/deepseek2.c — latent attention: DeepSeek-V2, V3 and R1 (DeepSeek-AI 2024), whose
// experts may be chosen by groups, after leading dense layers; MiniCPM3 (OpenBMB 2024), dense and
// with MiniCPM's scales.
#include "base/math.h"
#include "model/blocks/dense.h"
#include "model/blocks/experts.h"
#include "model/blocks/latent_attention.h"
#include "model/families/families.h"

// Applies YaRN's magnitude. YaRN enlarges the rotated parts by `magnitude`. If DeepSeek's files
// have "rope.scaling.yarn_log_multiplier", it changes the magnitude and applies it to whole keys
// and queries.
static void scale_yarn(model_plan *plan, latent_settings *latent) {
  model_keys *keys = plan->keys;
  const double multiplier = keys_number_or_none(keys, "rope.scaling.yarn_log_multiplier");
  if (keys->status != WICK_OK) return;
  model_rope *rope = &plan->model->ropes[latent->rope];
  const double log_scale = math_log(rope->scale);
  const bool is_divided = rope->yarn.is_on && multiplier != 0 && log_scale > 0;
  if (is_divided) rope->magnitude /= 1 + 0.1 * log_scale;
  double magnitude = rope->magnitude * (1 + multiplier * log_scale);
  if (!rope->yarn.is_on) magnitude *= 1 + 0.1 * log_scale;
  latent->scale *= (float)(magnitude * magnitude);
}

static void refuse_temperature(model_keys *keys) {
  const char *name = "attention.temperature_scale";
  if (keys_number_or_none(keys, name) == 0) return;
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, name, "'%s.%s' is not supported in this architecture",
            keys->architecture, name);
}

static void plan_deepseek2(model_plan *plan) {
  model_keys *keys = plan->keys;
  const uint32_t layers = plan->model->config.layers;
  latent_settings latent = latent_read(plan, true);
  const dense_settings dense = dense_read(plan);
  const experts_settings experts = experts_read_shared(plan, false, EXPERTS_SOFTMAX, false);
  scale_yarn(plan, &latent);
  refuse_temperature(keys);
  const uint32_t leading =
      experts.experts == 0 ? layers : keys_count_or_none(keys, "leading_dense_block_count", layers);
  for (uint32_t layer = 0; layer < layers && keys->status == WICK_OK; layer++) {
    model_block *mixer = latent_make(plan, &latent);
    plan_layer(plan, layer, mixer,
               layer < leading ? dense_make(plan, &dense) : experts_make(plan, &experts));
  }
}

// Plans MiniCPM3, which uses MiniCPM's scales, but whose files have no keys for them.
static void plan_minicpm3(model_plan *plan) {
  model_config *config = &plan->model->config;
  latent_settings latent = latent_read(plan, false);
  dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  latent.residual_scale = (float)(1.4 / __builtin_sqrt((double)config->layers));
  dense.residual_scale = latent.residual_scale;
  config->embedding_scale = 12;
  config->logit_scale = 256.0f / (float)config->hidden;
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = latent_make(plan, &latent);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_DEEPSEEK2 = {.name = "deepseek2", .plan = plan_deepseek2};
const model_family FAMILY_MINICPM3 = {.name = "minicpm3", .plan = plan_minicpm3};

// model/families/gemma.c — Gemma (Gemma team 2024): LLaMA's shape with GELU, heads of their own
// size, halves rotated, and embeddings multiplied by sqrt(hidden). Its files have 1 added to norms.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_gemma(model_plan *plan) {
  model_config *config = &plan->model->config;
  attention_settings attention = attention_read(plan, 0);
  dense_settings dense = dense_read(plan);
  dense.activation = DENSE_GELU;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_GEMMA = {"gemma", plan_gemma};

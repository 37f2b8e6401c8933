// model/families/gemma3n.c — Gemma 3n (Google DeepMind 2025): Gemma 4's layers (gemma_layers.h)
// with heads of one size, four rows per token (blocks/altup.h), a low-rank map in parallel with
// attention (blocks/laurel.h) and sparse gates. As in llama.cpp, most of its constants are defined
// here and not in its files.
#include "model/blocks/altup.h"
#include "model/blocks/dense.h"
#include "model/blocks/laurel.h"
#include "model/blocks/layer_inputs.h"
#include "model/families/families.h"
#include "model/families/gemma_layers.h"

static void plan_gemma3n(model_plan *plan) {
  enum { PERIOD = 5, OWN = 20, SPARSE = 10, INPUTS = 256, RANK = 64 };
  model_config *config = &plan->model->config;
  attention_settings heads;
  gemma_layers gemma = gemma_layers_read(plan, &heads);
  gemma.own = config->layers < OWN ? config->layers : OWN;
  gemma.window_rope = plan_window_rope(plan, heads.head_dim, false);
  if (!keys_is_list(plan->keys, GEMMA_PATTERN)) {
    gemma.period = keys_count(plan->keys, GEMMA_PATTERN, 1, MODEL_LAYERS_MAX, PERIOD);
  }
  config->logit_cap = 30;
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    attention_settings attention = gemma_layers_attention(&gemma, layer);
    const dense_settings dense = {
        .norm = "ffn_norm.weight",
        .post_norm = "post_ffw_norm.weight",
        .ffn = plan_ffn_of_layer(plan, layer),
        .activation = DENSE_GELU,
        .sparsity = layer < SPARSE ? 1.6448533535f : 0,  // 5% of the values are used
        .residual_scale = 1};
    attention.norm = NULL;
    attention.is_aside = true;
    attention.residual_scale = LAUREL_SCALE;
    if (layer >= gemma.own) attention.keys_of = gemma_layers_source(&gemma, layer, &attention);
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
    plan_first(plan, layer, laurel_make(plan, RANK));
    model_block *predict = altup_predict_make(plan);
    plan_first(plan, layer, predict);
    if (layer == 0) plan_first(plan, layer, altup_spread_make(plan));
    if (layer == 0) plan_first(plan, layer, layer_inputs_make(plan, INPUTS));
    plan_last(plan, layer, altup_correct_make(plan, predict));
    plan_last(plan, layer, layer_end_make(plan, INPUTS));
    if (layer + 1 == config->layers) plan_last(plan, layer, altup_merge_make(plan));
  }
}

const model_family FAMILY_GEMMA3N = {.name = "gemma3n", .plan = plan_gemma3n};

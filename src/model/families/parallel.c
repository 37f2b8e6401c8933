// model/families/parallel.c — decoders whose attention and feed-forward run in parallel: Falcon
// (Almazrouei et al. 2023), GPT-NeoX and Pythia (Black et al. 2022), Command R and R7B (Cohere
// 2024), and StableLM 2 12B (Bellagente et al. 2024). In some of their files, the two run one after
// the other.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_falcon(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  attention.rope = plan_rope(plan, attention.head_dim, false);
  dense.is_aside = dense.is_plain = true;
  dense.activation = DENSE_GELU;
  if (plan_has_tensor(plan, "blk.0.attn_norm_2.weight")) {  // 40B: separate norms
    attention.norm = "attn_norm_2.weight";
    attention.aside = ATTENTION_ASIDE_INPUT;
    dense.norm = "attn_norm.weight";
  } else {
    attention.aside = ATTENTION_ASIDE_NORMED;
    dense.norm = NULL;
  }
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_gptneox(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  dense.is_plain = true;
  dense.activation = DENSE_GELU;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  dense.is_aside = keys_flag(plan->keys, "use_parallel_residual", true);
  if (dense.is_aside) attention.aside = ATTENTION_ASIDE_INPUT;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_command_r(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
  attention.aside = ATTENTION_ASIDE_NORMED;
  attention.rope = plan_rope(plan, attention.head_dim, true);
  dense.is_aside = true;
  dense.norm = NULL;
  plan->model->config.logit_scale = (float)keys_number(plan->keys, "logit_scale", 1);
  plan_dense_decoder(plan, &attention, &dense);
}

// Plans Cohere2, which is like Command R, except that every fourth layer attends to all tokens and
// has no rotary positions, and the others attend to a window.
static void plan_cohere2(model_plan *plan) {
  model_config *config = &plan->model->config;
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  const uint32_t rope = plan_rope(plan, attention.head_dim, true);
  const uint32_t window = keys_size(plan->keys, "attention.sliding_window", UINT32_MAX);
  const uint32_t pattern =
      keys_count(plan->keys, "attention.sliding_window_pattern", 1, MODEL_LAYERS_MAX, 4);
  attention.aside = ATTENTION_ASIDE_NORMED;
  dense.is_aside = true;
  dense.norm = NULL;
  config->logit_scale = (float)keys_number(plan->keys, "logit_scale", 1);
  for (uint32_t layer = 0; layer < config->layers && plan->keys->status == WICK_OK; layer++) {
    const bool is_whole = (layer + 1) % pattern == 0;
    attention.rope = is_whole ? ATTENTION_ROPE_NONE : rope;
    attention.window = is_whole ? 0 : window;
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

static void plan_stablelm(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
  attention.rope = plan_rope(plan, attention.head_dim, false);
  if (!plan_has_tensor(plan, "blk.0.ffn_norm.weight")) {
    attention.aside = ATTENTION_ASIDE_NORMED;
    dense.is_aside = true;
    dense.norm = NULL;
  }
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_COHERE2 = {
    .name = "cohere2", .plan = plan_cohere2, .has_layer_norms = true};
const model_family FAMILY_COMMAND_R = {
    .name = "command-r", .plan = plan_command_r, .has_layer_norms = true};
const model_family FAMILY_FALCON = {.name = "falcon", .plan = plan_falcon, .has_layer_norms = true};
const model_family FAMILY_GPTNEOX = {
    .name = "gptneox", .plan = plan_gptneox, .has_layer_norms = true};
const model_family FAMILY_STABLELM = {
    .name = "stablelm", .plan = plan_stablelm, .has_layer_norms = true};

// model/families/parallel.c — decoders whose attention and feed-forward run in parallel: Falcon
// (Almazrouei et al. 2023), GPT-NeoX and Pythia (Black et al. 2022), Command R and R7B (Cohere
// 2024), and StableLM 2 12B (Bellagente et al. 2024). In some of their files, the two run one after
// the other.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_falcon(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
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
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  dense.is_plain = true;
  dense.activation = DENSE_GELU;
  dense.is_aside = keys_flag(plan->keys, "use_parallel_residual", true);
  if (dense.is_aside) attention.aside = ATTENTION_ASIDE_INPUT;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_command_r(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, true);
  dense_settings dense = dense_read(plan);
  attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
  attention.aside = ATTENTION_ASIDE_NORMED;
  dense.is_aside = true;
  dense.norm = NULL;
  plan->model->config.logit_scale = (float)keys_number(plan->keys, "logit_scale", 1);
  plan_dense_decoder(plan, &attention, &dense);
}

// Plans Cohere2, which is like Command R, except that every fourth layer attends to all tokens and
// has no rotary positions, and the others attend to a window.
static void plan_cohere2(model_plan *plan) {
  attention_settings windowed = attention_read_rotated(plan, true);
  dense_settings dense = dense_read(plan);
  windowed.aside = ATTENTION_ASIDE_NORMED;
  attention_settings whole = windowed;
  whole.rope = ATTENTION_ROPE_NONE;
  windowed.window = keys_size(plan->keys, "attention.sliding_window", UINT32_MAX);
  const uint32_t pattern =
      keys_count(plan->keys, "attention.sliding_window_pattern", 1, MODEL_LAYERS_MAX, 4);
  dense.is_aside = true;
  dense.norm = NULL;
  plan->model->config.logit_scale = (float)keys_number(plan->keys, "logit_scale", 1);
  plan_periodic_decoder(plan, pattern, &whole, &windowed, &dense);
}

static void plan_stablelm(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  attention.qk_norms = ATTENTION_NORMS_OF_HEADS;
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

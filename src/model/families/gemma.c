// model/families/gemma.c — Gemma (Gemma team 2024): the LLaMA architecture with GELU, a separate
// head size, rotation of halves, and embeddings multiplied by sqrt(hidden). In its files, 1 has
// been added to the weights of norms. Gemma 2 (2024): also norms of the blocks' outputs, a window
// in every other layer, and caps on scores and logits. Gemma 3 (2025): a window in five of six
// layers, where positions have a different base, and norms of queries and keys instead of the caps.
// EmbeddingGemma (2025): Gemma 3 as an encoder.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_gemma(model_plan *plan) {
  model_config *config = &plan->model->config;
  const attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  dense.activation = DENSE_GELU;
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  plan_dense_decoder(plan, &attention, &dense);
}

// Reads the settings that Gemma 2 and 3 have in common. The largest model of either scales scores
// by its width.
static attention_settings read_sandwich(model_plan *plan, dense_settings *dense,
                                        uint32_t layers_largest) {
  model_config *config = &plan->model->config;
  attention_settings attention = attention_read(plan);
  *dense = dense_read(plan);
  dense->activation = DENSE_GELU;
  dense->post_norm = "post_ffw_norm.weight";
  attention.post_norm = "post_attention_norm.weight";
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  config->logit_cap = (float)keys_number_or_none(plan->keys, "final_logit_softcapping");
  if (plan->keys->status == WICK_OK && config->layers == layers_largest) {
    attention.scale = 1.0f / __builtin_sqrtf((float)(config->hidden / attention.heads));
  }
  return attention;
}

static void plan_gemma2(model_plan *plan) {
  enum { PATTERN = 2, LAYERS_27B = 46, WINDOW = 4096 };
  dense_settings dense;
  attention_settings whole = read_sandwich(plan, &dense, LAYERS_27B);
  plan->model->config.logit_cap = (float)keys_number(plan->keys, "final_logit_softcapping", 30);
  whole.score_cap = (float)keys_number(plan->keys, "attn_logit_softcapping", 50);
  whole.rope = plan_rope(plan, whole.head_dim, false);
  attention_settings windowed = whole;
  windowed.rope = plan_window_rope_like(plan, whole.rope, whole.head_dim);
  windowed.window = keys_count(plan->keys, "attention.sliding_window", 1, MODEL_WINDOW_MAX, WINDOW);
  plan_periodic_decoder(plan, PATTERN, &whole, &windowed, &dense);
}

static void plan_gemma3_layers(model_plan *plan, bool is_encoder) {
  enum { PATTERN = 6, LAYERS_27B = 62 };
  dense_settings dense;
  attention_settings whole = read_sandwich(plan, &dense, LAYERS_27B);
  whole.qk_norms = ATTENTION_HEAD_NORMS;
  whole.is_whole = whole.is_whole || is_encoder;
  whole.sees_media = !whole.is_whole;
  whole.rope = plan_rope(plan, whole.head_dim, false);
  attention_settings windowed = whole;
  windowed.rope = plan_window_rope(plan, whole.head_dim, false);
  windowed.window = keys_size(plan->keys, "attention.sliding_window", MODEL_WINDOW_MAX);
  const uint32_t pattern =
      keys_count(plan->keys, "attention.sliding_window_pattern", 1, MODEL_LAYERS_MAX, PATTERN);
  plan_periodic_decoder(plan, pattern, &whole, &windowed, &dense);
}

static void plan_gemma3(model_plan *plan) { plan_gemma3_layers(plan, false); }

static void plan_gemma_embedding(model_plan *plan) { plan_gemma3_layers(plan, true); }

const model_family FAMILY_GEMMA_EMBEDDING = {.name = "gemma-embedding",
                                             .plan = plan_gemma_embedding};
const model_family FAMILY_GEMMA2 = {.name = "gemma2", .plan = plan_gemma2};
const model_family FAMILY_GEMMA3 = {.name = "gemma3", .plan = plan_gemma3};
const model_family FAMILY_GEMMA = {.name = "gemma", .plan = plan_gemma};

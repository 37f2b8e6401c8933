// model/families/llama_like.c — models with the LLaMA architecture (Touvron et al. 2023):
// InternLM2, XVERSE and ERNIE 4.5 rotate adjacent pairs; EXAONE 3, Orion (with layer norms) and
// Seed-OSS (whose norm before the feed-forward has a different name) rotate halves; in the first
// version of Qwen, the key contains the total width of gate and up; Arcee has a plain feed-forward
// with squared ReLU.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_shape(model_plan *plan, bool is_interleaved, const dense_settings *dense) {
  attention_settings attention = attention_read(plan);
  plan_refuse_experts(plan);
  attention.rope = plan_rope(plan, attention.head_dim, is_interleaved);
  plan_dense_decoder(plan, &attention, dense);
}

static void plan_neighbours(model_plan *plan) {
  const dense_settings dense = dense_read(plan);
  plan_shape(plan, true, &dense);
}

static void plan_halves(model_plan *plan) {
  const dense_settings dense = dense_read(plan);
  plan_shape(plan, false, &dense);
}

static void plan_seed_oss(model_plan *plan) {
  dense_settings dense = dense_read(plan);
  dense.norm = "post_attention_norm.weight";
  plan_shape(plan, false, &dense);
}

static void plan_qwen(model_plan *plan) {
  dense_settings dense = dense_read(plan);
  dense.ffn /= 2;
  plan_shape(plan, false, &dense);
}

static void plan_arcee(model_plan *plan) {
  dense_settings dense = dense_read(plan);
  dense.is_plain = true;
  dense.activation = DENSE_RELU_SQUARE;
  plan_shape(plan, true, &dense);
}

const model_family FAMILY_ARCEE = {.name = "arcee", .plan = plan_arcee};
const model_family FAMILY_ERNIE4_5 = {.name = "ernie4_5", .plan = plan_neighbours};
const model_family FAMILY_EXAONE = {.name = "exaone", .plan = plan_halves};
const model_family FAMILY_INTERNLM2 = {.name = "internlm2", .plan = plan_neighbours};
const model_family FAMILY_ORION = {.name = "orion", .plan = plan_halves, .has_layer_norms = true};
const model_family FAMILY_QWEN = {.name = "qwen", .plan = plan_qwen};
const model_family FAMILY_SEED_OSS = {.name = "seed_oss", .plan = plan_seed_oss};
const model_family FAMILY_XVERSE = {.name = "xverse", .plan = plan_neighbours};

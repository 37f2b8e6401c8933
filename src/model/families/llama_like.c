// model/families/llama_like.c — models with the LLaMA architecture (Touvron et al. 2023):
// InternLM2, XVERSE and ERNIE 4.5 rotate adjacent pairs; EXAONE 3, Orion (with layer norms) and
// Seed-OSS (whose norm before the feed-forward has a different name) rotate halves; in the first
// version of Qwen, the key contains the total width of gate and up; Arcee has a plain feed-forward
// with squared ReLU; SmolLM3 (Hugging Face 2025) has no positions in every fourth layer (NoPE);
// BitNet b1.58 (Ma et al. 2024) has ternary weights, with factors of whole matrices as separate
// tensors (".scale"), and norms before the output of each block.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_shape(model_plan *plan, bool is_interleaved, const dense_settings *dense) {
  const attention_settings attention = attention_read_rotated(plan, is_interleaved);
  plan_refuse_experts(plan);
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

static void plan_smollm3(model_plan *plan) {
  enum { WITHOUT_POSITIONS_EVERY = 4 };
  const attention_settings rotated = attention_read_rotated(plan, true);
  attention_settings plain = rotated;
  plain.rope = ATTENTION_ROPE_NONE;
  const dense_settings dense = dense_read(plan);
  plan_periodic_decoder(plan, WITHOUT_POSITIONS_EVERY, &plain, &rotated, &dense);
}

static void plan_bitnet(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  attention.sub_norm = "attn_sub_norm.weight";
  dense.sub_norm = "ffn_sub_norm.weight";
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_ARCEE = {.name = "arcee", .plan = plan_arcee};
const model_family FAMILY_BITNET = {.name = "bitnet", .plan = plan_bitnet};
const model_family FAMILY_ERNIE4_5 = {.name = "ernie4_5", .plan = plan_neighbours};
const model_family FAMILY_EXAONE = {.name = "exaone", .plan = plan_halves};
const model_family FAMILY_INTERNLM2 = {.name = "internlm2", .plan = plan_neighbours};
const model_family FAMILY_ORION = {.name = "orion", .plan = plan_halves, .has_layer_norms = true};
const model_family FAMILY_QWEN = {.name = "qwen", .plan = plan_qwen};
const model_family FAMILY_SEED_OSS = {.name = "seed_oss", .plan = plan_seed_oss};
const model_family FAMILY_SMOLLM3 = {.name = "smollm3", .plan = plan_smollm3};
const model_family FAMILY_XVERSE = {.name = "xverse", .plan = plan_neighbours};

// model/families/gpt2.c — decoders with layer norms, biases and a plain feed-forward: GPT-2
// (Radford et al. 2019) and StarCoder (Li et al. 2023) have learned positions; StarCoder2 (Lozhkov
// et al. 2024) and Nemotron (Parmar et al. 2024; squared ReLU) rotate halves; BLOOM (Le Scao et al.
// 2022) and MPT (MosaicML 2023) have ALiBi.
#include "model/families/decoder.h"
#include "model/families/families.h"

static dense_settings read_plain(model_plan *plan) {
  dense_settings dense = dense_read(plan);
  dense.is_plain = true;
  dense.activation = DENSE_GELU;
  return dense;
}

static void plan_gpt2(model_plan *plan) {
  const attention_settings attention = attention_read(plan);
  const dense_settings dense = read_plain(plan);
  plan->model->has_positions = true;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_rotated(model_plan *plan, dense_activation activation) {
  const attention_settings attention = attention_read_rotated(plan, false);
  dense_settings dense = read_plain(plan);
  dense.activation = activation;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_starcoder2(model_plan *plan) { plan_rotated(plan, DENSE_GELU); }

static void plan_nemotron(model_plan *plan) { plan_rotated(plan, DENSE_RELU_SQUARE); }

static void plan_bloom(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = read_plain(plan);
  attention.alibi = ATTENTION_ALIBI_DEFAULT;
  plan->model->embedding_norm_name = "token_embd_norm.weight";
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_mpt(model_plan *plan) {
  model_keys *keys = plan->keys;
  attention_settings attention = attention_read(plan);
  const dense_settings dense = read_plain(plan);
  attention.alibi = (float)keys_number_or_none(keys, "attention.max_alibi_bias");
  attention.clamp = (float)keys_number_or_none(keys, "attention.clamp_kqv");
  plan->model->has_positions = plan_has_tensor(plan, "position_embd.weight");
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_BLOOM = {.name = "bloom", .plan = plan_bloom, .has_layer_norms = true};
const model_family FAMILY_GPT2 = {.name = "gpt2", .plan = plan_gpt2, .has_layer_norms = true};
const model_family FAMILY_MPT = {.name = "mpt", .plan = plan_mpt, .has_layer_norms = true};
const model_family FAMILY_NEMOTRON = {
    .name = "nemotron", .plan = plan_nemotron, .has_layer_norms = true};
const model_family FAMILY_STARCODER = {
    .name = "starcoder", .plan = plan_gpt2, .has_layer_norms = true};
const model_family FAMILY_STARCODER2 = {
    .name = "starcoder2", .plan = plan_starcoder2, .has_layer_norms = true};

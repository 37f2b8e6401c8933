// model/families/bert.c — encoders whose norms follow each addition: BERT (Devlin et al. 2018;
// MiniLM, bge, e5, XLM-R's) with learned positions, nomic-embed (Nussbaum et al. 2024) and
// jina-embeddings-v3 (Sturua et al. 2024) with rotated halves, jina-embeddings-v2 (Günther et al.
// 2023) with ALiBi in both directions. Files are in the form of llama.cpp's converter.
#include "model/families/decoder.h"
#include "model/families/families.h"

static attention_settings read_attention(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  attention.is_whole = true;
  attention.norm = NULL;
  attention.sum_norm = "attn_output_norm.weight";
  plan->model->embedding_norm_name = "token_embd_norm.weight";
  plan->model->output_norm_name = NULL;
  return attention;
}

static dense_settings read_dense(model_plan *plan, dense_activation activation, bool is_plain) {
  dense_settings dense = dense_read(plan);
  dense.norm = NULL;
  dense.sum_norm = "layer_output_norm.weight";
  dense.activation = activation;
  dense.is_plain = is_plain;
  return dense;
}

static void plan_bert(model_plan *plan) {
  const attention_settings attention = read_attention(plan);
  const dense_settings dense = read_dense(plan, DENSE_GELU, true);
  plan->model->has_positions = true;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_rotated(model_plan *plan, dense_activation activation, bool is_plain) {
  attention_settings attention = read_attention(plan);
  const dense_settings dense = read_dense(plan, activation, is_plain);
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_nomic_bert(model_plan *plan) { plan_rotated(plan, DENSE_SILU, false); }

// Plans nomic-embed MoE: about every second layer has experts without gates, whose weights do not
// sum to 1.
static void plan_nomic_bert_moe(model_plan *plan) {
  attention_settings attention = read_attention(plan);
  const dense_settings dense = read_dense(plan, DENSE_GELU, true);
  experts_settings experts = experts_read(plan, true);
  const uint32_t layers = plan->model->config.layers;
  const uint32_t every = keys_size(plan->keys, "moe_every_n_layers", MODEL_LAYERS_MAX);
  attention.rope = plan_rope(plan, attention.head_dim, false);
  experts.norm = NULL;
  experts.sum_norm = dense.sum_norm;
  experts.expert_ffn = dense.ffn;
  experts.activation = EXPERTS_GELU_PLAIN;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(
        plan, layer, mixer,
        layer % every == 1 % every ? experts_make(plan, &experts) : dense_make(plan, &dense));
  }
}

static void plan_jina_bert_v3(model_plan *plan) { plan_rotated(plan, DENSE_GELU, true); }

// Models for code have norms of queries and keys and one more norm in each layer.
static void plan_jina_bert_v2(model_plan *plan) {
  attention_settings attention = read_attention(plan);
  dense_settings dense = read_dense(plan, DENSE_GELU, false);
  dense.may_fuse_gate = true;
  attention.alibi = ATTENTION_ALIBI_DEFAULT;
  if (plan_has_tensor(plan, "blk.0.attn_q_norm.weight")) attention.qk_norms = ATTENTION_ROW_NORMS;
  if (plan_has_tensor(plan, "blk.0.attn_norm_2.weight")) {
    attention.again_norm = "attn_norm_2.weight";
  }
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_BERT = {.name = "bert", .plan = plan_bert, .has_layer_norms = true};
const model_family FAMILY_JINA_BERT_V2 = {
    .name = "jina-bert-v2", .plan = plan_jina_bert_v2, .has_layer_norms = true};
const model_family FAMILY_JINA_BERT_V3 = {
    .name = "jina-bert-v3", .plan = plan_jina_bert_v3, .has_layer_norms = true};
const model_family FAMILY_NOMIC_BERT_MOE = {
    .name = "nomic-bert-moe", .plan = plan_nomic_bert_moe, .has_layer_norms = true};
const model_family FAMILY_NOMIC_BERT = {
    .name = "nomic-bert", .plan = plan_nomic_bert, .has_layer_norms = true};

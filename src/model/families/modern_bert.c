// model/families/modern_bert.c — ModernBERT (Warner et al. 2024): an encoder with norms before the
// blocks, a gated feed-forward, rotated halves, and a window in two of three layers, where
// positions have a different base. The first layer has no norm before its attention.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_modern_bert(model_plan *plan) {
  enum { PATTERN = 3 };
  model_keys *keys = plan->keys;
  loaded_model *model = plan->model;
  attention_settings whole = attention_read_rotated(plan, false);
  dense_settings dense = dense_read(plan);
  dense.activation = DENSE_GELU_ERF;
  dense.may_fuse_gate = true;
  model->embedding_norm_name = "token_embd_norm.weight";
  model->head.score_pooling = WICK_POOLING_MEAN;
  model->head.activation = HEAD_GELU;
  whole.is_whole = true;
  attention_settings windowed = whole;
  windowed.rope = plan_window_rope(plan, whole.head_dim, false);
  windowed.window = keys_size(keys, "attention.sliding_window", MODEL_WINDOW_MAX);
  const uint32_t pattern =
      keys_count(keys, "attention.sliding_window_pattern", 1, MODEL_LAYERS_MAX, PATTERN);
  for (uint32_t layer = 0; layer < model->config.layers && keys->status == WICK_OK; layer++) {
    attention_settings *attention = layer % pattern == 0 ? &whole : &windowed;
    attention->norm =
        layer == 0 && !plan_has_tensor(plan, "blk.0.attn_norm.weight") ? NULL : "attn_norm.weight";
    model_block *mixer = attention_make(plan, attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_MODERN_BERT = {
    .name = "modern-bert", .plan = plan_modern_bert, .has_layer_norms = true};

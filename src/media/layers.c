// media/layers.c — reads the weights of a transformer's layers (weights.h).
#include "base/text.h"
#include "media/weights.h"

bool layers_read_attention(weight_reader *reader, const char *prefix, const char *norm,
                           vision_attention *out) {
  const media_model *model = reader->model;
  uint32_t q = model->heads * model->head_dim, kv = model->kv_heads * model->head_dim;
  uint32_t all = q + 2 * kv, width = model->width;
  if (!weights_norm(reader, prefix, norm, width, false, &out->norm) ||
      !weights_linear(reader, prefix, "attn_qkv", width, &all, true, &out->qkv)) {
    return false;
  }
  if (!linear_is_present(&out->qkv) &&
      (!weights_linear(reader, prefix, "attn_q", width, &q, false, &out->q) ||
       !weights_linear(reader, prefix, "attn_k", width, &kv, false, &out->k) ||
       !weights_linear(reader, prefix, "attn_v", width, &kv, false, &out->v))) {
    return false;
  }
  return weights_linear(reader, prefix, "attn_out", q, &width, false, &out->out) &&
         weights_floats(reader, prefix, "attn_q_norm.weight", model->head_dim, true,
                        &out->q_norm) &&
         weights_floats(reader, prefix, "attn_k_norm.weight", model->head_dim, true, &out->k_norm);
}

bool layers_read(weight_reader *reader, uint32_t index, uint32_t ffn) {
  media_model *model = reader->model;
  vision_layer *layer = &model->layers[index];
  const uint32_t width = model->width;
  char prefix[WEIGHT_NAME_BYTES], inner[WEIGHT_NAME_BYTES];
  text_format(prefix, sizeof prefix, "%sblk.%u.", reader->root, (unsigned)index);
  text_format(inner, sizeof inner, "%sffn_", prefix);
  return layers_read_attention(reader, prefix, "ln1", &layer->attention) &&
         weights_norm(reader, prefix, "ln2", width, false, &layer->norm) &&
         weights_feed_forward(reader, inner, width, width, ffn, model->kind->may_swap,
                              &layer->feed_forward) &&
         weights_floats(reader, prefix, "ls1.weight", width, true, &layer->attention_scale) &&
         weights_floats(reader, prefix, "ls2.weight", width, true, &layer->ffn_scale) &&
         weights_floats(reader, prefix, "out_scale.weight", width, true, &layer->scale) &&
         weights_floats(reader, prefix, "attn_post_norm.weight", width, true,
                        &layer->attention_post) &&
         weights_floats(reader, prefix, "ffn_post_norm.weight", width, true, &layer->ffn_post);
}

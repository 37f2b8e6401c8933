// model/families/t5.c — T5 (Raffel et al. 2020), only its encoder, for embeddings: attention biases
// that depend on the distance instead of positions, RMS norms before the blocks, and a feed-forward
// with ReLU or, in T5 1.1, with a gate.
#include "model/blocks/relative_attention.h"
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_t5encoder(model_plan *plan) {
  enum { BUCKETS_MIN = 4, BUCKETS_MAX = 1024, BUCKETS = 32 };
  loaded_model *model = plan->model;
  model_keys *keys = plan->keys;
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  const uint32_t buckets =
      keys_count(keys, "attention.relative_buckets_count", BUCKETS_MIN, BUCKETS_MAX, BUCKETS);
  dense.is_plain = !plan_has_tensor(plan, "enc.blk.0.ffn_gate.weight");
  dense.activation = dense.is_plain ? DENSE_RELU : DENSE_GELU;
  model->layer_prefix = "enc.";
  model->output_norm_name = "enc.output_norm.weight";
  if (keys->status == WICK_OK && attention.kv_heads != attention.heads) {
    KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.head_count_kv",
              "%u key heads for %u query heads are not supported in this architecture",
              attention.kv_heads, attention.heads);
  }
  const model_block *first = NULL;
  for (uint32_t layer = 0; layer < model->config.layers && keys->status == WICK_OK; layer++) {
    model_block *mixer = relative_attention_make(plan, &attention, buckets, first);
    if (first == NULL) first = mixer;
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_T5ENCODER = {.name = "t5encoder", .plan = plan_t5encoder};

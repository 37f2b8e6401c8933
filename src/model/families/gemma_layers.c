// model/families/gemma_layers.c — see gemma_layers.h.
#include "model/families/gemma_layers.h"

static bool has_window(const gemma_layers *gemma, uint32_t layer) {
  if (gemma->period != 0) return layer % gemma->period != gemma->period - 1;
  return keys_count_of_layer(gemma->plan->keys, GEMMA_PATTERN, layer,
                             gemma->plan->model->config.layers, 1, 0) != 0;
}

attention_settings gemma_layers_attention(const gemma_layers *gemma, uint32_t layer) {
  attention_settings is = attention_read_layer(gemma->plan, layer);
  is.post_norm = "post_attention_norm.weight";
  is.qk_norms = ATTENTION_HEAD_NORMS;
  is.norms_values = true;
  is.scale = 1;
  is.rope = gemma->rope;
  if (has_window(gemma, layer)) {
    if (gemma->has_window_heads) attention_read_window_heads(gemma->plan, &is);
    is.window = gemma->window;
    is.rope = gemma->window_rope;
  }
  return is;
}

const model_block *gemma_layers_source(const gemma_layers *gemma, uint32_t layer,
                                       const attention_settings *is) {
  model_keys *keys = gemma->plan->keys;
  const uint32_t back = is->window != 0 ? 2 : 1;
  if (keys->status != WICK_OK) return NULL;
  if (gemma->own >= back) {
    const uint32_t source = gemma->own - back;
    const attention_settings of = gemma_layers_attention(gemma, source);
    if (of.window == is->window && of.kv_heads == is->kv_heads) {
      return gemma->plan->model->layers[source].mixer;
    }
  }
  KEYS_FAIL(keys, WICK_E_FORMAT, "attention.shared_kv_layers",
            "layer %u cannot share an earlier layer's keys and values "
            "('%s.attention.shared_kv_layers')",
            layer, keys->architecture);
  return NULL;
}

gemma_layers gemma_layers_read(model_plan *plan, attention_settings *heads) {
  model_config *config = &plan->model->config;
  gemma_layers gemma = {.plan = plan};
  *heads = attention_read(plan);
  gemma.rope = plan_rope(plan, heads->head_dim, false);
  gemma.window = keys_size(plan->keys, "attention.sliding_window", MODEL_WINDOW_MAX);
  config->embedding_scale = __builtin_sqrtf((float)config->hidden);
  return gemma;
}

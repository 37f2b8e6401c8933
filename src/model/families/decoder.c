// model/families/decoder.c — see decoder.h.
#include "model/families/decoder.h"

#include "model/blocks/dense.h"

void plan_dense_decoder(model_plan *plan, const attention_settings *attention, uint32_t ffn) {
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = attention_make(plan, attention);
    plan_layer(plan, layer, mixer, dense_make(plan, "ffn_norm.weight", ffn));
  }
}

void plan_experts_decoder(model_plan *plan, const attention_settings *attention,
                          const experts_settings *experts) {
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = attention_make(plan, attention);
    plan_layer(plan, layer, mixer, experts_make(plan, experts));
  }
}

// model/families/decoder.c — see decoder.h.
#include "model/families/decoder.h"

void plan_dense_decoder(model_plan *plan, const attention_settings *attention,
                        const dense_settings *dense) {
  plan_periodic_decoder(plan, 1, attention, attention, dense);
}

void plan_periodic_decoder(model_plan *plan, uint32_t period, const attention_settings *last,
                           const attention_settings *others, const dense_settings *dense) {
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = attention_make(plan, (layer + 1) % period == 0 ? last : others);
    plan_layer(plan, layer, mixer, dense_make(plan, dense));
  }
}

void plan_experts_decoder(model_plan *plan, const attention_settings *attention,
                          const experts_settings *experts, const dense_settings *dense) {
  const uint32_t layers = plan->model->config.layers;
  const uint32_t leading =
      dense == NULL ? 0 : keys_count_or_none(plan->keys, "leading_dense_block_count", layers);
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = attention_make(plan, attention);
    plan_layer(plan, layer, mixer,
               layer < leading ? dense_make(plan, dense) : experts_make(plan, experts));
  }
}

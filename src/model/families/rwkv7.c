// model/families/rwkv7.c — RWKV-7 (Peng et al. 2025): layers of a time mix and a channel mix.
#include "model/blocks/rwkv.h"
#include "model/families/families.h"

static void plan_rwkv7(model_plan *plan) {
  const uint32_t layers = plan->model->config.layers;
  const rwkv_settings rwkv = rwkv_read(plan);
  plan->model->embedding_norm_name = "token_embd_norm.weight";
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    model_block *mixer = rwkv_make_time_mix(plan, &rwkv, layer);
    plan_layer(plan, layer, mixer, rwkv_make_channel_mix(plan, &rwkv));
  }
}

const model_family FAMILY_RWKV7 = {.name = "rwkv7", .plan = plan_rwkv7, .has_layer_norms = true};

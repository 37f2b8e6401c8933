// model/families/dots1.c — mixtures of experts after dense layers, with shared experts and a bias
// that only affects the choice: dots.llm1 (Xiaohongshu 2025), ERNIE 4.5 (Baidu 2025).
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_dots1(model_plan *plan) {
  attention_settings attention = attention_read_rotated(plan, false);
  const dense_settings dense = dense_read(plan);
  const experts_settings experts = experts_read_shared(plan, true, EXPERTS_SOFTMAX, false);
  attention.qk_norms = ATTENTION_HEAD_NORMS;
  plan_experts_decoder(plan, &attention, &experts, &dense);
}

static void plan_ernie(model_plan *plan) {
  model_keys *keys = plan->keys;
  const uint32_t layers = plan->model->config.layers;
  const attention_settings attention = attention_read_rotated(plan, true);
  const dense_settings dense = dense_read(plan);
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  experts.shared_ffn = keys_count_or_none(keys, "expert_shared_feed_forward_length", MODEL_FFN_MAX);
  experts.is_normalised = true;
  const uint32_t leading = keys_count_or_none(keys, "leading_dense_block_count", layers);
  const uint32_t step = keys_count(keys, "interleave_moe_layer_step", 1, MODEL_LAYERS_MAX, 1);
  for (uint32_t layer = 0; layer < layers && keys->status == WICK_OK; layer++) {
    const bool has_experts = layer >= leading && (layer + 1) % step == 0;
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer,
               has_experts ? experts_make(plan, &experts) : dense_make(plan, &dense));
  }
}

const model_family FAMILY_DOTS1 = {.name = "dots1", .plan = plan_dots1};
const model_family FAMILY_ERNIE4_5_MOE = {.name = "ernie4_5-moe", .plan = plan_ernie};

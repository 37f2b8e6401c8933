// model/families/gpt_oss.c — gpt-oss (OpenAI 2025): every other layer has a window; attention with
// sinks; experts with biases, whose weights are a softmax over the selected experts. SmallThinker
// (Song et al. 2025): three of four layers have a window, the fourth has no positions; the router
// reads the input of the layer.
#include "model/families/decoder.h"
#include "model/families/families.h"

// A layer whose index is a multiple of `period` differs from the others.
typedef struct layer_kinds {
  uint32_t period;
  attention_settings multiple, other;
} layer_kinds;

static void plan_layers(model_plan *plan, const layer_kinds *kinds,
                        const experts_settings *experts) {
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    const bool is_multiple = layer % kinds->period == 0;
    model_block *mixer = attention_make(plan, is_multiple ? &kinds->multiple : &kinds->other);
    plan_layer(plan, layer, mixer, experts_make(plan, experts));
  }
}

static experts_settings read_experts(model_plan *plan) {
  experts_settings experts = experts_read(plan, true);
  experts.expert_ffn = keys_size(plan->keys, "expert_feed_forward_length", MODEL_FFN_MAX);
  return experts;
}

static void plan_gpt_oss(model_plan *plan) {
  experts_settings experts = read_experts(plan);
  attention_settings attention = attention_read_rotated(plan, false);
  experts.norm = "post_attention_norm.weight";
  experts.gating = EXPERTS_SOFTMAX_OF_CHOSEN;
  experts.activation = EXPERTS_SWIGLU_CLAMPED;
  attention.has_sinks = true;
  layer_kinds kinds = {2, attention, attention};
  kinds.multiple.rope = plan_window_rope_like(plan, attention.rope, attention.head_dim);
  kinds.multiple.window = keys_size(plan->keys, "attention.sliding_window", UINT32_MAX);
  plan_layers(plan, &kinds, &experts);
}

static void plan_smallthinker(model_plan *plan) {
  enum { WINDOW = 4096 };  // llama.cpp supports no other value
  experts_settings experts = read_experts(plan);
  attention_settings attention = attention_read(plan);
  experts.gating = experts_read_gating(plan, EXPERTS_SOFTMAX);
  experts.activation = EXPERTS_RELU;
  experts.is_normalised = experts.routes_aside = true;
  attention.aside = ATTENTION_ASIDE_INPUT;
  layer_kinds kinds = {4, attention, attention};
  const uint32_t rope = plan_rope(plan, attention.head_dim, false);
  if (keys_count_or_none(plan->keys, "attention.sliding_window", UINT32_MAX) != 0) {
    kinds.other.window = WINDOW;
    kinds.other.rope = plan_window_rope_like(plan, rope, attention.head_dim);
  } else {  // without a window, all layers have positions
    kinds.multiple.rope = kinds.other.rope = rope;
  }
  plan_layers(plan, &kinds, &experts);
}

const model_family FAMILY_GPT_OSS = {.name = "gpt-oss", .plan = plan_gpt_oss};
const model_family FAMILY_SMALLTHINKER = {.name = "smallthinker", .plan = plan_smallthinker};

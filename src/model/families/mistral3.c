// model/families/mistral3.c — Ministral 3 (Mistral AI 2025): the LLaMA architecture with YaRN, and
// queries that grow with their position beyond the original context.
#include "base/math.h"
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_mistral3(model_plan *plan) {
  model_keys *keys = plan->keys;
  attention_settings attention = attention_read_rotated(plan, true);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  if (keys->status != WICK_OK) return;
  model_rope *rope = &plan->model->ropes[attention.rope];
  // YaRN's factor of the rotated parts is divided out, completely if the value is 1
  const double multiplier = keys_number_or_none(keys, "rope.scaling.yarn_log_multiplier");
  if (rope->yarn.is_on && rope->scale > 1 && keys->status == WICK_OK) {
    rope->magnitude /= 1 + 0.1 * multiplier * math_log(rope->scale);
  }
  attention.temperature = (float)keys_number_or_none(keys, "attention.temperature_scale");
  if (attention.temperature != 0) {
    attention.temperature_tokens =
        keys_size(keys, "rope.scaling.original_context_length", UINT32_MAX);
  }
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_MISTRAL3 = {.name = "mistral3", .plan = plan_mistral3};

// model/families/mistral3.c — Ministral 3 (Mistral AI 2025): LLaMA's shape with YaRN, and queries
// that grow with their position beyond the original context.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_mistral3(model_plan *plan) {
  model_keys *keys = plan->keys;
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  plan_refuse_experts(plan);
  attention.rope = plan_rope(plan, attention.head_dim, true);
  if (keys->status != WICK_OK) return;
  model_rope *rope = &plan->model->ropes[attention.rope];
  // what YaRN multiplies scores with is divided out again
  if (keys_offset(keys, "rope.scaling.yarn_log_multiplier") != WICK_NO_OFFSET) rope->magnitude = 1;
  attention.temperature = (float)keys_number_or_none(keys, "attention.temperature_scale");
  if (attention.temperature != 0) {
    attention.temperature_tokens =
        keys_size(keys, "rope.scaling.original_context_length", UINT32_MAX);
  }
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_MISTRAL3 = {"mistral3", plan_mistral3};

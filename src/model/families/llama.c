// model/families/llama.c — LLaMA and models of the same architecture (Touvron et al. 2023):
// attention with rotary positions and grouped heads, SwiGLU; Mixtral (Jiang et al. 2024): like
// LLaMA, with experts of width `feed_forward_length`. `sliding_window` is ignored, as in llama.cpp.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_llama(model_plan *plan) {
  const attention_settings attention = attention_read_rotated(plan, true);
  const dense_settings dense = dense_read(plan);
  if (keys_count_or_none(plan->keys, "expert_count", MODEL_EXPERTS_MAX) == 0) {
    plan_dense_decoder(plan, &attention, &dense);
    return;
  }
  experts_settings experts = experts_read(plan, false);
  experts.is_normalised = true;
  experts.expert_ffn = dense.ffn;
  plan_experts_decoder(plan, &attention, &experts, NULL);
}

// Encoders of the same architecture set "attention.causal" to false.
const model_family FAMILY_LLAMA_EMBED = {.name = "llama-embed", .plan = plan_llama};
const model_family FAMILY_LLAMA = {.name = "llama", .plan = plan_llama};

// model/families/llama.c — LLaMA and what has its shape (Touvron et al. 2023): attention with
// rotary positions and grouped heads, SwiGLU; Mixtral (Jiang et al. 2024): the same with experts,
// whose width is `feed_forward_length`. `sliding_window` is ignored, as llama.cpp does.
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_llama(model_plan *plan) {
  attention_settings attention = attention_read(plan, 0);
  const uint32_t ffn = keys_count(plan->keys, "feed_forward_length", 1, MODEL_FFN_MAX, 0);
  experts_settings experts = experts_read(plan, false);
  experts.is_normalised = true;
  experts.expert_ffn = ffn;
  attention.rope = plan_rope(plan, attention.head_dim, true);
  if (experts.experts == 0) {
    plan_dense_decoder(plan, &attention, ffn);
  } else {
    plan_experts_decoder(plan, &attention, &experts);
  }
}

const model_family FAMILY_LLAMA = {"llama", plan_llama};

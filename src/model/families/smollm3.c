// model/families/smollm3.c — SmolLM3 (Hugging Face 2025): the LLaMA architecture, with no positions
// in every fourth layer (NoPE).
#include "model/families/decoder.h"
#include "model/families/families.h"

enum { WITHOUT_POSITIONS_EVERY = 4 };

static void plan_smollm3(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  const uint32_t rope = plan_rope(plan, attention.head_dim, true);
  const uint32_t layers = plan->model->config.layers;
  for (uint32_t layer = 0; layer < layers && plan->keys->status == WICK_OK; layer++) {
    attention.rope = (layer + 1) % WITHOUT_POSITIONS_EVERY == 0 ? ATTENTION_ROPE_NONE : rope;
    model_block *mixer = attention_make(plan, &attention);
    plan_layer(plan, layer, mixer, dense_make(plan, &dense));
  }
}

const model_family FAMILY_SMOLLM3 = {.name = "smollm3", .plan = plan_smollm3};

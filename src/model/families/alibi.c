// model/families/alibi.c — the LLaMA architecture with ALiBi (Press et al. 2021): Refact
// (Kharitonov et al. 2023), and Baichuan (Yang et al. 2023) with 40 layers. Baichuan with 32 layers
// rotates adjacent pairs.
#include "model/families/decoder.h"
#include "model/families/families.h"

enum { BAICHUAN_13B_LAYERS = 40 };

static void plan_refact(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  attention.alibi = ATTENTION_ALIBI_DEFAULT;
  plan_dense_decoder(plan, &attention, &dense);
}

static void plan_baichuan(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  const dense_settings dense = dense_read(plan);
  if (plan->model->config.layers == BAICHUAN_13B_LAYERS) {
    attention.alibi = ATTENTION_ALIBI_DEFAULT;
  } else {
    attention.rope = plan_rope(plan, attention.head_dim, true);
  }
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_BAICHUAN = {.name = "baichuan", .plan = plan_baichuan};
const model_family FAMILY_REFACT = {.name = "refact", .plan = plan_refact};

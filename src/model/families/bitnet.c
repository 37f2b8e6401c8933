// model/families/bitnet.c — BitNet b1.58 (Ma et al. 2024): the LLaMA architecture with ternary
// weights and norms before the output of each block. Factors of whole matrices are separate tensors
// (".scale").
#include "model/families/decoder.h"
#include "model/families/families.h"

static void plan_bitnet(model_plan *plan) {
  attention_settings attention = attention_read(plan);
  dense_settings dense = dense_read(plan);
  attention.sub_norm = "attn_sub_norm.weight";
  dense.sub_norm = "ffn_sub_norm.weight";
  attention.rope = plan_rope(plan, attention.head_dim, false);
  plan_dense_decoder(plan, &attention, &dense);
}

const model_family FAMILY_BITNET = {.name = "bitnet", .plan = plan_bitnet};

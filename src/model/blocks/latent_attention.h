// model/blocks/latent_attention.h — multi-head latent attention (DeepSeek-V2, DeepSeek-AI 2024,
// section 2.1): keys and values of all heads come from one short row, the latent c, and from one
// rotated part of the keys that the heads share.
//
//   c, r = kv_a(x);  k_h = [k_b[h] c, rope(r)];  v_h = v_b[h] c;  q_h = [plain part, rope(rest)]
//
// Files have kv_b, which contains k_b and v_b of all heads, or (absorbed) k_b transposed and v_b.
// With kv_b, the pages have keys and values of each head. In the absorbed form, q_h k_h = (k_b[h]^T
// q_h) c, so the pages have c and rope(r) once for all heads, and v_b multiplies the sums of the
// attention.
#ifndef WICK_MODEL_BLOCKS_LATENT_ATTENTION_H
#define WICK_MODEL_BLOCKS_LATENT_ATTENTION_H

#include "model/family.h"

typedef struct latent_settings {
  uint32_t heads;
  uint32_t q_rank;                           // of the queries' low-rank projection; 0: only attn_q
  uint32_t kv_rank;                          // values of the latent
  uint32_t key_dim, rotated_dim, value_dim;  // of a head; rotated_dim: the last ones of a key
  bool is_absorbed;
  uint32_t rope;         // a number of plan_rope
  float scale;           // of q k^T
  float residual_scale;  // of what it adds
} latent_settings;

// Reads "attention.head_count", "attention.q_lora_rank" (optional), "attention.kv_lora_rank",
// "rope.*", and "attention.key_length_mla" and "attention.value_length_mla", of absorbed files, or
// "attention.key_length" and "attention.value_length". scale: 1 / sqrt(key_dim).
latent_settings latent_read(model_plan *plan, bool is_interleaved);
// Tensors: attn_norm; attn_q_a, attn_q_a_norm and attn_q_b, or attn_q; attn_kv_a_mqa [kv_rank +
// rotated_dim, hidden], attn_kv_a_norm; attn_kv_b [heads * (plain part + value_dim), kv_rank], or
// attn_k_b [heads][kv_rank, plain part] and attn_v_b [heads][value_dim, kv_rank]; attn_output.
model_block *latent_make(model_plan *plan, const latent_settings *settings);

#endif

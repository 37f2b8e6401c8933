// model/blocks/latent_attention.h — multi-head latent attention (DeepSeek-V2, DeepSeek-AI 2024,
// section 2.1): keys and values of all heads are computed from one short row, the latent c, and
// from one rotated part of the keys that the heads share.
//
//   c, r = kv_a(x);  k_h = [k_b[h] c, rope(r)];  v_h = v_b[h] c;  q_h = [plain part, rope(rest)]
//
// Files contain kv_b, which consists of k_b and v_b of all heads, or (absorbed) k_b transposed and
// v_b. With kv_b, the pages store keys and values of each head. In the absorbed form, q_h k_h =
// (k_b[h]^T q_h) c, so the pages store c and rope(r) once for all heads, and v_b multiplies the
// sums of the attention.
#ifndef WICK_MODEL_BLOCKS_LATENT_ATTENTION_H
#define WICK_MODEL_BLOCKS_LATENT_ATTENTION_H

#include "model/family.h"

typedef struct latent_settings {
  uint32_t heads;
  uint32_t q_rank;                           // of the low-rank query projection; 0: only attn_q
  uint32_t kv_rank;                          // length of the latent
  uint32_t key_dim, rotated_dim, value_dim;  // per head; rotated_dim: the last values of a key
  bool is_absorbed;
  uint32_t rope;         // returned by plan_rope
  float scale;           // of q k^T
  float residual_scale;  // factor of the block's result
} latent_settings;

// Reads "attention.head_count", "attention.q_lora_rank" (optional), "attention.kv_lora_rank",
// "rope.*", and either "attention.key_length_mla" and "attention.value_length_mla" (absorbed files)
// or "attention.key_length" and "attention.value_length". scale: 1 / sqrt(key_dim).
latent_settings latent_read(model_plan *plan, bool is_interleaved);
// Creates the block. Tensors: attn_norm; attn_q_a, attn_q_a_norm and attn_q_b, or attn_q;
// attn_kv_a_mqa [kv_rank + rotated_dim, hidden], attn_kv_a_norm; attn_kv_b [heads * (plain part +
// value_dim), kv_rank], or attn_k_b [heads][kv_rank, plain part] and attn_v_b [heads][value_dim,
// kv_rank]; attn_output.
model_block *latent_make(model_plan *plan, const latent_settings *settings);

#endif

// model/blocks/attention.h — causal attention with grouped heads over the pages of a sequence:
// hidden += output(softmax(q k^T * scale) v) (Vaswani et al. 2017; grouped heads: Ainslie et al.
// 2023).
#ifndef WICK_MODEL_BLOCKS_ATTENTION_H
#define WICK_MODEL_BLOCKS_ATTENTION_H

#include "model/family.h"

enum { ATTENTION_ROPE_NONE = MODEL_ROPES_MAX };

typedef struct attention_settings {
  const char *norm;  // of the norm before it, "attn_norm.weight"
  uint32_t heads, kv_heads, head_dim;
  uint32_t rope;        // a number of plan_rope, or ATTENTION_ROPE_NONE
  bool has_head_norms;  // q and k are normalised head by head before they are rotated
  bool is_gated;        // attn_q has a gate behind each head's query: the output is multiplied by
                        // its sigmoid
  uint32_t window;      // tokens that are looked back on, 0: all
} attention_settings;

// Reads "attention.head_count", "attention.head_count_kv" (of `layer`), "attention.key_length" and
// "attention.value_length", and checks that they go together. rope: ATTENTION_ROPE_NONE.
attention_settings attention_read(model_plan *plan, uint32_t layer);
// Tensors: attn_q, attn_k, attn_v or, fused in this order, attn_qkv, and attn_output, each with an
// optional bias; with has_head_norms attn_q_norm and attn_k_norm [head_dim].
model_block *attention_make(model_plan *plan, const attention_settings *settings);

#endif

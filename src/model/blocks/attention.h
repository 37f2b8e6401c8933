// model/blocks/attention.h — attention with grouped heads: hidden += output(softmax(q k^T * scale)
// v) (Vaswani et al. 2017; grouped heads: Ainslie et al. 2023). It is either causal, over the pages
// of a sequence, or bidirectional, over a whole sequence (encoders).
#ifndef WICK_MODEL_BLOCKS_ATTENTION_H
#define WICK_MODEL_BLOCKS_ATTENTION_H

#include "model/family.h"

enum { ATTENTION_ROPE_NONE = MODEL_ROPES_MAX };
#define ATTENTION_ALIBI_DEFAULT 8.0f

// Norms of queries and keys: attn_q_norm, attn_k_norm.
typedef enum attention_qk_norms {
  ATTENTION_NO_NORMS = 0,
  ATTENTION_HEAD_NORMS,      // of each head, [head_dim]
  ATTENTION_NORMS_AFTER,     // of each head, after the rotation
  ATTENTION_ROW_NORMS,       // of all heads together, [heads * head_dim]
  ATTENTION_NORMS_OF_HEADS,  // of each head with its own weights, [heads, head_dim]; optional
} attention_qk_norms;

// The input that the attention stores for the layer's feed-forward, if both run in parallel.
typedef enum attention_aside {
  ATTENTION_FIRST = 0,    // nothing: the feed-forward runs afterwards
  ATTENTION_ASIDE_INPUT,  // the input of the layer
  ATTENTION_ASIDE_NORMED  // that input, normalised for the attention
} attention_aside;

typedef struct attention_settings {
  const char *norm;        // name of the norm before it, "attn_norm.weight"; NULL: none
  const char *post_norm;   // name of the norm of its result; NULL: none
  const char *sub_norm;    // name of the norm before the output projection; NULL: none
  const char *sum_norm;    // name of a norm of hidden after the addition (post-norm); NULL: none
  const char *again_norm;  // name of another norm, of that sum and the layer's input; NULL: none
  bool sees_media;         // rows of an image attend to later rows of the same image
  bool is_whole;  // tokens attend to later tokens as well; half of a window is on each side
  uint32_t heads, kv_heads, head_dim;
  uint32_t rope;                // returned by plan_rope, or ATTENTION_ROPE_NONE
  attention_qk_norms qk_norms;  // before the rotation
  attention_aside aside;
  bool is_aside;               // its input was stored by another block, normalised; `norm` is NULL
  bool is_first;               // another mixer of the layer follows and reads the stored input
  const model_block *keys_of;  // attention of an earlier layer whose keys and values it also reads;
                               // NULL: it has separate keys and values
  bool norms_values;  // each head's values are normalised, without weights; if attn_v is absent,
                      // they are the result of attn_k
  bool has_sinks;     // attn_sinks [heads]: scores without a value (Xiao et al. 2023)
  bool is_gated;      // attn_q has a gate after each head's query: the output is multiplied by its
                      // sigmoid
  uint32_t window;    // number of positions that a token attends to; 0: all
  float scale;        // of q k^T; 0: 1 / sqrt(head_dim)
  float score_cap;    // not 0: scores become cap * tanh(score / cap)
  float clamp;        // not 0: limits queries, keys and values to [-clamp, clamp]
  float alibi;        // not 0: ALiBi with slopes starting at 2^(-alibi / heads) (Press et al. 2021)
  float residual_scale;  // factor of the block's result
  // not 0: queries grow by 1 + temperature * ln(1 + floor(position / temperature_tokens))
  float temperature;
  uint32_t temperature_tokens;
} attention_settings;

// Reads "attention.head_count", "attention.head_count_kv" (of `layer`), "attention.key_length" and
// "attention.value_length", and checks that they are consistent. Sets is_whole from
// "attention.causal" and rope to ATTENTION_ROPE_NONE. Everything else is off.
attention_settings attention_read_layer(model_plan *plan, uint32_t layer);
// Reads the settings of layer 0, if all layers are the same.
attention_settings attention_read(model_plan *plan);
// Also plans the rope that all layers share (plan_rope).
attention_settings attention_read_rotated(model_plan *plan, bool is_interleaved);
// Reads the head size of layers with a window, if it differs: "attention.key_length_swa" and
// "attention.value_length_swa".
void attention_read_window_heads(model_plan *plan, attention_settings *settings);
// Creates the block. Tensors: attn_q, attn_k, attn_v or, fused in this order, attn_qkv, and
// attn_output, each with an optional bias; the norms of qk_norms.
model_block *attention_make(model_plan *plan, const attention_settings *settings);

#endif

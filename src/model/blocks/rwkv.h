// model/blocks/rwkv.h — RWKV-7 (Peng et al. 2025, "RWKV-7 Goose"). Both blocks mix each normalised
// row x with the row before it, as x + m (before - x), with separate weights m for each projection.
// Time mix: a delta rule whose decays w differ by key.
//   s = S^T a;  S = diag(w) S + k v^T + b s^T;  hidden += out(group_norm(S^T r) + ...) * g)
// State per sequence: the last row [hidden], and S [heads, head_dim keys, head_dim values].
// Channel mix: hidden += value(relu(key(x))^2). State: the last row [hidden].
#ifndef WICK_MODEL_BLOCKS_RWKV_H
#define WICK_MODEL_BLOCKS_RWKV_H

#include "model/family.h"

typedef struct rwkv_settings {
  uint32_t head_dim;
  uint32_t decay_rank, rate_rank, value_rank, gate_rank;  // of the low-rank projections
  uint32_t ffn;
} rwkv_settings;

// Reads "wkv.head_size", "feed_forward_length" and the ranks "attention.decay_lora_rank",
// "attention.iclr_lora_rank", "attention.value_residual_mix_lora_rank" and
// "attention.gate_lora_rank".
rwkv_settings rwkv_read(model_plan *plan);
// Creates the block. Tensors: attn_norm and time_mix_*. The values of layer 0 are stored for the
// other layers. The block keeps all rows, because the channel mix of its layer reads them.
model_block *rwkv_make_time_mix(model_plan *plan, const rwkv_settings *settings, uint32_t layer);
// Creates the block. Tensors: attn_norm_2 and channel_mix_*.
model_block *rwkv_make_channel_mix(model_plan *plan, const rwkv_settings *settings);

#endif

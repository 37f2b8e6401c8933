// model/blocks/delta_net.h — the gated delta net of Qwen3-Next and Qwen3.5 (Yang et al. 2024):
//   q, k, v = silu(conv(qkv(norm(hidden))));  q, k normalised;  decay, beta from norm(hidden)
//   S = decay S + k (beta (v - decay S^T k))^T;  hidden += out(norm(S^T q) * silu(gate))
// State per sequence: the last inputs of the convolution [taps - 1, channels], and S [value heads,
// head_dim, head_dim].
#ifndef WICK_MODEL_BLOCKS_DELTA_NET_H
#define WICK_MODEL_BLOCKS_DELTA_NET_H

#include "model/family.h"

typedef struct delta_net_settings {
  uint32_t head_dim;                // of keys and values
  uint32_t key_heads, value_heads;  // the number of value heads is a multiple of that of key heads
  uint32_t taps;                    // of the convolution
  bool is_grouped;                  // Qwen3-Next: value heads of one key head are adjacent
} delta_net_settings;

// Reads "ssm.state_size", "ssm.group_count", "ssm.time_step_rank" and "ssm.conv_kernel".
delta_net_settings delta_net_read(model_plan *plan);
// Creates the block. Value head h uses key head h modulo key_heads, or h / (value_heads /
// key_heads) if they are grouped. Tensors: attn_norm, attn_qkv, attn_gate, ssm_conv1d, ssm_beta,
// ssm_alpha, ssm_dt.bias, ssm_a, ssm_norm, ssm_out. Grouped: ssm_ba instead of ssm_beta and
// ssm_alpha, with the rows of beta and then of alpha for each key head; and in older files ssm_in
// instead of attn_qkv and attn_gate, with the rows of q, k, v and the gate for each key head.
model_block *delta_net_make(model_plan *plan, const delta_net_settings *settings);

#endif

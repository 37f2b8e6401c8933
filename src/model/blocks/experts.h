// model/blocks/experts.h — the feed-forward of a mixture of experts (Shazeer et al. 2017; Mixtral,
// Jiang et al. 2024): a router assigns each token to the few experts that suit it best.
//
//   hidden += sum over its experts e of weight_e * down_e(silu(gate_e(x)) * up_e(x))
//
// and, if the model has one, a shared expert that processes every token.
#ifndef WICK_MODEL_BLOCKS_EXPERTS_H
#define WICK_MODEL_BLOCKS_EXPERTS_H

#include "model/family.h"

// How router logits become the experts' weights; values of the key "expert_gating_func".
typedef enum experts_gating {
  EXPERTS_SOFTMAX = 1,  // softmax over all experts, then the largest
  EXPERTS_SIGMOID = 2,  // sigmoid of each; a bias may be added, for the selection only
  EXPERTS_SOFTMAX_OF_CHOSEN = 3
} experts_gating;

typedef enum experts_activation {
  EXPERTS_SILU = 0,
  EXPERTS_RELU,
  EXPERTS_GELU,
  EXPERTS_SWIGLU_CLAMPED,  // gpt-oss's: kernel_table.swiglu_clamped
  EXPERTS_RELU_SQUARE,     // no gate: down(relu(up(x))^2)
  EXPERTS_GELU_PLAIN       // no gate: down(gelu(up(x)))
} experts_activation;

typedef struct experts_settings {
  const char *norm;       // name of the norm before it, "ffn_norm.weight"; NULL: none
  const char *post_norm;  // name of the norm of its result; NULL: none
  const char *sum_norm;   // name of a norm of hidden after the addition (post-norm); NULL: none
  uint32_t experts, used, expert_ffn;
  // Experts are selected only from the `groups_used` best groups, ranked by their two best experts
  // (DeepSeek-V3, DeepSeek-AI 2024). groups 0: from all experts.
  uint32_t groups, groups_used;
  uint32_t shared_ffn;  // 0: no shared expert
  bool has_shared_gate;
  experts_activation activation;
  bool routes_aside;  // the router reads the input that the mixer stored (attention_settings.aside)
  bool is_aside;      // experts and router read the input that another block stored
  // The router has a separate norm, with weights ffn_gate_inp.scale, and its logits are divided by
  // sqrt(hidden) (Gemma 4).
  bool norms_routes;
  experts_gating gating;
  bool is_normalised;    // the weights of a token's experts are normalised to sum to 1
  float scale;           // factor of the weights
  float residual_scale;  // factor of the block's result
} experts_settings;

// Reads "expert_count", "expert_used_count", "expert_group_count" and "expert_group_used_count".
// Without "expert_count" the model has no experts; this is an error if `is_required`. The caller
// reads the widths.
experts_settings experts_read(model_plan *plan, bool is_required);
// Reads all settings of experts like DeepSeek's, also their widths; without "expert_gating_func"
// and "expert_weights_norm", `gating` and `is_normalised` apply.
experts_settings experts_read_shared(model_plan *plan, bool is_required, experts_gating gating,
                                     bool is_normalised);
// Reads "expert_gating_func", which only some families have in their files. Returns `usual` if it
// is absent.
experts_gating experts_read_gating(model_plan *plan, experts_gating usual);
// Reads "expert_weights_scale", which only some families have in their files.
float experts_read_scale(model_plan *plan);
// Creates the block. Tensors: ffn_gate_inp [experts, hidden], ffn_gate_exps and ffn_up_exps
// [experts, expert_ffn, hidden] or, fused in this order, ffn_gate_up_exps [experts, 2 expert_ffn,
// hidden], ffn_down_exps [experts, hidden, expert_ffn]; optionally exp_probs_b.bias [experts],
// added only for the selection. A shared expert has ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp
// and for its gate ffn_gate_inp_shexp [hidden]. Router and experts may have biases.
model_block *experts_make(model_plan *plan, const experts_settings *settings);

#endif

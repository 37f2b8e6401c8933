// model/blocks/predictor.h — the first block of a layer that predicts the token after the next
// (multi-token prediction: DeepSeek-AI 2024, Qwen team 2025). Row t is computed from the embedding
// of the token after position t, and the output of the layers below at position t, after the
// model's last norm:
//
//   hidden[t] = W [enorm(embedding of token t + 1), hnorm(trunk[t])]
//
// The blocks of a normal layer follow, then a norm and the model's output. llama.cpp computes this
// for Qwen3.5 (src/models/qwen35.cpp; its pull request 24025 takes the trunk's rows after the last
// norm), as does vLLM (qwen3_next_mtp.py).
#ifndef WICK_MODEL_BLOCKS_PREDICTOR_H
#define WICK_MODEL_BLOCKS_PREDICTOR_H

#include "model/family.h"

// Creates the block. Tensors: nextn.enorm, nextn.hnorm [hidden], nextn.eh_proj [hidden, 2 hidden].
model_block *predictor_make(model_plan *plan);
// Binds the model's predictor, which is a separate layer. The other layers can run before it has
// arrived; only the completion of the load waits for it.
void predictor_bind(model_binder *binder);

#endif

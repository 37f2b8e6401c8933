// model/blocks/predictor.h — the first block of a layer that predicts the token after the next
// (multi-token prediction: DeepSeek-AI 2024, Qwen team 2025). Row t has the embedding of the token
// after position t, and what the layers before made of position t, after the model's last norm:
//
//   hidden[t] = W [enorm(embedding of token t + 1), hnorm(trunk[t])]
//
// The blocks of a usual layer follow, then a norm and the model's output. llama.cpp computes it so
// for Qwen3.5 (src/models/qwen35.cpp; that the trunk's rows come from after the last norm: its
// pull request 24025), vLLM, too (qwen3_next_mtp.py).
#ifndef WICK_MODEL_BLOCKS_PREDICTOR_H
#define WICK_MODEL_BLOCKS_PREDICTOR_H

#include "model/family.h"

// Tensors: nextn.enorm, nextn.hnorm [hidden], nextn.eh_proj [hidden, 2 hidden].
model_block *predictor_make(model_plan *plan);
// Binds the model's predictor, whose layer it has. Nothing waits for it but the end of loading.
void predictor_bind(model_binder *binder);

#endif

// schedule/predict.h — the model's own layer for the token after the next
// (model/blocks/predictor.h) proposes tokens. It reads the model's last hidden row of each token,
// after the norm, together with the next token. It proposes greedily, and further tokens from its
// own rows; schedule/speculation.h needs no more.
//
// Its keys and values are in separate pages, of no more than one context in all. They begin where
// the reading of a request began: after a cached beginning, on a session or in a fork, the layer
// has not seen the earlier text. Proposals are then worse, but they never change the text. So these
// pages are not saved, cached, forked or swapped.
#ifndef WICK_SCHEDULE_PREDICT_H
#define WICK_SCHEDULE_PREDICT_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/forward.h"

typedef struct predictor predictor;

// The parts that it uses. All of them outlive the predictor.
typedef struct predictor_parts {
  memory_gate *memory;
  const loaded_model *model;  // has a layer that predicts
  thread_pool *threads;
  uint64_t (*now_us)(void);
  uint32_t threads_max, context_tokens;
  kernel_kv_type k_type, v_type;
} predictor_parts;

typedef struct predictor_plan {
  uint64_t scratch_bytes, kv_bytes;
} predictor_plan;
predictor_plan predictor_plan_bytes(const predictor_parts *parts);
// Allocates all memory that it will need. WICK_E_NOMEM.
wick_status predictor_create(const predictor_parts *parts, predictor **out, wick_error *error);
void predictor_destroy(predictor *predictor);  // NULL is fine

// Reads the positions [first, end) of a request's `tokens`, which a pass with forward_keep_rows has
// read as inputs from `input` on. Tokens that were read before are not read again.
void predictor_read(predictor *predictor, uint32_t request, const int32_t *tokens, uint32_t first,
                    uint32_t end, const forward_pass *forward, uint32_t input);
// Proposes up to `most` tokens (at most SPECULATION_TOKENS_MAX) after a request's `tokens`, into
// `out`. Returns their number, which is 0 if the position before the newest token is not the last
// one that was read, or if values are not finite. Allocates nothing.
uint32_t predictor_propose(predictor *predictor, uint32_t request, const int32_t *tokens,
                           uint32_t count, uint32_t most, int32_t *out);
// Called when the request has ended.
void predictor_forget(predictor *predictor, uint32_t request);
// The number of times that values were not finite.
uint64_t predictor_failures(const predictor *predictor);
// The recent time of a proposal, in us; 0: not measured.
float predictor_token_us(const predictor *predictor);
// For tests: the logits of the last proposal.
const float *predictor_logits(const predictor *predictor);

#endif

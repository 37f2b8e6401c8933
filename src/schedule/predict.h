// schedule/predict.h — the layer of the model that predicts the token after the next
// (model/blocks/predictor.h) proposes tokens. Its input is the model's last hidden row of each
// token, after the norm, together with the next token. It proposes greedily and, after the first
// token, from its own rows, which is enough for schedule/speculation.h.
//
// Its keys and values are in separate pages, of at most one context in total. They start where the
// prefill of a request started: after a cached prefix, on a session or in a fork, the layer has not
// processed the earlier text. Proposals are then worse, but they never change the output. So these
// pages are not saved, cached, forked or swapped.
#ifndef WICK_SCHEDULE_PREDICT_H
#define WICK_SCHEDULE_PREDICT_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/forward.h"

typedef struct predictor predictor;

// The components that the predictor uses. All of them must outlive it.
typedef struct predictor_parts {
  memory_gate *memory;
  const loaded_model *model;  // has a layer that predicts tokens
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
void predictor_destroy(predictor *predictor);  // NULL does nothing

// Processes the positions [first, end) of a request's `tokens`, which were the inputs, starting at
// `input`, of a pass with forward_keep_rows. Tokens that were processed before are skipped.
void predictor_read(predictor *predictor, uint32_t request, const int32_t *tokens, uint32_t first,
                    uint32_t end, const forward_pass *forward, uint32_t input);
// Writes up to `most` proposed tokens (at most SPECULATION_TOKENS_MAX) after a request's `tokens`
// to `out`. Returns their number, which is 0 if the position before the newest token is not the
// last one that was processed, or if values are not finite. Allocates nothing.
uint32_t predictor_propose(predictor *predictor, uint32_t request, const int32_t *tokens,
                           uint32_t count, uint32_t most, int32_t *out);
// Frees the slot of a request. Called when the request has ended.
void predictor_forget(predictor *predictor, uint32_t request);
// Returns how often values were not finite.
uint64_t predictor_failures(const predictor *predictor);
// Returns the recent time per proposal, in us; 0: not measured.
float predictor_token_us(const predictor *predictor);
// Returns the logits of the last proposal, for tests.
const float *predictor_logits(const predictor *predictor);

#endif

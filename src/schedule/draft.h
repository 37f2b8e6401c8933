// schedule/draft.h — a smaller model of the same vocabulary that says what may follow (Leviathan,
// Kalman and Matias 2023; greedily, which is all that schedule/speculation.h needs). Its keys and
// values lie in pages of its own; what was proposed and proved right is not read again.
#ifndef WICK_SCHEDULE_DRAFT_H
#define WICK_SCHEDULE_DRAFT_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/forward.h"

typedef struct drafter drafter;

// What it works with; all of it outlives it, and is used by nobody else.
typedef struct drafter_parts {
  memory_gate *memory;
  const loaded_model *model;  // complete
  seq_store *store;
  forward_pass *forward;
  uint64_t (*now_us)(void);
  uint32_t batch_tokens, context_tokens;
} drafter_parts;

// Takes the pages of one context at once, where they can be had. WICK_E_NOMEM.
wick_status drafter_create(const drafter_parts *parts, drafter **out, wick_error *error);
void drafter_destroy(drafter *drafter);  // NULL is fine

// What may follow a request's `tokens`: up to `most` (at most SPECULATION_TOKENS_MAX) into `out`.
// Returns how many: none while it has much of the text still to read (a batch of it each time), and
// where pages or its context run out. Nothing is allocated while its pages suffice.
uint32_t drafter_propose(drafter *drafter, uint32_t request, const int32_t *tokens, uint32_t count,
                         uint32_t most, int32_t *out);
// The request has ended.
void drafter_forget(drafter *drafter, uint32_t request);
// How often it had nothing to say because it could not go on: no pages or memory, its context at an
// end, values that are not finite. The text then comes without it.
uint64_t drafter_failures(const drafter *drafter);
// What a proposal took lately, in us; 0: not measured.
float drafter_token_us(const drafter *drafter);

#endif

// schedule/draft.h — a smaller model with the same vocabulary proposes tokens (Leviathan, Kalman
// and Matias 2023). It proposes greedily, which is enough for schedule/speculation.h. The keys and
// values of the smaller model have separate pages. Accepted proposals are not recomputed.
#ifndef WICK_SCHEDULE_DRAFT_H
#define WICK_SCHEDULE_DRAFT_H

#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/forward.h"

typedef struct drafter drafter;

// The components that the drafter uses. All of them must outlive it, and nothing else may use them.
typedef struct drafter_parts {
  memory_gate *memory;
  const loaded_model *model;  // complete
  seq_store *store;
  forward_pass *forward;
  uint64_t (*now_us)(void);
  uint32_t batch_tokens, context_tokens;
} drafter_parts;

// Allocates the pages of one context immediately, if they are available. WICK_E_NOMEM.
wick_status drafter_create(const drafter_parts *parts, drafter **out, wick_error *error);
void drafter_destroy(drafter *drafter);  // NULL does nothing

// Writes up to `most` proposed tokens (at most SPECULATION_TOKENS_MAX) after a request's `tokens`
// to `out`. Returns their number, which is 0 while the drafter still has much of the text to
// process (one batch per call), or if its pages or its context run out. Allocates nothing unless it
// needs more pages.
uint32_t drafter_propose(drafter *drafter, uint32_t request, const int32_t *tokens, uint32_t count,
                         uint32_t most, int32_t *out);
// Frees the slot of a request. Must be called when the request has ended.
void drafter_forget(drafter *drafter, uint32_t request);
// Returns how often the drafter could not continue: no pages, no memory, the end of its context, or
// values that are not finite. The request then decodes without proposals.
uint64_t drafter_failures(const drafter *drafter);
// Returns the recent time per proposal, in us; 0: not measured.
float drafter_token_us(const drafter *drafter);

#endif

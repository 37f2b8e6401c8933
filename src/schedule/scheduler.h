// schedule/scheduler.h — runs requests in batches through the forward pass and writes events.
// Running requests share each pass (continuous batching, Yu et al. 2022, Orca). A pass contains a
// row for each decoding request, and chunks of prompts in order of arrival. A unit of work is one
// layer or one block of logits.
#ifndef WICK_SCHEDULE_SCHEDULER_H
#define WICK_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/forward.h"
#include "schedule/draft.h"
#include "schedule/predict.h"
#include "schedule/request.h"
#include "schedule/session.h"
#include "schedule/swap.h"
#include "store/store.h"
#include "text/tokenizer.h"

typedef struct scheduler scheduler;

// The components that the scheduler uses. All of them must outlive it.
typedef struct scheduler_parts {
  memory_gate *memory;
  const loaded_model *model;
  tokenizer *tokenizer;
  seq_store *store;
  session_table *sessions;
  const adapter_list *adapters;  // NULL: none
  forward_pass *forward;
  drafter *drafter;      // NULL: no smaller model proposes tokens
  predictor *predictor;  // NULL: no layer of the model proposes tokens
  op_records *ops;       // NULL: sampling is not measured
  uint64_t (*now_us)(void);
  const wick_swap_host *swap;  // NULL: preempted requests recompute their tokens
  uint32_t batch_tokens, context_tokens;
  uint32_t requests_max;      // queued and running requests together
  uint32_t running_max;       // requests running at once; at most batch_tokens
  uint64_t queue_tokens_max;  // tokens of all waiting prompts
  grammar_limits grammar_limits;
} scheduler_parts;

typedef enum scheduler_result {
  SCHEDULER_IDLE,
  SCHEDULER_PROGRESS,
  SCHEDULER_WAIT_BYTES,  // the weights of the next layer have not arrived yet
  SCHEDULER_WAIT_EVENTS  // the event buffer is full
} scheduler_result;

enum {
  // A row of logits adds at most this many records: a token, forced tokens, and an end.
  SCHEDULER_RECORDS_PER_ROW = 1 + JUMP_TOKENS_MAX + 1,
  // A unit of work begins with space for this many records; if there is less, the remaining rows
  // wait.
  SCHEDULER_RECORDS_PER_UNIT = SCHEDULER_RECORDS_PER_ROW,
  // The number of records that an empty event buffer must hold: those of a unit, and those of a
  // completion that begins in the same unit.
  SCHEDULER_RECORDS_MAX = SCHEDULER_RECORDS_PER_UNIT + SCHEDULER_RECORDS_PER_ROW,
  // A request that has waited for this many passes runs before all later ones, regardless of
  // priority. This bounds the waiting time, except for the time that the running requests need.
  SCHEDULER_PASSES_WAITED_MAX = WICK_PASSES_WAITED_MAX
};

// A second user of the store's pages (the embedding job). If a request cannot continue otherwise,
// the guest releases its pages and starts over later. give_pages returns false if the guest had no
// pages.
typedef struct page_guest {
  void *context;
  bool (*give_pages)(void *context);  // NULL: no guest
} page_guest;

wick_status scheduler_create(const scheduler_parts *parts, scheduler **out, wick_error *error);
void scheduler_destroy(scheduler *scheduler);
uint64_t scheduler_plan_bytes(const tokenizer *tokenizer, uint32_t batch_tokens);

// Submits a request. `wish`: the parts of a reply, and the reasoning tags for a request that limits
// reasoning; otherwise NULL. `media`: the images and recordings in wanted->tokens, which contains
// their pseudo tokens; NULL: none. Images that must be processed in one pass have at most
// batch_tokens rows.
wick_status scheduler_submit(scheduler *scheduler, const wick_request *wanted,
                             const media_list *media, const reply_wish *wish, uint32_t *id,
                             wick_error *error);
// Calls shelf_prepare.
bool scheduler_prepare_grammar(scheduler *scheduler, const wick_grammar *wanted);
wick_status scheduler_cancel(scheduler *scheduler, uint32_t id);
// Lets a smaller model propose tokens from now on; NULL removes it. The drafter must outlive the
// scheduler unless it is removed.
void scheduler_set_drafter(scheduler *scheduler, drafter *drafter);
// Pauses or resumes a request. A paused request keeps its position in the queue and is skipped by
// passes. It keeps its pages until another request needs them. WICK_E_ARG: the request is unknown.
wick_status scheduler_pause(scheduler *scheduler, uint32_t id, bool is_paused);
// Resumes a request that waits for the host. WICK_E_ARG: the request is not waiting.
wick_status scheduler_find_asking(const scheduler *scheduler, uint32_t id, request **out);
void scheduler_set_guest(scheduler *scheduler, page_guest guest);
// Called by the guest: frees pages of a session without a request, or of a paused request. Returns
// false if there are no such pages, so the guest waits until requests end.
bool scheduler_gives_room(scheduler *scheduler);
// Runs one unit of work.
scheduler_result scheduler_step(scheduler *scheduler);
// Ends every request with an error (the model failed to load).
void scheduler_fail_all(scheduler *scheduler, const wick_error *error);
const uint8_t *scheduler_take_events(scheduler *scheduler, size_t *size_bytes);

typedef wick_stats scheduler_stats;
scheduler_stats scheduler_get_stats(const scheduler *scheduler);

#endif

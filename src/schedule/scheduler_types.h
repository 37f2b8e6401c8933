// schedule/scheduler_types.h — private types of the scheduler's files.
// scheduler.c: arrival and end of requests. admission.c: which requests run, and which are
// preempted. pass.c: the batch of a pass.
#ifndef WICK_SCHEDULE_SCHEDULER_TYPES_H
#define WICK_SCHEDULE_SCHEDULER_TYPES_H

#include "schedule/events.h"
#include "schedule/scheduler.h"
#include "schedule/swap.h"

typedef enum pass_phase { PASS_NONE, PASS_LAYERS, PASS_LOGITS } pass_phase;

struct scheduler {
  scheduler_parts parts;
  request *first, *last;  // in order of arrival
  uint32_t count, running;
  uint64_t queue_tokens;  // tokens of all waiting prompts
  uint32_t id_next;
  event_buffer events;
  // The current pass: its inputs, and the request of each input.
  model_input *batch;  // [batch_tokens]
  request **owners;    // [batch_tokens]; NULL: the request has ended
  uint32_t batch_count;
  pass_phase phase;
  uint32_t pass_logits;  // rows of logits that were sampled
  uint64_t pass_us;      // duration of the pass so far
  bool keeps_rows;       // for the predictor
  bool had_whole;        // the last pass was for one image while other requests waited
  bool is_measured;      // only one request decodes in the pass: speculation learns from its time
  // The request that found too few pages to start, and the state at that time. The request is not
  // retried before the state changes.
  uint32_t blocked_id, blocked_running;
  uint64_t blocked_freed,
      blocked_until;  // blocked_until: the pass at which it is retried in any case
  bool has_prompts;   // the pass contains prompts, so its time shows the cost of prefill
  scheduler_stats stats;
  grammar_shelf shelf;
  swap_parts swap;
  swap_costs swap_costs;
  speculation_costs costs;
  page_guest guest;
};

// Ends a request: writes its last record, frees its pages, and notifies its session. `error` is
// used with WICK_FINISH_ERROR.
void scheduler_finish(scheduler *scheduler, request *request, wick_finish how,
                      const wick_error *error);

// Whether SCHEDULER_PASSES_WAITED_MAX passes have begun since the request arrived.
bool admission_has_waited_long(const scheduler *scheduler, const request *request);
// Whether `a` is served before `b`. The order is: waited too long, priority, arrival.
bool admission_precedes(const scheduler *scheduler, const request *a, const request *b);
// Starts requests in the order of admission_precedes. A request that finds too few pages takes them
// from running requests of lower priority; otherwise it waits, and so do later requests. Returns
// false if nothing has changed.
bool admission_start(scheduler *scheduler);
// Called before a pass: reserves pages for `tokens` more tokens of a running request. If pages run
// out, the last requests in the queue are preempted. Returns false if that includes the request
// itself.
bool admission_reserve(scheduler *scheduler, request *request, uint32_t tokens);
// Drops tokens from the session of a request that has processed everything. A page for a copy is
// taken in the same way as pages for a pass. WICK_E_BUSY while earlier requests need the page.
wick_status admission_drop(scheduler *scheduler, request *request, wick_error *error);
// Adds a running request to the counts, with its pages.
void admission_run(scheduler *scheduler, request *request, kv_seq_id sequence, uint32_t fed);

// Builds a batch from the running requests and begins the pass. Returns false if no request can
// continue.
bool pass_begin(scheduler *scheduler);
// Runs one unit of the current pass: a layer or a block of logits. Returns false if the weights
// have not arrived yet.
bool pass_step(scheduler *scheduler);
// Samples the token of a request whose host has answered. Returns false if there is no such
// request.
bool pass_take_answer(scheduler *scheduler);
// Abandons the current pass and restores the pages to their state before it.
void pass_drop(scheduler *scheduler);

// ---- predict.c, only with a predictor ----

// Whether the predictor follows a request of the starting pass. If so, it needs all rows of the
// pass.
bool predict_begin(const scheduler *scheduler);
// Passes the accepted rows of a finished pass to the predictor.
void predict_after(scheduler *scheduler);

#endif

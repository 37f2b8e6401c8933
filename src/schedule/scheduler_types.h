// schedule/scheduler_types.h — what the files of the scheduler share (scheduler.c requests coming
// and going, admission.c who runs and who gives way, pass.c the batch that runs); nobody else
// includes it.
#ifndef WICK_SCHEDULE_SCHEDULER_TYPES_H
#define WICK_SCHEDULE_SCHEDULER_TYPES_H

#include "schedule/events.h"
#include "schedule/scheduler.h"
#include "schedule/swap.h"

typedef enum pass_phase { PASS_NONE, PASS_LAYERS, PASS_LOGITS } pass_phase;

struct scheduler {
  scheduler_parts parts;
  request *first, *last;  // in the order of arrival
  uint32_t count, running;
  uint64_t queue_tokens;  // of the prompts of those that wait
  uint32_t id_next;
  event_buffer events;
  // The pass under way: its inputs, and whose each is.
  model_input *batch;  // [batch_tokens]
  request **owners;    // [batch_tokens]; NULL: it has ended
  uint32_t batch_count;
  pass_phase phase;
  uint32_t pass_logits;  // rows of logits dealt with
  uint64_t pass_us;      // spent on it so far
  bool is_measured;  // it has one request's decoding alone, whose cost speculation wants to know
  // The one that found no pages to start with, and when: nothing is tried again before that
  // changes.
  uint32_t blocked_id, blocked_running;
  uint64_t blocked_freed, blocked_until;  // _until: the pass at which it is tried anyway
  bool has_prompts;                       // some of it is read, so it tells what reading costs
  scheduler_stats stats;
  swap_parts swap;
  swap_costs swap_costs;
  speculation_costs costs;
};

// Ends a request: its last record, its pages, what its session keeps. `error` for
// WICK_FINISH_ERROR.
void scheduler_finish(scheduler *scheduler, request *request, wick_finish how,
                      const wick_error *error);

// Since it came, SCHEDULER_PASSES_WAITED_MAX passes have begun.
bool admission_has_waited_long(const scheduler *scheduler, const request *request);
// Whether `a` is served before `b`: who has waited too long, then priority, then arrival.
bool admission_precedes(const scheduler *scheduler, const request *a, const request *b);
// Starts what can run, in that order. What finds no pages waits for those that run, and the ones
// behind it, too; it takes them from those of lower priority. False when nothing has changed.
bool admission_start(scheduler *scheduler);
// Before a pass: pages for `tokens` more of a request that runs. Where there are none, others give
// theirs up, the last in order first; false when the request itself is that one.
bool admission_reserve(scheduler *scheduler, request *request, uint32_t tokens);
// What a request that has read its session drops from it. The page that this may need is taken like
// those of a pass; WICK_E_BUSY while others are to have it first.
wick_status admission_drop(scheduler *scheduler, request *request, wick_error *error);
// Counts one more that runs, with its pages.
void admission_run(scheduler *scheduler, request *request, kv_seq_id sequence, uint32_t fed);

// Puts a batch together from what runs, and begins the pass; false when nothing can go on.
bool pass_begin(scheduler *scheduler);
// One unit of the pass under way: a layer or a round of logits. False when its weights are not
// there yet.
bool pass_step(scheduler *scheduler);
// Forgets the pass under way: pages hold what they held before it.
void pass_drop(scheduler *scheduler);

#endif

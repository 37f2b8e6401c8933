// schedule/scheduler_types.h — what the files of the scheduler share (scheduler.c requests coming
// and going, pass.c the batch that runs); nobody else includes it.
#ifndef WICK_SCHEDULE_SCHEDULER_TYPES_H
#define WICK_SCHEDULE_SCHEDULER_TYPES_H

#include "schedule/events.h"
#include "schedule/scheduler.h"

typedef enum pass_phase { PASS_NONE, PASS_LAYERS, PASS_LOGITS } pass_phase;

struct scheduler {
  scheduler_parts parts;
  request *first, *last;  // in the order of arrival
  uint32_t count, running;
  uint32_t id_next;
  event_buffer events;
  // The pass under way: its inputs, and whose each is.
  model_input *batch;  // [batch_tokens]
  request **owners;    // [batch_tokens]; NULL: it has ended
  uint32_t batch_count;
  pass_phase phase;
  uint32_t pass_logits;  // rows of logits dealt with
};

// Ends a request: its last record, its pages, what its session keeps. `error` for
// WICK_FINISH_ERROR.
void scheduler_finish(scheduler *scheduler, request *request, wick_finish how,
                      const wick_error *error);

// Puts a batch together from what runs, and begins the pass; false when nothing can go on.
bool pass_begin(scheduler *scheduler);
// One unit of the pass under way: a layer or a round of logits. False when its weights are not
// there yet.
bool pass_step(scheduler *scheduler);
// Forgets the pass under way: pages hold what they held before it.
void pass_drop(scheduler *scheduler);

#endif

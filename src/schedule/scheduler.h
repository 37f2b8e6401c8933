// schedule/scheduler.h — requests in, batches through the forward pass, events out. Requests run
// one after the other, first in, first out; a unit of work is one layer or one round of logits.
#ifndef WICK_SCHEDULE_SCHEDULER_H
#define WICK_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "kv/pool.h"
#include "model/forward.h"
#include "schedule/request.h"
#include "text/tokenizer.h"

typedef struct scheduler scheduler;

// What the scheduler works with; all of it outlives it.
typedef struct scheduler_parts {
  wick_memory *memory;
  const wick_model *model;
  tokenizer *tokenizer;
  wick_kv_pool *kv;
  wick_forward *forward;
  wick_ops *ops;  // NULL: sampling is not measured
  uint64_t (*now_us)(void);
  uint32_t batch_tokens, context_tokens, requests_max;
} scheduler_parts;

typedef enum scheduler_result {
  SCHEDULER_IDLE,
  SCHEDULER_PROGRESS,
  SCHEDULER_WAIT_BYTES,  // the next layer's weights are not there yet
  SCHEDULER_WAIT_EVENTS  // the event buffer is full
} scheduler_result;

wick_status scheduler_create(const scheduler_parts *parts, scheduler **out, wick_error *error);
void scheduler_destroy(scheduler *scheduler);
uint64_t scheduler_plan_bytes(const tokenizer *tokenizer, uint32_t batch_tokens);

wick_status scheduler_submit(scheduler *scheduler, const wick_request *wanted, uint32_t *id,
                             wick_error *error);
wick_status scheduler_cancel(scheduler *scheduler, uint32_t id);
// One unit of work.
scheduler_result scheduler_step(scheduler *scheduler);
// Ends every request with an error (the model failed to load).
void scheduler_fail_all(scheduler *scheduler, const wick_error *error);
const uint8_t *scheduler_take_events(scheduler *scheduler, size_t *size_bytes);

#endif

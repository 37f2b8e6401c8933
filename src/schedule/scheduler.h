// schedule/scheduler.h — requests in, batches through the forward pass, events out. What runs
// shares each pass (continuous batching, Yu et al. 2022, Orca): every running decode and, in the
// order of arrival, pieces of prompts. A unit of work is one layer or one round of logits.
#ifndef WICK_SCHEDULE_SCHEDULER_H
#define WICK_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "kv/pool.h"
#include "kv/prefix.h"
#include "model/forward.h"
#include "schedule/request.h"
#include "schedule/session.h"
#include "text/tokenizer.h"

typedef struct scheduler scheduler;

// What the scheduler works with; all of it outlives it.
typedef struct scheduler_parts {
  wick_memory *memory;
  const wick_model *model;
  tokenizer *tokenizer;
  wick_kv_pool *kv;
  wick_prefix_cache *prefix;  // NULL: every prompt is read from its beginning
  session_table *sessions;
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

enum {
  // A unit of work puts at most this many records: a token and an end for each row of logits.
  SCHEDULER_RECORDS_PER_UNIT = 2 * SCRATCH_LOGITS_ROWS,
  // Cached pages are of this engine's one model; a saved cache is checked against its fingerprint.
  SCHEDULER_PREFIX_SALT = 0
};

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

typedef struct scheduler_load {
  uint32_t running, waiting;
} scheduler_load;
scheduler_load scheduler_get_load(const scheduler *scheduler);

#endif

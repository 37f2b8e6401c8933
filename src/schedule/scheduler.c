// schedule/scheduler.c — the loop of begin, layers, logits, and what comes of each.
#include "schedule/scheduler.h"

#include <string.h>

#include "schedule/events.h"

typedef enum pass_phase { PASS_NONE, PASS_LAYERS, PASS_LOGITS } pass_phase;

struct scheduler {
  scheduler_parts parts;
  request *first, *last;  // queue; the first one runs
  uint32_t count;
  uint32_t id_next;
  event_buffer events;
  model_input *batch;  // [batch_tokens]
  pass_phase phase;
  uint32_t pass_tokens;  // of the running request in this pass
  uint32_t pass_logits;  // rows of logits dealt with
};

// A unit of work puts at most this many records: rows of logits, or a token and an end.
enum { RECORDS_PER_UNIT = 2 };

wick_status scheduler_create(const scheduler_parts *parts, scheduler **out, wick_error *error) {
  scheduler *made = memory_alloc_zeroed(parts->memory, sizeof *made);
  if (made == NULL) return memory_fail(parts->memory, error, "the scheduler", sizeof *made);
  made->parts = *parts;
  made->id_next = 1;
  const size_t text_bytes = request_text_bytes_max(parts->tokenizer);
  wick_status status = events_create(
      parts->memory, text_bytes > WICK_ERROR_MESSAGE_BYTES ? text_bytes : WICK_ERROR_MESSAGE_BYTES,
      &made->events, error);
  if (status == WICK_OK) {
    made->batch = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof *made->batch);
    if (made->batch == NULL) {
      status = memory_fail(parts->memory, error, "the batch", parts->batch_tokens);
    }
  }
  if (status != WICK_OK) {
    scheduler_destroy(made);
    return status;
  }
  *out = made;
  return WICK_OK;
}

uint64_t scheduler_plan_bytes(const tokenizer *tokenizer, uint32_t batch_tokens) {
  const size_t text_bytes = request_text_bytes_max(tokenizer);
  return events_plan_bytes(text_bytes > WICK_ERROR_MESSAGE_BYTES ? text_bytes
                                                                 : WICK_ERROR_MESSAGE_BYTES) +
         batch_tokens * sizeof(model_input);
}

static void release(scheduler *scheduler, request *request) {
  if (request->sequence != WICK_KV_SEQ_NONE) {
    wick_kv_seq_free(scheduler->parts.kv, request->sequence, NULL);
  }
  request_destroy(scheduler->parts.memory, request);
}

void scheduler_destroy(scheduler *scheduler) {
  if (scheduler == NULL) return;
  while (scheduler->first != NULL) {
    request *request = scheduler->first;
    scheduler->first = request->next;
    release(scheduler, request);
  }
  events_destroy(&scheduler->events);
  memory_free(scheduler->parts.memory, scheduler->batch);
  memory_free(scheduler->parts.memory, scheduler);
}

wick_status scheduler_submit(scheduler *scheduler, const wick_request *wanted, uint32_t *id,
                             wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  if (scheduler->count >= parts->requests_max) {
    return wick_fail(error, WICK_E_FULL, WICK_NO_OFFSET,
                     "%u requests are waiting, the most there may be", scheduler->count);
  }
  request *made;
  const wick_status status =
      request_create(parts->memory, parts->tokenizer, wanted, parts->model->config.vocab,
                     parts->context_tokens, &made, error);
  if (status != WICK_OK) return status;
  made->id = scheduler->id_next++;
  made->submitted_us = parts->now_us();
  if (scheduler->last == NULL) {
    scheduler->first = made;
  } else {
    scheduler->last->next = made;
  }
  scheduler->last = made;
  scheduler->count++;
  *id = made->id;
  return WICK_OK;
}

wick_status scheduler_cancel(scheduler *scheduler, uint32_t id) {
  for (request *request = scheduler->first; request != NULL; request = request->next) {
    if (request->id != id) continue;
    request->is_cancelled = true;
    return WICK_OK;
  }
  return WICK_E_ARG;
}

static void unlink_request(scheduler *scheduler, const request *gone) {
  request *before = NULL;
  for (request *at = scheduler->first; at != gone; at = at->next) before = at;
  if (before == NULL) {
    scheduler->first = gone->next;
  } else {
    before->next = gone->next;
  }
  if (scheduler->last == gone) scheduler->last = before;
  scheduler->count--;
}

static double elapsed_ms(uint64_t from_us, uint64_t to_us) {
  return to_us > from_us ? (double)(to_us - from_us) / 1000.0 : 0.0;
}

// Puts the last record of a request and forgets it. `error` for WICK_FINISH_ERROR.
static void finish(scheduler *scheduler, request *request, wick_finish how,
                   const wick_error *error) {
  const uint64_t now_us = scheduler->parts.now_us();
  wick_event event = {.request = request->id,
                      .kind = WICK_EVENT_DONE,
                      .token = TOKEN_NONE,
                      .finish = how,
                      .tokens_prompt = request->prompt_count,
                      .tokens_out = request->tokens_out};
  const bool has_run = request->started_us != 0;
  const bool has_token = request->first_token_us != 0;
  event.queue_ms = elapsed_ms(request->submitted_us, has_run ? request->started_us : now_us);
  if (has_run) {
    event.prefill_ms =
        elapsed_ms(request->started_us, has_token ? request->first_token_us : now_us);
  }
  if (has_token) {
    event.decode_ms = elapsed_ms(request->first_token_us, now_us);
    event.ttft_ms = elapsed_ms(request->submitted_us, request->first_token_us);
  }
  const char *text = request->shown;
  size_t text_bytes = 0;
  if (how == WICK_FINISH_ERROR) {
    event.status = error->status;
    text = error->message;
    text_bytes = strlen(error->message);
  } else {
    text_bytes = request_flush(request);
  }
  events_put(&scheduler->events, &event, NULL, NULL, 0, text, text_bytes);
  if (request == scheduler->first) scheduler->phase = PASS_NONE;
  unlink_request(scheduler, request);
  release(scheduler, request);
}

// Ends one cancelled request; true when there was one.
static bool finish_cancelled(scheduler *scheduler) {
  for (request *request = scheduler->first; request != NULL; request = request->next) {
    if (!request->is_cancelled) continue;
    finish(scheduler, request, WICK_FINISH_ABORT, NULL);
    return true;
  }
  return false;
}

// Gives the request its sequence, with pages for all that it may come to hold.
static wick_status start(scheduler *scheduler, request *request, wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  request->started_us = parts->now_us();
  uint32_t sequence;
  wick_status status = wick_kv_seq_new(parts->kv, &sequence, error);
  if (status != WICK_OK) return status;
  request->sequence = sequence;
  const uint32_t tokens = request->prompt_count + request->tokens_max - 1;
  status = wick_kv_seq_extend(parts->kv, sequence, tokens, NULL, error);
  if (status == WICK_OK) request->phase = REQUEST_RUNNING;
  return status;
}

// The next tokens of the running request: a chunk of its prompt, or the token sampled last.
static void begin_pass(scheduler *scheduler, const request *request) {
  uint32_t count = 0;
  if (request->fed < request->prompt_count) {
    count = request->prompt_count - request->fed;
    if (count > scheduler->parts.batch_tokens) count = scheduler->parts.batch_tokens;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t position = request->fed + i;
      const bool is_last = position + 1 == request->prompt_count;
      scheduler->batch[i] = (model_input){request->prompt[position], position, request->sequence,
                                          is_last || request->on_logits != NULL};
    }
  } else {
    scheduler->batch[0] = (model_input){request->last_token, request->fed, request->sequence, true};
    count = 1;
  }
  scheduler->pass_tokens = count;
  scheduler->pass_logits = 0;
  forward_begin(scheduler->parts.forward, scheduler->batch, count);
  scheduler->phase = PASS_LAYERS;
}

static void put_prefill(scheduler *scheduler, const request *request) {
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_PREFILL,
                            .token = TOKEN_NONE,
                            .tokens_prompt = request->prompt_count,
                            .tokens_cached = request->fed};
  events_put(&scheduler->events, &event, NULL, NULL, 0, NULL, 0);
}

static void end_layers(scheduler *scheduler, request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  const bool is_prompt = request->fed < request->prompt_count;
  wick_kv_seq_append(parts->kv, request->sequence, scheduler->pass_tokens, NULL);
  wick_kv_seq_slide(parts->kv, request->sequence);
  request->fed += scheduler->pass_tokens;
  scheduler->phase = forward_logits_count(parts->forward) > 0 ? PASS_LOGITS : PASS_NONE;
  if (is_prompt) put_prefill(scheduler, request);
}

static void put_token(scheduler *scheduler, const request *request, const sampler_choice *choice,
                      size_t shown_bytes) {
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_TOKEN,
                            .token = choice->token,
                            .logprob = choice->logprob,
                            .tokens_prompt = request->prompt_count,
                            .tokens_out = request->tokens_out};
  events_put(&scheduler->events, &event, choice->top_tokens, choice->top_logprobs,
             choice->top_count, request->shown, shown_bytes);
}

static void sample_row(scheduler *scheduler, request *request, const float *logits) {
  sampler_choice choice;
  wick_error error;
  const wick_status status = sampler_choose(request->sampler, logits, &choice, &error);
  wick_ops_lap(scheduler->parts.ops, WICK_OP_SAMPLE,
               scheduler->parts.model->config.vocab * sizeof(float), 0);
  if (status != WICK_OK) {
    finish(scheduler, request, WICK_FINISH_ERROR, &error);
    return;
  }
  if (request->first_token_us == 0) request->first_token_us = scheduler->parts.now_us();
  size_t shown_bytes;
  const uint32_t tokens_before = request->tokens_out;
  const wick_finish how =
      request_take_token(request, scheduler->parts.tokenizer, choice.token, &shown_bytes);
  if (request->tokens_out != tokens_before) put_token(scheduler, request, &choice, shown_bytes);
  if (how != WICK_FINISH_NONE) finish(scheduler, request, how, NULL);
}

// One round of logits: hands them to whoever wants them, samples from the last row of the prompt.
static void logits_round(scheduler *scheduler, request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  const uint32_t first = scheduler->pass_logits;
  const uint32_t rows = forward_logits_compute(parts->forward, first);
  scheduler->pass_logits += rows;
  if (scheduler->pass_logits == forward_logits_count(parts->forward)) scheduler->phase = PASS_NONE;
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t input = forward_logits_input(parts->forward, first + i);
    const uint32_t position = scheduler->batch[input].position;
    const float *logits = forward_logits(parts->forward, i);
    if (request->on_logits != NULL && position < request->prompt_count) {
      request->on_logits(request->on_logits_context, position, logits, parts->model->config.vocab);
    }
    if (position + 1 < request->prompt_count) continue;
    sample_row(scheduler, request, logits);
    return;  // the request may be gone
  }
}

static void run_layer(scheduler *scheduler, request *request) {
  wick_error error;
  const wick_status status = forward_layer(scheduler->parts.forward, &error);
  if (status != WICK_OK) {
    finish(scheduler, request, WICK_FINISH_ERROR, &error);
  } else if (forward_next_layer(scheduler->parts.forward) ==
             scheduler->parts.model->config.layers) {
    end_layers(scheduler, request);
  }
}

scheduler_result scheduler_step(scheduler *scheduler) {
  if (!events_have_room(&scheduler->events, RECORDS_PER_UNIT)) return SCHEDULER_WAIT_EVENTS;
  if (finish_cancelled(scheduler)) return SCHEDULER_PROGRESS;
  request *request = scheduler->first;
  if (request == NULL) return SCHEDULER_IDLE;
  const wick_model *model = scheduler->parts.model;
  if (scheduler->phase == PASS_NONE) {
    if (!model->is_embedding_ready) return SCHEDULER_WAIT_BYTES;
    wick_error error;
    const wick_status status =
        request->phase == REQUEST_QUEUED ? start(scheduler, request, &error) : WICK_OK;
    if (status != WICK_OK) {
      finish(scheduler, request, WICK_FINISH_ERROR, &error);
    } else {
      begin_pass(scheduler, request);
    }
  } else if (scheduler->phase == PASS_LAYERS) {
    const uint32_t layer = forward_next_layer(scheduler->parts.forward);
    if (layer >= model_layers_ready(model)) return SCHEDULER_WAIT_BYTES;
    run_layer(scheduler, request);
  } else {
    if (!model_is_ready(model)) return SCHEDULER_WAIT_BYTES;
    logits_round(scheduler, request);
  }
  return SCHEDULER_PROGRESS;
}

void scheduler_fail_all(scheduler *scheduler, const wick_error *error) {
  while (scheduler->first != NULL && events_have_room(&scheduler->events, 1)) {
    finish(scheduler, scheduler->first, WICK_FINISH_ERROR, error);
  }
}

const uint8_t *scheduler_take_events(scheduler *scheduler, size_t *size_bytes) {
  return events_take(&scheduler->events, size_bytes);
}

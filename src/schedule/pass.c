// schedule/pass.c — one pass through the model: a batch of what runs, layer by layer, then what its
// logits bring. A row's logits do not depend on the batch (the law of the kernels), so a request
// says the same in any company.
#include <string.h>

#include "schedule/scheduler_types.h"

// While others decode, a prompt takes at most this part of a batch, so that they do not stutter.
enum { PREFILL_SHARE = 4, PREFILL_TOKENS_MIN = 16 };

static void add_input(scheduler *scheduler, request *request, uint32_t position,
                      bool wants_logits) {
  const uint32_t at = scheduler->batch_count++;
  scheduler->batch[at] =
      (model_input){request->tokens[position], position, request->sequence, wants_logits};
  scheduler->owners[at] = request;
  request->pass_tokens++;
}

static void add_prompt(scheduler *scheduler, request *request, uint32_t tokens_max) {
  uint32_t count = request->prompt_count - request->fed;
  if (count > tokens_max) count = tokens_max;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t position = request->fed + i;
    const bool is_last = position + 1 == request->prompt_count && request->tokens_max != 0;
    add_input(scheduler, request, position, is_last || request->on_logits != NULL);
  }
}

// The request that a failed pass has left to run alone; NULL: none.
static request *find_alone(const scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase == REQUEST_RUNNING && at->runs_alone) return at;
  }
  return NULL;
}

bool pass_begin(scheduler *scheduler) {
  const request *alone = find_alone(scheduler);
  const uint32_t room = scheduler->parts.batch_tokens;
  scheduler->batch_count = 0;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    at->pass_tokens = 0;
    if (at->phase != REQUEST_RUNNING || (alone != NULL && at != alone)) continue;
    if (!request_is_prefill(at)) add_input(scheduler, at, at->fed, true);
  }
  uint32_t left = room - scheduler->batch_count;
  if (scheduler->batch_count != 0 && room > PREFILL_TOKENS_MIN) {
    uint32_t share = room / PREFILL_SHARE;
    if (share < PREFILL_TOKENS_MIN) share = PREFILL_TOKENS_MIN;
    if (left > share) left = share;
  }
  for (request *at = scheduler->first; at != NULL && left != 0; at = at->next) {
    if (at->phase != REQUEST_RUNNING || (alone != NULL && at != alone)) continue;
    if (!request_is_prefill(at)) continue;
    add_prompt(scheduler, at, left);
    left -= at->pass_tokens;
  }
  if (scheduler->batch_count == 0) return false;
  scheduler->pass_logits = 0;
  forward_begin(scheduler->parts.forward, scheduler->batch, scheduler->batch_count);
  scheduler->phase = PASS_LAYERS;
  return true;
}

void pass_drop(scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) at->pass_tokens = 0;
  scheduler->batch_count = 0;
  scheduler->phase = PASS_NONE;
}

// ---- After the layers ----

static void put_prefill(scheduler *scheduler, const request *request) {
  if (!events_have_room(&scheduler->events, SCHEDULER_RECORDS_PER_UNIT)) return;  // told next time
  const wick_event event = {.request = request->id,
                            .kind = WICK_EVENT_PREFILL,
                            .token = TOKEN_NONE,
                            .tokens_prompt = request->prompt_count,
                            .tokens_cached = request->fed};
  events_put(&scheduler->events, &event, NULL, NULL, 0, NULL, 0);
}

// What others may begin with: the whole pages so far. A cache that is full stores nothing.
static void remember_prefix(scheduler *scheduler, const request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  if (parts->prefix == NULL) return;
  wick_prefix_store(parts->prefix, request->sequence, SCHEDULER_PREFIX_SALT, request->tokens,
                    request->fed, NULL, NULL);
}

static void count_fed(scheduler *scheduler, request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  const bool is_prompt = request_is_prefill(request);
  wick_kv_seq_append(parts->kv, request->sequence, request->pass_tokens, NULL);
  wick_kv_seq_slide(parts->kv, request->sequence);
  request->fed += request->pass_tokens;
  request->pass_tokens = 0;
  request->runs_alone = false;
  if (!is_prompt) return;
  remember_prefix(scheduler, request);
  put_prefill(scheduler, request);
}

static void end_layers(scheduler *scheduler) {
  const bool has_logits = forward_logits_count(scheduler->parts.forward) > 0;
  scheduler->phase = has_logits ? PASS_LOGITS : PASS_NONE;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->pass_tokens != 0) count_fed(scheduler, at);
  }
}

// Several in one pass: each runs alone once, and ends or goes on by itself.
static void fail_pass(scheduler *scheduler, const wick_error *error) {
  request *only = scheduler->owners[0];
  bool is_shared = false;
  for (uint32_t i = 1; i < scheduler->batch_count; i++) {
    is_shared = is_shared || scheduler->owners[i] != only;
  }
  for (uint32_t i = 0; is_shared && i < scheduler->batch_count; i++) {
    scheduler->owners[i]->runs_alone = true;
  }
  pass_drop(scheduler);
  if (!is_shared) scheduler_finish(scheduler, only, WICK_FINISH_ERROR, error);
}

static void run_layer(scheduler *scheduler) {
  wick_error error;
  const wick_status status = forward_layer(scheduler->parts.forward, &error);
  if (status != WICK_OK) {
    fail_pass(scheduler, &error);
  } else if (forward_next_layer(scheduler->parts.forward) ==
             scheduler->parts.model->config.layers) {
    end_layers(scheduler);
  }
}

// ---- Logits ----

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
    scheduler_finish(scheduler, request, WICK_FINISH_ERROR, &error);
    return;
  }
  if (request->first_token_us == 0) request->first_token_us = scheduler->parts.now_us();
  size_t shown_bytes;
  const uint32_t tokens_before = request->tokens_out;
  const wick_finish how =
      request_take_token(request, scheduler->parts.tokenizer, choice.token, &shown_bytes);
  if (request->tokens_out != tokens_before) put_token(scheduler, request, &choice, shown_bytes);
  if (how != WICK_FINISH_NONE) scheduler_finish(scheduler, request, how, NULL);
}

// One row: for whoever wants it; the last one of a prompt and each one after it bring a token.
static void take_row(scheduler *scheduler, request *request, uint32_t position,
                     const float *logits) {
  if (request->on_logits != NULL && position < request->prompt_count) {
    const uint32_t vocab = scheduler->parts.model->config.vocab;
    request->on_logits(request->on_logits_context, position, logits, vocab);
  }
  const bool is_last = position + 1 >= request->prompt_count;
  if (is_last && request->tokens_max != 0) sample_row(scheduler, request, logits);
}

static void logits_round(scheduler *scheduler) {
  const scheduler_parts *parts = &scheduler->parts;
  const uint32_t first = scheduler->pass_logits;
  const uint32_t rows = forward_logits_compute(parts->forward, first);
  scheduler->pass_logits += rows;
  if (scheduler->pass_logits == forward_logits_count(parts->forward)) scheduler->phase = PASS_NONE;
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t input = forward_logits_input(parts->forward, first + i);
    // A request samples once a pass, from its last row, so it is still there.
    take_row(scheduler, scheduler->owners[input], scheduler->batch[input].position,
             forward_logits(parts->forward, i));
  }
}

bool pass_step(scheduler *scheduler) {
  const wick_model *model = scheduler->parts.model;
  if (scheduler->phase == PASS_LAYERS) {
    if (forward_next_layer(scheduler->parts.forward) >= model_layers_ready(model)) return false;
    run_layer(scheduler);
  } else {
    if (!model_is_ready(model)) return false;
    logits_round(scheduler);
  }
  return true;
}

// schedule/scheduler.c — requests coming, waiting for pages, and going; the step.
#include "schedule/scheduler.h"

#include <string.h>

#include "schedule/scheduler_types.h"

// The longest text of a record: a token's, or an error's message.
static size_t record_text_bytes(const tokenizer *tokenizer) {
  const size_t text_bytes = request_text_bytes_max(tokenizer);
  return text_bytes > WICK_ERROR_MESSAGE_BYTES ? text_bytes : WICK_ERROR_MESSAGE_BYTES;
}

wick_status scheduler_create(const scheduler_parts *parts, scheduler **out, wick_error *error) {
  scheduler *made = memory_alloc_zeroed(parts->memory, sizeof *made);
  if (made == NULL) return memory_fail(parts->memory, error, "the scheduler", sizeof *made);
  made->parts = *parts;
  made->id_next = 1;
  wick_status status =
      events_create(parts->memory, record_text_bytes(parts->tokenizer), &made->events, error);
  if (status == WICK_OK) {
    made->batch = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof *made->batch);
    made->owners = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof(request *));
    if (made->batch == NULL || made->owners == NULL) {
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
  return events_plan_bytes(record_text_bytes(tokenizer)) +
         batch_tokens * (sizeof(model_input) + sizeof(request *));
}

// What the request leaves behind: its session goes on with what it has read and said, or is as it
// was when nothing has come out.
static void leave_session(scheduler *scheduler, request *request) {
  wick_kv_pool *kv = scheduler->parts.kv;
  session *session = request->session;
  const bool is_kept = request->tokens_out != 0 || request->fed == request->prompt_count;
  uint32_t stored = request->fed;
  if (is_kept) {
    int32_t *before = session->tokens;
    session->tokens = request->tokens;
    session->count = request->tokens_count;
    request->tokens = before;
  } else if (request->phase == REQUEST_RUNNING) {
    stored = request->fed_before;
  }
  // Also gives back what was reserved for tokens that have not come.
  if (request->phase == REQUEST_RUNNING) wick_kv_seq_truncate(kv, session->sequence, stored, NULL);
  session->is_busy = false;
}

static void release(scheduler *scheduler, request *request) {
  if (request->session != NULL) {
    leave_session(scheduler, request);
  } else if (request->sequence != WICK_KV_SEQ_NONE) {
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
  memory_free(scheduler->parts.memory, (void *)scheduler->owners);
  memory_free(scheduler->parts.memory, scheduler);
}

// ---- Coming ----

static wick_status find_session(const scheduler *scheduler, const wick_request *wanted,
                                session **session, wick_error *error) {
  *session = NULL;
  if (wanted->session == 0) return WICK_OK;
  const wick_status status =
      session_find(scheduler->parts.sessions, wanted->session, session, error);
  if (status != WICK_OK || !(*session)->is_busy) return status;
  return wick_fail(error, WICK_E_BUSY, WICK_NO_OFFSET, "a request is running on session %u",
                   wanted->session);
}

wick_status scheduler_submit(scheduler *scheduler, const wick_request *wanted, uint32_t *id,
                             wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  if (scheduler->count >= parts->requests_max) {
    return wick_fail(error, WICK_E_FULL, WICK_NO_OFFSET,
                     "%u requests are waiting, the most there may be", scheduler->count);
  }
  session *session;
  request *made;
  wick_status status = find_session(scheduler, wanted, &session, error);
  if (status == WICK_OK) {
    status = request_create(parts->memory, parts->tokenizer, wanted, session,
                            parts->model->config.vocab, parts->context_tokens, &made, error);
  }
  if (status != WICK_OK) return status;
  if (session != NULL) session->is_busy = true;
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

// ---- Going ----

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
  if (gone->phase == REQUEST_RUNNING) scheduler->running--;
}

static double elapsed_ms(uint64_t from_us, uint64_t to_us) {
  return to_us > from_us ? (double)(to_us - from_us) / 1000.0 : 0.0;
}

static wick_event last_event(const request *request, wick_finish how, uint64_t now_us) {
  wick_event event = {.request = request->id,
                      .kind = WICK_EVENT_DONE,
                      .token = TOKEN_NONE,
                      .finish = how,
                      .tokens_prompt = request->prompt_count,
                      .tokens_cached = request->cached,
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
  return event;
}

void scheduler_finish(scheduler *scheduler, request *request, wick_finish how,
                      const wick_error *error) {
  wick_event event = last_event(request, how, scheduler->parts.now_us());
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
  if (how != WICK_FINISH_ERROR && request->phase == REQUEST_RUNNING &&
      scheduler->parts.prefix != NULL) {
    wick_prefix_store(scheduler->parts.prefix, request->sequence, SCHEDULER_PREFIX_SALT,
                      request->tokens, request->fed, NULL, NULL);
  }
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    if (scheduler->owners[i] == request) scheduler->owners[i] = NULL;
  }
  unlink_request(scheduler, request);
  release(scheduler, request);
}

// Whether the pass under way is for cancelled requests alone.
static bool pass_is_for_nobody(const scheduler *scheduler) {
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    if (scheduler->owners[i] != NULL && !scheduler->owners[i]->is_cancelled) return false;
  }
  return true;
}

// Ends one cancelled request; true when there was one. What is in a pass with others ends after it.
static bool finish_cancelled(scheduler *scheduler) {
  for (request *request = scheduler->first; request != NULL; request = request->next) {
    if (!request->is_cancelled) continue;
    if (scheduler->phase != PASS_NONE && request->phase == REQUEST_RUNNING) {
      if (!pass_is_for_nobody(scheduler)) continue;
      pass_drop(scheduler);
    }
    scheduler_finish(scheduler, request, WICK_FINISH_ABORT, NULL);
    return true;
  }
  return false;
}

// ---- Starting ----

// So that nothing is allocated when pages are entered. Without room fewer are, which is no error.
static void reserve_entries(wick_prefix_cache *prefix, uint32_t tokens) {
  if (prefix != NULL) wick_prefix_reserve(prefix, tokens / KERNEL_PAGE_TOKENS, NULL);
}

// Gives the request its sequence: what the cache knows of its prompt, and pages for all that it may
// come to hold.
static wick_status take_pages(scheduler *scheduler, request *request, wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  wick_kv_seq_id sequence;
  wick_status status = WICK_OK;
  if (request->session != NULL) {
    sequence = request->session->sequence;
  } else {
    status = wick_kv_seq_new(parts->kv, 0, &sequence, NULL, error);
    if (status != WICK_OK) return status;
  }
  request->fed_before = wick_kv_seq_tokens(parts->kv, sequence);
  if (request->fed_before == 0 && parts->prefix != NULL && request->on_logits == NULL) {
    uint32_t hit;
    status = wick_prefix_attach(parts->prefix, sequence, SCHEDULER_PREFIX_SALT, request->tokens,
                                request->prompt_count, &hit, error);
  }
  uint32_t stored = wick_kv_seq_tokens(parts->kv, sequence);
  // The last token is read again when nothing new follows it: its logits are wanted.
  if (status == WICK_OK && stored == request->prompt_count && request->tokens_max != 0) {
    status = wick_kv_seq_truncate(parts->kv, sequence, --stored, error);
  }
  const uint32_t most = request->tokens_max == 0 ? 0 : request->tokens_max - 1;
  if (status == WICK_OK) {
    status = wick_kv_seq_prepare_write(parts->kv, sequence, stored,
                                       request->prompt_count + most - stored, NULL, error);
  }
  if (status == WICK_OK) {
    request->sequence = sequence;
    request->fed = request->cached = stored;
    reserve_entries(parts->prefix, request->prompt_count + most);
    return WICK_OK;
  }
  if (request->session == NULL) {
    wick_kv_seq_free(parts->kv, sequence, NULL);
  } else if (stored > request->fed_before) {
    wick_kv_seq_truncate(parts->kv, sequence, request->fed_before, NULL);
  }
  return status;
}

static uint32_t common_pages(const request *a, const request *b) {
  const uint32_t count = a->prompt_count < b->prompt_count ? a->prompt_count : b->prompt_count;
  uint32_t same = 0;
  while (same < count && a->tokens[same] == b->tokens[same]) same++;
  return same / KERNEL_PAGE_TOKENS;
}

// Whether a request that runs is still reading pages that this one could then have from the cache.
static bool waits_for_prefix(const scheduler *scheduler, const request *request) {
  if (scheduler->parts.prefix == NULL || request->on_logits != NULL) return false;
  if (request->session != NULL && request->session->count != 0) return false;
  for (const struct request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING || !request_is_prefill(at) || at->is_cancelled) continue;
    if (common_pages(at, request) > at->fed / KERNEL_PAGE_TOKENS) return true;
  }
  return false;
}

// Starts what can run, in the order of arrival. What finds no pages waits for those that run, and
// the ones behind it, too; when nothing runs, there will never be enough.
static void start_requests(scheduler *scheduler) {
  const scheduler_parts *parts = &scheduler->parts;
  request *next;
  for (request *at = scheduler->first; at != NULL; at = next) {
    next = at->next;
    if (at->phase != REQUEST_QUEUED || waits_for_prefix(scheduler, at)) continue;
    if (scheduler->running == parts->batch_tokens) return;
    wick_error error;
    const wick_status status = take_pages(scheduler, at, &error);
    if (status == WICK_OK) {
      at->phase = REQUEST_RUNNING;
      at->started_us = parts->now_us();
      scheduler->running++;
      continue;
    }
    const bool is_short = status == WICK_E_PAGES || status == WICK_E_NOMEM;
    if (is_short && scheduler->running != 0) return;
    if (!events_have_room(&scheduler->events, 1)) return;
    scheduler_finish(scheduler, at, WICK_FINISH_ERROR, &error);
  }
}

// Ends one request that has read its prompt and has nothing to say.
static bool finish_silent(scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING || at->tokens_max != 0 || request_is_prefill(at)) continue;
    scheduler_finish(scheduler, at, WICK_FINISH_LENGTH, NULL);
    return true;
  }
  return false;
}

scheduler_result scheduler_step(scheduler *scheduler) {
  if (!events_have_room(&scheduler->events, SCHEDULER_RECORDS_PER_UNIT)) {
    return SCHEDULER_WAIT_EVENTS;
  }
  if (finish_cancelled(scheduler)) return SCHEDULER_PROGRESS;
  if (scheduler->first == NULL) return SCHEDULER_IDLE;
  if (scheduler->phase != PASS_NONE) {
    return pass_step(scheduler) ? SCHEDULER_PROGRESS : SCHEDULER_WAIT_BYTES;
  }
  if (!scheduler->parts.model->is_embedding_ready) return SCHEDULER_WAIT_BYTES;
  start_requests(scheduler);
  if (!finish_silent(scheduler) && !pass_begin(scheduler) && scheduler->first == NULL) {
    return SCHEDULER_IDLE;
  }
  return SCHEDULER_PROGRESS;
}

void scheduler_fail_all(scheduler *scheduler, const wick_error *error) {
  if (scheduler->phase != PASS_NONE) pass_drop(scheduler);
  while (scheduler->first != NULL && events_have_room(&scheduler->events, 1)) {
    scheduler_finish(scheduler, scheduler->first, WICK_FINISH_ERROR, error);
  }
}

const uint8_t *scheduler_take_events(scheduler *scheduler, size_t *size_bytes) {
  return events_take(&scheduler->events, size_bytes);
}

scheduler_load scheduler_get_load(const scheduler *scheduler) {
  return (scheduler_load){scheduler->running, scheduler->count - scheduler->running};
}

// schedule/scheduler.c — arrival, waiting and end of requests, one step at a time.
#include "schedule/scheduler.h"

#include <string.h>

#include "schedule/scheduler_types.h"

// Returns the maximum text size of a record: the text of a token, or an error message.
static size_t record_text_bytes(const tokenizer *tokenizer) {
  const size_t text_bytes = request_text_bytes_max(tokenizer);
  return text_bytes > WICK_ERROR_MESSAGE_BYTES ? text_bytes : WICK_ERROR_MESSAGE_BYTES;
}

wick_status scheduler_create(const scheduler_parts *parts, scheduler **out, wick_error *error) {
  scheduler *made = memory_alloc_zeroed(parts->memory, sizeof *made);
  if (made == NULL) return memory_fail(parts->memory, error, "the scheduler");
  made->parts = *parts;
  made->id_next = 1;
  made->shelf.limits = parts->grammar_limits;
  made->swap = (swap_parts){parts->memory, parts->store, parts->swap, parts->now_us};
  wick_status status = events_create(parts->memory, record_text_bytes(parts->tokenizer),
                                     SCHEDULER_RECORDS_MAX, &made->events, error);
  if (status == WICK_OK) {
    made->batch = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof *made->batch);
    made->owners = memory_alloc_array(parts->memory, parts->batch_tokens, sizeof(request *));
    if (made->batch == NULL || made->owners == NULL) {
      status = memory_fail(parts->memory, error, "the batch");
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
  return events_plan_bytes(record_text_bytes(tokenizer), SCHEDULER_RECORDS_MAX) +
         batch_tokens * (sizeof(model_input) + sizeof(request *));
}

// Ends a request for its session. The session continues with the text that the request has
// processed and sampled. If its prompt was not completely processed, the session is unchanged. A
// request that drops tokens has already changed the session.
static void leave_session(scheduler *scheduler, request *request) {
  session *session = request->session;
  const bool is_kept =
      !request_drops(request) && (request->tokens_out != 0 || request->has_read_prompt);
  uint32_t stored = request->fed;
  if (is_kept) {
    int32_t *before = session->tokens;
    session->tokens = request->tokens;
    session->count = request->tokens_count;
    request->tokens = before;
    const media_list media_before = session->media;
    session->media = request->media;
    request->media = media_before;
  } else if (stored > session->count) {
    stored = session->count;
  }
  // This also frees the pages reserved for tokens that were never sampled.
  if (request->phase == REQUEST_RUNNING) {
    store_truncate(scheduler->parts.store, session->sequence, stored);
  }
  session_rest(scheduler->parts.sessions, session);
}

static void release(scheduler *scheduler, request *request) {
  if (request->session != NULL) {
    leave_session(scheduler, request);
  } else if (request->sequence != KV_SEQ_NONE) {
    store_free(scheduler->parts.store, request->sequence);
  }
  swap_drop(&scheduler->swap, request->id, &request->swapped);
  request_destroy(scheduler->parts.memory, &scheduler->shelf, request);
}

void scheduler_destroy(scheduler *scheduler) {
  if (scheduler == NULL) return;
  while (scheduler->first != NULL) {
    request *request = scheduler->first;
    scheduler->first = request->next;
    release(scheduler, request);
  }
  shelf_clear(&scheduler->shelf, scheduler->parts.memory);
  events_destroy(&scheduler->events);
  memory_free(scheduler->parts.memory, scheduler->batch);
  memory_free(scheduler->parts.memory, (void *)scheduler->owners);
  memory_free(scheduler->parts.memory, scheduler);
}

// ---- Arrival ----

static wick_status find_session(const scheduler *scheduler, const wick_request *wanted,
                                session **session, wick_error *error) {
  *session = NULL;
  if (wanted->session == 0) return WICK_OK;
  const wick_status status =
      session_find(scheduler->parts.sessions, wanted->session, session, error);
  if (status != WICK_OK || !(*session)->is_busy) return status;
  return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "a request is running on session %u",
                   wanted->session);
}

static wick_status check_queue(scheduler *scheduler, uint32_t added, wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  if (scheduler->count + added > parts->requests_max) {
    scheduler->stats.refused++;
    fail_with(error, WICK_E_FULL, WICK_NO_OFFSET,
              "%u requests are running or waiting; the limit is %u", scheduler->count,
              parts->requests_max);
    return status_about(WICK_E_FULL, error, WICK_SUBJECT_REQUESTS, scheduler->count,
                        parts->requests_max);
  }
  if (scheduler->queue_tokens != 0 && scheduler->queue_tokens >= parts->queue_tokens_max) {
    scheduler->stats.refused++;
    fail_with(
        error, WICK_E_FULL, WICK_NO_OFFSET, "prompts of %llu tokens are waiting; the limit is %llu",
        (unsigned long long)scheduler->queue_tokens, (unsigned long long)parts->queue_tokens_max);
    return status_about(WICK_E_FULL, error, WICK_SUBJECT_QUEUE_TOKENS, scheduler->queue_tokens,
                        parts->queue_tokens_max);
  }
  return WICK_OK;
}

static wick_status check_wanted(const wick_request *wanted, wick_error *error) {
  if (wanted->priority < WICK_PRIORITY_MIN || wanted->priority > WICK_PRIORITY_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "priority %d is not between %d and %d",
              wanted->priority, WICK_PRIORITY_MIN, WICK_PRIORITY_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PRIORITY, 0, 0);
  }
  if (wanted->completions > WICK_COMPLETIONS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%u completions: the limit is %d",
              wanted->completions, WICK_COMPLETIONS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_COMPLETIONS, wanted->completions,
                        WICK_COMPLETIONS_MAX);
  }
  const bool has_drop = wanted->drop_first != 0 || wanted->drop_last != 0;
  const bool has_prompt = wanted->text_bytes != 0 || wanted->tokens != NULL;
  if (has_drop && (wanted->session == 0 || !wanted->prefill_only || has_prompt)) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "dropping tokens requires a session, and no prompt or answer");
  }
  if (wanted->grammar != NULL && wanted->forced != NULL) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "forced tokens cannot be combined with a grammar");
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_GRAMMAR, 0, 0);
  }
  if (wanted->session != 0 && wanted->salt_bytes != 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "a request on a session cannot have a separate salt");
  }
  const bool is_alone = wanted->session != 0 || wanted->on_logits != NULL || wanted->prefill_only;
  if (wanted->completions > 1 && is_alone) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "%u completions: a session or prefill_only allows only one",
                     wanted->completions);
  }
  return WICK_OK;
}

// Checks that the request's adapters are the ones that computed its session's pages.
static wick_status choose_adapters(const scheduler *scheduler, const wick_request *wanted,
                                   const session *session, adapter_set *set, wick_error *error) {
  const adapter_list *list = scheduler->parts.adapters;
  if (session != NULL && wanted->drop_last != 0) {
    return adapter_set_of_marks(list, &session->adapters, set, error);
  }
  const wick_status status =
      adapter_set_make(list, wanted->adapters, wanted->adapter_count, set, error);
  if (status != WICK_OK || session == NULL) return status;
  const adapter_marks marks = adapter_marks_of(set);
  const bool is_same = adapter_marks_are_same(&session->adapters, &marks);
  if (is_same || session_is_plain(scheduler->parts.sessions, session)) return WICK_OK;
  fail_with(
      error, WICK_E_MISMATCH, WICK_NO_OFFSET,
      "session %u has different adapters, and cannot be recomputed because tokens were dropped "
      "from its middle",
      session->id);
  return status_about(WICK_E_MISMATCH, error, WICK_SUBJECT_ADAPTERS, session->id, 0);
}

// Makes the request a user of its adapters.
static void give_adapters(request *request, const adapter_set *set) {
  const adapter_marks marks = adapter_marks_of(set);
  request->adapters = *set;
  request->salt = adapter_salt(request->salt, &marks);
  adapter_set_hold(set);
}

// Begins a request on a session. Tokens that were computed with different adapters are recomputed.
static void begin_on_session(const scheduler *scheduler, session *session, const adapter_set *set) {
  const adapter_marks marks = adapter_marks_of(set);
  session->is_busy = true;
  if (adapter_marks_are_same(&session->adapters, &marks)) return;
  store_truncate(scheduler->parts.store, session->sequence, 0);
  session->adapters = marks;
}

// Appends a request to the list.
static void enqueue(scheduler *scheduler, request *made, uint32_t passes_waited) {
  const uint64_t passes = scheduler->stats.passes;
  made->id = scheduler->id_next++;
  made->pass_submitted = passes > passes_waited ? passes - passes_waited : 0;
  made->submitted_us = scheduler->parts.now_us();
  if (scheduler->last == NULL) {
    scheduler->first = made;
  } else {
    scheduler->last->next = made;
  }
  scheduler->last = made;
  scheduler->count++;
  made->queue_tokens = made->tokens_count;
  scheduler->queue_tokens += made->queue_tokens;
  scheduler->stats.submitted++;
  const uint32_t waiting = scheduler->count - scheduler->running;
  if (waiting > scheduler->stats.waiting_max) scheduler->stats.waiting_max = waiting;
}

// Creates the other completions of a prompt.
static wick_status make_followers(scheduler *scheduler, const wick_request *wanted,
                                  const reply_wish *wish, request *original, request **followers,
                                  wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  wick_request same = *wanted;
  same.tokens = original->tokens;
  same.token_count = original->prompt_count;
  same.healing = false;
  if (original->healing_bytes != 0) same.grammar = &original->constraint->wanted;
  *followers = NULL;
  for (uint32_t i = 1; i < wanted->completions; i++) {
    request *made;
    same.sampling.seed++;
    const wick_status status =
        request_create(parts->memory, parts->tokenizer, &scheduler->shelf, &same, &original->media,
                       wish, NULL, parts->model->config.vocab, parts->context_tokens, &made, error);
    if (status != WICK_OK) return status;
    give_adapters(made, &original->adapters);
    made->original = original;
    made->healing_bytes = original->healing_bytes;
    made->heals_token = original->heals_token;
    made->next = *followers;
    *followers = made;
  }
  return WICK_OK;
}

static void destroy_list(scheduler *scheduler, request *list) {
  while (list != NULL) {
    request *next = list->next;
    request_destroy(scheduler->parts.memory, &scheduler->shelf, list);
    list = next;
  }
}

// Queues completions from first to last, which were created from last to first.
static void enqueue_followers(scheduler *scheduler, request *followers, uint32_t passes_waited) {
  request *reversed = NULL;
  while (followers != NULL) {
    request *next = followers->next;
    followers->next = reversed;
    reversed = followers;
    followers = next;
  }
  while (reversed != NULL) {
    request *next = reversed->next;
    reversed->next = NULL;
    enqueue(scheduler, reversed, passes_waited);
    reversed = next;
  }
}

wick_status scheduler_submit(scheduler *scheduler, const wick_request *wanted,
                             const media_list *media, const reply_wish *wish, uint32_t *id,
                             wick_error *error) {
  const scheduler_parts *parts = &scheduler->parts;
  session *session = NULL;
  request *made = NULL, *followers = NULL;
  adapter_set adapters;
  wick_status status = check_wanted(wanted, error);
  if (status == WICK_OK) {
    status = check_queue(scheduler, wanted->completions == 0 ? 1 : wanted->completions, error);
  }
  if (status == WICK_OK) status = find_session(scheduler, wanted, &session, error);
  if (status == WICK_OK) {
    status = choose_adapters(scheduler, wanted, session, &adapters, error);
  }
  if (status == WICK_OK) {
    status =
        request_create(parts->memory, parts->tokenizer, &scheduler->shelf, wanted, media, wish,
                       session, parts->model->config.vocab, parts->context_tokens, &made, error);
  }
  if (status != WICK_OK) return status;
  give_adapters(made, &adapters);
  status = make_followers(scheduler, wanted, wish, made, &followers, error);
  if (status != WICK_OK) {
    destroy_list(scheduler, followers);
    request_destroy(parts->memory, &scheduler->shelf, made);
    return status;
  }
  if (session != NULL) begin_on_session(scheduler, session, &adapters);
  enqueue(scheduler, made, wanted->passes_waited);
  enqueue_followers(scheduler, followers, wanted->passes_waited);
  *id = made->id;
  return WICK_OK;
}

bool scheduler_prepare_grammar(scheduler *scheduler, const wick_grammar *wanted) {
  const scheduler_parts *parts = &scheduler->parts;
  return shelf_prepare(&scheduler->shelf, parts->memory, parts->tokenizer, wanted);
}

wick_status scheduler_cancel(scheduler *scheduler, uint32_t id) {
  for (request *request = scheduler->first; request != NULL; request = request->next) {
    if (request->id != id) continue;
    request->is_cancelled = true;
    return WICK_OK;
  }
  return WICK_E_ARG;
}

// Called if `gone` will not process the prompt for which other completions wait. The first
// completion that is not paused processes it for the others.
static void leave_followers(scheduler *scheduler, const request *gone) {
  request *heir = NULL;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->original != gone) continue;
    at->original = heir;
    if (heir == NULL && !at->is_paused) heir = at;
  }
}

void scheduler_set_guest(scheduler *scheduler, page_guest guest) { scheduler->guest = guest; }

void scheduler_set_drafter(scheduler *scheduler, drafter *drafter) {
  scheduler->parts.drafter = drafter;
}

wick_status scheduler_find_asking(const scheduler *scheduler, uint32_t id, request **out) {
  for (*out = scheduler->first; *out != NULL; *out = (*out)->next) {
    if ((*out)->id == id) return (*out)->is_asking && !(*out)->is_answered ? WICK_OK : WICK_E_ARG;
  }
  return WICK_E_ARG;
}

wick_status scheduler_pause(scheduler *scheduler, uint32_t id, bool is_paused) {
  for (request *request = scheduler->first; request != NULL; request = request->next) {
    if (request->id != id) continue;
    request->is_paused = is_paused;
    scheduler->blocked_id = 0;
    // requests must not wait for a prompt that is not being processed
    if (is_paused && request_is_prefill(request)) leave_followers(scheduler, request);
    return WICK_OK;
  }
  return WICK_E_ARG;
}

// ---- End ----

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
  if (gone->phase == REQUEST_RUNNING) {
    scheduler->running--;
  } else {
    scheduler->queue_tokens -= gone->queue_tokens;
  }
}

static void count_end(scheduler_stats *stats, wick_finish how) {
  stats->stopped += how == WICK_FINISH_STOP;
  stats->length += how == WICK_FINISH_LENGTH;
  stats->aborted += how == WICK_FINISH_ABORT;
  stats->failed += how == WICK_FINISH_ERROR;
}

static double elapsed_ms(uint64_t from_us, uint64_t to_us) {
  return to_us > from_us ? (double)(to_us - from_us) / 1000.0 : 0.0;
}

static wick_event last_event(const request *request, wick_finish how, uint64_t now_us) {
  wick_event event = {.request = request->id,
                      .kind = WICK_EVENT_DONE,
                      .token = TOKEN_NONE,
                      .finish = (uint16_t)how,
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
  const char *text = request->shown;
  size_t text_bytes = 0;
  wick_error lack;
  if (how != WICK_FINISH_ERROR) {
    // a reply that is cut inside a character ends before that character
    if (how != WICK_FINISH_STOP) request->detokenizer.pending_bytes = 0;
    text_bytes = request_flush(request);
    if (parts_put(&scheduler->events, request, text_bytes, how, &lack) != WICK_OK) {
      how = WICK_FINISH_ERROR;
      error = &lack;
    }
  }
  wick_event event = last_event(request, how, scheduler->parts.now_us());
  if (how == WICK_FINISH_STOP) event.stop = (uint16_t)request->stopped_by;
  if (how == WICK_FINISH_ERROR) {
    event.status = (uint16_t)error->status;
    event.subject = (uint16_t)error->subject;
    text = error->message;
    text_bytes = strlen(error->message);
  }
  events_put(&scheduler->events, &event, NULL, NULL, 0, text, text_bytes);
  if (request->phase == REQUEST_RUNNING) {
    request->fed = store_settle(scheduler->parts.store, request->sequence);
  }
  if (how != WICK_FINISH_ERROR && request->phase == REQUEST_RUNNING) {
    store_remember(scheduler->parts.store, request->sequence, request->salt, request->tokens,
                   request->fed);
  }
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    if (scheduler->owners[i] == request) scheduler->owners[i] = NULL;
  }
  if (scheduler->parts.drafter != NULL) drafter_forget(scheduler->parts.drafter, request->id);
  if (scheduler->parts.predictor != NULL) predictor_forget(scheduler->parts.predictor, request->id);
  count_end(&scheduler->stats, how);
  scheduler->blocked_id = 0;
  leave_followers(scheduler, request);
  unlink_request(scheduler, request);
  release(scheduler, request);
}

// Whether the current pass has only cancelled requests.
static bool pass_is_for_nobody(const scheduler *scheduler) {
  for (uint32_t i = 0; i < scheduler->batch_count; i++) {
    if (scheduler->owners[i] != NULL && !scheduler->owners[i]->is_cancelled) return false;
  }
  return true;
}

// Ends one cancelled request; returns false if there is none. A request that shares a pass with
// other requests ends after the pass.
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

// Ends one request that has processed its prompt and samples nothing, after dropping the tokens
// that it should drop.
static bool finish_silent(scheduler *scheduler) {
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING || at->tokens_max != 0 || request_is_prefill(at)) continue;
    if (!events_have_room(&scheduler->events, 1)) return false;
    wick_error error;
    const wick_status status = request_drops(at) ? admission_drop(scheduler, at, &error) : WICK_OK;
    if (status == WICK_E_BUSY) continue;
    const wick_finish how = status == WICK_OK ? WICK_FINISH_LENGTH : WICK_FINISH_ERROR;
    scheduler_finish(scheduler, at, how, &error);
    return true;
  }
  return false;
}

// Runs a unit and adds its time to the time of its pass, which excludes the host's pauses between
// units.
static scheduler_result step_pass(scheduler *scheduler) {
  const uint64_t start_us = scheduler->parts.now_us();
  const uint32_t rows = scheduler->batch_count;
  const bool has_bytes = pass_step(scheduler);
  scheduler->pass_us += scheduler->parts.now_us() - start_us;
  if (!has_bytes) return SCHEDULER_WAIT_BYTES;
  if (scheduler->phase == PASS_NONE && scheduler->is_measured) {
    speculation_costs_took(&scheduler->costs, rows, scheduler->pass_us);
  }
  if (scheduler->phase == PASS_NONE && scheduler->has_prompts) {
    swap_costs_took(&scheduler->swap_costs, rows, scheduler->pass_us);
  }
  return SCHEDULER_PROGRESS;
}

scheduler_result scheduler_step(scheduler *scheduler) {
  if (!events_have_room(&scheduler->events, SCHEDULER_RECORDS_PER_UNIT)) {
    return SCHEDULER_WAIT_EVENTS;
  }
  if (finish_cancelled(scheduler)) return SCHEDULER_PROGRESS;
  if (scheduler->first == NULL) return SCHEDULER_IDLE;
  if (pass_take_answer(scheduler)) return SCHEDULER_PROGRESS;
  if (scheduler->phase != PASS_NONE) return step_pass(scheduler);
  if (!scheduler->parts.model->is_embedding_ready) return SCHEDULER_WAIT_BYTES;
  // pass_begin may preempt every running request without beginning a pass. That counts as progress,
  // because the requests start again.
  const uint64_t preempted = scheduler->stats.preempted;
  bool has_changed = admission_start(scheduler);
  has_changed = finish_silent(scheduler) || has_changed;
  has_changed = pass_begin(scheduler) || has_changed;
  has_changed = has_changed || scheduler->stats.preempted != preempted;
  // all requests are paused
  return has_changed ? SCHEDULER_PROGRESS : SCHEDULER_IDLE;
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

scheduler_stats scheduler_get_stats(const scheduler *scheduler) {
  scheduler_stats stats = scheduler->stats;
  stats.running = scheduler->running;
  stats.waiting = scheduler->count - scheduler->running;
  for (uint32_t rows = 1; rows <= SPECULATION_ROWS_MAX; rows++) {
    stats.pass_us[rows] = speculation_cost_us(&scheduler->costs, rows);
  }
  if (scheduler->parts.drafter != NULL) {
    stats.draft_failed = drafter_failures(scheduler->parts.drafter);
  }
  if (scheduler->parts.predictor != NULL) {
    stats.draft_failed += predictor_failures(scheduler->parts.predictor);
  }
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    stats.paused += at->is_paused;
  }
  return stats;
}

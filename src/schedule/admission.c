// schedule/admission.c — which requests run, and which are preempted when pages run out.
//
// A request starts when there are pages for the tokens that it has to process. It takes more pages
// one by one while it decodes. When pages run out, idle pages of the prefix cache are evicted first
// (kv/pool.h). Then the last running request in the queue is preempted: it loses its pages and
// waits. When it starts again, its pages are restored from the host (swap.h) or its tokens are
// recomputed. Recomputing produces the same logits (an invariant of the kernels), so the output of
// the request does not change. A session keeps the pages that it had before the request, unless the
// host also stores these pages, or no request could continue otherwise. The first request in the
// queue always continues, so all requests end.
#include <string.h>

#include "base/checked.h"
#include "schedule/scheduler_types.h"

// The number of passes after which a failed allocation is tried again.
enum { NOMEM_PASSES = 16 };

bool admission_has_waited_long(const scheduler *scheduler, const request *request) {
  return scheduler->stats.passes - request->pass_submitted >= SCHEDULER_PASSES_WAITED_MAX;
}

bool admission_precedes(const scheduler *scheduler, const request *a, const request *b) {
  const bool a_long = admission_has_waited_long(scheduler, a);
  const bool b_long = admission_has_waited_long(scheduler, b);
  if (a_long != b_long) return a_long;
  if (!a_long && a->priority != b->priority) return a->priority > b->priority;
  if (a_long && a->pass_submitted != b->pass_submitted) {
    return a->pass_submitted < b->pass_submitted;
  }
  return a->id < b->id;
}

// ---- Preemption ----

// Passes pages to the host if that costs less than recomputing `lost` of the `count` stored tokens.
static void keep_outside(scheduler *scheduler, request *request, kv_seq_id sequence, uint32_t count,
                         uint32_t lost) {
  const bool has_worked = swap_out(&scheduler->swap, &scheduler->swap_costs, request->id, sequence,
                                   request->tokens, count, lost, &request->swapped);
  scheduler->stats.swap_failed += !has_worked;
  scheduler->stats.swapped_out += request->swapped.bytes != 0;
}

// Preempts a request. Without a session, the request loses all its pages. A session keeps the pages
// that it had before the request, unless the host has a record of all pages. Pages that cannot be
// recomputed with the same values are also kept.
static void leave_pages(scheduler *scheduler, request *request) {
  seq_store *store = scheduler->parts.store;
  const kv_seq_id sequence = request->sequence;
  store_remember(store, sequence, request->salt, request->tokens, request->fed);
  if (request->session == NULL) {
    keep_outside(scheduler, request, sequence, request->fed, request->fed);
    store_free(store, sequence);
    return;
  }
  if (session_is_plain(scheduler->parts.sessions, request->session)) {
    const bool stays = store_can_cut_at(store, sequence, request->fed_before);
    const uint32_t lost = stays ? request->fed - request->fed_before : request->fed;
    keep_outside(scheduler, request, sequence, request->fed, lost);
  }
  const bool is_kept = request->swapped.bytes != 0;
  store_truncate(store, sequence, is_kept ? 0 : request->fed_before);
}

static void preempt(scheduler *scheduler, request *request) {
  leave_pages(scheduler, request);
  request->phase = REQUEST_QUEUED;
  request->sequence = KV_SEQ_NONE;
  request->was_preempted = true;
  request->fed = request->jump_unread = 0;
  scheduler->running--;
  request->queue_tokens = request->tokens_count;
  scheduler->queue_tokens += request->queue_tokens;
  scheduler->stats.preempted++;
}

// Whether `a` is preempted before `b`.
static bool is_later(const scheduler *scheduler, const request *a, const request *b) {
  return request_rests(a) != request_rests(b) ? request_rests(a)
                                              : admission_precedes(scheduler, b, a);
}

// Returns the running request that is last in the queue; NULL: none.
static request *last_running(const scheduler *scheduler) {
  request *found = NULL;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING || at->is_cancelled) continue;
    if (found == NULL || is_later(scheduler, at, found)) found = at;
  }
  return found;
}

// Returns the last request in the queue after `first` that waits while its session has pages; NULL:
// none.
static request *last_holding(const scheduler *scheduler, const request *first) {
  const scheduler_parts *parts = &scheduler->parts;
  request *found = NULL;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at == first || at->phase != REQUEST_QUEUED || at->session == NULL) continue;
    if (!is_later(scheduler, at, first)) continue;
    if (store_tokens(parts->store, at->session->sequence) == 0) continue;
    if (!session_is_plain(parts->sessions, at->session)) continue;
    if (found == NULL || is_later(scheduler, at, found)) found = at;
  }
  return found;
}

static bool guest_gives_pages(const scheduler *scheduler) {
  const page_guest *guest = &scheduler->guest;
  return guest->give_pages != NULL && guest->give_pages(guest->context);
}

// Called if `first` cannot continue otherwise: takes the pages of a guest, of sessions without a
// request, or of sessions whose requests wait after `first`. All of these recompute their tokens
// later. Returns false if none of them has pages.
static bool take_from_others(scheduler *scheduler, const request *first) {
  seq_store *store = scheduler->parts.store;
  if (guest_gives_pages(scheduler) || sessions_give_pages(scheduler->parts.sessions)) return true;
  request *last = last_holding(scheduler, first);
  if (last == NULL) return false;
  const session *holding = last->session;
  const uint32_t stored = store_tokens(store, holding->sequence);
  store_remember(store, holding->sequence, adapter_salt(holding->salt, &holding->adapters),
                 last->tokens, stored);
  keep_outside(scheduler, last, holding->sequence, stored, stored);
  scheduler->stats.preempted++;
  store_truncate(store, holding->sequence, 0);
  return true;
}

bool scheduler_gives_room(scheduler *scheduler) {
  if (sessions_give_pages(scheduler->parts.sessions)) return true;
  // the rows of a resting request may be in the current pass
  if (scheduler->phase != PASS_NONE) return false;
  request *last = last_running(scheduler);
  if (last == NULL || !request_rests(last)) return false;
  preempt(scheduler, last);
  return true;
}

bool admission_reserve(scheduler *scheduler, request *request, uint32_t tokens) {
  seq_store *store = scheduler->parts.store;
  for (;;) {
    store_expect(store, scheduler->running);
    if (store_prepare(store, request->sequence, tokens, NULL) == WICK_OK) return true;
    struct request *last = last_running(scheduler);
    if (last == NULL) last = request;
    if (last == request && take_from_others(scheduler, request)) continue;
    preempt(scheduler, last);
    if (last == request) return false;
  }
}

// Records that the request's pages now have the same tokens as its session.
static void follow_session(const scheduler *scheduler, request *request) {
  const session *session = request->session;
  request->fed = store_tokens(scheduler->parts.store, session->sequence);
  memcpy(request->tokens, session->tokens, request->fed * sizeof(int32_t));
}

wick_status admission_drop(scheduler *scheduler, request *request, wick_error *error) {
  for (;;) {
    const wick_status status = session_drop_read(scheduler->parts.sessions, request->session,
                                                 request->drop_first, request->drop_last, error);
    if (status == WICK_OK) follow_session(scheduler, request);
    if (status != WICK_E_PAGES) return status;
    struct request *last = last_running(scheduler);
    if (last != NULL && last != request) {
      preempt(scheduler, last);
    } else if (!take_from_others(scheduler, request)) {
      // if the request is the last in the queue, a different request is the first and continues
      return last != NULL && scheduler->running > 1 ? WICK_E_BUSY : status;
    }
  }
}

// ---- Starting ----

// Returns the number of pages that running requests may still need.
static store_room pages_to_come(const scheduler *scheduler) {
  store_room room = {{0}};
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING) continue;
    store_add_room(scheduler->parts.store, at->sequence, request_tokens_in_the_end(at), &room);
  }
  return room;
}

// Returns the number of pages that running requests may add to the prefix cache.
static uint32_t entries_to_come(const scheduler *scheduler) {
  uint32_t entries = 0;
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase == REQUEST_RUNNING) entries += request_tokens_in_the_end(at) / KERNEL_PAGE_TOKENS;
  }
  return entries;
}

// Grows memory now, so that running requests allocate nothing. A failure is not an error: the
// memory is requested again when it is needed.
static void reserve_ahead(scheduler *scheduler, const request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  const uint32_t end = request_tokens_in_the_end(request);
  const store_room room = pages_to_come(scheduler);
  store_expect(parts->store, scheduler->running);
  store_reserve(parts->store, request->sequence, end, entries_to_come(scheduler));
  store_grow_for(parts->store, &room, NULL);
}

void admission_run(scheduler *scheduler, request *request, kv_seq_id sequence, uint32_t fed) {
  const bool is_first = request->started_us == 0;
  request->sequence = sequence;
  request->fed = fed;
  request->phase = REQUEST_RUNNING;
  scheduler->queue_tokens -= request->queue_tokens;
  request->has_read_prompt = request->has_read_prompt || fed >= request->prompt_count;
  if (is_first) {
    request->cached = fed;
    request->started_us = scheduler->parts.now_us();
    scheduler->stats.tokens_cached += fed;
  }
  scheduler->running++;
  if (scheduler->running > scheduler->stats.running_max) {
    scheduler->stats.running_max = scheduler->running;
  }
  reserve_ahead(scheduler, request);
}

// Returns the number of tokens after the `stored` tokens for which a request needs pages to start.
// If no other request runs, or if it was preempted before, it starts only with all pages that it
// will ever need. Otherwise, it might never end, or be preempted repeatedly.
static uint32_t tokens_to_start(const scheduler *scheduler, const request *request,
                                uint32_t stored) {
  const uint32_t end = request_tokens_in_the_end(request);
  uint32_t needed = request->tokens_count + 1 + scheduler->running * KERNEL_PAGE_TOKENS;
  if (needed > end || scheduler->running == 0 || request->was_preempted) needed = end;
  return needed - stored;
}

// Reserves the pages that the request needs to start, and takes the pages for the tokens that it
// has to process.
static wick_status reserve_start(scheduler *scheduler, const request *request, kv_seq_id sequence,
                                 uint32_t stored, wick_error *error) {
  seq_store *store = scheduler->parts.store;
  const uint32_t needed = tokens_to_start(scheduler, request, stored);
  const uint32_t reading = request->tokens_count - stored;
  store_room room = {{0}};
  store_add_room(store, sequence, stored + needed, &room);
  store_expect(store, scheduler->running + 1);
  const wick_status grown = store_grow_for(store, &room, error);
  if (store_has_window(store)) {
    // pages of a window are taken pass by pass, but the memory for them exists from the start
    if (grown != WICK_OK) return grown;
    const wick_status status = store_reserve_tables(store, sequence, stored + needed, error);
    if (status != WICK_OK) return status;
  }
  const bool is_enough = grown == WICK_OK && store_has_room(store, &room);
  // Otherwise, the exact number is needed: possibly no page has to be copied, and the error
  // contains the number of missing pages.
  return store_prepare(store, sequence, is_enough ? reading : needed, error);
}

// Whether all tokens have been processed. In this case the last token is recomputed, because its
// logits are needed.
static bool is_all_read(const request *request, uint32_t stored) {
  return stored == request->tokens_count && request->tokens_max != 0;
}

// Whether reading the request's record costs less than prefill, and all pages that the request will
// ever need are available.
static bool can_swap_in(const scheduler *scheduler, const request *request) {
  const scheduler_parts *parts = &scheduler->parts;
  if (request->swapped.bytes == 0) return false;
  uint32_t cached = 0;
  if (request->on_logits == NULL) {
    cached = store_cached(parts->store, request->salt, request->tokens, request->tokens_count);
  }
  if (!swap_is_worth(&scheduler->swap, &scheduler->swap_costs, &request->swapped, cached)) {
    return false;
  }
  store_room room = {{0}};
  store_add_room(parts->store, KV_SEQ_NONE, request_tokens_in_the_end(request), &room);
  return store_grow_for(parts->store, &room, NULL) == WICK_OK &&
         store_has_room(parts->store, &room);
}

// Makes the sequence of a record the request's sequence, with pages for the tokens that are
// processed next. This sequence replaces the empty sequence of the request's session.
static wick_status take_up(scheduler *scheduler, request *request, kv_seq_id sequence,
                           uint32_t stored) {
  seq_store *store = scheduler->parts.store;
  session *session = request->session;
  if (stored < request->tokens_count) {
    store_expect(store, scheduler->running + 1);
    const wick_status status = store_prepare(store, sequence, request->tokens_count - stored, NULL);
    if (status != WICK_OK) return status;
  }
  if (session == NULL) return WICK_OK;
  request->fed_before = stored < session->count ? stored : session->count;
  store_free(store, session->sequence);
  session->sequence = sequence;
  return WICK_OK;
}

// Starts the request with the pages that the host has stored. Returns false if it must start as if
// nothing had been stored.
static bool start_swapped(scheduler *scheduler, request *request) {
  seq_store *store = scheduler->parts.store;
  kv_seq_id sequence;
  if (!can_swap_in(scheduler, request)) return false;
  uint32_t stored = request->swapped.tokens;
  wick_status status =
      swap_in(&scheduler->swap, request->id, request->tokens, &request->swapped, &sequence);
  if (status == WICK_OK) {
    if (is_all_read(request, stored)) stored = store_truncate(store, sequence, stored - 1);
    status = take_up(scheduler, request, sequence, stored);
    if (status != WICK_OK) store_free(store, sequence);
  }
  swap_drop(&scheduler->swap, request->id, &request->swapped);
  scheduler->stats.swap_failed += status != WICK_OK;
  if (status != WICK_OK) return false;
  scheduler->stats.swapped_in++;
  admission_run(scheduler, request, sequence, stored);
  return true;
}

// Creates the request's sequence, with tokens from the prefix cache and the pages that it needs to
// start.
static wick_status take_pages(scheduler *scheduler, request *request, wick_error *error) {
  seq_store *store = scheduler->parts.store;
  kv_seq_id sequence;
  wick_status status = WICK_OK;
  if (start_swapped(scheduler, request)) return WICK_OK;
  if (request->session != NULL) {
    sequence = request->session->sequence;
  } else {
    status = store_new(store, &sequence, error);
    if (status != WICK_OK) return status;
  }
  uint32_t stored = store_tokens(store, sequence);
  if (is_all_read(request, stored)) stored = store_truncate(store, sequence, stored - 1);
  request->fed_before = stored;
  if (stored == 0 && request->on_logits == NULL) {
    stored = store_attach(store, sequence, request->salt, request->tokens, request->tokens_count);
  }
  // so that its session can return to this position
  if (request->session != NULL) store_mark(store, sequence);
  status = reserve_start(scheduler, request, sequence, stored, error);
  if (status == WICK_OK) {
    swap_drop(&scheduler->swap, request->id, &request->swapped);
    admission_run(scheduler, request, sequence, stored);
    return WICK_OK;
  }
  if (request->session == NULL) {
    store_free(store, sequence);
  } else if (stored > request->fed_before) {
    store_truncate(store, sequence, request->fed_before);
  }
  return status;
}

// Whether both requests begin with the page that `reading` currently computes, and belong to the
// same tenant. A tenant's requests must not be delayed by the prompts of another tenant.
static bool shares_next_page(const request *reading, const request *request) {
  if (!salt_is_same(reading->salt, request->salt)) return false;
  const uint32_t tokens = (reading->fed / KERNEL_PAGE_TOKENS + 1) * KERNEL_PAGE_TOKENS;
  if (tokens > reading->prompt_count || tokens > request->prompt_count) return false;
  return memcmp(reading->tokens, request->tokens, tokens * sizeof(int32_t)) == 0;
}

// Whether a running request is computing pages that this request could then take from the prefix
// cache.
static bool waits_for_prefix(const scheduler *scheduler, const request *request) {
  if (store_prefix(scheduler->parts.store) == NULL || request->on_logits != NULL) return false;
  if (request->session != NULL && request->session->count != 0) return false;
  for (const struct request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_RUNNING || !request_is_prefill(at)) continue;
    if (at->is_cancelled || request_rests(at)) continue;
    if (shares_next_page(at, request)) return true;
  }
  return false;
}

static request *next_to_start(const scheduler *scheduler) {
  request *best = NULL;
  for (request *at = scheduler->first; at != NULL; at = at->next) {
    if (at->phase != REQUEST_QUEUED || request_rests(at) || at->original != NULL) continue;
    if (best != NULL && !admission_precedes(scheduler, at, best)) continue;
    if (!waits_for_prefix(scheduler, at)) best = at;
  }
  return best;
}

// Preempts a request with lower priority, or a paused request, for a waiting request. If no request
// runs, guests and sessions lose their pages.
static bool make_way(scheduler *scheduler, const request *waiting) {
  if (scheduler->running == 0) return take_from_others(scheduler, waiting);
  request *last = last_running(scheduler);
  if (last == NULL) return false;
  const bool is_lower =
      last->priority < waiting->priority && !admission_has_waited_long(scheduler, last);
  if (!is_lower && !request_rests(last)) return false;
  preempt(scheduler, last);
  return true;
}

static bool is_blocked(const scheduler *scheduler, const request *next) {
  return next->id == scheduler->blocked_id && scheduler->running == scheduler->blocked_running &&
         scheduler->stats.passes < scheduler->blocked_until &&
         store_freed(scheduler->parts.store) == scheduler->blocked_freed;
}

// Records that a request is blocked. After a failed allocation, memory may become available later
// even if no page was freed.
static void remember_blocked(scheduler *scheduler, const request *next, wick_status status) {
  const bool is_memory = status == WICK_E_NOMEM;
  scheduler->blocked_until = is_memory ? scheduler->stats.passes + NOMEM_PASSES : UINT64_MAX;
  scheduler->blocked_id = next->id;
  scheduler->blocked_running = scheduler->running;
  scheduler->blocked_freed = store_freed(scheduler->parts.store);
}

bool admission_start(scheduler *scheduler) {
  bool has_changed = false;
  for (;;) {
    request *next = next_to_start(scheduler);
    if (next == NULL || is_blocked(scheduler, next)) return has_changed;
    wick_error error;
    wick_status status = WICK_E_PAGES;
    if (scheduler->running < scheduler->parts.running_max) {
      status = take_pages(scheduler, next, &error);
    }
    const bool is_short = status == WICK_E_PAGES || status == WICK_E_NOMEM;
    if (is_short && make_way(scheduler, next)) {
      has_changed = true;
      continue;
    }
    if (is_short && scheduler->running != 0) {
      remember_blocked(scheduler, next, status);
      return has_changed;
    }
    if (status != WICK_OK) {
      if (!events_have_room(&scheduler->events, 1)) return has_changed;
      scheduler_finish(scheduler, next, WICK_FINISH_ERROR, &error);
    }
    has_changed = true;
  }
}

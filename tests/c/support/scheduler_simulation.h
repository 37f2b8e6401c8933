// The real scheduler, pages and prefix cache with a Markov chain as the model (chain_model.h).
// Follows requests from their arrival to their last event and checks their output.
// simulation_expect computes the expected output without pages, batches or a scheduler.
#ifndef WICK_TESTS_SCHEDULER_SIMULATION_H
#define WICK_TESTS_SCHEDULER_SIMULATION_H

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "chain_model.h"
#include "check.h"
#include "consistency.h"
#include "platform/platform.h"
#include "reference/prefix_lookup.h"
#include "schedule/scheduler_types.h"
#include "vocabulary_fixture.h"

enum { SIM_CHECKPOINTS = 6 };
enum { SIM_CONTEXT_MAX = 512, SIM_LIVE_MAX = 160, SIM_SESSIONS_MAX = 4 };

// Groups of layers with keys and values: each has one head, and the second has a different shape.
typedef enum simulation_groups {
  SIM_ONE_GROUP,
  SIM_TWO_GROUPS,
  SIM_WITH_WINDOW,  // the second group has a window
  SIM_WINDOWS_ALONE
} simulation_groups;

typedef struct simulation_setup {
  uint32_t pages;  // limit of the pool
  uint32_t batch_tokens, context_tokens, requests_max, running_max;
  uint32_t prefix_entries;  // 0: no prefix cache
  uint32_t draft_pages;     // of the draft model; 0: no draft model
  bool is_recurrent;        // sequences have a state in addition to their pages
  simulation_groups groups;
  const wick_swap_host *swap;  // NULL: preempted requests recompute their tokens
} simulation_setup;

// A request from its arrival to its last event.
typedef struct simulated {
  uint32_t id;  // 0: the slot is free
  uint32_t session;
  bool is_cancelled, is_poisoned, is_paused, is_silent;  // silent: prefill only
  int32_t prompt[SIM_CONTEXT_MAX + 1];                   // including the session's earlier tokens
  uint32_t prompt_count, before_count;                   // before_count: tokens of the session
  uint32_t drop_first, drop_last;                        // dropped from the session; 0, 0: none
  wick_sampling sampling;
  uint32_t tokens_max;  // 0: up to the context limit
  int32_t tokens[SIM_CONTEXT_MAX + 1];
  uint32_t count;  // received tokens
  char stop[3];    // a stop string of up to two letters; empty: none
  char text[SIM_CONTEXT_MAX + 1];
  uint32_t text_bytes;  // shown so far
} simulated;

typedef struct simulated_session {
  uint32_t id;
  bool is_busy;
  int32_t tokens[SIM_CONTEXT_MAX + 1];
  chain_state
      states[SIM_CONTEXT_MAX + 1];  // states of the first `read` tokens when they were evaluated
  uint32_t count, read, drops;
} simulated_session;

typedef struct simulation {
  simulation_setup setup;
  memory_gate memory;
  vocabulary_fixture vocabulary;
  uint32_t layer_missing[2];
  loaded_model model;
  seq_store *store;
  kv_pool *kv;           // of the store
  prefix_cache *prefix;  // of the store; NULL: no prefix cache
  session_table sessions;
  forward_pass forward;
  seq_store *draft_store;
  kv_pool *draft_kv;
  forward_pass draft_forward;
  drafter *drafter;
  scheduler *scheduler;
  bool may_fail;   // requests may end with an error, because memory is restricted
  bool is_slow;    // the host takes no events for a while
  bool is_untold;  // events may be waiting, because the host takes none
  simulated live[SIM_LIVE_MAX];
  uint32_t live_count;
  simulated_session held[SIM_SESSIONS_MAX];
  simulated last;                                        // the last request that ended
  uint64_t ended, tokens_out, aborted, failed, dropped;  // dropped: tokens of sessions
  uint64_t rows_decoded;                                 // of requests after their prefill
  uint64_t events_hash;                                  // of all bytes of all events
  uint64_t steps;
} simulation;

static char sim_letter(int32_t token) { return (char)('=' + token); }

static bool sim_open_vocabulary(vocabulary_fixture *fixture) {
  static char letters[SIM_VOCAB][2];
  fixture_token tokens[SIM_VOCAB] = {
      {"<unk>", TOKEN_UNKNOWN, 0}, {"<s>", TOKEN_CONTROL, 0}, {"</s>", TOKEN_CONTROL, 0}};
  for (int i = SIM_LETTERS; i < SIM_VOCAB; i++) {
    letters[i][0] = sim_letter(i);
    tokens[i] = (fixture_token){letters[i], TOKEN_NORMAL, 0};
  }
  const fixture_vocabulary vocabulary = {
      .model = "llama", .tokens = tokens, .token_count = SIM_VOCAB};
  fixture_open_vocabulary(fixture, &vocabulary);
  return CHECK_EQ_INT(fixture->status, WICK_OK) &&
         CHECK(tokenizer_is_end(fixture->tokenizer, SIM_END));
}

static void sim_check_pass(void *context);

static store_config sim_store_config(const simulation_setup *setup) {
  const kv_shape shape = {1, 1, SIM_DIM, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  store_config config = {.groups = {shape, shape},
                         .group_count = setup->groups == SIM_ONE_GROUP ? 1 : 2,
                         .batch_tokens = setup->batch_tokens,
                         .pages_max = setup->pages,
                         .prefix_entries_max = setup->prefix_entries,
                         .state_bytes = setup->is_recurrent ? sizeof(chain_state) : 0,
                         .checkpoints_max = SIM_CHECKPOINTS};
  config.groups[1].layers = 2;
  if (setup->groups >= SIM_WITH_WINDOW) config.groups[1].window = SIM_WINDOW;
  if (setup->groups == SIM_WINDOWS_ALONE) config.groups[0].window = 2 * SIM_WINDOW;
  return config;
}

static wick_status sim_open_drafter(simulation *sim) {
  const simulation_setup *setup = &sim->setup;
  store_config config = sim_store_config(setup);
  config.pages_max = setup->draft_pages;
  config.prefix_entries_max = 0;
  config.state_bytes = 0;
  sim->draft_forward.group_count = config.group_count;
  wick_status status =
      store_create(&sim->memory, sim->model.kernels, &config, &sim->draft_store, NULL);
  if (status == WICK_OK) sim->draft_kv = store_pages(sim->draft_store);
  sim->draft_forward.kv = sim->draft_kv;
  sim->draft_forward.store = sim->draft_store;
  sim->draft_forward.is_small = true;
  const drafter_parts parts = {.memory = &sim->memory,
                               .model = &sim->model,
                               .store = sim->draft_store,
                               .forward = &sim->draft_forward,
                               .now_us = simulation_now,
                               .batch_tokens = setup->batch_tokens,
                               .context_tokens = setup->context_tokens};
  if (status == WICK_OK) status = drafter_create(&parts, &sim->drafter, NULL);
  return status;
}

static bool simulation_open(simulation *sim, const simulation_setup *setup) {
  memset(sim, 0, sizeof *sim);
  sim->setup = *setup;
  simulation_clock_us = 1;
  memory_init(&sim->memory, 0, platform_alloc, platform_free);
  if (!sim_open_vocabulary(&sim->vocabulary)) return false;
  sim->model = (loaded_model){.memory = &sim->memory,
                              .kernels = kernels_bind(),
                              .config = {.layers = 1, .vocab = SIM_VOCAB},
                              .layer_missing = sim->layer_missing,
                              .is_embedding_ready = true};
  wick_error error = {0};
  const kernel_table *kernels = sim->model.kernels;
  const store_config config = sim_store_config(setup);
  chain_has_near = setup->groups >= SIM_WITH_WINDOW;
  chain_is_short = setup->groups == SIM_WINDOWS_ALONE;
  wick_status status = store_create(&sim->memory, kernels, &config, &sim->store, &error);
  if (status != WICK_OK) return CHECK_EQ_INT(status, WICK_OK);
  sim->kv = store_pages(sim->store);
  sim->prefix = store_prefix(sim->store);
  if (status == WICK_OK && setup->draft_pages != 0) status = sim_open_drafter(sim);
  sessions_init(&sim->sessions, &sim->memory, sim->store);
  sim->forward.kv = sim->kv;
  sim->forward.store = sim->store;
  sim->forward.group_count = config.group_count;
  sim->forward.on_pass = sim_check_pass;
  sim->forward.context = sim;
  const scheduler_parts parts = {.memory = &sim->memory,
                                 .model = &sim->model,
                                 .tokenizer = sim->vocabulary.tokenizer,
                                 .store = sim->store,
                                 .sessions = &sim->sessions,
                                 .forward = &sim->forward,
                                 .drafter = sim->drafter,
                                 .now_us = simulation_now,
                                 .swap = setup->swap,
                                 .batch_tokens = setup->batch_tokens,
                                 .context_tokens = setup->context_tokens,
                                 .requests_max = setup->requests_max,
                                 .running_max = setup->running_max,
                                 .queue_tokens_max = UINT64_MAX};
  if (status == WICK_OK) status = scheduler_create(&parts, &sim->scheduler, &error);
  return CHECK_EQ_INT(status, WICK_OK);
}

static bool sim_check_pages(const simulation *sim) {
  wick_error error = {0};
  const bool is_whole = store_check(sim->store, &error) == WICK_OK;
  return is_whole || check_true(false, error.message, __FILE__, __LINE__);
}

static void sim_close_parts(simulation *sim) {
  if (sim->drafter != NULL) {
    drafter_destroy(sim->drafter);
    CHECK_EQ_INT(kv_pool_check(sim->draft_kv, NULL), WICK_OK);
    CHECK_EQ_UINT(kv_pool_pages_free(sim->draft_kv), kv_pool_pages(sim->draft_kv));
    store_destroy(sim->draft_store);
  }
  store_destroy(sim->store);
  CHECK_EQ_UINT(sim->memory.blocks_now, 0);
  fixture_close(&sim->vocabulary);
}

// Checks that all requests have ended and that nothing leaks.
static void simulation_close(simulation *sim) {
  const scheduler_stats stats = scheduler_get_stats(sim->scheduler);
  CHECK_EQ_UINT(sim->live_count, 0);
  CHECK_EQ_UINT(stats.running + stats.waiting + stats.paused, 0);
  CHECK_EQ_UINT(stats.submitted, sim->ended);
  CHECK_EQ_UINT(stats.stopped + stats.length + stats.aborted + stats.failed, sim->ended);
  CHECK_EQ_UINT(stats.aborted, sim->aborted);
  CHECK_EQ_UINT(stats.failed, sim->failed);
  CHECK_EQ_UINT(stats.tokens_out, sim->tokens_out);
  CHECK_EQ_UINT(stats.passes, sim->forward.passes);
  CHECK_EQ_UINT(stats.rows, sim->forward.rows);
  CHECK(stats.tokens_accepted <= stats.tokens_proposed);
  CHECK_EQ_UINT(sim->scheduler->queue_tokens, 0);
  sim_check_pages(sim);
  sessions_destroy(&sim->sessions);
  if (sim->prefix != NULL) prefix_clear(sim->prefix);
  CHECK_EQ_UINT(kv_pool_pages_free(sim->kv), kv_pool_pages(sim->kv));
  for (uint32_t i = 0; i < sim->forward.group_count; i++) {
    const kv_pool *pool = store_group(sim->store, i);
    CHECK_EQ_UINT(kv_pool_pages_free(pool), kv_pool_pages(pool));
  }
  scheduler_destroy(sim->scheduler);
  sim_close_parts(sim);
}

// ---- the output of a request when it runs alone ----

static simulated_session *sim_session(simulation *sim, uint32_t id) {
  for (uint32_t i = 0; i < SIM_SESSIONS_MAX; i++) {
    if (sim->held[i].id == id) return &sim->held[i];
  }
  return NULL;
}

// Whether the letters of these tokens end with the request's stop string.
static bool sim_is_stopped(const simulated *of, const int32_t *tokens, uint32_t count) {
  const uint32_t length = (uint32_t)strlen(of->stop);
  if (length == 0 || count < length) return false;
  for (uint32_t i = 0; i < length; i++) {
    if (sim_letter(tokens[count - length + i]) != of->stop[i]) return false;
  }
  return true;
}

// Computes the expected tokens and *finish; returns the number of tokens.
static uint32_t simulation_expect(simulation *sim, const simulated *wanted, int32_t *out,
                                  wick_finish *finish) {
  static chain_state states[2 * SIM_CONTEXT_MAX + 2];
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  sampler *sampler = NULL;
  CHECK_EQ_INT(sampler_create(&memory, &wanted->sampling, SIM_VOCAB, &sampler, NULL), WICK_OK);
  for (uint32_t i = 0; i < wanted->prompt_count; i++) sampler_accept(sampler, wanted->prompt[i]);
  uint32_t most = sim->setup.context_tokens - wanted->prompt_count + 1;
  if (wanted->tokens_max != 0 && wanted->tokens_max < most) most = wanted->tokens_max;
  if (wanted->is_silent) most = 0;
  uint32_t count = 0, read = 0;
  if (wanted->session != 0) {
    const simulated_session *held = sim_session(sim, wanted->session);
    read = held->read;
    memcpy(states, held->states, read * sizeof *states);
  }
  *finish = WICK_FINISH_LENGTH;
  while (count < most) {
    for (; read < wanted->prompt_count + count; read++) {
      const uint32_t said = read - wanted->prompt_count;
      chain_read(states, read, read < wanted->prompt_count ? wanted->prompt[read] : out[said]);
    }
    float logits[SIM_VOCAB];
    chain_logits(&states[read - 1], logits);
    sampler_choice choice;
    CHECK_EQ_INT(sampler_choose(sampler, logits, &choice, NULL), WICK_OK);
    if (choice.token == SIM_END) {
      *finish = WICK_FINISH_STOP;
      break;
    }
    out[count++] = choice.token;
    if (sim_is_stopped(wanted, out, count)) {
      *finish = WICK_FINISH_STOP;
      break;
    }
  }
  sampler_destroy(sampler);
  return count;
}

// ---- invariants of every pass ----

// Returns the rows of the pass for prompts whose remaining tokens exceed `share`.
static uint32_t sim_read_of_long(const scheduler *scheduler, uint32_t share) {
  uint32_t read = 0;
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    const bool is_long = request_is_prefill(at) && at->tokens_count - at->fed > share;
    if (is_long) read += at->pass_tokens;
  }
  return read;
}

// Checks that each decoding request takes part. While any are decoding, prompts take at most their
// share of the pass, and long prompts at most 8 tokens, or one per 8 decoded tokens.
static void sim_check_pass(void *context) {
  simulation *sim = context;
  const scheduler *scheduler = sim->scheduler;
  uint32_t decoded = 0, read = 0;
  bool is_alone = false;
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    is_alone = is_alone || (at->phase == REQUEST_RUNNING && at->runs_alone && !at->is_paused);
  }
  for (const request *at = scheduler->first; at != NULL; at = at->next) {
    const bool is_silent = at->tokens_max == 0 && !request_is_prefill(at);
    const bool takes_part = at->phase == REQUEST_RUNNING && !at->is_paused && !is_silent;
    if (!takes_part && at->pass_tokens != 0) CHECK_EQ_UINT(at->pass_tokens, 0);
    if (!takes_part) continue;
    if (request_is_prefill(at)) {
      read += at->pass_tokens;
      continue;
    }
    decoded += at->pass_tokens;
    if (at->pass_tokens == 0 && !is_alone) CHECK(at->pass_tokens != 0);
  }
  sim->rows_decoded += decoded;
  const uint32_t quarter = sim->setup.batch_tokens / 4, share = quarter < 16 ? 16 : quarter;
  if (decoded != 0 && read > share) CHECK(read <= share);
  const uint32_t pieces = decoded < 64 ? 8 : decoded / 8;
  if (decoded != 0) CHECK(sim_read_of_long(scheduler, share) <= pieces);
  if (decoded + read != scheduler->batch_count) {
    CHECK_EQ_UINT(decoded + read, scheduler->batch_count);
  }
}

// ---- requests ----

static simulated *sim_find(simulation *sim, uint32_t id) {
  for (uint32_t i = 0; i < SIM_LIVE_MAX; i++) {
    if (sim->live[i].id == id) return &sim->live[i];
  }
  return NULL;
}

// Records a submitted request, so that its result can be checked.
static void sim_note(simulation *sim, const wick_request *wanted, uint32_t id) {
  const uint32_t completions = wanted->completions == 0 ? 1 : wanted->completions;
  for (uint32_t i = 0; i < completions; i++) {
    simulated *made = sim_find(sim, 0);
    if (!CHECK(made != NULL)) return;
    *made = (simulated){.id = id + i,
                        .session = wanted->session,
                        .is_silent = wanted->prefill_only,
                        .drop_first = wanted->drop_first,
                        .drop_last = wanted->drop_last,
                        .sampling = wanted->sampling,
                        .tokens_max = wanted->max_tokens};
    made->sampling.seed += i;
    if (wanted->stop_count != 0) memcpy(made->stop, wanted->stops[0], wanted->stop_bytes[0]);
    if (wanted->session != 0) {
      simulated_session *held = sim_session(sim, wanted->session);
      memcpy(made->prompt, held->tokens, held->count * sizeof(int32_t));
      made->prompt_count = made->before_count = held->count;
      held->is_busy = true;
    }
    if (wanted->token_count != 0) {
      memcpy(made->prompt + made->prompt_count, wanted->tokens,
             wanted->token_count * sizeof(int32_t));
    }
    made->prompt_count += (uint32_t)wanted->token_count;
    for (uint32_t p = 0; p < made->prompt_count; p++) {
      made->is_poisoned = made->is_poisoned || made->prompt[p] == SIM_POISON;
    }
    sim->live_count++;
  }
}

static wick_status simulation_submit(simulation *sim, const wick_request *wanted, uint32_t *id) {
  wick_error error = {0};
  const wick_status status = scheduler_submit(sim->scheduler, wanted, NULL, NULL, id, &error);
  if (status == WICK_OK) sim_note(sim, wanted, *id);
  return status;
}

// ---- events ----

// Drops tokens from a store that cannot drop them from the middle: the tokens after them are
// recomputed.
static void sim_drop_and_read(simulation *sim, simulated_session *held, uint32_t first,
                              uint32_t last) {
  memmove(held->tokens + first, held->tokens + last, (held->count - last) * sizeof *held->tokens);
  held->count -= last - first;
  if (held->read > first) held->read = first;
  sim->dropped += last - first;
}

// Drops tokens. All tokens were evaluated before, so the kept tokens have attended to the dropped
// tokens.
static void sim_drop(simulation *sim, simulated_session *held, uint32_t first, uint32_t last) {
  if (sim->setup.is_recurrent || sim->setup.groups != SIM_ONE_GROUP) {
    sim_drop_and_read(sim, held, first, last);
    return;
  }
  for (; held->read < held->count; held->read++) {
    chain_read(held->states, held->read, held->tokens[held->read]);
  }
  const uint32_t kept = held->count - last;
  memmove(held->tokens + first, held->tokens + last, kept * sizeof *held->tokens);
  memmove(held->states + first, held->states + last, kept * sizeof *held->states);
  held->count = held->read = first + kept;
  for (uint32_t i = first; i < held->read; i++) held->states[i].position = i;
  sim->dropped += last - first;
}

// Updates the session of an ended request: it contains the prompt and the generated tokens. If a
// request is aborted before any output, the session keeps the prompt only if it was evaluated
// completely; either all tokens are dropped, or none.
static void sim_end_session(simulation *sim, const simulated *gone, bool is_cut) {
  simulated_session *held = sim_session(sim, gone->session);
  session *found = NULL;
  CHECK_EQ_INT(session_find(&sim->sessions, held->id, &found, NULL), WICK_OK);
  held->is_busy = false;
  const bool is_left = is_cut && gone->count == 0 && found->count == gone->before_count;
  if (gone->drop_last != 0) {
    if (!is_cut) sim_drop(sim, held, gone->drop_first, gone->drop_last);
  } else if (!is_left) {
    memcpy(held->tokens, gone->prompt, gone->prompt_count * sizeof(int32_t));
    memcpy(held->tokens + gone->prompt_count, gone->tokens, gone->count * sizeof(int32_t));
    held->count = gone->prompt_count + gone->count;
  }
  if (CHECK_EQ_UINT(found->count, held->count)) {
    CHECK_EQ_MEM(found->tokens, held->tokens, held->count * sizeof(int32_t));
  }
}

// Checks that the text has the letters of the tokens without the stop string, or a prefix of these
// letters if the request failed.
static void sim_check_text(const simulated *gone, bool has_failed) {
  uint32_t letters = gone->count;
  if (sim_is_stopped(gone, gone->tokens, gone->count)) letters -= (uint32_t)strlen(gone->stop);
  if (has_failed ? gone->text_bytes > letters : gone->text_bytes != letters) {
    CHECK_EQ_UINT(gone->text_bytes, letters);
    return;
  }
  for (uint32_t i = 0; i < gone->text_bytes; i++) {
    const char letter = sim_letter(gone->tokens[i]);
    if (gone->text[i] != letter) CHECK_EQ_INT(gone->text[i], letter);
  }
}

static void sim_end(simulation *sim, simulated *gone, const wick_event *event) {
  int32_t expected[SIM_CONTEXT_MAX + 1];
  wick_finish finish;
  const bool is_cut = event->finish == WICK_FINISH_ABORT || event->finish == WICK_FINISH_ERROR;
  CHECK_EQ_UINT(event->tokens_out, gone->count);
  sim->failed += event->finish == WICK_FINISH_ERROR;
  sim->aborted += event->finish == WICK_FINISH_ABORT;
  if (event->finish == WICK_FINISH_ERROR) {
    const bool is_short = event->status == WICK_E_NOMEM || event->status == WICK_E_PAGES;
    CHECK(is_short ? sim->may_fail : gone->is_poisoned && event->status == WICK_E_NONFINITE);
  }
  if (event->finish == WICK_FINISH_ABORT) CHECK(gone->is_cancelled);
  if (gone->is_poisoned) {
    CHECK(is_cut);
    CHECK_EQ_UINT(gone->count, 0);
  } else {
    const uint32_t count = simulation_expect(sim, gone, expected, &finish);
    if (!is_cut) CHECK_EQ_UINT(event->finish, finish);
    const bool fits = is_cut ? CHECK(gone->count <= count) : CHECK_EQ_UINT(gone->count, count);
    if (fits) CHECK_EQ_MEM(gone->tokens, expected, gone->count * sizeof(int32_t));
  }
  sim_check_text(gone, event->finish == WICK_FINISH_ERROR);
  if (gone->session != 0) sim_end_session(sim, gone, is_cut);
  sim->last = *gone;
  gone->id = 0;
  sim->live_count--;
  sim->ended++;
}

static void sim_add_text(simulated *of, const char *text, uint32_t text_bytes) {
  if (!CHECK(text_bytes <= sizeof of->text - of->text_bytes)) return;
  memcpy(of->text + of->text_bytes, text, text_bytes);
  of->text_bytes += text_bytes;
}

static void sim_take_event(simulation *sim, const wick_event *event, const char *text) {
  simulated *of = event->request == 0 ? NULL : sim_find(sim, event->request);
  if (!CHECK(of != NULL)) return;  // the request has already ended or never existed
  const bool is_error = event->finish == WICK_FINISH_ERROR;
  if (!is_error) sim_add_text(of, text, event->text_bytes);
  if (event->kind == WICK_EVENT_DONE) sim_end(sim, of, event);
  if (event->kind != WICK_EVENT_TOKEN) return;
  const bool is_letter = event->token >= SIM_LETTERS && event->token < SIM_VOCAB;
  if (!is_letter || of->count > SIM_CONTEXT_MAX) {
    CHECK(is_letter && of->count <= SIM_CONTEXT_MAX);
    return;
  }
  of->tokens[of->count++] = event->token;
  sim->tokens_out++;
  // text that cannot become a stop string is shown immediately
  if (of->stop[0] == 0 && of->text_bytes != of->count) CHECK_EQ_UINT(of->text_bytes, of->count);
}

static void sim_take_events(simulation *sim) {
  size_t size_bytes;
  const uint8_t *bytes = scheduler_take_events(sim->scheduler, &size_bytes);
  for (size_t at = 0; at < size_bytes;) {
    wick_event event;
    memcpy(&event, bytes + at, sizeof event);
    const char *text = (const char *)bytes + at + sizeof event + event.top_count * 8;
    sim_take_event(sim, &event, text);
    at += event.size_bytes;
  }
  for (size_t at = 0; at < size_bytes; at += 8) {
    uint64_t word;
    memcpy(&word, bytes + at, 8);
    sim->events_hash = hash_mix_u64(sim->events_hash * 31 + word);
  }
}

// Runs one unit of work and takes its events. Returns false if nothing can continue.
static bool simulation_step(simulation *sim) {
  sim->steps++;
  const scheduler_result result = scheduler_step(sim->scheduler);
  if (result == SCHEDULER_WAIT_EVENTS) CHECK(sim->is_untold);
  if (result == SCHEDULER_WAIT_BYTES) CHECK(!model_is_ready(&sim->model));
  sim->is_untold = sim->is_slow;
  if (!sim->is_slow) sim_take_events(sim);
  return result != SCHEDULER_IDLE;
}

// Runs until nothing can continue, at most `steps` steps.
static bool simulation_run(simulation *sim, uint64_t steps) {
  for (uint64_t i = 0; i < steps; i++) {
    if (!simulation_step(sim)) return CHECK_EQ_UINT(sim->live_count, 0);
  }
  return CHECK(sim->live_count == 0);
}

#endif

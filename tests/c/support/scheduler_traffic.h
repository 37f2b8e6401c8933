// Random requests for a simulation (scheduler_simulation.h): several arrival patterns, prompts with
// common prefixes, sessions, and requests that are paused or cancelled.
#ifndef WICK_TESTS_SCHEDULER_TRAFFIC_H
#define WICK_TESTS_SCHEDULER_TRAFFIC_H

#include "base/math.h"
#include "reference/prefix_lookup.h"
#include "scheduler_simulation.h"

static const simulation_setup TIGHT = {.pages = 32,
                                       .batch_tokens = 48,
                                       .context_tokens = 256,
                                       .requests_max = 48,
                                       .running_max = 8,
                                       .prefix_entries = 24};

// ---- traffic ----

typedef enum traffic_pattern { PATTERN_POISSON, PATTERN_BURSTS, PATTERN_CONVOY } traffic_pattern;

typedef struct traffic {
  uint64_t random;
  uint64_t next_us;  // of the next arrival
  uint32_t to_come;
  traffic_pattern pattern;
  uint32_t pattern_left;  // arrivals until the next pattern
  uint32_t refused;
  bool has_poison;
  uint32_t sessions;  // number of sessions; 0: two sessions, which are rarely used
} traffic;

enum {
  GAP_US = 2500,
  SHARED_PREFIXES = 6,
  SESSION_TOKENS_MAX = 60,
  SESSION_REQUEST_TOKENS = 30,
  SESSION_DROPS_MAX = 2,  // each drop may leave a partly filled page that cannot be evicted
  SESSIONS = 2
};

static void next_arrival(traffic *t) {
  if (t->pattern_left == 0) {
    t->pattern = (traffic_pattern)sim_below(&t->random, 3);
    t->pattern_left = t->pattern == PATTERN_CONVOY ? 8 : 100;
  }
  t->pattern_left--;
  const double share = ((double)(random_u64(&t->random) >> 11) + 1.0) / 9007199254740993.0;
  uint64_t gap_us = (uint64_t)(-math_log(share) * (double)GAP_US);
  if (t->pattern == PATTERN_BURSTS) gap_us = t->pattern_left % 20 == 0 ? 20 * GAP_US : 0;
  if (t->pattern == PATTERN_CONVOY) gap_us = t->pattern_left == 0 ? 30 * GAP_US : 0;
  t->next_us = simulation_clock_us + gap_us;
}

static uint32_t add_letters(traffic *t, int32_t *tokens, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tokens[i] = SIM_LETTERS + (int32_t)sim_below(&t->random, SIM_VOCAB - SIM_LETTERS);
  }
  return count;
}

// Makes a prompt; one in three starts with one of a few shared prefixes.
static uint32_t make_prompt(traffic *t, int32_t *tokens) {
  uint32_t count = 0;
  if (sim_below(&t->random, 3) == 0) {
    const uint32_t which = sim_below(&t->random, SHARED_PREFIXES);
    traffic shared = {.random = which};
    count = add_letters(&shared, tokens, 12 + 8 * which);
  }
  count += add_letters(t, tokens + count, 1 + sim_below(&t->random, 20));
  if (t->pattern == PATTERN_CONVOY) {
    count += add_letters(t, tokens + count, 60 + sim_below(&t->random, 80));
  }
  if (t->has_poison && sim_below(&t->random, 40) == 0) {
    tokens[sim_below(&t->random, count)] = SIM_POISON;
  }
  return count;
}

static void choose_sampling(traffic *t, wick_sampling *sampling) {
  sampler_set_defaults(sampling);
  sampling->seed = random_u64(&t->random) >> 8;
  if (sim_below(&t->random, 16) == 0) sampling->logprobs = WICK_LOGPROBS_MAX;
  if (sim_below(&t->random, 2) == 0) return;
  sampling->temperature = 0.9f;
  if (sim_below(&t->random, 3) == 0) sampling->top_k = 8;
  if (sim_below(&t->random, 4) == 0) sampling->repeat_penalty = 1.1f;
}

// Makes a request that only drops tokens and evaluates the session's remaining tokens.
static void choose_drop(traffic *t, simulated_session *held, wick_request *wanted) {
  held->drops++;
  wanted->session = held->id;
  wanted->completions = 1;
  wanted->text = "";
  wanted->tokens = NULL;
  wanted->token_count = 0;
  wanted->prefill_only = true;
  wanted->drop_last = 1 + sim_below(&t->random, held->count);
  wanted->drop_first = sim_below(&t->random, wanted->drop_last);
}

// Continues a session if it is idle, or drops tokens from it; sessions that have become long are
// closed.
static void choose_session(simulation *s, traffic *t, wick_request *wanted) {
  simulated_session *held =
      &s->held[sim_below(&t->random, t->sessions == 0 ? SESSIONS : t->sessions)];
  if (held->is_busy) return;
  const bool has_drop = sim_below(&t->random, 3) == 0 && held->drops < SESSION_DROPS_MAX;
  if (held->count != 0 && has_drop) {
    choose_drop(t, held, wanted);
    return;
  }
  if (held->id != 0 && held->count > SESSION_TOKENS_MAX - SESSION_REQUEST_TOKENS) {
    CHECK_EQ_INT(session_close(&s->sessions, held->id, NULL), WICK_OK);
    *held = (simulated_session){0};
  }
  if (held->id == 0 && session_create(&s->sessions, (cache_salt){0}, &held->id, NULL) != WICK_OK) {
    CHECK(s->may_fail);
    *held = (simulated_session){0};
    return;
  }
  wanted->session = held->id;
  wanted->completions = 1;
  if (wanted->token_count > SESSION_REQUEST_TOKENS / 2) {
    wanted->token_count = SESSION_REQUEST_TOKENS / 2;
  }
  wanted->max_tokens = SESSION_REQUEST_TOKENS / 2;
}

static void arrive(simulation *s, traffic *t) {
  int32_t tokens[SIM_CONTEXT_MAX];
  wick_request wanted = {.tokens = tokens, .token_count = make_prompt(t, tokens)};
  choose_sampling(t, &wanted.sampling);
  wanted.max_tokens = 1 + sim_below(&t->random, sim_below(&t->random, 12) == 0 ? 90 : 12);
  wanted.priority = (int32_t)sim_below(&t->random, 3) - 1;
  wanted.no_speculation = sim_below(&t->random, 4) == 0;
  wanted.completions = sim_below(&t->random, 8) == 0 ? 2 + sim_below(&t->random, 3) : 1;
  if (sim_below(&t->random, 64) == 0) wanted.completions = WICK_COMPLETIONS_MAX;
  if (sim_below(&t->random, t->sessions == 0 ? 12 : 2) == 0) choose_session(s, t, &wanted);
  if (wanted.completions == 1 && sim_below(&t->random, 50) == 0) wanted.prefill_only = true;
  const char letters[] = {sim_letter(SIM_LETTERS + (int32_t)sim_below(&t->random, 61)),
                          sim_letter(SIM_LETTERS + (int32_t)sim_below(&t->random, 61))};
  const char *const stop = letters;
  const size_t stop_bytes = 1 + sim_below(&t->random, 2);
  wanted.stops = &stop;
  wanted.stop_bytes = &stop_bytes;
  wanted.stop_count = sim_below(&t->random, 4) == 0;
  const uint32_t count = wanted.completions;
  const bool is_full = s->scheduler->count + count > s->setup.requests_max;
  uint32_t id;
  const wick_status status = simulation_submit(s, &wanted, &id);
  if (status == WICK_E_NOMEM && s->may_fail) return;
  CHECK_EQ_INT(status, is_full ? WICK_E_FULL : WICK_OK);
  t->refused += is_full;
  if (!is_full) t->to_come -= count < t->to_come ? count : t->to_come;
}

// Submits the arrivals that are due; if nothing runs, advances the clock to the next arrival.
static void let_arrive(simulation *s, traffic *t) {
  if (s->live_count == 0 && simulation_clock_us < t->next_us) simulation_clock_us = t->next_us;
  while (t->to_come != 0 && simulation_clock_us >= t->next_us) {
    if (s->live_count + WICK_COMPLETIONS_MAX > SIM_LIVE_MAX)
      return;  // ended requests are not reported yet
    arrive(s, t);
    next_arrival(t);
  }
}

// ---- random disturbances ----

static simulated *any_live(simulation *s, traffic *t) {
  const uint32_t from = sim_below(&t->random, SIM_LIVE_MAX);
  for (uint32_t i = 0; i < SIM_LIVE_MAX; i++) {
    simulated *at = &s->live[(from + i) % SIM_LIVE_MAX];
    if (at->id != 0) return at;
  }
  return NULL;
}

// Checks the status of a call about a live request. A request that has ended is unknown to the
// scheduler even if its end has not been reported yet.
static void check_known(const simulation *s, wick_status status) {
  CHECK(status == WICK_OK || (s->is_untold && status == WICK_E_ARG));
}

static void set_paused(simulation *s, simulated *request, bool is_paused) {
  request->is_paused = is_paused;
  check_known(s, scheduler_pause(s->scheduler, request->id, is_paused));
}

static void cancel(simulation *s, simulated *request) {
  request->is_cancelled = true;
  check_known(s, scheduler_cancel(s->scheduler, request->id));
}

static void resume_all(simulation *s) {
  for (uint32_t i = 0; i < SIM_LIVE_MAX; i++) {
    if (s->live[i].id != 0) set_paused(s, &s->live[i], false);
  }
}

#endif

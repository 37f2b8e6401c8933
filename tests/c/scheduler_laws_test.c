// The laws of the scheduler over long runs of random traffic: nothing is lost, nobody starves, the
// order is kept, everything can be repeated.
#include "base/math.h"
#include "reference/prefix_lookup.h"
#include "scheduler_simulation.h"

#ifdef __wasm__
enum { LONG_REQUESTS = 10000, SQUEEZED_REQUESTS = 2000 };
#else
enum { LONG_REQUESTS = 100000, SQUEEZED_REQUESTS = 10000 };
#endif

enum { RECURRENT_REQUESTS = 5000 };

static simulation sim;

static const simulation_setup TIGHT = {.pages = 32,
                                       .batch_tokens = 48,
                                       .context_tokens = 256,
                                       .requests_max = 48,
                                       .running_max = 8,
                                       .prefix_entries = 24};

// ---- Traffic ----

typedef enum traffic_pattern { PATTERN_POISSON, PATTERN_BURSTS, PATTERN_CONVOY } traffic_pattern;

typedef struct traffic {
  uint64_t random;
  uint64_t next_us;  // of the next arrival
  uint32_t to_come;
  traffic_pattern pattern;
  uint32_t pattern_left;  // arrivals until another one
  uint32_t refused;
  bool has_poison;
} traffic;

enum {
  GAP_US = 2500,
  SHARED_PREFIXES = 6,
  SESSION_TOKENS_MAX = 60,
  SESSION_REQUEST_TOKENS = 30,
  SESSION_DROPS_MAX = 2,  // each may leave a page that is not full, which nobody can take
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

// A third begins with one of a few texts that others begin with, too.
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

// Nothing is read or said but what the session still has to read.
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

// Goes on with one of the sessions when it is free, or drops from it; one that has grown long is
// given up.
static void choose_session(simulation *s, traffic *t, wick_request *wanted) {
  simulated_session *held = &s->held[sim_below(&t->random, SESSIONS)];
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
  if (sim_below(&t->random, 12) == 0) choose_session(s, t, &wanted);
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

static uint32_t submit_waited(traffic *t, int32_t priority, uint32_t passes_waited) {
  int32_t tokens[32];
  wick_request wanted = {
      .tokens = tokens, .max_tokens = 16, .priority = priority, .passes_waited = passes_waited};
  wanted.token_count = add_letters(t, tokens, 1 + sim_below(&t->random, 30));
  choose_sampling(t, &wanted.sampling);
  uint32_t id = 0;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  return id;
}

static void submit_short(traffic *t, int32_t priority) { submit_waited(t, priority, 0); }

// Arrivals that are due; when nothing runs, the clock goes to the next one.
static void let_arrive(simulation *s, traffic *t) {
  if (s->live_count == 0 && simulation_clock_us < t->next_us) simulation_clock_us = t->next_us;
  while (t->to_come != 0 && simulation_clock_us >= t->next_us) {
    if (s->live_count + WICK_COMPLETIONS_MAX > SIM_LIVE_MAX) return;  // ended, but not told yet
    arrive(s, t);
    next_arrival(t);
  }
}

static void run_traffic(simulation *s, traffic *t) {
  const uint64_t steps_max = 200 * (uint64_t)t->to_come;
  while (t->to_come != 0 && s->steps < steps_max) {
    let_arrive(s, t);
    simulation_step(s);
    if (s->steps % 512 == 0 && !sim_check_pages(s)) return;
  }
  simulation_run(s, steps_max);
}

TEST(a_hundred_thousand_requests_each_end_once_with_their_text) {
  REQUIRE(simulation_open(&sim, &TIGHT));
  traffic t = {.random = 1, .to_come = LONG_REQUESTS};
  run_traffic(&sim, &t);
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK(sim.ended >= LONG_REQUESTS);
  CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
  CHECK_EQ_UINT(stats.refused, t.refused);
  CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
  // what it is about has happened
  CHECK(stats.preempted > LONG_REQUESTS / 100);
  CHECK(stats.refused > 0);
  CHECK(stats.tokens_cached > stats.tokens_prompt / 20);
  CHECK(stats.tokens_accepted > 0);
  CHECK(stats.tokens_accepted < stats.tokens_proposed);
  CHECK(sim.dropped > LONG_REQUESTS / 20);
  CHECK_EQ_UINT(stats.running_max, TIGHT.running_max);
  simulation_close(&sim);
}

// States and pages of several groups: forked, found again, cut, slid, taken away and read again
// together, and where proposals fail. The model compares them at every token.
static void check_requests_of(simulation_groups groups, bool is_recurrent, uint64_t seed) {
  simulation_setup setup = TIGHT;
  setup.is_recurrent = is_recurrent;
  setup.groups = groups;
  REQUIRE(simulation_open(&sim, &setup));
  traffic t = {.random = soak_seed() + seed, .to_come = RECURRENT_REQUESTS};
  run_traffic(&sim, &t);
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK(sim.ended >= RECURRENT_REQUESTS);
  CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
  CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
  CHECK(stats.preempted > RECURRENT_REQUESTS / 100);
  CHECK(stats.tokens_cached > stats.tokens_prompt / 50);
  CHECK(stats.tokens_accepted > 0);
  CHECK(stats.tokens_accepted < stats.tokens_proposed);
  CHECK(sim.dropped > RECURRENT_REQUESTS / 20);
  simulation_close(&sim);
}

TEST(requests_of_a_recurrent_model_each_end_once_with_their_text) {
  check_requests_of(SIM_ONE_GROUP, true, 11);
}
TEST(requests_of_a_model_with_two_groups_each_end_once_with_their_text) {
  check_requests_of(SIM_TWO_GROUPS, false, 12);
}
TEST(requests_of_a_model_with_windows_each_end_once_with_their_text) {
  check_requests_of(SIM_WITH_WINDOW, false, 13);
  check_requests_of(SIM_WITH_WINDOW, true, 14);
  check_requests_of(SIM_WINDOWS_ALONE, false, 15);
  check_requests_of(SIM_WINDOWS_ALONE, true, 16);
}

TEST(the_same_arrivals_bring_the_same_events_at_the_same_times) {
  uint64_t hashes[3], clocks[3];
  for (int run = 0; run < 3; run++) {
    REQUIRE(simulation_open(&sim, &TIGHT));
    traffic t = {.random = run < 2 ? 7 : 8, .to_come = 2000};
    run_traffic(&sim, &t);
    hashes[run] = sim.events_hash;
    clocks[run] = simulation_clock_us;
    simulation_close(&sim);
  }
  CHECK_EQ_UINT(hashes[0], hashes[1]);
  CHECK_EQ_UINT(clocks[0], clocks[1]);
  CHECK(hashes[0] != hashes[2]);
}

// ---- Anything at any moment ----

static simulated *any_live(simulation *s, traffic *t) {
  const uint32_t from = sim_below(&t->random, SIM_LIVE_MAX);
  for (uint32_t i = 0; i < SIM_LIVE_MAX; i++) {
    simulated *at = &s->live[(from + i) % SIM_LIVE_MAX];
    if (at->id != 0) return at;
  }
  return NULL;
}

// One that has ended is not known any more, though its end may not have been told yet.
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

static void disturb(simulation *s, traffic *t, uint32_t *squeezed) {
  simulated *live = any_live(s, t);
  const uint32_t what = sim_below(&t->random, 160);
  if (*squeezed > 0 && --*squeezed == 0) s->memory.budget_bytes = 0;
  if (what < 4 && live != NULL) {
    cancel(s, live);
  } else if (what < 10 && live != NULL) {
    set_paused(s, live, !live->is_paused);
  } else if (what == 10) {
    s->memory.budget_bytes = s->memory.bytes_now + sim_below(&t->random, 8192);
    *squeezed = 1 + sim_below(&t->random, 60);
  } else if (what < 16) {
    s->memory.fail_at_call = s->memory.calls + 1 + sim_below(&t->random, 6);
  } else if (what < 19) {
    s->is_slow = what == 16;
  }
}

// Memory is taken away and given back, allocations fail, requests are cancelled, paused and
// resumed, some make every pass fail, and the host leaves the events lying until there is no room.
static void check_whatever_happens(uint32_t draft_pages, simulation_groups groups,
                                   bool is_recurrent, uint64_t seed) {
  simulation_setup setup = TIGHT;
  setup.is_recurrent = is_recurrent;
  setup.groups = groups;
  setup.draft_pages = draft_pages;
  setup.requests_max = setup.running_max = 24;
  REQUIRE(simulation_open(&sim, &setup));
  sim.may_fail = true;
  traffic t = {.random = seed, .to_come = SQUEEZED_REQUESTS, .has_poison = true};
  uint32_t squeezed = 0, stood = 0;
  while (t.to_come != 0 && sim.steps < 200 * (uint64_t)SQUEEZED_REQUESTS) {
    let_arrive(&sim, &t);
    disturb(&sim, &t, &squeezed);
    const uint64_t passes = sim.forward.passes;
    if (!simulation_step(&sim)) resume_all(&sim);
    stood += sim.is_slow && sim.forward.passes == passes && sim.scheduler->phase == PASS_NONE;
    if (sim.steps % 64 == 0 && !sim_check_pages(&sim)) return;
  }
  CHECK_EQ_UINT(t.to_come, 0);
  sim.memory.budget_bytes = sim.memory.fail_at_call = 0;
  sim.is_slow = false;
  resume_all(&sim);
  CHECK(simulation_run(&sim, 100000));
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK(stood > 0);
  CHECK(stats.aborted > SQUEEZED_REQUESTS / 100);
  CHECK(stats.failed > SQUEEZED_REQUESTS / 100);
  CHECK(stats.preempted > SQUEEZED_REQUESTS / 100);
  CHECK(stats.stopped + stats.length > SQUEEZED_REQUESTS / 2);
  CHECK(sim.dropped > SQUEEZED_REQUESTS / 100);
  simulation_close(&sim);
}

static void check_whatever_seeds(uint32_t draft_pages, simulation_groups groups, bool is_recurrent,
                                 uint64_t seed) {
  for (uint64_t i = 0; i < soak_count(20); i++) {
    check_whatever_happens(draft_pages, groups, is_recurrent, soak_seed() + seed + 2 * i);
  }
}

TEST(whatever_happens_nothing_is_lost) { check_whatever_seeds(0, SIM_ONE_GROUP, false, 3); }
// The smaller model's pages hold two texts, not all four that it follows.
TEST(whatever_happens_nothing_is_lost_with_a_draft_model) {
  check_whatever_seeds(20, SIM_ONE_GROUP, false, 4);
}
TEST(whatever_happens_nothing_is_lost_of_a_recurrent_model) {
  check_whatever_seeds(0, SIM_ONE_GROUP, true, 5);
}
TEST(whatever_happens_nothing_is_lost_of_two_groups) {
  check_whatever_seeds(0, SIM_TWO_GROUPS, false, 6);
}
TEST(whatever_happens_nothing_is_lost_of_windows) {
  check_whatever_seeds(0, SIM_WITH_WINDOW, false, 7);
  check_whatever_seeds(0, SIM_WINDOWS_ALONE, true, 8);
}
TEST(whatever_happens_nothing_is_lost_of_windows_with_a_draft_model) {
  check_whatever_seeds(20, SIM_WITH_WINDOW, false, 9);
}

// ---- Ends in the middle ----

static void run_into_the_middle(uint64_t seed, uint64_t steps) {
  traffic t = {.random = seed, .to_come = 1000};
  for (uint64_t i = 0; i < steps; i++) {
    let_arrive(&sim, &t);
    simulation_step(&sim);
  }
}

// The model fails to load: each request is told, though the host has left no room for it before.
TEST(all_can_be_ended_with_an_error) {
  for (uint64_t i = 0; i < soak_count(600); i++) {
    const uint64_t seed = soak_seed() + i;
    REQUIRE(simulation_open(&sim, &TIGHT));
    sim.may_fail = sim.is_slow = true;
    run_into_the_middle(seed, 200 + 10 * (i % 30));
    wick_error error = {.status = WICK_E_NOMEM, .offset_bytes = WICK_NO_OFFSET};
    memset(error.message, 'x', sizeof error.message - 1);
    traffic more = {.random = seed};
    while (sim.scheduler->count < 40) submit_short(&more, 0);
    const uint32_t left = sim.scheduler->count;
    for (int call = 0; call < 100 && sim.scheduler->count != 0; call++) {
      scheduler_fail_all(sim.scheduler, &error);
      sim_take_events(&sim);
    }
    CHECK_EQ_UINT(sim.failed, left);
    simulation_close(&sim);
  }
}

// The scheduler goes while requests run and wait: everything is given back.
TEST(a_scheduler_that_goes_keeps_nothing) {
  for (uint64_t i = 0; i < soak_count(600); i++) {
    REQUIRE(simulation_open(&sim, &TIGHT));
    run_into_the_middle(soak_seed() + i, 100 + i % 30);
    CHECK(sim.live_count > 0);
    scheduler_destroy(sim.scheduler);
    sessions_destroy(&sim.sessions);
    prefix_clear(sim.prefix);
    CHECK_EQ_UINT(kv_pool_pages_free(sim.kv), kv_pool_pages(sim.kv));
    sim_close_parts(&sim);
  }
}

// ---- A model that is still coming ----

// Layers come while requests wait for them; one is cancelled at each stage.
TEST(requests_wait_for_a_model_that_is_coming) {
  REQUIRE(simulation_open(&sim, &TIGHT));
  traffic t = {.random = 12};
  sim.model.is_embedding_ready = false;
  sim.layer_missing[0] = sim.layer_missing[1] = 1;
  for (int i = 0; i < 12; i++) submit_short(&t, 0);
  for (int stage = 0; stage < 3; stage++) {
    for (int i = 0; i < 5; i++) simulation_step(&sim);
    CHECK_EQ_INT(scheduler_step(sim.scheduler), SCHEDULER_WAIT_BYTES);
    cancel(&sim, &sim.live[3 * stage + 1]);
    for (int i = 0; i < 5; i++) simulation_step(&sim);
    CHECK_EQ_UINT(sim.tokens_out, 0);
    if (stage == 0) sim.model.is_embedding_ready = true;
    if (stage == 1) sim.layer_missing[0] = 0;
    if (stage == 2) sim.layer_missing[1] = 0;
  }
  CHECK(simulation_run(&sim, 10000));
  CHECK_EQ_UINT(sim.ended, 12);
  CHECK(sim.aborted >= 2);  // the last one may end in the pass that it is in
  simulation_close(&sim);
}

// ---- Order ----

static const simulation_setup ORDERED = {
    .pages = 200, .batch_tokens = 32, .context_tokens = 256, .requests_max = 48, .running_max = 4};

static bool has_waited_long(const request *request) {
  return sim.forward.passes - request->pass_submitted >= SCHEDULER_PASSES_WAITED_MAX;
}

// Nobody starts before one that came earlier and has its priority, or before one that waited and
// has a higher one.
static void check_order(void *context) {
  sim_check_pass(context);
  for (const request *a = sim.scheduler->first; a != NULL; a = a->next) {
    if (a->started_us != 0) continue;
    for (const request *b = sim.scheduler->first; b != NULL; b = b->next) {
      if (b->started_us == 0 || has_waited_long(b)) continue;
      const bool is_behind = b->id > a->id && b->priority == a->priority;
      const bool is_lower = b->priority < a->priority && a->submitted_us < b->started_us;
      if (is_behind || is_lower) CHECK(!is_behind && !is_lower);
    }
  }
}

TEST(requests_start_in_the_order_of_priority_and_arrival) {
  REQUIRE(simulation_open(&sim, &ORDERED));
  sim.forward.on_pass = check_order;
  traffic t = {.random = 5, .to_come = 2000};
  while (t.to_come != 0 && sim.steps < 500000) {
    while (t.to_come != 0 && sim.live_count < 40 && sim_below(&t.random, 12) == 0) {
      submit_short(&t, (int32_t)sim_below(&t.random, 3));
      t.to_come--;
    }
    simulation_step(&sim);
  }
  CHECK(simulation_run(&sim, 100000));
  CHECK_EQ_UINT(sim.ended, 2000);
  simulation_close(&sim);
}

static const request *find_request(uint32_t id) {
  const request *at = sim.scheduler->first;
  while (at != NULL && at->id != id) at = at->next;
  return at;
}

// Twenty of a high priority wait at any time. Those that run when its turn comes take at most 16
// passes each to write and a few to read.
static void check_bound(const simulation_setup *setup) {
  enum { DRAIN_PASSES = 64 };
  REQUIRE(simulation_open(&sim, setup));
  traffic t = {.random = 9};
  for (int i = 0; i < 20; i++) submit_short(&t, 50);
  const uint32_t low = sim.scheduler->id_next;
  const uint64_t came_at = sim.forward.passes;
  submit_short(&t, -50);
  const request *waiting = find_request(low);
  while (waiting != NULL && waiting->started_us == 0 && sim.forward.passes < 2000) {
    while (sim.live_count < 24) submit_short(&t, 50);
    simulation_step(&sim);
    waiting = find_request(low);
  }
  const uint64_t passes = sim.forward.passes - came_at;
  CHECK(passes >= SCHEDULER_PASSES_WAITED_MAX);  // those before it did come first
  CHECK(passes <= SCHEDULER_PASSES_WAITED_MAX + DRAIN_PASSES);
  while (find_request(low) != NULL && sim.forward.passes < 2000) {
    while (sim.live_count < 24) submit_short(&t, 50);
    simulation_step(&sim);
  }
  CHECK(sim.forward.passes - came_at <= SCHEDULER_PASSES_WAITED_MAX + 2 * DRAIN_PASSES);
  CHECK(simulation_run(&sim, 100000));
  simulation_close(&sim);
}

TEST(nobody_waits_longer_than_the_bound) {
  check_bound(&ORDERED);
  simulation_setup tight = ORDERED;
  tight.pages = 8;
  check_bound(&tight);
}

static bool has_started(uint32_t id) {
  const request *found = find_request(id);
  return found != NULL && found->started_us != 0;
}

// Of four that may run, two have waited for long in a queue of the host.
TEST(what_was_waited_for_in_a_queue_of_the_host_counts) {
  REQUIRE(simulation_open(&sim, &ORDERED));
  traffic t = {.random = 13};
  while (sim.forward.passes < SCHEDULER_PASSES_WAITED_MAX + 100) {
    while (sim.live_count < 8) submit_short(&t, 0);
    simulation_step(&sim);
  }
  CHECK(simulation_run(&sim, 100000));
  const uint32_t first = sim.scheduler->id_next;
  for (int i = 0; i < 20; i++) submit_short(&t, 50);
  const uint32_t less = submit_waited(&t, -50, SCHEDULER_PASSES_WAITED_MAX - 100);
  const uint32_t longer = submit_waited(&t, -50, SCHEDULER_PASSES_WAITED_MAX);
  const uint32_t longest = submit_waited(&t, -50, SCHEDULER_PASSES_WAITED_MAX + 50);
  CHECK(admission_precedes(sim.scheduler, find_request(longest), find_request(longer)));
  CHECK(admission_precedes(sim.scheduler, find_request(longer), find_request(first)));
  CHECK(admission_precedes(sim.scheduler, find_request(first), find_request(less)));
  while (sim.scheduler->running < 4 && sim.steps < 100000) simulation_step(&sim);
  CHECK(has_started(longest) && has_started(longer) && !has_started(less));
  CHECK(has_started(first) && has_started(first + 1) && !has_started(first + 2));
  CHECK(simulation_run(&sim, 100000));
  simulation_close(&sim);
}

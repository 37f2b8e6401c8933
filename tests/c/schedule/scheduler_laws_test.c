// Checks the scheduler's invariants over long runs of random traffic: nothing is lost, no request
// starves, the order is preserved, and runs are reproducible.
#include "scheduler_traffic.h"

#ifdef __wasm__
enum { LONG_REQUESTS = 10000, SQUEEZED_REQUESTS = 2000 };
#else
enum { LONG_REQUESTS = 100000, SQUEEZED_REQUESTS = 10000 };
#endif

enum { RECURRENT_REQUESTS = 5000 };

static uint32_t long_requests(void) { return LONG_REQUESTS / level_step(10); }
static uint32_t squeezed_requests(void) { return SQUEEZED_REQUESTS / level_step(5); }
static uint32_t recurrent_requests(void) { return RECURRENT_REQUESTS / level_step(2); }

static simulation sim;

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

static void run_traffic(simulation *s, traffic *t) {
  const uint64_t steps_max = 200 * (uint64_t)t->to_come;
  while (t->to_come != 0 && s->steps < steps_max) {
    let_arrive(s, t);
    simulation_step(s);
    if (s->steps % 512 == 0 && !sim_check_pages(s)) return;
  }
  simulation_run(s, steps_max);
}

TEST(each_of_a_hundred_thousand_requests_ends_once_with_the_expected_output) {
  REQUIRE(simulation_open(&sim, &TIGHT));
  traffic t = {.random = 1, .to_come = long_requests()};
  run_traffic(&sim, &t);
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK(sim.ended >= long_requests());
  CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
  CHECK_EQ_UINT(stats.refused, t.refused);
  CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
  // the events to be tested have occurred
  CHECK(stats.preempted > long_requests() / 100);
  CHECK(stats.refused > 0);
  CHECK(stats.tokens_cached > stats.tokens_prompt / 20);
  CHECK(stats.tokens_accepted > 0);
  CHECK(stats.tokens_accepted < stats.tokens_proposed);
  CHECK(sim.dropped > long_requests() / 20);
  CHECK_EQ_UINT(stats.running_max, TIGHT.running_max);
  simulation_close(&sim);
}

// States and pages of several groups are forked, found in the cache, truncated, shifted, evicted
// and recomputed together, also after rejected proposals. The model compares them at every token.
static void check_requests_of(simulation_groups groups, bool is_recurrent, uint64_t seed) {
  simulation_setup setup = TIGHT;
  setup.is_recurrent = is_recurrent;
  setup.groups = groups;
  REQUIRE(simulation_open(&sim, &setup));
  traffic t = {.random = soak_seed() + seed, .to_come = recurrent_requests()};
  run_traffic(&sim, &t);
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK(sim.ended >= recurrent_requests());
  CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
  CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
  CHECK(stats.preempted > recurrent_requests() / 100);
  CHECK(stats.tokens_cached > stats.tokens_prompt / 50);
  CHECK(stats.tokens_accepted > 0);
  CHECK(stats.tokens_accepted < stats.tokens_proposed);
  CHECK(sim.dropped > recurrent_requests() / 20);
  simulation_close(&sim);
}

TEST(each_request_of_a_recurrent_model_ends_once_with_the_expected_output) {
  check_requests_of(SIM_ONE_GROUP, true, 11);
}
TEST(each_request_of_a_model_with_two_groups_ends_once_with_the_expected_output) {
  check_requests_of(SIM_TWO_GROUPS, false, 12);
}
TEST(each_request_of_a_model_with_windows_ends_once_with_the_expected_output) {
  check_requests_of(SIM_WITH_WINDOW, false, 13);
  check_requests_of(SIM_WITH_WINDOW, true, 14);
  check_requests_of(SIM_WINDOWS_ALONE, false, 15);
  check_requests_of(SIM_WINDOWS_ALONE, true, 16);
}

TEST(equal_arrivals_give_equal_events_at_equal_times) {
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

// ---- random disturbances ----

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

// The memory budget shrinks and recovers, allocations fail, requests are cancelled, paused and
// resumed, some make every pass fail, and the host does not take events until the queue is full.
static void check_whatever_happens(uint32_t draft_pages, simulation_groups groups,
                                   bool is_recurrent, uint64_t seed) {
  simulation_setup setup = TIGHT;
  setup.is_recurrent = is_recurrent;
  setup.groups = groups;
  setup.draft_pages = draft_pages;
  setup.requests_max = setup.running_max = 24;
  REQUIRE(simulation_open(&sim, &setup));
  sim.may_fail = true;
  traffic t = {.random = seed, .to_come = squeezed_requests(), .has_poison = true};
  uint32_t squeezed = 0, stood = 0;
  while (t.to_come != 0 && sim.steps < 200 * (uint64_t)squeezed_requests()) {
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
  CHECK(stats.aborted > squeezed_requests() / 100);
  CHECK(stats.failed > squeezed_requests() / 100);
  CHECK(stats.preempted > squeezed_requests() / 100);
  CHECK(stats.stopped + stats.length > squeezed_requests() / 2);
  CHECK(sim.dropped > squeezed_requests() / 100);
  simulation_close(&sim);
}

static void check_whatever_seeds(uint32_t draft_pages, simulation_groups groups, bool is_recurrent,
                                 uint64_t seed) {
  for (uint64_t i = 0; i < soak_count(20); i++) {
    check_whatever_happens(draft_pages, groups, is_recurrent, soak_seed() + seed + 2 * i);
  }
}

TEST(no_request_is_lost_under_disturbances) { check_whatever_seeds(0, SIM_ONE_GROUP, false, 3); }
// The draft model's pages are sufficient for two requests, not for all four that it follows.
TEST(no_request_is_lost_with_a_draft_model) { check_whatever_seeds(20, SIM_ONE_GROUP, false, 4); }
TEST(no_request_is_lost_with_a_recurrent_model) { check_whatever_seeds(0, SIM_ONE_GROUP, true, 5); }
TEST(no_request_is_lost_with_two_groups) { check_whatever_seeds(0, SIM_TWO_GROUPS, false, 6); }
TEST(no_request_is_lost_with_windows) {
  check_whatever_seeds(0, SIM_WITH_WINDOW, false, 7);
  check_whatever_seeds(0, SIM_WINDOWS_ALONE, true, 8);
}
TEST(no_request_is_lost_with_windows_and_a_draft_model) {
  check_whatever_seeds(20, SIM_WITH_WINDOW, false, 9);
}

// ---- ending all requests early ----

static void run_into_the_middle(uint64_t seed, uint64_t steps) {
  traffic t = {.random = seed, .to_come = 1000};
  for (uint64_t i = 0; i < steps; i++) {
    let_arrive(&sim, &t);
    simulation_step(&sim);
  }
}

// If the model fails to load, each request gets an error event even though the event queue was full
// before.
TEST(all_requests_can_be_failed_with_an_error) {
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

// Destroys the scheduler while requests run and wait; everything must be freed.
TEST(destroying_the_scheduler_frees_everything) {
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

// ---- a model that is still loading ----

// Layers arrive while requests wait for them; one request is cancelled at each stage.
TEST(requests_wait_for_a_model_that_is_loading) {
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
  CHECK(sim.aborted >= 2);  // the last one may end in its current pass
  simulation_close(&sim);
}

// ---- order ----

static const simulation_setup ORDERED = {
    .pages = 200, .batch_tokens = 32, .context_tokens = 256, .requests_max = 48, .running_max = 4};

static bool has_waited_long(const request *request) {
  return sim.forward.passes - request->pass_submitted >= SCHEDULER_PASSES_WAITED_MAX;
}

// No request starts before an earlier one of the same priority, or before a waiting one of higher
// priority.
static void check_order(void *context) {
  sim_check_pass(context);
  for (const request *a = sim.scheduler->first; a != NULL; a = a->next) {
    if (a->started_us != 0) continue;
    for (const request *b = sim.scheduler->first; b != NULL; b = b->next) {
      if (b->started_us == 0 || has_waited_long(b)) continue;
      const bool is_after = b->id > a->id && b->priority == a->priority;
      const bool is_lower = b->priority < a->priority && a->submitted_us < b->started_us;
      if (is_after || is_lower) CHECK(!is_after && !is_lower);
    }
  }
}

TEST(requests_start_by_priority_and_then_by_arrival) {
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

// Twenty requests of high priority wait at any time. When the request of low priority may start,
// the running requests need at most 16 decoding passes and a few prefill passes each.
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
  CHECK(passes >= SCHEDULER_PASSES_WAITED_MAX);  // earlier requests did come first
  CHECK(passes <= SCHEDULER_PASSES_WAITED_MAX + DRAIN_PASSES);
  while (find_request(low) != NULL && sim.forward.passes < 2000) {
    while (sim.live_count < 24) submit_short(&t, 50);
    simulation_step(&sim);
  }
  CHECK(sim.forward.passes - came_at <= SCHEDULER_PASSES_WAITED_MAX + 2 * DRAIN_PASSES);
  CHECK(simulation_run(&sim, 100000));
  simulation_close(&sim);
}

TEST(no_request_waits_longer_than_the_bound) {
  check_bound(&ORDERED);
  simulation_setup tight = ORDERED;
  tight.pages = 8;
  check_bound(&tight);
}

static bool has_started(uint32_t id) {
  const request *found = find_request(id);
  return found != NULL && found->started_us != 0;
}

// Four requests may run; two of them have already waited long in the host's queue.
TEST(time_waited_in_the_hosts_queue_counts) {
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

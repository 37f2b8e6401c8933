// The scheduler: preempted requests resume with the same output, proposals only change the time,
// and completions share a prompt. scheduler_laws_test.c checks the invariants over long runs.
#include "scheduler_simulation.h"

static simulation sim;

static const simulation_setup ROOMY = {
    .pages = 200, .batch_tokens = 32, .context_tokens = 400, .requests_max = 64, .running_max = 16};

// Returns the first letter of a text of this style.
static int32_t sim_letter_of(chain_style style, uint32_t which) {
  return SIM_LETTERS + (int32_t)(which % 20 * CHAIN_STYLES + style);
}

// Makes a prompt of `count` tokens whose continuation has this style; `which` selects one of many.
static void fill_prompt(int32_t *tokens, uint32_t count, chain_style style, uint32_t which) {
  uint64_t random = which + 1;
  tokens[0] = sim_letter_of(style, which);
  for (uint32_t i = 1; i < count; i++) {
    tokens[i] = SIM_LETTERS + (int32_t)sim_below(&random, SIM_VOCAB - SIM_LETTERS);
  }
}

static wick_request make_request(const int32_t *tokens, uint32_t count, uint32_t max_tokens) {
  wick_request wanted = {.tokens = tokens, .token_count = count, .max_tokens = max_tokens};
  sampler_set_defaults(&wanted.sampling);
  return wanted;
}

static void sample(wick_request *wanted, uint64_t seed) {
  wanted->sampling.temperature = 0.9f;
  wanted->sampling.seed = seed;
}

// ---- preemption ----

// Each request finally needs 4 pages, and there are 16.
TEST(sixteen_requests_share_the_pages_of_four) {
  for (int round = 0; round < 8; round++) {
    simulation_setup setup = ROOMY;
    setup.pages = 16;
    setup.prefix_entries = round % 2 == 0 ? 0 : 32;
    REQUIRE(simulation_open(&sim, &setup));
    int32_t prompt[16];
    for (uint32_t i = 0; i < 16; i++) {
      fill_prompt(prompt, 16, CHAIN_NEW, i + 16 * (uint32_t)round);
      wick_request wanted = make_request(prompt, 16, 48);
      if (i % 3 == 1) sample(&wanted, i);
      wanted.priority = round < 4 ? 0 : (int32_t)(i % 3);
      uint32_t id;
      CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
    }
    CHECK(simulation_run(&sim, 100000));
    const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
    CHECK_EQ_UINT(sim.ended, 16);
    CHECK(stats.preempted > 0);
    CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
    CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
    simulation_close(&sim);
  }
}

// A request that cannot start for lack of memory is not retried in every pass, but starts when
// there is enough.
TEST(failed_allocations_are_retried_later) {
  REQUIRE(simulation_open(&sim, &ROOMY));
  sim.may_fail = true;
  int32_t prompt[40];
  fill_prompt(prompt, 40, CHAIN_NEW, 3);
  wick_request wanted = make_request(prompt, 40, 90);
  wanted.no_speculation = true;
  uint32_t id;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  while (sim.forward.passes < 2) simulation_step(&sim);
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  sim.memory.budget_bytes = sim.memory.bytes_now;
  const uint64_t calls = sim.memory.calls;
  while (sim.forward.passes < 2 + 40) simulation_step(&sim);
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).running, 1);
  CHECK(sim.memory.calls > calls);
  CHECK(sim.memory.calls <= calls + 12);
  sim.memory.budget_bytes = 0;
  while (sim.forward.passes < 2 + 40 + 18) simulation_step(&sim);
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).waiting, 0);
  CHECK(simulation_run(&sim, 10000));
  CHECK_EQ_UINT(sim.failed, 0);
  simulation_close(&sim);
}

// Errors at the start are also events: if the event queue is full, the other requests wait.
TEST(errors_wait_for_space_in_the_event_queue) {
  enum { REQUESTS = 600 };
  simulation_setup setup = ROOMY;
  setup.requests_max = REQUESTS;
  setup.pages = 2;
  REQUIRE(simulation_open(&sim, &setup));
  int32_t prompt[40];
  fill_prompt(prompt, 40, CHAIN_NEW, 3);
  const wick_request wanted = make_request(prompt, 40, 9);
  for (uint32_t i = 0; i < REQUESTS; i++) {
    uint32_t id;
    CHECK_EQ_INT(scheduler_submit(sim.scheduler, &wanted, NULL, NULL, &id, NULL), WICK_OK);
    CHECK_EQ_UINT(id, i + 1);
  }
  uint32_t ended = 0, rounds = 0;
  for (; sim.scheduler->count != 0 && rounds < REQUESTS; rounds++) {
    while (scheduler_step(sim.scheduler) == SCHEDULER_PROGRESS) continue;
    size_t size_bytes;
    const uint8_t *events = scheduler_take_events(sim.scheduler, &size_bytes);
    const wick_event *event = NULL;
    while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
      CHECK_EQ_UINT(event->kind, WICK_EVENT_DONE);
      CHECK_EQ_UINT(event->request, ++ended);
      CHECK_EQ_INT(event->status, WICK_E_PAGES);
    }
  }
  CHECK_EQ_UINT(ended, REQUESTS);
  CHECK(rounds > 1);
  sim.ended = sim.failed = REQUESTS;
  simulation_close(&sim);
}

// ---- speculation ----

typedef struct run_result {
  simulated request;
  scheduler_stats stats;
  uint64_t us, rows, draft_rows;  // rows in all passes
} run_result;

static bool run_alone(const simulation_setup *setup, const wick_request *wanted,
                      run_result *result) {
  uint32_t id;
  if (!simulation_open(&sim, setup)) return false;
  CHECK_EQ_INT(simulation_submit(&sim, wanted, &id), WICK_OK);
  const uint64_t start_us = simulation_clock_us;
  const bool has_ended = simulation_run(&sim, 100000);
  result->us = simulation_clock_us - start_us;
  result->rows = sim.forward.rows;
  result->draft_rows = sim.draft_forward.rows;
  result->request = sim.last;
  result->stats = scheduler_get_stats(sim.scheduler);
  simulation_close(&sim);
  return has_ended;
}

// Runs the same request with and without proposals.
static bool run_both(chain_style style, uint32_t which, bool is_sampled, run_result *with,
                     run_result *without) {
  int32_t prompt[24];
  fill_prompt(prompt, 24, style, which);
  wick_request wanted = make_request(prompt, 24, 0);
  if (is_sampled) sample(&wanted, 1000 + which);
  const bool is_run = run_alone(&ROOMY, &wanted, with);
  wanted.no_speculation = true;
  return is_run && run_alone(&ROOMY, &wanted, without);
}

static void check_speculation(bool is_sampled) {
  static run_result with, without;
  uint64_t proposed = 0, accepted = 0, us_with = 0, us_without = 0;
  for (uint32_t which = 0; which < 60; which++) {
    REQUIRE(run_both((chain_style)(which % CHAIN_STYLES), which, is_sampled, &with, &without));
    CHECK_EQ_UINT(with.request.count, without.request.count);
    CHECK_EQ_MEM(with.request.tokens, without.request.tokens,
                 without.request.count * sizeof(int32_t));
    CHECK_EQ_UINT(without.stats.tokens_proposed, 0);
    CHECK_EQ_UINT(with.stats.tokens_out, without.stats.tokens_out);
    CHECK_EQ_UINT(with.rows,
                  without.rows + with.stats.tokens_proposed - with.stats.tokens_accepted);
    CHECK(with.stats.passes <= without.stats.passes);
    if (which % CHAIN_STYLES != CHAIN_REPEATS) continue;
    proposed += with.stats.tokens_proposed;
    accepted += with.stats.tokens_accepted;
    us_with += with.us;
    us_without += without.us;
  }
  CHECK(accepted > 0);
  CHECK(accepted < proposed);  // some were wrong, without any effect
  CHECK(us_with < us_without);
}

TEST(proposals_do_not_change_greedy_output) { check_speculation(false); }
TEST(proposals_do_not_change_sampled_output) { check_speculation(true); }

// A draft model makes proposals where the text does not repeat: the output is the same, in less
// time.
TEST(a_draft_model_does_not_change_the_output) {
  static run_result with, without;
  uint64_t proposed = 0, accepted = 0, us_with = 0, us_without = 0;
  simulation_setup setup = ROOMY;
  setup.draft_pages = 30;
  for (uint32_t which = 0; which < 60; which++) {
    int32_t prompt[70];
    fill_prompt(prompt, 10 + which, CHAIN_NEW, which);
    wick_request wanted = make_request(prompt, 10 + which, 0);
    if (which % 2 == 0) sample(&wanted, which);
    REQUIRE(run_alone(&setup, &wanted, &with));
    wanted.no_speculation = true;
    REQUIRE(run_alone(&setup, &wanted, &without));
    CHECK_EQ_UINT(with.request.count, without.request.count);
    CHECK_EQ_MEM(with.request.tokens, without.request.tokens,
                 without.request.count * sizeof(int32_t));
    CHECK_EQ_UINT(without.stats.tokens_proposed, 0);
    CHECK_EQ_UINT(with.stats.draft_failed, 0);
    // each token and each rejected proposal is evaluated once; the draft model evaluates no more
    CHECK_EQ_UINT(with.rows, 10 + which + with.stats.tokens_out + with.stats.tokens_proposed -
                                 with.stats.tokens_accepted);
    CHECK(with.draft_rows <= with.rows && without.draft_rows == 0);
    if (which % 2 == 0) continue;
    proposed += with.stats.tokens_proposed;
    accepted += with.stats.tokens_accepted;
    us_with += with.us;
    us_without += without.us;
  }
  CHECK(2 * accepted > proposed);  // for a single greedy request, three in four are right
  CHECK(us_with < us_without);
}

// Passes of the draft model are timed, because proposals are only used if they pay off. Within the
// first page of context, each pass takes the same time.
TEST(the_time_of_a_proposal_is_the_time_of_a_draft_model_pass) {
  int32_t prompt[6];
  uint32_t id;
  simulation_setup setup = ROOMY;
  setup.draft_pages = 30;
  fill_prompt(prompt, 6, CHAIN_NEW, 1);
  wick_request wanted = make_request(prompt, 6, 0);
  wanted.max_tokens = 8;
  wanted.always_speculates = true;
  REQUIRE(simulation_open(&sim, &setup));
  CHECK(drafter_token_us(sim.drafter) == 0.0f);
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  CHECK(simulation_run(&sim, 100000));
  CHECK(drafter_token_us(sim.drafter) == (float)(SIM_SMALL_PASS_US + SIM_ROW_US + SIM_LOGITS_US));
  simulation_close(&sim);
}

// A draft model that runs out of pages stops proposing: the output is the same, and the counter
// shows why it is slow.
TEST(a_draft_model_that_runs_out_of_pages_is_counted) {
  static run_result with, without;
  uint64_t failed = 0;
  simulation_setup setup = ROOMY;
  setup.draft_pages = 2;
  for (uint32_t which = 0; which < 8; which++) {
    int32_t prompt[70];
    fill_prompt(prompt, 20 + 5 * which, CHAIN_NEW, which);
    wick_request wanted = make_request(prompt, 20 + 5 * which, 0);
    REQUIRE(run_alone(&setup, &wanted, &with));
    wanted.no_speculation = true;
    REQUIRE(run_alone(&setup, &wanted, &without));
    failed += with.stats.draft_failed;
    CHECK_EQ_UINT(without.stats.draft_failed, 0);
    CHECK_EQ_UINT(with.request.count, without.request.count);
    CHECK_EQ_MEM(with.request.tokens, without.request.tokens,
                 without.request.count * sizeof(int32_t));
  }
  CHECK(failed > 100);
}

// The same three letters repeat, each time followed by a different one. The disagreement between
// matches is noticed, so nothing beyond it is proposed. A row costs a twentieth of a pass here, so
// one correct proposal in ten is enough to pay off.
TEST(failed_proposals_cost_little) {
  static run_result with, without;
  uint64_t proposed = 0, accepted = 0, out = 0, us_with = 0, us_without = 0;
  for (uint32_t which = 0; which < 40; which++) {
    REQUIRE(run_both(CHAIN_DECEIVES, which, false, &with, &without));
    proposed += with.stats.tokens_proposed;
    accepted += with.stats.tokens_accepted;
    out += with.stats.tokens_out;
    us_with += with.us;
    us_without += without.us;
  }
  CHECK(out > 1000);
  CHECK(proposed > 0);
  CHECK(accepted < proposed);
  CHECK(proposed - accepted < out / 10);
  CHECK(us_with < us_without);
}

// ---- completions ----

static void submit_completions(uint32_t count, bool is_sampled) {
  int32_t prompt[40];
  fill_prompt(prompt, 40, CHAIN_NEW, 5);
  wick_request wanted = make_request(prompt, 40, 30);
  wanted.completions = count;
  wanted.no_speculation = true;
  if (is_sampled) sample(&wanted, 90);
  uint32_t id;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  CHECK_EQ_UINT(id, 1);
}

// The simulation checks at the end of each completion that it equals a single request with its
// seed.
static void check_completions(bool is_sampled) {
  REQUIRE(simulation_open(&sim, &ROOMY));
  submit_completions(4, is_sampled);
  CHECK_EQ_UINT(sim.live_count, 4);
  for (uint32_t i = 1; i < 4; i++) {
    CHECK_EQ_UINT(sim.live[i].sampling.seed, sim.live[0].sampling.seed + i);
  }
  CHECK(simulation_run(&sim, 10000));
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK_EQ_UINT(sim.ended, 4);
  CHECK_EQ_UINT(stats.tokens_prompt, 40);
  CHECK_EQ_UINT(stats.rows, 40 + sim.rows_decoded);
  CHECK_EQ_UINT(stats.running_max, 4);
  CHECK_EQ_UINT(stats.tokens_recomputed, 0);
  simulation_close(&sim);
}

TEST(greedy_completions_equal_a_single_request) { check_completions(false); }
TEST(sampled_completions_have_separate_seeds) { check_completions(true); }

// Completions that cannot join the first one evaluate the prompt themselves or wait for pages; the
// outputs are the same.
TEST(completions_that_do_not_fit_run_later) {
  for (uint32_t running_max = 1; running_max <= 4; running_max++) {
    simulation_setup setup = ROOMY;
    setup.running_max = running_max;
    setup.pages = 8;
    setup.prefix_entries = running_max % 2 * 16;
    REQUIRE(simulation_open(&sim, &setup));
    submit_completions(6, true);
    CHECK(simulation_run(&sim, 10000));
    CHECK_EQ_UINT(sim.ended, 6);
    simulation_close(&sim);
  }
}

// The first completion is cancelled before the prompt is evaluated, so a different one evaluates it
// for the others.
TEST(completions_survive_the_cancellation_of_the_first) {
  for (uint32_t units = 0; units < 6; units++) {
    simulation_setup setup = ROOMY;
    setup.batch_tokens = 16;
    REQUIRE(simulation_open(&sim, &setup));
    submit_completions(3, false);
    for (uint32_t i = 0; i < units; i++) simulation_step(&sim);
    sim.live[0].is_cancelled = true;
    CHECK_EQ_INT(scheduler_cancel(sim.scheduler, 1), WICK_OK);
    CHECK(simulation_run(&sim, 10000));
    CHECK_EQ_UINT(sim.ended, 3);
    CHECK_EQ_UINT(sim.aborted, 1);
    CHECK(scheduler_get_stats(sim.scheduler).tokens_prompt < 2 * 40);
    simulation_close(&sim);
  }
}

// All completions end with their first token, and the host takes events only when the queue is
// full, so the remaining space limits how many completions one row of logits can finish.
TEST(completions_wait_for_space_in_the_event_queue) {
  simulation_setup setup = ROOMY;
  setup.running_max = 32;
  REQUIRE(simulation_open(&sim, &setup));
  int32_t prompt[20];
  uint64_t random = 1;
  for (uint32_t which = 0; which < 300; which++) {
    fill_prompt(prompt, 1 + which % 20, CHAIN_NEW, which);
    wick_request wanted = make_request(prompt, 1 + which % 20, 1);
    wanted.completions = WICK_COMPLETIONS_MAX - sim_below(&random, 8) % 6;
    wanted.sampling.logprobs = WICK_LOGPROBS_MAX;
    sample(&wanted, which);
    uint32_t id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
    for (int i = 0; i < 200 && sim.scheduler->count != 0; i++) {
      if (scheduler_step(sim.scheduler) == SCHEDULER_WAIT_EVENTS) sim_take_events(&sim);
    }
    if (sim.live_count > SIM_LIVE_MAX - WICK_COMPLETIONS_MAX) sim_take_events(&sim);
  }
  sim_take_events(&sim);
  simulation_close(&sim);
}

// ---- requests without output ----

// Several prompts evaluated in one pass end one after the other, without further evaluation.
TEST(prefill_only_requests_in_one_pass_end_together) {
  REQUIRE(simulation_open(&sim, &ROOMY));
  int32_t prompt[8];
  for (uint32_t i = 0; i < 4; i++) {
    fill_prompt(prompt, 8, CHAIN_NEW, i);
    wick_request wanted = make_request(prompt, 8, 0);
    wanted.prefill_only = true;
    uint32_t id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  }
  CHECK(simulation_run(&sim, 100));
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK_EQ_UINT(stats.length, 4);
  CHECK_EQ_UINT(stats.rows, 4 * 8);
  CHECK_EQ_UINT(stats.passes, 1);
  simulation_close(&sim);
}

// ---- waiting requests ----

TEST(the_queue_limit_counts_the_tokens_of_waiting_prompts) {
  REQUIRE(simulation_open(&sim, &ROOMY));
  sim.scheduler->parts.queue_tokens_max = 16;
  int32_t prompt[8];
  uint32_t id;
  for (uint32_t i = 0; i < 2; i++) {
    fill_prompt(prompt, 8, CHAIN_NEW, i);
    const wick_request wanted = make_request(prompt, 8, 2);
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  }
  const wick_request third = make_request(prompt, 8, 2);
  wick_error error = {0};
  CHECK_EQ_INT(scheduler_submit(sim.scheduler, &third, NULL, NULL, &id, &error), WICK_E_FULL);
  CHECK_EQ_INT(error.status, WICK_E_FULL);
  CHECK_EQ_UINT(error.subject, WICK_SUBJECT_QUEUE_TOKENS);
  CHECK_EQ_UINT(error.numbers[0], 16);
  CHECK_EQ_UINT(error.numbers[1], 16);
  CHECK_EQ_STR(error.message, "prompts of 16 tokens are waiting; the limit is 16");
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).refused, 1);
  CHECK(simulation_run(&sim, 100));
  simulation_close(&sim);
}

// If the host pauses a running request, a request that waits for pages can take its pages.
TEST(a_request_without_pages_takes_those_of_a_paused_request) {
  simulation_setup setup = ROOMY;
  setup.pages = 8;
  REQUIRE(simulation_open(&sim, &setup));
  int32_t prompt[40];
  uint32_t first, second;
  fill_prompt(prompt, 40, CHAIN_NEW, 1);
  const wick_request wanted = make_request(prompt, 40, 80);
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &first), WICK_OK);
  CHECK_EQ_UINT(first, 1);
  CHECK_EQ_INT(scheduler_pause(sim.scheduler, first, true), WICK_OK);
  fill_prompt(prompt, 40, CHAIN_NEW, 2);
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &second), WICK_OK);
  while (sim.forward.passes < 2) simulation_step(&sim);
  CHECK_EQ_INT(scheduler_pause(sim.scheduler, first, false), WICK_OK);
  while (sim.forward.passes < 6) simulation_step(&sim);
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).waiting, 1);
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).preempted, 0);
  CHECK_EQ_INT(scheduler_pause(sim.scheduler, second, true), WICK_OK);
  for (int i = 0; i < 100; i++) simulation_step(&sim);
  CHECK_EQ_UINT(scheduler_get_stats(sim.scheduler).preempted, 1);
  CHECK(sim.last.id == first || scheduler_get_stats(sim.scheduler).running == 1);
  CHECK_EQ_INT(scheduler_pause(sim.scheduler, second, false), WICK_OK);
  CHECK(simulation_run(&sim, 10000));
  CHECK_EQ_UINT(sim.ended, 2);
  simulation_close(&sim);
}

// ---- a prompt that a different request is evaluating ----

typedef enum follower {
  FOLLOWS,
  HAS_LOGITS,
  HAS_A_SALT,
  IS_SHORT,      // the first request is already beyond its end
  READS_ANOTHER  // its prompt differs from the first token on
} follower;

static void take_no_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  (void)context;
  (void)position;
  (void)logits;
  (void)vocab;
}

static uint32_t running_beside(follower kind, bool is_paused, uint32_t prefix_entries) {
  simulation_setup setup = ROOMY;
  setup.prefix_entries = prefix_entries;
  if (!CHECK(simulation_open(&sim, &setup))) return 0;
  int32_t prompt[300];
  uint32_t first, second;
  fill_prompt(prompt, 300, CHAIN_NEW, 1);
  const wick_request reading = make_request(prompt, 300, 4);
  CHECK_EQ_INT(simulation_submit(&sim, &reading, &first), WICK_OK);
  while (sim.forward.passes < 2) simulation_step(&sim);
  if (is_paused) CHECK_EQ_INT(scheduler_pause(sim.scheduler, first, true), WICK_OK);
  if (kind == READS_ANOTHER) prompt[0] ^= 1;
  wick_request wanted = make_request(prompt, kind == IS_SHORT ? 40 : 300, 4);
  if (kind == HAS_LOGITS) wanted.on_logits = take_no_logits;
  if (kind == HAS_A_SALT) wanted.salt = "another tenant";
  if (kind == HAS_A_SALT) wanted.salt_bytes = 14;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &second), WICK_OK);
  const uint64_t passes = sim.forward.passes;
  while (sim.forward.passes < passes + 2) simulation_step(&sim);
  const uint32_t running = scheduler_get_stats(sim.scheduler).running;
  if (is_paused) CHECK_EQ_INT(scheduler_pause(sim.scheduler, first, false), WICK_OK);
  CHECK(simulation_run(&sim, 10000));
  CHECK_EQ_UINT(sim.ended, 2);
  simulation_close(&sim);
  return running;
}

TEST(a_request_waits_for_another_ones_prefill_only_if_it_can_reuse_it) {
  CHECK_EQ_UINT(running_beside(FOLLOWS, false, 64), 1);
  CHECK_EQ_UINT(running_beside(FOLLOWS, false, 0), 2);
  CHECK_EQ_UINT(running_beside(FOLLOWS, true, 64), 2);
  CHECK_EQ_UINT(running_beside(HAS_LOGITS, false, 64), 2);
  CHECK_EQ_UINT(running_beside(HAS_A_SALT, false, 64), 2);
  CHECK_EQ_UINT(running_beside(IS_SHORT, false, 64), 2);
  CHECK_EQ_UINT(running_beside(READS_ANOTHER, false, 64), 2);
}

// Pages of preempted requests that the host stores: whether the host always succeeds, always fails,
// fails sometimes or damages data, every output equals that of the request run alone
// (scheduler_simulation.h), and no record is left over. The simulated clock decides between storing
// pages and recomputing them.
#include "scheduler_simulation.h"

static simulation sim;

// ---- A host ----

enum { RECORDS_MAX = SIM_LIVE_MAX };

typedef struct kept_record {
  uint32_t id;  // 0: the slot is free
  uint64_t size_bytes, written_bytes;
  uint8_t *bytes;
} kept_record;

typedef struct memory_host {
  kept_record records[RECORDS_MAX];
  uint32_t kept, opened, read;
  uint64_t random;
  uint32_t fails_one_in;    // one in this many calls is rejected; 0: none
  uint32_t damages_one_in;  // one in this many pieces read has a flipped bit; 0: none
  uint64_t us_per_kib;      // time to write or read
} memory_host;

static memory_host host;

static kept_record *find_record(uint32_t id) {
  for (uint32_t i = 0; i < RECORDS_MAX; i++) {
    if (host.records[i].id == id) return &host.records[i];
  }
  return NULL;
}

static bool fails_now(void) {
  return host.fails_one_in != 0 && sim_below(&host.random, host.fails_one_in) == 0;
}

static bool host_open(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  if (fails_now()) return false;
  CHECK(find_record(id) == NULL);
  kept_record *made = find_record(0);
  if (!CHECK(made != NULL)) return false;
  *made = (kept_record){id, size_bytes, 0, malloc((size_t)size_bytes)};
  host.kept++;
  host.opened++;
  return true;
}

static bool host_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  kept_record *record = find_record(id);
  if (!CHECK(record != NULL) || fails_now()) return false;
  CHECK_EQ_UINT(offset_bytes, record->written_bytes);
  if (!CHECK(size_bytes <= record->size_bytes - offset_bytes)) return false;
  memcpy(record->bytes + offset_bytes, bytes, size_bytes);
  record->written_bytes += size_bytes;
  simulation_clock_us += size_bytes * host.us_per_kib / 1024;
  return true;
}

static bool host_read(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  const kept_record *record = find_record(id);
  if (!CHECK(record != NULL) || fails_now()) return false;
  CHECK_EQ_UINT(record->written_bytes, record->size_bytes);
  if (!CHECK(size_bytes <= record->size_bytes - offset_bytes)) return false;
  memcpy(bytes, record->bytes + offset_bytes, size_bytes);
  host.read++;
  simulation_clock_us += size_bytes * host.us_per_kib / 1024;
  if (host.damages_one_in != 0 && sim_below(&host.random, host.damages_one_in) == 0) {
    ((uint8_t *)bytes)[sim_below(&host.random, (uint32_t)size_bytes)] ^=
        (uint8_t)(1u << sim_below(&host.random, 8));
  }
  return true;
}

static void host_drop(void *context, uint32_t id) {
  (void)context;
  kept_record *record = find_record(id);
  if (!CHECK(record != NULL)) return;
  free(record->bytes);
  *record = (kept_record){0};
  host.kept--;
}

static wick_swap_host swap_host = {
    .open = host_open, .write = host_write, .read = host_read, .drop = host_drop};

// ---- Runs ----

static const simulation_setup SHORT = {
    .pages = 20, .batch_tokens = 32, .context_tokens = 400, .requests_max = 64, .running_max = 16};

static bool open_run(const simulation_setup *setup, bool always) {
  host = (memory_host){.random = 5};
  swap_host.always = always;
  if (!simulation_open(&sim, setup)) return false;
  sim.scheduler->swap.host = &swap_host;
  return true;
}

// Submits requests that each need up to 13 pages in the end: some are sampled, some have two
// completions, and every fifth prompt is only prefilled.
static void submit_many(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t prompt[150];
    uint64_t random = i + 1;
    const uint32_t length = 20 + i * 37 % 60;
    for (uint32_t p = 0; p < length; p++) {
      prompt[p] = SIM_LETTERS + (int32_t)sim_below(&random, SIM_VOCAB - SIM_LETTERS);
    }
    wick_request wanted = {.tokens = prompt, .token_count = length, .max_tokens = 120};
    sampler_set_defaults(&wanted.sampling);
    if (i % 3 == 1) wanted.sampling.temperature = 0.9f;
    wanted.sampling.seed = i;
    wanted.priority = (int32_t)(i % 3);
    wanted.completions = i % 4 == 2 ? 2 : 1;
    wanted.prefill_only = i % 5 == 4 && wanted.completions == 1;
    uint32_t id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  }
}

static scheduler_stats run_out(void) {
  CHECK(simulation_run(&sim, 200000));
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK_EQ_UINT(stats.failed + stats.aborted, 0);
  CHECK(stats.preempted > 0);
  CHECK_EQ_UINT(stats.tokens_prompt + stats.tokens_recomputed + sim.rows_decoded, stats.rows);
  CHECK_EQ_UINT(host.kept, 0);
  simulation_close(&sim);
  return stats;
}

static scheduler_stats run_many(const simulation_setup *setup, bool always) {
  if (!open_run(setup, always)) return (scheduler_stats){0};
  submit_many(40);
  return run_out();
}

TEST(preempted_requests_get_their_pages_back) {
  simulation_setup setup = SHORT;
  for (int round = 0; round < 2; round++) {
    setup.prefix_entries = round == 0 ? 0 : 64;
    const scheduler_stats stats = run_many(&setup, true);
    CHECK(stats.swapped_out > 0 && stats.swapped_in > 0);
    CHECK(stats.swapped_in <= stats.swapped_out && stats.swapped_out <= stats.preempted);
    CHECK_EQ_UINT(stats.swap_failed, 0);
    if (round == 0) CHECK_EQ_UINT(stats.swapped_in, stats.swapped_out);
  }
}

TEST(a_host_that_fails_or_damages_data_loses_nothing) {
  uint64_t out = 0, in = 0, failed = 0;
  for (uint32_t round = 0; round < 24; round++) {
    simulation_setup setup = SHORT;
    setup.prefix_entries = round % 2 == 0 ? 0 : 64;
    REQUIRE(open_run(&setup, true));
    host.random = round;
    host.fails_one_in = round % 3 == 1 ? 0 : 40;
    host.damages_one_in = round % 3 == 0 ? 0 : 20;
    submit_many(40);
    const scheduler_stats stats = run_out();
    out += stats.swapped_out;
    in += stats.swapped_in;
    failed += stats.swap_failed;
  }
  CHECK(out > 0 && in > 0 && failed > 0);
}

static uint32_t free_pages(void) {
  return kv_pool_pages_available(store_pages(sim.scheduler->parts.store));
}

// A record belongs only to its tokens. Pages read before the mismatch is detected are freed.
TEST(a_record_of_different_tokens_is_rejected_and_keeps_no_pages) {
  REQUIRE(open_run(&SHORT, true));
  submit_many(40);
  uint32_t tried = 0;
  for (uint32_t step = 0; step < 200000 && simulation_step(&sim); step++) {
    request *kept = sim.scheduler->first;
    while (kept != NULL && kept->swapped.bytes == 0) kept = kept->next;
    if (kept == NULL || tried >= 20 || free_pages() * 16 < kept->swapped.tokens) continue;
    const uint32_t before = free_pages(), last = kept->swapped.tokens - 1;
    swap_record record = kept->swapped;
    kv_seq_id sequence;
    int32_t *changed = &kept->tokens[tried % 2 == 0 ? 0 : last];
    ++*changed;
    CHECK_EQ_INT(swap_in(&sim.scheduler->swap, kept->id, kept->tokens, &record, &sequence),
                 WICK_E_CORRUPT);
    --*changed;
    CHECK_EQ_UINT(free_pages(), before);
    record.tokens--;  // a record of fewer tokens
    CHECK_EQ_INT(swap_in(&sim.scheduler->swap, kept->id, kept->tokens, &record, &sequence),
                 WICK_E_CORRUPT);
    CHECK_EQ_UINT(free_pages(), before);
    tried++;
  }
  CHECK(tried >= 5);
  run_out();
}

TEST(a_host_that_always_fails_is_no_longer_called) {
  REQUIRE(open_run(&SHORT, true));
  host.fails_one_in = 1;
  submit_many(40);
  const scheduler_stats stats = run_out();
  CHECK_EQ_UINT(stats.swapped_out + stats.swapped_in, 0);
  CHECK(stats.swap_failed > 0 && stats.swap_failed <= 8);
  CHECK_EQ_UINT(host.opened, 0);
}

TEST(the_cheaper_of_swapping_and_recomputing_is_chosen) {
  REQUIRE(open_run(&SHORT, false));
  submit_many(40);
  const scheduler_stats fast = run_out();
  CHECK(fast.swapped_in > 1);
  REQUIRE(open_run(&SHORT, false));
  host.us_per_kib = 100000;  // a page takes as long as thousands of tokens
  submit_many(40);
  const scheduler_stats slow = run_out();
  CHECK_EQ_UINT(slow.swapped_out, 1);  // the measurement
  CHECK_EQ_UINT(slow.swapped_in, 0);
  CHECK(fast.tokens_recomputed < slow.tokens_recomputed);
}

// The write speed is measured with a record of at least four pages.
TEST(short_records_are_never_written_to_measure_the_speed) {
  REQUIRE(open_run(&SHORT, false));
  for (uint32_t i = 0; i < 40; i++) {
    int32_t prompt[20];
    for (uint32_t p = 0; p < 20; p++) prompt[p] = SIM_LETTERS + (int32_t)((i + p) % 5);
    wick_request wanted = {.tokens = prompt, .token_count = 20, .max_tokens = 43};
    sampler_set_defaults(&wanted.sampling);
    wanted.sampling.seed = i;
    uint32_t id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  }
  const scheduler_stats stats = run_out();
  CHECK_EQ_UINT(stats.swapped_out, 0);
  CHECK_EQ_UINT(host.opened, 0);
}

static void cancel(uint32_t id) {
  sim_find(&sim, id)->is_cancelled = true;
  CHECK_EQ_INT(scheduler_cancel(sim.scheduler, id), WICK_OK);
}

// ---- Sessions ----

enum { TURNS = 3, TURN_PROMPT = 60, TURN_TOKENS = 40 };

// Submits the next turn of all sessions at once; the last turn of the last session has no new
// tokens. In the end each session has up to 300 tokens, and all pages together hold 320.
static void submit_turn(uint32_t turn) {
  for (uint32_t i = 0; i < SIM_SESSIONS_MAX; i++) {
    int32_t prompt[TURN_PROMPT];
    uint64_t random = 100 * turn + i + 1;
    for (uint32_t p = 0; p < TURN_PROMPT; p++) {
      prompt[p] = SIM_LETTERS + (int32_t)sim_below(&random, SIM_VOCAB - SIM_LETTERS);
    }
    wick_request wanted = {.tokens = prompt,
                           .token_count = turn == 2 && i == 3 ? 0 : TURN_PROMPT,
                           .max_tokens = TURN_TOKENS,
                           .session = sim.held[i].id};
    sampler_set_defaults(&wanted.sampling);
    wanted.sampling.seed = turn;
    wanted.prefill_only = (turn + i) % 5 == 4;
    uint32_t id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  }
}

static bool open_sessions(const simulation_setup *setup, bool has_host) {
  if (!open_run(setup, true)) return false;
  if (!has_host) sim.scheduler->swap.host = NULL;
  for (uint32_t i = 0; i < SIM_SESSIONS_MAX; i++) {
    CHECK_EQ_INT(session_create(&sim.sessions, (cache_salt){0}, &sim.held[i].id, NULL), WICK_OK);
  }
  return true;
}

// The sessions need more pages than exist, without a host, with a working host, and with a failing
// one: they are preempted, and each gives the same output as when it runs alone.
TEST(preempted_sessions_get_their_pages_back_or_recompute_them) {
  uint64_t failed = 0;
  for (uint32_t round = 0; round < 16; round++) {
    simulation_setup setup = SHORT;
    setup.prefix_entries = round % 2 == 0 ? 0 : 64;
    const bool has_host = round >= 4, is_faulty = round >= 8;
    REQUIRE(open_sessions(&setup, has_host));
    host.random = round;
    host.fails_one_in = is_faulty ? 60 : 0;
    host.damages_one_in = is_faulty ? 10 : 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
      submit_turn(turn);
      CHECK(simulation_run(&sim, 200000));
      CHECK_EQ_UINT(host.kept, 0);
    }
    const scheduler_stats stats = run_out();
    if (!has_host) CHECK_EQ_UINT(stats.swapped_out, 0);
    if (has_host && !is_faulty) {
      CHECK(stats.swapped_in > 0);
      CHECK_EQ_UINT(stats.swap_failed, 0);
    }
    failed += stats.swap_failed;
  }
  CHECK(failed > 0);
}

static uint32_t pages_of(uint32_t session_id) {
  session *found = NULL;
  CHECK_EQ_INT(session_find(&sim.sessions, session_id, &found, NULL), WICK_OK);
  return found == NULL ? 0 : kv_seq_tokens(sim.kv, found->sequence) / KERNEL_PAGE_TOKENS;
}

// Three sessions are idle, and a request without a session needs more pages than they leave. The
// session that has been idle longest loses its pages, and its next request recomputes them.
TEST(the_session_idle_longest_loses_its_pages_first) {
  REQUIRE(open_sessions(&SHORT, false));
  static const uint32_t order[] = {1, 0, 2};
  int32_t prompt[200];
  for (uint32_t p = 0; p < 200; p++) prompt[p] = SIM_LETTERS + (int32_t)(p % 5);
  wick_request wanted = {.tokens = prompt, .token_count = 80, .prefill_only = true};
  sampler_set_defaults(&wanted.sampling);
  uint32_t id;
  for (uint32_t i = 0; i < 3; i++) {
    wanted.session = sim.held[order[i]].id;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
    CHECK(simulation_run(&sim, 1000));
  }
  wanted.session = 0;
  wanted.token_count = 140;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  CHECK(simulation_run(&sim, 1000));
  CHECK_EQ_UINT(pages_of(sim.held[0].id), 5);
  CHECK_EQ_UINT(pages_of(sim.held[1].id), 0);
  CHECK_EQ_UINT(pages_of(sim.held[2].id), 5);
  wanted.session = sim.held[1].id;
  wanted.token_count = 20;
  CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
  CHECK(simulation_run(&sim, 1000));
  CHECK_EQ_UINT(pages_of(sim.held[1].id), 6);
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  CHECK_EQ_UINT(stats.tokens_prompt, 3 * 80 + 140 + 100);
  CHECK_EQ_UINT(stats.failed, 0);
  simulation_close(&sim);
}

// The request is cancelled while the host stores its pages: the session can continue, and tokens
// without pages can be dropped from it.
TEST(a_session_survives_a_cancelled_request_that_was_swapped_out) {
  REQUIRE(open_sessions(&SHORT, true));
  submit_turn(0);
  CHECK(simulation_run(&sim, 200000));
  submit_turn(1);
  uint32_t steps = 0, cut = 0;
  while (host.kept == 0 && steps++ < 100000) simulation_step(&sim);
  for (uint32_t i = 0; i < RECORDS_MAX; i++) {
    const simulated *waiting = host.records[i].id == 0 ? NULL : sim_find(&sim, host.records[i].id);
    if (waiting == NULL || waiting->session == 0) continue;
    cut = waiting->session;
    cancel(waiting->id);
  }
  REQUIRE(cut != 0);
  CHECK(simulation_run(&sim, 200000));
  session *found = NULL;
  CHECK_EQ_INT(session_find_idle(&sim.sessions, cut, &found, NULL), WICK_OK);
  REQUIRE(found != NULL && found->count > 30);
  CHECK_EQ_UINT(kv_seq_tokens(sim.kv, found->sequence), 0);
  const uint32_t count = found->count;
  simulated_session *held = sim_session(&sim, cut);
  CHECK_EQ_INT(session_drop(&sim.sessions, cut, 5, count + 1, NULL), WICK_E_RANGE);
  CHECK_EQ_INT(session_drop(&sim.sessions, cut, 5, 25, NULL), WICK_OK);
  memmove(held->tokens + 5, held->tokens + 25, (count - 25) * sizeof(int32_t));
  held->count -= 20;
  held->read = 0;
  CHECK_EQ_UINT(found->count, held->count);
  submit_turn(2);
  CHECK(simulation_run(&sim, 200000));
  CHECK(scheduler_get_stats(sim.scheduler).aborted >= 1);
  CHECK_EQ_UINT(host.kept, 0);
  simulation_close(&sim);
}

// A request's record is deleted when the request ends, in any way.
TEST(records_are_deleted_with_their_request) {
  for (int round = 0; round < 2; round++) {
    REQUIRE(open_run(&SHORT, true));
    submit_many(40);
    uint32_t steps = 0;
    while (host.kept < 1 && steps++ < 100000) simulation_step(&sim);
    REQUIRE(host.kept >= 1);
    if (round == 0) {
      for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        if (host.records[i].id != 0) cancel(host.records[i].id);
      }
      CHECK(simulation_run(&sim, 200000));
      CHECK(scheduler_get_stats(sim.scheduler).aborted >= 1);
      CHECK_EQ_UINT(host.kept, 0);
      simulation_close(&sim);
    } else {
      scheduler_destroy(sim.scheduler);
      CHECK_EQ_UINT(host.kept, 0);
      sessions_destroy(&sim.sessions);
      sim_close_parts(&sim);
    }
  }
}

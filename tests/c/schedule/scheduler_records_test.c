// Records the scheduler's decisions for random traffic, pass by pass: the rows of each request, its
// evaluated and cached tokens, free pages and states, and all counters.
// tests/c/schedule/scheduler_records.txt has the expected lines (recorded_lines.h).
#include <inttypes.h>

#include "recorded_lines.h"
#include "scheduler_traffic.h"
#include "swap_keeper.h"

enum { REQUESTS = 500, STEPS_MAX = 200 * REQUESTS, PASSES_A_LINE = 500 };

static simulation sim;
static uint64_t passes_hash;

static void note(uint64_t value) { passes_hash = hash_mix_u64(passes_hash * 31 + value); }

static void note_request(const request *request) {
  note(request->id | (uint64_t)request->phase << 32);
  note(request->fed | (uint64_t)request->pass_tokens << 32);
  note(request->tokens_count | (uint64_t)request->cached << 32);
  note(request->swapped.tokens);
}

static void note_store(const seq_store *store) {
  const store_state_counts states = store_count_states(store);
  note(states.slots | (uint64_t)states.free << 32);
  note(states.cached);
  for (uint32_t i = 0; i < store_group_count(store); i++) {
    const kv_pool *pool = store_group(store, i);
    note(kv_pool_pages(pool) | (uint64_t)kv_pool_pages_free(pool) << 32);
  }
  if (store_prefix(store) != NULL) note(prefix_count(store_prefix(store)));
}

static void record_passes(void) {
  record_line(" %" PRIu64 " passes at %" PRIu64 " us: %016" PRIx64 "\n", sim.forward.passes,
              simulation_clock_us, passes_hash);
}

static void take_pass(void *context) {
  sim_check_pass(context);
  note(simulation_clock_us);
  for (const request *at = sim.scheduler->first; at != NULL; at = at->next) note_request(at);
  note_store(sim.store);
  if (sim.draft_store != NULL) note_store(sim.draft_store);
  if (sim.forward.passes % PASSES_A_LINE == 0) record_passes();
}

static void record_requests(const scheduler_stats *stats) {
  record_line(" requests: %u concurrent, %u waited, %" PRIu64 " submitted, %" PRIu64 " rejected, ",
              stats->running_max, stats->waiting_max, stats->submitted, stats->refused);
  record_line("%" PRIu64 " stopped, %" PRIu64 " at their length, %" PRIu64 " aborted, ",
              stats->stopped, stats->length, stats->aborted);
  record_line("%" PRIu64 " failed, %" PRIu64 " preempted, %" PRIu64 " swapped out, ", stats->failed,
              stats->preempted, stats->swapped_out);
  record_line("%" PRIu64 " swapped in, %" PRIu64 " swaps failed\n", stats->swapped_in,
              stats->swap_failed);
}

static void record_tokens(const scheduler_stats *stats) {
  record_line(" tokens: %" PRIu64 " rows in %" PRIu64 " passes, ", stats->rows, stats->passes);
  record_line("%" PRIu64 " of prompts, %" PRIu64 " cached, %" PRIu64 " recomputed, ",
              stats->tokens_prompt, stats->tokens_cached, stats->tokens_recomputed);
  record_line(
      "%" PRIu64 " out, %" PRIu64 " proposed, %" PRIu64 " accepted, %" PRIu64 " drafts failed\n",
      stats->tokens_out, stats->tokens_proposed, stats->tokens_accepted, stats->draft_failed);
}

static void record_times(const scheduler_stats *stats) {
  record_line(" us per pass, by number of rows:");
  for (uint32_t rows = 1; rows <= WICK_STATS_ROWS_MAX; rows++) {
    record_line(" %.3f", (double)stats->pass_us[rows]);
  }
  record_line("\n");
}

static void record_prefixes(void) {
  const prefix_stats stats = prefix_stats_get(sim.prefix);
  record_line(" prefixes: %" PRIu64 " hits, %" PRIu64 " misses, ", stats.hits, stats.misses);
  record_line("%" PRIu64 " cached, %" PRIu64 " evicted, ", stats.prefixes_cached,
              stats.prefixes_evicted);
  record_line("%" PRIu64 " tokens saved, %" PRIu64 " of %" PRIu64 " looked up, ",
              stats.tokens_saved, stats.tokens_inserted, stats.lookup_tokens);
  record_line("%" PRIu64 " rejected, %u pages\n", stats.insert_refused, stats.pages_held);
}

// A host that is slow to store pages and does not accept all of them.
static bool slow_open(void *context, uint32_t id, uint64_t size_bytes) {
  return id % 7 != 0 && keep_open(context, id, size_bytes);
}
static bool slow_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  simulation_clock_us += 1 + size_bytes / 64;
  return keep_write(context, id, offset_bytes, bytes, size_bytes);
}
static const wick_swap_host SLOW = {NULL, slow_open, slow_write, keep_read, keep_drop, true};

// Pauses, cancels and resumes requests, and lets the host stop taking events.
static void disturb(traffic *t) {
  simulated *live = any_live(&sim, t);
  const uint32_t what = sim_below(&t->random, 160);
  if (what < 3 && live != NULL) {
    cancel(&sim, live);
  } else if (what < 9 && live != NULL) {
    set_paused(&sim, live, !live->is_paused);
  } else if (what < 12) {
    sim.is_slow = what == 9;
  }
}

static void record_traffic(const simulation_setup *setup, bool is_disturbed, uint32_t sessions,
                           uint64_t seed) {
  record_line("groups %u, %s, %u draft model pages, %s, %s, %u sessions\n", setup->groups,
              setup->is_recurrent ? "recurrent" : "not recurrent", setup->draft_pages,
              setup->swap == NULL ? "no swap" : "swap",
              is_disturbed ? "disturbed" : "not disturbed", sessions);
  REQUIRE(simulation_open(&sim, setup));
  sim.forward.on_pass = take_pass;
  passes_hash = seed;
  traffic t = {.random = seed, .to_come = REQUESTS, .has_poison = is_disturbed};
  t.sessions = sessions;
  while (t.to_come != 0 && sim.steps < STEPS_MAX) {
    let_arrive(&sim, &t);
    if (is_disturbed) disturb(&t);
    if (!simulation_step(&sim)) resume_all(&sim);
  }
  sim.is_slow = false;
  resume_all(&sim);
  CHECK(simulation_run(&sim, STEPS_MAX));
  const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
  record_passes();
  record_line(" events: %016" PRIx64 "\n", sim.events_hash);
  record_requests(&stats);
  record_tokens(&stats);
  record_times(&stats);
  record_prefixes();
  simulation_close(&sim);
}

// Records many requests, sessions that hold pages, single requests, and random disturbances.
static void record_kinds(simulation_groups groups, bool is_recurrent) {
  static uint64_t seed = 100;
  simulation_setup setup = TIGHT;
  setup.groups = groups;
  setup.is_recurrent = is_recurrent;
  record_traffic(&setup, false, 0, seed++);
  setup.pages = 26;
  record_traffic(&setup, false, SIM_SESSIONS_MAX, seed++);
  record_traffic(&setup, true, SIM_SESSIONS_MAX, seed++);
  setup.running_max = 1;
  record_traffic(&setup, false, 0, seed++);
  setup.pages = TIGHT.pages;
  setup.draft_pages = is_recurrent ? 0 : 20;
  record_traffic(&setup, false, 0, seed++);
  setup.swap = &SLOW;
  setup.requests_max = setup.running_max = 24;
  record_traffic(&setup, true, 0, seed++);
}

TEST(scheduling_decisions_match_the_records) {
  for (simulation_groups groups = SIM_ONE_GROUP; groups <= SIM_WINDOWS_ALONE; groups++) {
    record_kinds(groups, false);
    record_kinds(groups, true);
  }
  CHECK_EQ_UINT(kept_count, 0);
  recorded_check("schedule/scheduler_records.txt");
}

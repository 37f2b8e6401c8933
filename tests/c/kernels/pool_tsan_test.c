// The thread pool under the thread sanitizer: jobs that start while helpers are still arriving,
// random numbers of units, pools that are created and destroyed, helpers that sleep between jobs.
// The jobs write non-atomic memory, so a missing synchronisation is reported as a race.
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "check.h"
#include "platform/platform.h"
#include "thread/pool.h"

enum { UNITS_MAX = 300, CYCLES = 60, JOBS = 60 };

typedef struct sums {
  const uint32_t *in;
  uint32_t *out;
  uint32_t job;
} sums;

static void add_job(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const sums *work = context;
  (void)thread;
  for (uint32_t i = first; i < last; i++) work->out[i] = work->in[i] + work->job;
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % bound;
}

static void sleep_us(long us) {
  const struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static memory_gate memory;

static thread_pool *pool_open(uint32_t threads) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  thread_pool *pool = NULL;
  CHECK_EQ_INT(thread_pool_create(&memory, NULL, threads, &pool, NULL), WICK_OK);
  return pool;
}

// Each job reads what the previous one wrote, with a different division into runs.
static bool run_jobs(thread_pool *pool, uint32_t jobs) {
  static uint32_t planes[2][UNITS_MAX];
  memset(planes, 0, sizeof planes);
  uint32_t total = 0;
  for (uint32_t job = 1; job <= jobs; job++) {
    sums work = {planes[job % 2], planes[(job + 1) % 2], job};
    thread_pool_for(pool, UNITS_MAX, add_job, &work);
    total += job;
    if (random_below(16) == 0) sleep_us(200);
    uint32_t untouched[UNITS_MAX];
    sums other = {planes[0], untouched, job};
    thread_pool_for(pool, random_below(5), add_job, &other);
  }
  for (uint32_t i = 0; i < UNITS_MAX; i++) {
    if (planes[(jobs + 1) % 2][i] != total) return false;
  }
  return true;
}

TEST(jobs_run_correctly_while_helpers_arrive_and_leave) {
  for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
    thread_pool *pool = pool_open(1 + cycle % 6);
    REQUIRE(pool != NULL);
    CHECK(run_jobs(pool, 1 + random_below(JOBS)));
    thread_pool_destroy(pool);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

TEST(many_short_jobs_run_one_after_the_other) {
  thread_pool *pool = pool_open(3);
  REQUIRE(pool != NULL);
  CHECK(run_jobs(pool, 2000));
  thread_pool_destroy(pool);
}

TEST(pools_can_be_destroyed_before_their_helpers_arrive) {
  for (uint32_t cycle = 0; cycle < 200; cycle++) {
    thread_pool *pool = pool_open(4);
    REQUIRE(pool != NULL);
    thread_pool_destroy(pool);
  }
}

typedef struct slow_sums {
  sums of;
  uint32_t slow;  // one bit per thread
} slow_sums;

static void add_slowly(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const slow_sums *work = context;
  if ((work->slow >> thread & 1u) != 0) sleep_us(50);
  for (uint32_t i = first; i < last; i++) work->of.out[i] += work->of.in[i] + work->of.job;
}

TEST(pieces_of_slow_threads_are_taken_over_once) {
  enum { THREADS = 8, SLOW_JOBS = 300 };
  static uint32_t in[UNITS_MAX], out[UNITS_MAX];
  thread_pool *pool = pool_open(THREADS);
  REQUIRE(pool != NULL);
  uint32_t total = 0;
  for (uint32_t job = 1; job <= SLOW_JOBS; job++) {
    const uint32_t units = 1 + random_below(UNITS_MAX);
    slow_sums work = {{in, out, job}, random_below(1u << THREADS)};
    thread_pool_limit(pool, random_below(THREADS + 1));
    thread_pool_for_pieces(pool, units, 1 + random_below(40), add_slowly, &work);
    for (uint32_t i = units; i < UNITS_MAX; i++) out[i] += job;
    total += job;
  }
  for (uint32_t i = 0; i < UNITS_MAX; i++) CHECK_EQ_UINT(out[i], total);
  thread_pool_destroy(pool);
}

typedef struct extra_helper {
  thread_pool *pool;
  uint32_t index;
} extra_helper;

static void run_helper(void *argument) {
  const extra_helper *who = argument;
  thread_pool_helper_main(who->pool, who->index);
}

TEST(helpers_with_a_used_or_unknown_index_are_rejected) {
  thread_pool *pool = pool_open(2);
  REQUIRE(pool != NULL);
  while (thread_pool_threads(pool) < 2) sleep_us(100);
  extra_helper extra_helpers[] = {{pool, 0}, {pool, 1}, {pool, 2}};
  for (int i = 0; i < 3; i++) {
    uintptr_t handle;
    REQUIRE(platform_thread_start(run_helper, &extra_helpers[i], &handle));
    platform_thread_join(handle);
  }
  CHECK_EQ_UINT(thread_pool_threads(pool), 2);
  CHECK(run_jobs(pool, 20));
  thread_pool_destroy(pool);
}

// The thread pool on every host: each unit is executed exactly once, and idle threads sleep. With
// WICK_BENCH=1, it prints the cost of a barrier (build with -O3 for that).
#define _GNU_SOURCE
#include "thread/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "platform/platform.h"

enum { UNITS_MAX = 1000, PIECES_MAX = 8 };

typedef struct visits {
  _Atomic uint32_t count[UNITS_MAX];
  _Atomic uint32_t runs;
  _Atomic uint32_t bad_runs;
  uint32_t units, threads;
} visits;

static void visit(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  visits *seen = context;
  seen->runs++;
  if (first >= last || last > seen->units || thread >= seen->threads) {
    seen->bad_runs++;
    return;
  }
  for (uint32_t i = first; i < last; i++) seen->count[i]++;
}

static memory_gate memory;

static thread_pool *pool_open(uint32_t threads) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  thread_pool *pool = NULL;
  wick_error error;
  CHECK_EQ_INT(thread_pool_create(&memory, NULL, threads, &pool, &error), WICK_OK);
  return pool;
}

static void pool_close(thread_pool *pool) {
  thread_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

#if WICK_THREADS
static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void pause_briefly(void) { sched_yield(); }

static void pool_await_helpers(const thread_pool *pool, uint32_t threads) {
  for (int i = 0; i < 60000 && thread_pool_threads(pool) < threads; i++) sleep_ms(1);
  CHECK_EQ_UINT(thread_pool_threads(pool), threads);
}

static double cpu_ms(clockid_t clock_id) {
  struct timespec now;
  clock_gettime(clock_id, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
#else
static void pause_briefly(void) {}

static void pool_await_helpers(const thread_pool *pool, uint32_t threads) {
  (void)threads;
  CHECK_EQ_UINT(thread_pool_threads(pool), 1);
}
#endif

static void check_units(thread_pool *pool, uint32_t threads, uint32_t units) {
  static visits seen;
  memset(&seen, 0, sizeof seen);
  seen.units = units;
  seen.threads = threads;
  thread_pool_for(pool, units, visit, &seen);
  CHECK_EQ_UINT(seen.bad_runs, 0);
  CHECK(seen.runs <= PIECES_MAX * thread_pool_threads(pool));  // each run costs an atomic operation
  CHECK(units == 0 || seen.runs > 0);
  bool each_once = true;
  for (uint32_t i = 0; i < UNITS_MAX; i++) each_once &= seen.count[i] == (i < units ? 1 : 0);
  CHECK(each_once);
}

TEST(every_unit_is_executed_once) {
  for (uint32_t threads = 1; threads <= 5; threads++) {
    thread_pool *pool = pool_open(threads);
    REQUIRE(pool != NULL);
    for (uint32_t units = 0; units < 40; units++) check_units(pool, threads, units);
    pool_await_helpers(pool, threads);
    for (uint32_t units = 0; units < 40; units++) check_units(pool, threads, units);
    check_units(pool, threads, UNITS_MAX);
    pool_close(pool);
  }
}

static void note_length(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  (void)thread;
  if (last % 100 != 0 && last - first < 30) (*(_Atomic uint32_t *)context)++;
}

TEST(pieces_have_the_minimum_length_of_the_job) {
  thread_pool *pool = pool_open(3);
  REQUIRE(pool != NULL);
  pool_await_helpers(pool, 3);
  _Atomic uint32_t short_pieces = 0;
  thread_pool_for_pieces(pool, 300, 30, note_length, (void *)&short_pieces);
  CHECK_EQ_UINT(short_pieces, 0);
  pool_close(pool);
}

static void runs_of_one_thread(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  uint32_t *calls = context;
  calls[0]++;
  CHECK_EQ_UINT(first, 0);
  CHECK_EQ_UINT(last, 7);
  CHECK_EQ_UINT(thread, 0);
}

TEST(a_pool_of_one_runs_in_the_caller) {
  thread_pool *pool = pool_open(1);
  REQUIRE(pool != NULL);
  uint32_t calls = 0;
  thread_pool_for(pool, 7, runs_of_one_thread, &calls);
  CHECK_EQ_UINT(calls, 1);
  CHECK_EQ_UINT(thread_pool_threads(pool), 1);
  pool_close(pool);
}

// A race timed by a clock that counts work: a thread that is ahead waits until the others have
// caught up, whatever the CPUs of this machine do.
typedef struct race {
  uint32_t units, threads;
  uint32_t cost[4];  // cost of a unit for each thread: 2 is a core of half the speed
  _Atomic uint32_t taken;
  _Atomic uint32_t clock[4];
  uint8_t owner[UNITS_MAX];
} race;

static bool is_ahead(const race *now, uint32_t thread) {
  for (uint32_t i = 0; i < now->threads; i++) {
    if (now->clock[i] < now->clock[thread]) return true;
  }
  return false;
}

static void run_race(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  race *now = context;
  REQUIRE(thread < now->threads);
  memset(now->owner + first, (int)thread, last - first);
  now->clock[thread] += (last - first) * now->cost[thread];
  now->taken += last - first;
  while (now->taken < now->units && is_ahead(now, thread)) pause_briefly();
}

// Returns the simulated time until the last thread has finished.
static uint32_t race_time(thread_pool *pool, race *now) {
  uint32_t time = 0;
  thread_pool_for(pool, now->units, run_race, now);
  CHECK_EQ_UINT(now->taken, now->units);
  for (uint32_t i = 0; i < now->threads; i++) time = now->clock[i] > time ? now->clock[i] : time;
  return time;
}

TEST(a_thread_limit_applies_until_it_is_removed) {
  thread_pool *pool = pool_open(4);
  REQUIRE(pool != NULL);
  pool_await_helpers(pool, 4);
  const uint32_t there = thread_pool_threads(pool);
  static const uint32_t limits[] = {2, 1, 3, 9, 0};
  for (uint32_t i = 0; i < 5; i++) {
    static race now;
    const uint32_t threads = limits[i] > 0 && limits[i] < there ? limits[i] : there;
    now = (race){.units = 120, .threads = threads, .cost = {1, 1, 1, 1}};
    thread_pool_limit(pool, limits[i]);
    CHECK_EQ_UINT(race_time(pool, &now), 120 / threads);
    check_units(pool, 4, 100);
  }
  pool_close(pool);
}

TEST(equally_fast_threads_keep_their_own_runs) {
  thread_pool *pool = pool_open(4);
  REQUIRE(pool != NULL);
  pool_await_helpers(pool, 4);
  const uint32_t there = thread_pool_threads(pool);
  for (uint32_t length = 1; length <= 250; length += 7) {
    static race now;
    now = (race){.units = there * length, .threads = there, .cost = {1, 1, 1, 1}};
    CHECK_EQ_UINT(race_time(pool, &now), length);
    for (uint32_t i = 0; i < now.units; i++) CHECK_EQ_UINT(now.owner[i], i / length);
  }
  pool_close(pool);
}

TEST(invalid_thread_counts_are_rejected) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  thread_pool *pool = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(thread_pool_create(&memory, NULL, 0, &pool, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, "threads is 0, not 1 to 64");
  CHECK_EQ_INT(thread_pool_create(&memory, NULL, WICK_THREADS_MAX + 1, &pool, &error), WICK_E_ARG);
  CHECK_EQ_INT(error.status, WICK_E_ARG);
  memory.fail_at_call = memory.calls + 1;
  CHECK_EQ_INT(thread_pool_create(&memory, NULL, 2, &pool, &error), WICK_E_NOMEM);
  CHECK(pool == NULL);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  thread_pool_destroy(NULL);
}

TEST(the_largest_pool_can_be_created_and_destroyed) {
  for (int i = 0; i < 3; i++) {
    thread_pool *pool = pool_open(WICK_THREADS_MAX);
    REQUIRE(pool != NULL);
    check_units(pool, WICK_THREADS_MAX, UNITS_MAX);
    pool_close(pool);
  }
}

#if WICK_THREADS
TEST(fast_threads_take_the_work_of_slow_ones) {
  static const struct {
    uint32_t threads, cost[4], time_max;
  } cases[] = {
      {2, {1, 2}, 740},  // 1.35 times as fast as one thread; 667 at best, 1000 with equal runs
      {2, {2, 1}, 740},  //
      {2, {1, 5}, 900},  // 833 at best
      {4, {1, 1, 1, 3}, 320},  // 300 at best
      {4, {1, 1, 2, 2}, 360},  // 333 at best
      {4, {4, 4, 4, 1}, 600},  // 571 at best
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    static race now;
    now = (race){.units = UNITS_MAX, .threads = cases[i].threads};
    memcpy(now.cost, cases[i].cost, sizeof now.cost);
    thread_pool *pool = pool_open(now.threads);
    REQUIRE(pool != NULL);
    pool_await_helpers(pool, now.threads);
    const uint32_t time = race_time(pool, &now);
    CHECK(time <= cases[i].time_max);
    if (time > cases[i].time_max) printf("# case %zu takes %u\n", i, time);
    pool_close(pool);
  }
}

TEST(idle_helpers_use_no_cpu) {
  thread_pool *pool = pool_open(4);
  REQUIRE(pool != NULL);
  pool_await_helpers(pool, 4);
  check_units(pool, 4, 100);
  sleep_ms(20);
  const double before = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
  sleep_ms(300);
  CHECK(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - before < 15);
  check_units(pool, 4, 100);
  pool_close(pool);
}

// The caller finishes its unit only after the helpers have started theirs.
static void run_slow_helpers(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  _Atomic uint32_t *begun = context;
  (void)first;
  (void)last;
  if (thread == 0) {
    while (*begun < 2) sleep_ms(1);
  } else {
    (*begun)++;
    sleep_ms(150);
  }
}

TEST(a_caller_sleeps_while_it_waits_for_a_slow_helper) {
  thread_pool *pool = pool_open(3);
  REQUIRE(pool != NULL);
  pool_await_helpers(pool, 3);
  const double wall = cpu_ms(CLOCK_MONOTONIC);
  const double before = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
  _Atomic uint32_t begun = 0;
  thread_pool_for(pool, 3, run_slow_helpers, (void *)&begun);
  CHECK(cpu_ms(CLOCK_THREAD_CPUTIME_ID) - before < 15);
  CHECK(cpu_ms(CLOCK_MONOTONIC) - wall >= 150);
  pool_close(pool);
}

static void do_nothing(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  (void)context;
  (void)first;
  (void)last;
  (void)thread;
}

static double barrier_us(thread_pool *pool, uint32_t units, int jobs) {
  const double start = cpu_ms(CLOCK_MONOTONIC);
  for (int i = 0; i < jobs; i++) thread_pool_for(pool, units, do_nothing, NULL);
  return (cpu_ms(CLOCK_MONOTONIC) - start) * 1e3 / jobs;
}

// Returns the mean cost of a job that starts just after the helpers have fallen asleep.
static double wake_us(thread_pool *pool, uint32_t units) {
  const int jobs = 100;
  double total_us = 0;
  for (int i = 0; i < jobs; i++) {
    sleep_ms(1);
    total_us += barrier_us(pool, units, 1);
  }
  return total_us / jobs;
}

BENCH(of_barriers) {
  for (uint32_t threads = 1; threads <= 4; threads++) {
    thread_pool *pool = pool_open(threads);
    REQUIRE(pool != NULL);
    pool_await_helpers(pool, threads);
    barrier_us(pool, threads, 10000);
    printf("# %u threads: barrier %.3f us, after sleep %.1f us\n", threads,
           barrier_us(pool, threads, 50000), wake_us(pool, threads));
    pool_close(pool);
  }
}
#endif

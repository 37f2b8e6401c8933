// thread/pool.c — the pool: an order and a run per helper, and one count of helpers that are still
// working.
//
//   caller                               helper i
//     job, context, runs                   spins, then sleeps on `order`
//     pending = helpers that take part
//     order++  ------------------------->  takes pieces of its run, then of others
//     takes pieces of its run, then of others
//     spins, then sleeps on `pending` <--  pending--, the last one wakes a sleeping caller
//
// Threads of equal speed take no pieces from each other, so each keeps reading the same rows. A
// faster thread finishes the runs of slower ones.
//
// Both words have a bit that is set while their reader sleeps. The reader sets it with one atomic
// operation that fails if the word has changed. So no system call is made for a reader that is
// awake, and no wake-up is lost.
#include "thread/pool.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/checked.h"
#include "platform/platform.h"

// A reader spins for SPIN_US_MAX before it sleeps: about the cost of sleeping and being woken
// (6 to 26 us; a barrier of spinning threads costs 0.3). A reader that spins without success halves
// its time, down to SPIN_US_MIN, so that threads do not block each other if there are more threads
// than cores. Every SPIN_MISSES_TO_PROBE misses, it tries the full time again. The clock is read
// every SPIN_ROUNDS_TIMED rounds. SPIN_ROUNDS_MAX bounds the spin if a browser's clock does not
// advance.
enum {
  SPIN_US_MAX = 20,
  SPIN_US_MIN = 1,
  SPIN_MISSES_TO_PROBE = 16,
  SPIN_ROUNDS_TIMED = 64,
  SPIN_ROUNDS_MAX = 65536
};

static const uint32_t ASLEEP = 1u << 31;
static const uint32_t ORDER_QUIT = 1u << 30;
static const uint32_t ORDER_COUNT_MASK = (1u << 30) - 1;
static const uint64_t SLEEP_US_MAX = 3600000000u;

typedef enum helper_state { HELPER_EXPECTED = 0, HELPER_ARRIVED = 1, HELPER_LEFT = 2 } helper_state;

typedef struct spin_budget {
  uint32_t time_us, misses;
} spin_budget;

// The units [next, last) of a job that are still to be taken. Empty between jobs.
typedef struct pool_run {
  _Atomic uint32_t next;
  uint32_t last;
} pool_run;

typedef struct pool_helper {
  _Alignas(CACHE_LINE_BYTES) _Atomic uint32_t order;  // jobs started so far | QUIT | ASLEEP
  pool_run run;                                       // written before `order`, in the same line
  uint32_t orders_given;                              // the caller's
  _Atomic uint32_t state;                             // helper_state
  uint32_t index;                                     // 1..threads-1
  spin_budget budget;                                 // the helper's
  thread_pool *pool;
  uintptr_t handle;
} pool_helper;

struct thread_pool {
  memory_gate *memory;
  const wick_host *host;  // starts the helpers; NULL: the platform does
  thread_job job;
  void *context;
  uint32_t least;         // minimum number of units per piece
  uint32_t slot_count;    // number of requested helpers: the size of `helpers`
  uint32_t helper_count;  // number of started helpers, whether they have arrived or not; only the
                          // caller uses it
  uint32_t limit;         // limit on participating threads; 0: no limit
  spin_budget budget;     // the caller's
  _Alignas(CACHE_LINE_BYTES) _Atomic uint32_t pending;  // working helpers | ASLEEP
  pool_run run;  // the caller's run; helpers read it just before they change `pending`
  pool_helper helpers[];
};

static inline void spin_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value) {
  platform_wait32((const uint32_t *)word, value, SLEEP_US_MAX);
}

static void wake_one(_Atomic uint32_t *word) { platform_wake32((const uint32_t *)word, 1); }

// Reads *word until it equals `value` (is_equal) or differs from it; returns false if the time is
// up.
static bool spin_until(_Atomic uint32_t *word, uint32_t value, bool is_equal, spin_budget *budget) {
  uint64_t end_us = 0;
  for (uint32_t round = 1; round < SPIN_ROUNDS_MAX; round++) {
    if ((atomic_load_explicit(word, memory_order_acquire) == value) == is_equal) {
      budget->time_us = SPIN_US_MAX;
      return true;
    }
    spin_pause();
    if (round % SPIN_ROUNDS_TIMED == 0) {
      const uint64_t now_us = platform_now_us();
      if (end_us == 0) end_us = now_us + budget->time_us;
      if (now_us >= end_us) break;
    }
  }
  const uint32_t half_us = budget->time_us / 2;
  budget->misses++;
  budget->time_us = half_us > SPIN_US_MIN ? half_us : SPIN_US_MIN;
  if (budget->misses % SPIN_MISSES_TO_PROBE == 0) budget->time_us = SPIN_US_MAX;
  return false;
}

// ---- pieces ----

// A piece is a third of the rest of a run, but at least a sixteenth of the run. So even a thread
// that takes five times as long as the others finishes at about the same time.
enum { PIECE_PARTS = 3, RUN_PIECES = 16 };

static bool take_piece(pool_run *run, uint32_t least, uint32_t *first, uint32_t *last) {
  uint32_t next = atomic_load_explicit(&run->next, memory_order_relaxed);
  while (next < run->last) {
    const uint32_t left = run->last - next;
    uint32_t count = ceil_div_u32(left, PIECE_PARTS);
    if (count < least) count = least < left ? least : left;
    if (atomic_compare_exchange_weak_explicit(&run->next, &next, next + count, memory_order_relaxed,
                                              memory_order_relaxed)) {
      *first = next;
      *last = next + count;
      return true;
    }
  }
  return false;
}

// Processes the thread's own run, then pieces of other runs. Runs of helpers that do not take part
// are empty.
static void work(thread_pool *pool, uint32_t thread) {
  const uint32_t threads = pool->helper_count + 1;
  for (uint32_t i = 0; i < threads; i++) {
    const uint32_t owner = (thread + i) % threads;
    pool_run *run = owner == 0 ? &pool->run : &pool->helpers[owner - 1].run;
    uint32_t first, last;
    while (take_piece(run, pool->least, &first, &last)) {
      pool->job(pool->context, first, last, thread);
    }
  }
}

// ---- helpers ----

// Returns the first order after `seen`.
static uint32_t helper_await_order(pool_helper *helper, uint32_t seen) {
  if (spin_until(&helper->order, seen, false, &helper->budget)) {
    return atomic_load_explicit(&helper->order, memory_order_acquire);
  }
  uint32_t order = seen;
  const uint32_t asleep = seen | ASLEEP;
  if (atomic_compare_exchange_strong(&helper->order, &order, asleep)) {
    do {
      sleep_on(&helper->order, asleep);
      order = atomic_load_explicit(&helper->order, memory_order_acquire);
    } while (order == asleep);
  }
  return order;
}

void thread_pool_helper_main(thread_pool *pool, uint32_t index) {
  if (index == 0 || index > pool->slot_count) return;
  pool_helper *helper = &pool->helpers[index - 1];
  uint32_t expected = HELPER_EXPECTED;
  if (!atomic_compare_exchange_strong(&helper->state, &expected, HELPER_ARRIVED)) return;
  uint32_t order = helper_await_order(helper, 0);
  while ((order & ORDER_QUIT) == 0) {
    work(pool, index);
    const uint32_t pending = atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_acq_rel);
    if (pending == (ASLEEP | 1)) wake_one(&pool->pending);
    order = helper_await_order(helper, order);
  }
  atomic_store_explicit(&helper->state, HELPER_LEFT, memory_order_release);
  wake_one(&helper->state);
}

static void helper_entry(void *argument) {
  pool_helper *helper = argument;
  thread_pool_helper_main(helper->pool, helper->index);
}

static bool helper_has_arrived(const pool_helper *helper) {
  return atomic_load_explicit(&helper->state, memory_order_acquire) == HELPER_ARRIVED;
}

static void helper_order(pool_helper *helper, uint32_t order) {
  const uint32_t before = atomic_exchange_explicit(&helper->order, order, memory_order_acq_rel);
  if ((before & ASLEEP) != 0) wake_one(&helper->order);
}

// ---- the caller ----

static bool start_helper(const thread_pool *pool, pool_helper *helper) {
  const wick_host *host = pool->host;
  if (host == NULL) return platform_thread_start(helper_entry, helper, &helper->handle);
  return host->thread_start(host->context, helper_entry, helper, &helper->handle);
}

static void join_helper(const thread_pool *pool, const pool_helper *helper) {
  const wick_host *host = pool->host;
  if (host == NULL) {
    platform_thread_join(helper->handle);
  } else {
    host->thread_join(host->context, helper->handle);
  }
}

wick_status thread_pool_create(memory_gate *memory, const wick_host *host, uint32_t threads,
                               thread_pool **out, wick_error *error) {
  if (threads == 0 || threads > WICK_THREADS_MAX) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "threads is %u, not 1 to %d", threads,
                     WICK_THREADS_MAX);
  }
  const uint32_t wanted = WICK_THREADS == 0 ? 0 : threads - 1;
  const size_t size_bytes = sizeof(thread_pool) + wanted * sizeof(pool_helper);
  thread_pool *pool = memory_alloc_zeroed(memory, size_bytes);
  if (pool == NULL) return memory_fail(memory, error, "thread pool");
  pool->memory = memory;
  if (host != NULL && host->thread_start != NULL) pool->host = host;
  pool->slot_count = wanted;
  for (uint32_t i = 0; i < wanted; i++) {
    pool->helpers[i].pool = pool;
    pool->helpers[i].index = i + 1;
  }
  pool_helper *next = pool->helpers;
  while (pool->helper_count < wanted && start_helper(pool, next)) {
    pool->helper_count++;
    next++;
  }
  *out = pool;
  return WICK_OK;
}

void thread_pool_destroy(thread_pool *pool) {
  if (pool == NULL) return;
  for (uint32_t i = 0; i < pool->helper_count; i++) helper_order(&pool->helpers[i], ORDER_QUIT);
  for (uint32_t i = 0; i < pool->helper_count; i++) {
    pool_helper *helper = &pool->helpers[i];
    while (helper_has_arrived(helper)) sleep_on(&helper->state, HELPER_ARRIVED);
    join_helper(pool, helper);
  }
  memory_free(pool->memory, pool);
}

uint32_t thread_pool_started(const thread_pool *pool) { return 1 + pool->helper_count; }

uint32_t thread_pool_threads(const thread_pool *pool) {
  uint32_t threads = 1;
  for (uint32_t i = 0; i < pool->helper_count; i++) {
    threads += helper_has_arrived(&pool->helpers[i]) ? 1 : 0;
  }
  return threads;
}

void thread_pool_limit(thread_pool *pool, uint32_t threads) { pool->limit = threads; }

static void await_helpers(thread_pool *pool) {
  if (spin_until(&pool->pending, 0, true, &pool->budget)) return;
  uint32_t pending = atomic_fetch_or(&pool->pending, ASLEEP) | ASLEEP;
  while (pending != ASLEEP) {
    sleep_on(&pool->pending, pending);
    pending = atomic_load_explicit(&pool->pending, memory_order_acquire);
  }
}

// Returns run `run` out of `runs` for [0, units).
static void fill_run(pool_run *run, uint32_t units, uint32_t index, uint32_t runs) {
  const uint32_t first = (uint32_t)((uint64_t)units * index / runs);
  run->last = (uint32_t)((uint64_t)units * (index + 1) / runs);
  atomic_store_explicit(&run->next, first, memory_order_relaxed);
}

void thread_pool_for(thread_pool *pool, uint32_t units, thread_job job, void *context) {
  thread_pool_for_pieces(pool, units, 1, job, context);
}

void thread_pool_for_pieces(thread_pool *pool, uint32_t units, uint32_t least, thread_job job,
                            void *context) {
  uint8_t takers[WICK_THREADS_MAX];  // helper of each run except the caller's
  uint32_t runs = 1;
  const uint32_t most = pool->limit > 0 && pool->limit < units ? pool->limit : units;
  for (uint32_t i = 0; i < pool->helper_count && runs < most; i++) {
    if (helper_has_arrived(&pool->helpers[i])) takers[runs++] = (uint8_t)i;
  }
  if (WICK_THREADS == 0 || runs == 1) {
    if (units > 0) job(context, 0, units, 0);
    return;
  }
  pool->job = job;
  pool->context = context;
  pool->least = ceil_div_u32(units, runs * RUN_PIECES);
  if (pool->least < least) pool->least = least;
  atomic_store_explicit(&pool->pending, runs - 1, memory_order_relaxed);
  // all runs are written before the first order, because a helper with an order may take pieces of
  // any run
  fill_run(&pool->run, units, 0, runs);
  for (uint32_t run = 1; run < runs; run++) {
    fill_run(&pool->helpers[takers[run]].run, units, run, runs);
  }
  for (uint32_t run = 1; run < runs; run++) {
    pool_helper *helper = &pool->helpers[takers[run]];
    helper->orders_given = (helper->orders_given + 1) & ORDER_COUNT_MASK;
    helper_order(helper, helper->orders_given);
  }
  work(pool, 0);
  await_helpers(pool);
}

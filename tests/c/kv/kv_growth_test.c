// How many pages a pool allocates, when it reclaims pages held by a cache, and which free page it
// takes, compared with a direct computation of the rules.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kv/pool_types.h"
#include "platform/platform.h"

enum { HELD_MAX = 16 };

static const kv_shape SHAPE = {1, 1, 4, KERNEL_KV_F32, KERNEL_KV_F32, 0};
static memory_gate memory;
static wick_error error;

// Holds pages and frees them on request, like the prefix cache.
typedef struct keeper {
  kv_pool *pool;
  kv_page_id pages[HELD_MAX];
  uint32_t count, asked, counted;
} keeper;

static uint32_t count_held(void *context) {
  keeper *keeper = context;
  keeper->counted++;
  return keeper->count;
}

static void free_held(void *context, uint32_t pages) {
  keeper *keeper = context;
  keeper->asked += pages;
  if (!CHECK(pages > 0 && pages <= keeper->count)) return;
  for (; pages > 0; pages--) kv_page_release(keeper->pool, keeper->pages[--keeper->count]);
}

typedef struct situation {
  uint32_t made, made_max, keep, free, held;  // pages
} situation;

// Pages that are neither free nor held belong to a sequence.
static void open_situation(const situation *at, keeper *keeper) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  *keeper = (struct keeper){0};
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &SHAPE, at->made, at->made_max, &keeper->pool,
                       NULL) == WICK_OK);
  for (uint32_t i = 0; i < at->made; i++) CHECK_EQ_INT(kv_page_take(keeper->pool), (int)i);
  CHECK_EQ_INT(kv_page_take(keeper->pool), KV_PAGE_NONE);
  for (uint32_t i = 0; i < at->held; i++) keeper->pages[keeper->count++] = (kv_page_id)i;
  for (uint32_t i = 0; i < at->free; i++) {
    kv_page_release(keeper->pool, (kv_page_id)(at->held + i));
  }
  const kv_holder holder = {keeper, count_held, free_held};
  kv_pool_set_holder(keeper->pool, &holder);
  kv_pool_set_keep(keeper->pool, at->keep);
}

static void close_situation(const keeper *keeper) {
  kv_pool_destroy(keeper->pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static uint32_t less(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t over(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }

static void check_reserve(const situation *at, uint32_t wanted) {
  const uint32_t available = at->free + at->held + at->made_max - at->made;
  const uint32_t missing = over(wanted, at->free);
  // the pool allocates pages up to its keep limit
  const uint32_t needed = over(missing, at->held);
  uint32_t growth = less(missing, over(at->keep, at->made));
  if (growth < needed) growth = needed;
  keeper keeper;
  kv_shortage shortage = {0};
  open_situation(at, &keeper);
  CHECK_EQ_UINT(kv_pool_pages_available(keeper.pool), available);
  keeper.counted = 0;
  const uint64_t calls = memory.calls;
  const wick_status status = kv_pool_reserve(keeper.pool, wanted, &shortage, &error);
  const bool fits = wanted <= available;
  bool is_right = status == (fits ? WICK_OK : WICK_E_PAGES);
  is_right &= kv_pool_pages(keeper.pool) == at->made + (fits ? growth : 0);
  is_right &= keeper.asked == (fits ? missing - growth : 0);
  is_right &= kv_pool_pages_free(keeper.pool) == at->free + (fits ? missing : 0);
  // if enough pages are free, neither the cache nor the host is asked for memory
  is_right &= (keeper.counted == 0) == (wanted <= at->free);
  is_right &= (memory.calls == calls) == (!fits || growth == 0);
  is_right &= fits || (shortage.pages_needed == wanted && shortage.pages_available == available);
  if (!CHECK(is_right)) {
    printf("#   made %u of %u, keep %u, free %u, held %u, wanted %u: %s, made %u, asked %u\n",
           at->made, at->made_max, at->keep, at->free, at->held, wanted, wick_status_name(status),
           kv_pool_pages(keeper.pool), keeper.asked);
  }
  close_situation(&keeper);
  open_situation(at, &keeper);  // the same without reclaiming held pages
  const uint32_t most = over(less(wanted, available), at->free);
  growth = less(most, over(at->keep, at->made));
  if (growth < over(most, at->held)) growth = over(most, at->held);
  CHECK_EQ_INT(kv_pool_grow_for(keeper.pool, wanted, &error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages(keeper.pool), at->made + growth);
  CHECK_EQ_UINT(kv_pool_pages_free(keeper.pool), at->free + growth);
  CHECK_EQ_UINT(keeper.asked, 0);
  CHECK((keeper.counted == 0) == (wanted <= at->free));
  close_situation(&keeper);
}

// Pages up to `keep` are allocated before held ones are reclaimed; beyond `keep`, held ones are
// reclaimed first.
TEST(a_pool_grows_according_to_its_rules) {
  for (uint32_t made = 0; made <= 5; made++) {
    for (uint32_t room = 0; room <= 4; room += 2) {
      for (uint32_t keep = 0; keep <= made + room; keep++) {
        for (uint32_t free = 0; free <= made; free++) {
          for (uint32_t held = 0; held + free <= made; held++) {
            const situation at = {made, made + room, keep, free, held};
            for (uint32_t wanted = 0; wanted <= made + room + 1; wanted += 1 + wanted / 4) {
              check_reserve(&at, wanted);
            }
          }
        }
      }
    }
  }
}

// If there is not enough memory for all the pages up to `keep`, only the needed ones are allocated,
// and held pages are reclaimed for the rest. If neither suffices, nothing changes.
TEST(a_pool_that_cannot_grow_reclaims_held_pages) {
  const situation at = {4, 12, 10, 0, 3};
  for (uint32_t wanted = 1; wanted <= 6; wanted++) {
    for (uint64_t fails = 1; fails < 12; fails++) {
      keeper keeper;
      error = (wick_error){0};
      open_situation(&at, &keeper);
      memory.fail_at_call = memory.calls + fails;
      const wick_status status = kv_pool_reserve(keeper.pool, wanted, NULL, &error);
      const bool has_failed = memory.calls >= memory.fail_at_call;
      const uint32_t needed = over(wanted, at.held);
      CHECK_EQ_INT(status, WICK_OK);  // a second attempt requests less memory and succeeds
      CHECK_EQ_UINT(kv_pool_pages_free(keeper.pool), wanted);
      CHECK_EQ_UINT(kv_pool_pages(keeper.pool), at.made + (has_failed ? needed : wanted));
      CHECK_EQ_UINT(keeper.asked, has_failed ? wanted - needed : 0);
      close_situation(&keeper);
      open_situation(&at, &keeper);
      memory.fail_from_call = memory.calls + 1;
      const wick_status lasting = kv_pool_reserve(keeper.pool, wanted, NULL, &error);
      CHECK_EQ_INT(lasting, needed == 0 ? WICK_OK : WICK_E_NOMEM);
      CHECK_EQ_UINT(kv_pool_pages(keeper.pool), at.made);
      CHECK_EQ_UINT(keeper.asked, needed == 0 ? wanted : 0);
      CHECK(lasting == WICK_OK || strncmp(error.message, "out of memory: ", 15) == 0);
      memory.fail_from_call = 0;
      close_situation(&keeper);
      if (!has_failed) break;
    }
  }
}

// If allocating the needed pages fails, the allocation is not repeated.
TEST(a_failed_allocation_of_needed_pages_is_not_repeated) {
  static const situation ROWS[] = {{4, 12, 0, 0, 0}, {4, 12, 7, 0, 0}, {4, 12, 0, 0, 2}};
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    keeper keeper;
    open_situation(&ROWS[i], &keeper);
    memory.fail_at_call = memory.calls + 1;
    const uint64_t calls = memory.calls;
    CHECK_EQ_INT(kv_pool_reserve(keeper.pool, 3, NULL, &error), WICK_E_NOMEM);
    CHECK_EQ_UINT(memory.calls, calls + 1);
    CHECK_EQ_UINT(kv_pool_pages(keeper.pool), 4);
    CHECK_EQ_UINT(keeper.asked, 0);
    close_situation(&keeper);
  }
}

TEST(the_lowest_free_page_is_taken) {
  enum { PAGES = 9 };
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_pool *pool = NULL;
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &SHAPE, PAGES, PAGES, &pool, NULL) == WICK_OK);
  for (uint32_t first = 0; first < PAGES; first++) {
    for (uint32_t second = 0; second < PAGES; second++) {
      for (uint32_t i = 0; i < PAGES; i++) CHECK_EQ_INT(kv_page_take(pool), (int)i);
      CHECK_EQ_INT(kv_page_take(pool), KV_PAGE_NONE);
      CHECK_EQ_UINT(kv_pool_pages_free(pool), 0);
      kv_page_release(pool, (kv_page_id)first);
      if (second != first) kv_page_release(pool, (kv_page_id)second);
      CHECK_EQ_INT(kv_page_take(pool), (int)(first < second ? first : second));
      if (second != first) CHECK_EQ_INT(kv_page_take(pool), (int)(first < second ? second : first));
      CHECK_EQ_INT(kv_page_take(pool), KV_PAGE_NONE);
      for (uint32_t i = PAGES; i-- > 0;) kv_page_release(pool, (kv_page_id)i);
    }
  }
  const kv_stats stats = kv_pool_stats(pool);
  CHECK_EQ_UINT(stats.used_pages, 0);
  CHECK_EQ_UINT(stats.used_pages_max, PAGES);
  CHECK_EQ_UINT(stats.pages_allocated, stats.pages_freed);
  CHECK_EQ_UINT(stats.pages_allocated, PAGES * PAGES * (PAGES + 2) - PAGES);
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

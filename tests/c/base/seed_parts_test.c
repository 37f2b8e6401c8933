// Parts of the seed systems (tests/c/conformance/README.md) that none of their 80 cases calls: true
// and nominal sizes of KV types, single entries, lookup by hash, clearing.
#include <string.h>

#include "check.h"
#include "consistency.h"
#include "kernels/kernels.h"
#include "kv/prefix.h"
#include "platform/platform.h"
#include "reference/pages.h"
#include "reference/prefix_lookup.h"

TEST(kv_types_have_their_sizes_and_ratios) {
  const struct {
    kernel_kv_type type;
    double nominal, bytes;
  } types[] = {{KERNEL_KV_F32, 4, 4},
               {KERNEL_KV_F16, 2, 2},
               {KERNEL_KV_Q8, 1, 1.125},
               {KERNEL_KV_Q4, 0.5, 0.625}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const kernel_kv_type type = types[i].type;
    CHECK_NEAR(kv_type_value_bytes_nominal(type), types[i].nominal, 0);
    CHECK_NEAR(kv_type_value_bytes(type), types[i].bytes, 0);
    CHECK_NEAR(kv_type_reduction_ratio_nominal(type), 4 / types[i].nominal, 0);
    CHECK_NEAR(kv_type_reduction_ratio(type), 4 / types[i].bytes, 0);
    // checks the actual size of a page in bytes
    const kv_shape shape = {1, 8, 64, type, type, 0};
    kv_layout layout;
    REQUIRE(kv_layout_init(&layout, kernels_bind(), &shape, NULL) == WICK_OK);
    CHECK_NEAR((double)layout.data_bytes, 2 * 8192 * types[i].bytes, 0);
  }
  CHECK_NEAR(kv_type_reduction_ratio(KERNEL_KV_Q8), 3.5556, 5e-5);
  CHECK_NEAR(kv_type_reduction_ratio(KERNEL_KV_Q4), 6.4, 1e-12);
  CHECK_NEAR(kv_type_value_bytes((kernel_kv_type)99), 0, 0);
  CHECK_NEAR(kv_type_reduction_ratio_nominal((kernel_kv_type)99), 0, 0);
}

TEST(an_entry_counts_its_users) {
  prefix_entry entry;
  prefix_entry_init(&entry, 0x1234, 48, 7);
  CHECK_EQ_UINT(entry.hash, 0x1234);
  CHECK_EQ_UINT(entry.token_count, 48);
  CHECK_EQ_INT(entry.page, 7);
  CHECK_EQ_UINT(entry.ref_count, 1);
  CHECK_EQ_UINT(entry.last_access_tick, 0);
  CHECK_EQ_UINT(entry.parent, PREFIX_NONE);
  prefix_entry_retain(&entry);
  CHECK_EQ_UINT(entry.ref_count, 2);
  bool is_idle = true;
  CHECK_EQ_INT(prefix_entry_release(&entry, &is_idle), WICK_OK);
  CHECK(!is_idle);
  CHECK_EQ_INT(prefix_entry_release(&entry, &is_idle), WICK_OK);
  CHECK(is_idle);
  CHECK_EQ_INT(prefix_entry_release(&entry, &is_idle), WICK_E_ARG);
  CHECK_EQ_UINT(entry.ref_count, 0);
}

// ---- A cache of single tokens ----

enum { PAGES = 4 };
static const cache_salt NO_SALT = {0};

static memory_gate memory;
static kv_pool *pool;
static prefix_cache *cache;

static bool open_cache(void) {
  const kv_shape shape = {1, 1, 32, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  const prefix_config config = {.entries_max = PAGES, .page_tokens = 1};
  memory_init(&memory, 0, platform_alloc, platform_free);
  return kv_pool_init(&memory, kernels_bind(), &shape, PAGES, PAGES, &pool, NULL) == WICK_OK &&
         prefix_cache_init(&memory, pool, &config, &cache, NULL) == WICK_OK;
}

static void close_cache(void) {
  CHECK_EQ_INT(prefix_check(cache, NULL), WICK_OK);
  CHECK_EQ_INT(kv_pool_check(pool, NULL), WICK_OK);
  prefix_cache_destroy(cache);
  CHECK_EQ_UINT(kv_pool_pages_free(pool), PAGES);
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Inserts an entry with one user for a page without other users.
static prefix_id insert(prefix_id parent, int32_t token) {
  kv_page_id page = KV_PAGE_NONE;
  prefix_id id = PREFIX_NONE;
  bool existed;
  CHECK_EQ_INT(kv_page_take_held(pool, &page, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(prefix_insert(cache, parent, NO_SALT, &token, page, &id, &existed, NULL), WICK_OK);
  kv_page_unhold(pool, page);
  return id;
}

TEST(a_lookup_by_hash_counts_a_hit_and_refreshes_the_entry) {
  REQUIRE(open_cache());
  const int32_t token = 5, other = 6;
  const prefix_id id = insert(PREFIX_NONE, token);
  const uint64_t tick = prefix_tick(cache);
  CHECK_EQ_UINT(prefix_lookup_hash(cache, page_hash(0, 0, &token, 1)), id);
  CHECK_EQ_UINT(prefix_tick(cache), tick + 1);
  CHECK_EQ_UINT(prefix_entry_at(cache, id)->last_access_tick, tick + 1);
  CHECK_EQ_UINT(prefix_lookup_hash(cache, page_hash(0, 0, &other, 1)), PREFIX_NONE);
  CHECK_EQ_UINT(prefix_tick(cache), tick + 1);
  const prefix_stats stats = prefix_stats_get(cache);
  CHECK_EQ_UINT(stats.hits, 1);
  CHECK_EQ_UINT(stats.misses, 1);
  CHECK_EQ_UINT(stats.tokens_saved, 0);  // a matching hash alone does not permit reuse
  close_cache();
}

TEST(a_cleared_cache_finds_nothing_and_keeps_its_counters) {
  REQUIRE(open_cache());
  const int32_t tokens[] = {1, 2, 3};
  const prefix_id idle = insert(PREFIX_NONE, tokens[0]);
  const prefix_id used = insert(idle, tokens[1]);
  CHECK_EQ_INT(prefix_release(cache, idle), WICK_OK);
  CHECK_EQ_UINT(prefix_lookup_tokens(cache, NO_SALT, tokens, 2), used);
  const uint64_t tick = prefix_tick(cache);
  prefix_clear(cache);
  CHECK_EQ_UINT(prefix_count(cache), 0);
  CHECK(prefix_is_empty(cache));
  CHECK_EQ_UINT(prefix_tick(cache), tick);
  CHECK_EQ_UINT(prefix_lookup_tokens(cache, NO_SALT, tokens, 2), PREFIX_NONE);
  const prefix_stats stats = prefix_stats_get(cache);
  CHECK_EQ_UINT(stats.hits, 1);
  CHECK_EQ_UINT(stats.prefixes_cached, 2);
  CHECK_EQ_UINT(stats.prefixes_evicted, 0);
  // An entry in use is freed with its last user and keeps its page until then.
  CHECK_EQ_UINT(stats.pages_held, 1);
  CHECK_EQ_INT(prefix_release(cache, used), WICK_OK);
  CHECK_EQ_UINT(prefix_stats_get(cache).pages_held, 0);
  CHECK_EQ_UINT(kv_pool_pages_free(pool), PAGES);
  // The cache can be filled again.
  insert(PREFIX_NONE, tokens[2]);
  CHECK_EQ_UINT(prefix_count(cache), 1);
  close_cache();
}

TEST(a_cleared_cache_frees_each_entry_with_its_last_user) {
  REQUIRE(open_cache());
  enum { ENTRIES = 3 };  // each is the parent of the next
  static const uint32_t ORDERS[][ENTRIES] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
  for (size_t order = 0; order < sizeof ORDERS / sizeof *ORDERS; order++) {
    prefix_id ids[ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
      ids[i] = insert(i == 0 ? PREFIX_NONE : ids[i - 1], (int32_t)i);
    }
    prefix_clear(cache);
    for (uint32_t i = 0; i < ENTRIES; i++) {
      wick_error error = {0};
      CHECK_EQ_UINT(prefix_stats_get(cache).pages_held, ENTRIES - i);
      const prefix_entry *entry = prefix_entry_at(cache, ids[ORDERS[order][i]]);
      if (!CHECK(entry != NULL)) break;
      CHECK(!entry->is_linked);
      CHECK_EQ_UINT(entry->parent, PREFIX_NONE);
      CHECK_EQ_UINT(entry->child_count, 0);
      if (prefix_check(cache, &error) != WICK_OK) CHECK_EQ_STR(error.message, "");
      CHECK_EQ_INT(prefix_release(cache, ids[ORDERS[order][i]]), WICK_OK);
    }
    CHECK_EQ_UINT(prefix_stats_get(cache).pages_held, 0);
    CHECK(prefix_is_empty(cache));
  }
  close_cache();
}

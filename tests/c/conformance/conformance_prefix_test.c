// Conformance cases PX-01 to PX-10 of the seed systems: hashes of prefixes and pages, and the
// prefix cache, with the original's bugs fixed.
#include <string.h>

#include "check.h"
#include "consistency.h"
#include "kv/prefix.h"
#include "platform/platform.h"
#include "reference/prefix_lookup.h"

enum { PAGES = 8 };
static const cache_salt NO_SALT = {0};
static const cache_salt TENANT = {7, 0}, OTHER_LOW = {8, 0}, OTHER_HIGH = {7, 1};

// A cache over the conformance pool, and a sequence whose pages the entries refer to.
typedef struct prefix_case {
  memory_gate memory;
  kv_pool *pool;
  prefix_cache *cache;
  kv_seq_id seq;
} prefix_case;

static bool open_case(prefix_case *c, const prefix_config *config) {
  memset(c, 0, sizeof *c);
  memory_init(&c->memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 8, 64, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  wick_error error = {0};
  const bool is_open =
      kv_pool_init(&c->memory, kernels_bind(), &shape, PAGES, PAGES, &c->pool, &error) == WICK_OK &&
      prefix_cache_init(&c->memory, c->pool, config, &c->cache, &error) == WICK_OK &&
      kv_seq_new(c->pool, PAGES * KERNEL_PAGE_TOKENS, &c->seq, NULL, &error) == WICK_OK;
  return check_true(is_open, error.message, __FILE__, __LINE__);
}

// Checks that the pool, the cache and every page are consistent, and that nothing leaks.
static void close_case(prefix_case *c) {
  wick_error error = {0};
  if (!CHECK_EQ_INT(prefix_check(c->cache, &error), WICK_OK) ||
      !CHECK_EQ_INT(kv_pool_check(c->pool, &error), WICK_OK)) {
    CHECK_EQ_STR(error.message, "");
  }
  CHECK_EQ_INT(kv_seq_free(c->pool, c->seq, &error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).used_pages, prefix_stats_get(c->cache).pages_held);
  prefix_cache_destroy(c->cache);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), PAGES);
  kv_pool_destroy(c->pool);
  CHECK_EQ_UINT(c->memory.blocks_now, 0);
}

static kv_page_id page_at(const prefix_case *c, uint32_t index) {
  uint32_t count;
  return kv_seq_table(c->pool, c->seq, &count)[index].page;
}

// Inserts an entry with one user for page `index` of the sequence.
static prefix_id insert(prefix_case *c, prefix_id parent, const int32_t *tokens, uint32_t index) {
  prefix_id id = PREFIX_NONE;
  bool existed = true;
  wick_error error = {0};
  CHECK_EQ_INT(
      prefix_insert(c->cache, parent, NO_SALT, tokens, page_at(c, index), &id, &existed, &error),
      WICK_OK);
  CHECK(!existed);
  return id;
}

static prefix_id insert_idle(prefix_case *c, prefix_id parent, const int32_t *tokens,
                             uint32_t index) {
  const prefix_id id = insert(c, parent, tokens, index);
  CHECK_EQ_INT(prefix_release(c->cache, id), WICK_OK);
  return id;
}

static prefix_entry entry_of(const prefix_case *c, prefix_id id) {
  const prefix_entry *entry = prefix_entry_at(c->cache, id);
  return CHECK(entry != NULL) ? *entry : (prefix_entry){.page = KV_PAGE_NONE};
}

static wick_status insert_another(prefix_case *c, const int32_t *tokens) {
  prefix_id id;
  bool existed;
  return prefix_insert(c->cache, PREFIX_NONE, NO_SALT, tokens, page_at(c, 0), &id, &existed, NULL);
}

// In these cases, single-token entries are identified by their token.
static bool contains_token(const prefix_case *c, int32_t token) {
  return prefix_contains(c->cache, page_hash(0, 0, &token, 1));
}

static const int32_t COLLIDING[2][4] = {{5741, 8119, 25513, 1}, {8765, 14134, 30834, 27109}};

static void count_up(int32_t *tokens, int32_t from, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tokens[i] = from + (int32_t)i;
}

TEST(px_01_hash_vectors) {
  const struct {
    uint64_t hash;
    uint32_t count;
    int32_t tokens[5];
  } vectors[] = {
      {0xcbf29ce484222325u, 0, {0}},
      {0xaf63bd4c8601b7dfu, 1, {0}},
      {0xaf63bc4c8601b62cu, 1, {1}},
      {0x6b1d723e79fe466eu, 1, {-1}},  // 4294967295
      {0xb117bd4c88e693dfu, 1, {128000}},
      {0xd0aa6218672cf5abu, 3, {1, 2, 3}},
      {0xe1efc21870f169c3u, 3, {3, 2, 1}},
      {0xd0aa6718672cfe2au, 3, {1, 2, 4}},
      {0x0f66dcbf4f6b7d88u, 5, {1, 2, 3, 4, 5}},
      {0x08328807b4eb6fedu, 2, {0, 0}},
      {0x49ad49f4d05d0d87u, 4, {5741, 8119, 25513, 1}},
      {0x49ad49f4d05d0d87u, 4, {8765, 14134, 30834, 27109}},
  };
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    CHECK_EQ_UINT(prefix_hash(vectors[i].tokens, vectors[i].count), vectors[i].hash);
  }
  int32_t tokens[32];
  count_up(tokens, 0, 32);
  CHECK_EQ_UINT(prefix_hash(tokens, 16), 0x7c84dc9477851775u);
  const prefix_hash_t first = 0xd584204dd4eb74a7u;
  CHECK_EQ_UINT(page_hash(0, 0, tokens, 0), 0xaca6d6b54be3ed05u);
  CHECK_EQ_UINT(page_hash(0, 0, tokens, 16), first);
  CHECK_EQ_UINT(page_hash(first, 0, tokens + 16, 16), 0x9c59277afabfc908u);
  CHECK_EQ_UINT(page_hash(0, 1, tokens, 16), 0x40213d70f4e0ee07u);
}

TEST(px_02_default_cache) {
  prefix_case c;
  REQUIRE(open_case(&c, NULL));
  CHECK_EQ_UINT(prefix_capacity(c.cache), 100);
  CHECK_EQ_UINT(prefix_count(c.cache), 0);
  CHECK(prefix_is_empty(c.cache));
  const prefix_stats stats = prefix_stats_get(c.cache);
  CHECK_NEAR(prefix_hit_ratio(&stats), 0, 0);
  CHECK_NEAR(prefix_used_ratio(c.cache), 0, 0);
  close_case(&c);
}

TEST(px_03_insert_then_look_up) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 100, .page_tokens = 3}));
  const int32_t tokens[] = {1, 2, 3};
  const prefix_id id = insert(&c, PREFIX_NONE, tokens, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).prefixes_cached, 1);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).tokens_saved, 0);
  CHECK_EQ_UINT(prefix_tick(c.cache), 0);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, tokens, 3), id);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).hits, 1);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).misses, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).tokens_saved, 3);
  CHECK_EQ_UINT(prefix_tick(c.cache), 1);
  const prefix_entry entry = entry_of(&c, id);
  CHECK_EQ_UINT(entry.last_access_tick, 1);
  CHECK_EQ_UINT(entry.ref_count, 1);
  CHECK_EQ_UINT(entry.token_count, 3);
  CHECK_EQ_INT(entry.page, page_at(&c, 0));
  // inserting the same entry again overwrites nothing and is not counted twice
  prefix_id again;
  bool existed = false;
  CHECK_EQ_INT(
      prefix_insert(c.cache, PREFIX_NONE, NO_SALT, tokens, page_at(&c, 1), &again, &existed, NULL),
      WICK_OK);
  CHECK(existed && again == id);
  CHECK_EQ_INT(entry_of(&c, id).page, page_at(&c, 0));
  CHECK_EQ_UINT(prefix_stats_get(c.cache).prefixes_cached, 1);
  close_case(&c);
}

TEST(px_04_misses_and_the_hit_ratio) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 100, .page_tokens = 3}));
  const int32_t tokens[] = {1, 2, 3}, other[] = {7, 8, 9};
  CHECK(!prefix_contains(c.cache, page_hash(0, 0, tokens, 3)));  // the cache is still empty
  insert(&c, PREFIX_NONE, tokens, 0);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, other, 3), PREFIX_NONE);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).misses, 1);
  const prefix_stats before = prefix_stats_get(c.cache);
  CHECK(prefix_contains(c.cache, page_hash(0, 0, tokens, 3)));
  CHECK(!prefix_contains(c.cache, page_hash(0, 0, other, 3)));
  const prefix_stats after = prefix_stats_get(c.cache);
  CHECK_EQ_MEM(&after, &before, sizeof before);
  CHECK_EQ_UINT(prefix_tick(c.cache), 0);
  for (int i = 0; i < 3; i++) {
    CHECK(prefix_lookup_tokens(c.cache, NO_SALT, tokens, 3) != PREFIX_NONE);
  }
  const prefix_stats stats = prefix_stats_get(c.cache);
  CHECK_EQ_UINT(stats.hits, 3);
  CHECK_EQ_UINT(stats.misses, 1);
  CHECK_NEAR(prefix_hit_ratio(&stats), 0.75, 0);
  close_case(&c);
}

TEST(px_05_rejected_operations) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 2, .page_tokens = 1}));
  const int32_t tokens[] = {1, 2, 3};
  const prefix_id used = insert(&c, PREFIX_NONE, &tokens[0], 0);
  insert(&c, PREFIX_NONE, &tokens[1], 1);
  CHECK_EQ_INT(insert_another(&c, &tokens[2]), WICK_E_FULL);
  CHECK_EQ_UINT(prefix_count(c.cache), 2);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).prefixes_evicted, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).insert_refused, 1);
  CHECK(contains_token(&c, 1) && contains_token(&c, 2) && !contains_token(&c, 3));
  const prefix_stats before = prefix_stats_get(c.cache);
  const uint64_t tick = prefix_tick(c.cache);
  CHECK_EQ_INT(prefix_retain(c.cache, 77), WICK_E_RANGE);
  CHECK_EQ_INT(prefix_release(c.cache, 77), WICK_E_RANGE);
  CHECK_EQ_INT(prefix_release(c.cache, PREFIX_NONE), WICK_E_RANGE);
  const prefix_stats after = prefix_stats_get(c.cache);
  CHECK_EQ_MEM(&after, &before, sizeof before);
  CHECK_EQ_UINT(prefix_tick(c.cache), tick);
  CHECK_EQ_UINT(entry_of(&c, used).ref_count, 1);
  close_case(&c);
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 0, .page_tokens = 1}));
  CHECK_NEAR(prefix_used_ratio(c.cache), 0, 0);
  CHECK_EQ_INT(insert_another(&c, &tokens[0]), WICK_E_FULL);
  CHECK_EQ_UINT(prefix_count(c.cache), 0);
  close_case(&c);
}

TEST(px_06_the_least_recently_used_is_evicted) {
  prefix_case c;
  const int32_t tokens[] = {1, 2, 3, 4};
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 3, .page_tokens = 1}));
  for (uint32_t i = 0; i < 3; i++) insert_idle(&c, PREFIX_NONE, &tokens[i], i);
  CHECK(prefix_lookup_tokens(c.cache, NO_SALT, &tokens[1], 1) != PREFIX_NONE);
  CHECK(prefix_lookup_tokens(c.cache, NO_SALT, &tokens[2], 1) != PREFIX_NONE);
  insert(&c, PREFIX_NONE, &tokens[3], 3);
  CHECK(!contains_token(&c, 1));
  CHECK(contains_token(&c, 2) && contains_token(&c, 3) && contains_token(&c, 4));
  CHECK_EQ_UINT(prefix_count(c.cache), 3);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).prefixes_evicted, 1);
  close_case(&c);
  // with no lookups, the entry inserted first is evicted
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 2, .page_tokens = 1}));
  for (uint32_t i = 0; i < 2; i++) insert_idle(&c, PREFIX_NONE, &tokens[i], i);
  insert(&c, PREFIX_NONE, &tokens[2], 2);
  CHECK(!contains_token(&c, 1) && contains_token(&c, 2) && contains_token(&c, 3));
  close_case(&c);
  // an entry with a child is not a leaf and stays, however long ago it was used
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 2, .page_tokens = 1}));
  const prefix_id root = insert_idle(&c, PREFIX_NONE, &tokens[0], 0);
  insert_idle(&c, root, &tokens[1], 1);
  insert(&c, PREFIX_NONE, &tokens[2], 2);
  CHECK(contains_token(&c, 1) && contains_token(&c, 3));
  CHECK_EQ_UINT(entry_of(&c, root).child_count, 0);
  close_case(&c);
}

TEST(unknown_ids_are_rejected) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 40, .page_tokens = 1}));
  for (int32_t token = 0; token < 40; token++) {
    const prefix_id id = insert_idle(&c, PREFIX_NONE, &token, 0);
    CHECK_EQ_UINT(id, (uint32_t)token);
    CHECK(prefix_entry_at(c.cache, id) != NULL && prefix_entry_at(c.cache, id + 1) == NULL);
    CHECK_EQ_INT(prefix_retain(c.cache, id + 1), WICK_E_RANGE);
    CHECK_EQ_INT(prefix_release(c.cache, id + 1), WICK_E_RANGE);
  }
  while (prefix_evict(c.cache)) continue;
  for (prefix_id id = 0; id <= 40; id++) CHECK(prefix_entry_at(c.cache, id) == NULL);
  close_case(&c);
}

TEST(px_07_released_entries_are_idle) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 4, .page_tokens = 1}));
  const int32_t token = 1;
  const prefix_id id = insert(&c, PREFIX_NONE, &token, 0);
  CHECK_EQ_INT(prefix_retain(c.cache, id), WICK_OK);
  CHECK_EQ_UINT(entry_of(&c, id).ref_count, 2);
  CHECK_EQ_INT(prefix_release(c.cache, id), WICK_OK);
  CHECK(!prefix_evict(c.cache));  // still in use
  CHECK_EQ_UINT(prefix_stats_get(c.cache).pages_held, 1);
  CHECK_EQ_INT(prefix_release(c.cache, id), WICK_OK);
  CHECK(contains_token(&c, 1));
  CHECK_EQ_UINT(entry_of(&c, id).ref_count, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).pages_held, 1);
  CHECK_EQ_INT(prefix_release(c.cache, id), WICK_E_ARG);  // no users left
  CHECK(contains_token(&c, 1));
  CHECK_EQ_UINT(kv_pool_page(c.pool, page_at(&c, 0))->ref_count, 2);
  CHECK(prefix_evict(c.cache));
  CHECK(!contains_token(&c, 1));
  CHECK_EQ_UINT(prefix_stats_get(c.cache).pages_held, 0);
  CHECK_EQ_UINT(kv_pool_page(c.pool, page_at(&c, 0))->ref_count, 1);
  close_case(&c);
}

// The original's hash, which has known collisions.
static prefix_hash_t seed_hash(prefix_hash_t parent, uint64_t salt, const int32_t *tokens,
                               uint32_t count) {
  (void)parent;
  (void)salt;
  return prefix_hash(tokens, count);
}

TEST(px_08_collisions_are_distinguished) {
  prefix_case c;
  const prefix_config config = {.entries_max = 4, .page_tokens = 4, .hash = seed_hash};
  REQUIRE(open_case(&c, &config));
  const prefix_id a = insert(&c, PREFIX_NONE, COLLIDING[0], 0);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, COLLIDING[1], 4), PREFIX_NONE);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).misses, 1);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).hits, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).collisions, 1);
  const prefix_id b = insert(&c, PREFIX_NONE, COLLIDING[1], 1);
  CHECK_EQ_UINT(prefix_count(c.cache), 2);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, COLLIDING[0], 4), a);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, COLLIDING[1], 4), b);
  CHECK_EQ_INT(entry_of(&c, a).page, page_at(&c, 0));
  CHECK_EQ_INT(entry_of(&c, b).page, page_at(&c, 1));
  close_case(&c);
  // the real page hash distinguishes them even without comparing tokens
  CHECK(page_hash(0, 0, COLLIDING[0], 4) != page_hash(0, 0, COLLIDING[1], 4));
}

// Entries with the same hash are distinguished by their tokens, their salt and their parent.
static prefix_hash_t same_hash(prefix_hash_t parent, uint64_t salt, const int32_t *tokens,
                               uint32_t count) {
  (void)parent;
  (void)salt;
  (void)tokens;
  (void)count;
  return 0x1234;
}

TEST(entries_with_equal_hashes_are_distinguished_by_any_token) {
  enum { TOKENS = 16 };
  prefix_case c;
  const prefix_config config = {.entries_max = 4, .page_tokens = TOKENS, .hash = same_hash};
  REQUIRE(open_case(&c, &config));
  int32_t tokens[TOKENS];
  count_up(tokens, 1, TOKENS);
  const prefix_id a = insert_idle(&c, PREFIX_NONE, tokens, 0);
  const prefix_id b = insert_idle(&c, a, tokens, 1);
  CHECK(a != b);
  for (uint32_t i = 0; i < TOKENS; i++) {
    tokens[i] ^= 0x01000000;
    CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, tokens, TOKENS), PREFIX_NONE);
    tokens[i] ^= 0x01000000;
    CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, tokens, TOKENS), a);
  }
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, TENANT, tokens, TOKENS), PREFIX_NONE);
  int32_t twice[2 * TOKENS];
  memcpy(twice, tokens, sizeof tokens);
  memcpy(twice + TOKENS, tokens, sizeof tokens);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, NO_SALT, twice, 2 * TOKENS), b);
  close_case(&c);
}

// Entries in use survive prefix_clear, but lose their parent, which may be freed before or after
// them and whose slot may be reused.
TEST(entries_that_survive_a_clear_have_no_parent) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 8, .page_tokens = 1}));
  const int32_t tokens[] = {1, 2, 3, 4};
  for (int keeps_parent = 0; keeps_parent < 2; keeps_parent++) {
    const prefix_id parent = insert(&c, PREFIX_NONE, &tokens[0], 0);
    const prefix_id child = insert(&c, parent, &tokens[1], 1);
    if (keeps_parent == 0) CHECK_EQ_INT(prefix_release(c.cache, parent), WICK_OK);
    prefix_clear(c.cache);
    CHECK(prefix_is_empty(c.cache));
    CHECK_EQ_INT(prefix_check(c.cache, NULL), WICK_OK);
    CHECK_EQ_UINT(entry_of(&c, child).parent, PREFIX_NONE);
    CHECK_EQ_UINT(entry_of(&c, child).child_count, 0);
    if (keeps_parent != 0) CHECK_EQ_UINT(entry_of(&c, parent).child_count, 0);
    // a new entry reuses the slot of the freed parent
    const prefix_id other = insert(&c, PREFIX_NONE, &tokens[2], 2);
    CHECK_EQ_UINT(other == parent, keeps_parent == 0);
    const prefix_id later = insert_idle(&c, other, &tokens[3], 3);
    CHECK_EQ_INT(prefix_release(c.cache, child), WICK_OK);
    CHECK_EQ_UINT(entry_of(&c, other).child_count, 1);
    CHECK_EQ_INT(prefix_check(c.cache, NULL), WICK_OK);
    if (keeps_parent != 0) CHECK_EQ_INT(prefix_release(c.cache, parent), WICK_OK);
    CHECK_EQ_UINT(entry_of(&c, later).parent, other);
    CHECK_EQ_INT(prefix_release(c.cache, other), WICK_OK);
    prefix_clear(c.cache);
    CHECK_EQ_UINT(prefix_stats_get(c.cache).pages_held, 0);
  }
  close_case(&c);
}

TEST(px_09_longest_prefix_of_single_tokens) {
  prefix_case c;
  REQUIRE(open_case(&c, &(prefix_config){.entries_max = 100, .page_tokens = 1}));
  const int32_t tokens[] = {1, 2, 3, 4, 5};
  prefix_id last = PREFIX_NONE;
  for (uint32_t i = 0; i < 3; i++) last = insert(&c, last, &tokens[i], i);
  prefix_id found;
  CHECK_EQ_UINT(prefix_find_longest(c.cache, NO_SALT, tokens, 5, &found), 3);
  CHECK_EQ_UINT(found, last);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).hits, 1);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).misses, 0);
  CHECK_EQ_UINT(prefix_stats_get(c.cache).tokens_saved, 3);
  close_case(&c);
}

// Returns the number of tokens that a fresh sequence gets; it must equal the number that a search
// finds.
static uint32_t attach(prefix_case *c, cache_salt salt, const int32_t *tokens, uint32_t count) {
  prefix_id last;
  const uint32_t found = prefix_find_longest(c->cache, salt, tokens, count, &last);
  CHECK((last == PREFIX_NONE) == (found == 0));
  kv_seq_id seq;
  uint32_t hit = 99, entries;
  CHECK_EQ_INT(kv_seq_new(c->pool, 0, &seq, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(prefix_attach(c->cache, seq, salt, tokens, count, &hit, NULL), WICK_OK);
  CHECK_EQ_UINT(hit, found);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), hit);
  const kv_entry *table = kv_seq_table(c->pool, seq, &entries);
  CHECK_EQ_UINT(entries, hit / KERNEL_PAGE_TOKENS);
  for (uint32_t i = 0; i < entries; i++) CHECK_EQ_INT(table[i].page, page_at(c, i));
  CHECK_EQ_INT(kv_seq_free(c->pool, seq, NULL), WICK_OK);
  return hit;
}

TEST(px_10_only_whole_pages_and_never_the_last_token) {
  prefix_case c;
  REQUIRE(open_case(&c, NULL));
  int32_t tokens[40];
  count_up(tokens, 100, 40);
  uint32_t known;
  CHECK_EQ_INT(kv_seq_append(c.pool, c.seq, 32, NULL), WICK_OK);
  CHECK_EQ_INT(prefix_store(c.cache, c.seq, TENANT, tokens, 32, &known, NULL), WICK_OK);
  CHECK_EQ_UINT(known, 32);
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 40), 32);
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 33), 32);
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 32), 16);
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 15), 0);
  const prefix_stats before = prefix_stats_get(c.cache);
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 0), 0);
  CHECK_EQ_UINT(prefix_lookup_tokens(c.cache, TENANT, tokens, 0), PREFIX_NONE);
  CHECK_EQ_UINT(attach(&c, OTHER_LOW, tokens, 40), 0);
  CHECK_EQ_UINT(attach(&c, OTHER_HIGH, tokens, 40), 0);  // its hash is the same
  const prefix_stats after = prefix_stats_get(c.cache);
  CHECK_EQ_UINT(after.hits, before.hits);
  CHECK_EQ_UINT(after.misses, before.misses + 7);
  tokens[31]++;
  CHECK_EQ_UINT(attach(&c, TENANT, tokens, 40), 16);
  close_case(&c);
}

// Conformance cases PK-01 to PK-21 except PK-10 of the seed systems: the page pool, allocating and
// freeing pages of sequences, access to their pages, and rejected operations.
#include "fixture_pool.h"
#include "reference/compaction.h"
#include "reference/pages.h"

TEST(pk_01_a_new_pool) {
  pool_case *c = pool_open(100, KERNEL_KV_Q8, 1);
  CHECK_EQ_INT(kv_pool_type(c->pool), KERNEL_KV_Q8);
  CHECK_EQ_UINT(kv_pool_pages(c->pool), 100);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 100);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).active_sequences, 0);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).used_pages, 0);
  for (int i = 0; i < 100; i++) CHECK_EQ_UINT(kv_pool_page(c->pool, i)->ref_count, 0);
  CHECK(kv_pool_page(c->pool, 100) == NULL);
  pool_close(c);
}

TEST(pk_02_a_sequence_takes_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_Q8, 1);
  const kv_seq_id seq = pool_new_seq(c, 32);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 98);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).active_sequences, 1);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).pages_allocated, 2);
  CHECK_EQ_UINT(seq, 1);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 0);  // reserved, but not stored
  CHECK_EQ_UINT(kv_seq_capacity(c->pool, seq), 32);
  pool_new_seq(c, 17);
  pool_free_seq(c, seq);
  // The lowest free pages, and a new id.
  const kv_seq_id third = pool_new_seq(c, 48);
  CHECK_EQ_UINT(third, 3);
  CHECK_EQ_INT(pool_page(c, third, 0)->id, 0);
  CHECK_EQ_INT(pool_page(c, third, 16)->id, 1);
  CHECK_EQ_INT(pool_page(c, third, 32)->id, 4);
  pool_close(c);
}

TEST(pk_03_a_freed_sequence_returns_its_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_Q4, 1);
  const kv_seq_id seq = pool_new_seq(c, 16);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 99);
  pool_free_seq(c, seq);
  const kv_stats stats = kv_pool_stats(c->pool);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 100);
  CHECK_EQ_UINT(stats.active_sequences, 0);
  CHECK_EQ_UINT(stats.sequences_freed, 1);
  CHECK_EQ_UINT(stats.pages_freed, 1);
  pool_close(c);
}

static void check_bytes_ratio(kernel_kv_type type, double below, double exact,
                              uint64_t page_bytes) {
  pool_case *c = pool_open(100, type, 1);
  CHECK_NEAR(kv_pool_bytes_ratio(c->pool), 1, 0);  // no page is in use
  pool_new_seq(c, 16);
  CHECK(kv_pool_bytes_ratio(c->pool) < below);
  CHECK_NEAR(kv_pool_bytes_ratio(c->pool), exact, 0);
  CHECK_EQ_UINT(kv_pool_bytes_used(c->pool), page_bytes);
  CHECK_EQ_UINT(kv_pool_bytes_capacity(c->pool), 100 * page_bytes);
  pool_close(c);
}

TEST(pk_04_bytes_saved_by_q8) { check_bytes_ratio(KERNEL_KV_Q8, 0.6, 0.28125, 18432); }

TEST(pk_05_bytes_saved_by_q4) { check_bytes_ratio(KERNEL_KV_Q4, 0.4, 0.15625, 10240); }

TEST(pk_06_positions_map_to_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_Q8, 1);
  const kv_seq_id seq = pool_new_seq(c, 32);
  const kv_page *first = pool_page(c, seq, 0), *second = pool_page(c, seq, 16);
  CHECK_EQ_INT(kv_page_type(first), KERNEL_KV_Q8);
  CHECK_EQ_INT(kv_page_type(second), KERNEL_KV_Q8);
  CHECK(first->id != second->id);
  CHECK(pool_page(c, seq, 15) == first);
  CHECK(pool_page(c, seq, 31) == second);
  uint64_t slot = 0;
  CHECK_EQ_INT(kv_seq_slot(c->pool, seq, 19, &slot, &c->error), WICK_OK);
  CHECK_EQ_UINT(slot, (uint64_t)second->id * 16 + 3);
  pool_close(c);
}

TEST(pk_07_a_writable_page) {
  pool_case *c = pool_open(100, KERNEL_KV_Q8, 1);
  const kv_seq_id seq = pool_new_seq(c, 16);
  kv_page *page = NULL;
  CHECK_EQ_INT(kv_page_mut(c->pool, seq, 0, &page, &c->shortage, &c->error), WICK_OK);
  REQUIRE(page != NULL);
  page->fill_tokens = 8;
  CHECK_EQ_UINT(pool_page(c, seq, 0)->fill_tokens, 8);
  CHECK_EQ_UINT(kv_page_room_tokens(pool_page(c, seq, 0)), 8);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).cow_operations, 0);  // no other sequence used it
  pool_close(c);
}

TEST(pk_08_out_of_pages) {
  pool_case *c = pool_open(1, KERNEL_KV_Q8, 1);
  pool_new_seq(c, 16);
  kv_seq_id seq = POOL_UNKNOWN_SEQ;
  CHECK_UNCHANGED(c, kv_seq_new(c->pool, 16, &seq, &c->shortage, &c->error), WICK_E_PAGES);
  CHECK_EQ_UINT(c->shortage.pages_needed, 1);
  CHECK_EQ_UINT(c->shortage.pages_available, 0);
  CHECK_EQ_UINT(seq, POOL_UNKNOWN_SEQ);
  CHECK_UNCHANGED(c, kv_seq_new(c->pool, 33, &seq, NULL, NULL), WICK_E_PAGES);
  pool_close(c);
}

TEST(pk_09_extending_an_unknown_sequence) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  CHECK_UNCHANGED(c, kv_seq_extend(c->pool, POOL_UNKNOWN_SEQ, 32, &c->shortage, &c->error),
                  WICK_E_SEQ);
  pool_close(c);
}

TEST(pk_11_extending_within_the_reserved_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 16);
  pool_set_tokens(c, seq, 5);
  CHECK_UNCHANGED(c, kv_seq_extend(c->pool, seq, 5, &c->shortage, &c->error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 99);
  // Extends to the last slot of the page, then by one more: capacity is counted from the stored
  // tokens.
  CHECK_UNCHANGED(c, kv_seq_extend(c->pool, seq, 11, &c->shortage, &c->error), WICK_OK);
  CHECK_EQ_INT(kv_seq_extend(c->pool, seq, 12, &c->shortage, &c->error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 98);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 5);
  CHECK_UNCHANGED(c, kv_seq_extend(c->pool, seq, UINT32_MAX, NULL, &c->error), WICK_E_OVERFLOW);
  pool_close(c);
}

// Ids that no sequence of a pool has: never assigned, freed, KV_SEQ_NONE.
typedef struct id_case {
  pool_case *pool;
  kv_seq_id ids[3];
} id_case;

static id_case open_ids(void) {
  id_case c = {.pool = pool_open(100, KERNEL_KV_F32, 1)};
  const kv_seq_id freed = pool_new_seq(c.pool, 16);
  pool_new_seq(c.pool, 16);
  pool_free_seq(c.pool, freed);
  c.ids[0] = POOL_UNKNOWN_SEQ;
  c.ids[1] = freed;
  c.ids[2] = KV_SEQ_NONE;
  return c;
}

TEST(pk_12_setting_the_tokens_of_an_unknown_sequence) {
  const id_case c = open_ids();
  for (int i = 0; i < 3; i++) {
    CHECK_UNCHANGED(c.pool, kv_seq_tokens_set(c.pool->pool, c.ids[i], 10, NULL), WICK_E_SEQ);
    CHECK_EQ_UINT(kv_seq_tokens(c.pool->pool, c.ids[i]), 0);
  }
  pool_close(c.pool);
}

TEST(pk_13_forking_an_unknown_sequence) {
  const id_case c = open_ids();
  for (int i = 0; i < 3; i++) {
    kv_seq_id child = KV_SEQ_NONE;
    CHECK_UNCHANGED(c.pool, kv_seq_fork(c.pool->pool, c.ids[i], &child, NULL), WICK_E_SEQ);
    CHECK_EQ_UINT(child, KV_SEQ_NONE);
  }
  pool_close(c.pool);
}

TEST(pk_14_reading_an_unknown_sequence) {
  const id_case c = open_ids();
  for (int i = 0; i < 3; i++) {
    const kv_page *page = NULL;
    CHECK_UNCHANGED(c.pool, kv_page_get(c.pool->pool, c.ids[i], 0, &page, NULL), WICK_E_SEQ);
    CHECK(page == NULL);
    uint64_t slot;
    CHECK_UNCHANGED(c.pool, kv_seq_slot(c.pool->pool, c.ids[i], 0, &slot, NULL), WICK_E_SEQ);
  }
  pool_close(c.pool);
}

TEST(pk_15_writing_an_unknown_sequence) {
  const id_case c = open_ids();
  for (int i = 0; i < 3; i++) {
    kv_page *page = NULL;
    CHECK_UNCHANGED(c.pool, kv_page_mut(c.pool->pool, c.ids[i], 0, &page, NULL, NULL), WICK_E_SEQ);
    CHECK(page == NULL);
    CHECK_UNCHANGED(c.pool, kv_seq_prepare_write(c.pool->pool, c.ids[i], 0, 1, NULL, NULL),
                    WICK_E_SEQ);
  }
  pool_close(c.pool);
}

TEST(pk_16_writing_past_the_reserved_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 16);
  kv_page *page = NULL;
  CHECK_UNCHANGED(c, kv_page_mut(c->pool, seq, 100, &page, &c->shortage, &c->error), WICK_E_RANGE);
  CHECK_EQ_INT(kv_page_mut(c->pool, seq, 100, &page, &c->shortage, &c->error), WICK_E_RANGE);
  CHECK(strstr(c->error.message, "page index 6, position 100") != NULL);
  CHECK(page == NULL);
  const kv_page *seen = NULL;
  CHECK_UNCHANGED(c, kv_page_get(c->pool, seq, 16, &seen, &c->error), WICK_E_RANGE);
  CHECK_UNCHANGED(c, kv_page_get(c->pool, seq, UINT32_MAX, &seen, &c->error), WICK_E_RANGE);
  CHECK(seen == NULL);
  pool_close(c);
}

TEST(pk_17_a_pool_without_pages) {
  pool_case *c = pool_open(0, KERNEL_KV_F32, 1);
  CHECK_NEAR(kv_pool_used_pct(c->pool), 0, 0);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 0);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).largest_free_region, 0);
  CHECK(!kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_new_seq(c, 0);
  kv_seq_id seq;
  CHECK_UNCHANGED(c, kv_seq_new(c->pool, 1, &seq, &c->shortage, &c->error), WICK_E_PAGES);
  pool_close(c);
  c = pool_open(8, KERNEL_KV_F32, 1);
  pool_new_seq(c, 48);
  CHECK_NEAR(kv_pool_used_pct(c->pool), 37.5, 0);
  pool_close(c);
}

TEST(pk_18_freeing_an_unknown_sequence) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  CHECK_UNCHANGED(c, kv_seq_free(c->pool, POOL_UNKNOWN_SEQ, &c->error), WICK_E_SEQ);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).sequences_freed, 0);
  const kv_seq_id seq = pool_new_seq(c, 16);
  pool_free_seq(c, seq);
  CHECK_UNCHANGED(c, kv_seq_free(c->pool, seq, &c->error), WICK_E_SEQ);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).sequences_freed, 1);
  pool_close(c);
}

TEST(pk_19_a_sequence_without_tokens) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 0);
  CHECK(kv_seq_exists(c->pool, seq));
  uint32_t count = 1;
  kv_seq_table(c->pool, seq, &count);
  CHECK_EQ_UINT(count, 0);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 100);
  const kv_seq_id child = pool_fork_seq(c, seq);
  CHECK_EQ_UINT(kv_seq_capacity(c->pool, child), 0);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 100);
  pool_close(c);
}

TEST(pk_20_tokens_over_several_pages) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 48);
  pool_set_tokens(c, seq, 48);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 48);
  for (uint32_t i = 0; i < 3; i++) CHECK(kv_page_is_full(pool_page(c, seq, i * 16)));
  pool_close(c);
}

TEST(pk_21_tokens_of_a_partial_page) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 32);
  pool_set_tokens(c, seq, 5);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 5);
  CHECK_EQ_UINT(pool_page(c, seq, 0)->fill_tokens, 5);
  CHECK_EQ_UINT(pool_page(c, seq, 16)->fill_tokens, 0);
  pool_close(c);
}

// Conformance cases PK-10 and PK-22 to PK-30 of the seed systems: pages that sequences share, and
// fragmentation. Checks that PK-29 repeats for the other types and for 3 layers are functions of
// type and layers.
#include "fixture_pool.h"
#include "reference/compaction.h"
#include "reference/pages.h"

static uint32_t refs_at(pool_case *c, kv_seq_id seq, uint32_t position) {
  return pool_page(c, seq, position)->ref_count;
}

// ---- Rows ----

// Fills a row in steps of 0.01, different for each layer, position and version.
static void make_row(float row[POOL_ROW], uint32_t layer, uint32_t position, int version) {
  const int first = (int)(layer * 7 + position * 3) + version * 50;
  for (int i = 0; i < POOL_ROW; i++) row[i] = (float)((first + i) % 200 - 100) * 0.01f;
}

static void write_rows(pool_case *c, kv_seq_id seq, uint32_t tokens, int version) {
  float k[POOL_ROW], v[POOL_ROW];
  for (uint32_t layer = 0; layer < kv_pool_shape(c->pool)->layers; layer++) {
    for (uint32_t position = 0; position < tokens; position++) {
      make_row(k, layer, position, version);
      make_row(v, layer, position, version + 1);
      CHECK_EQ_UINT(kv_row_write(c->pool, seq, layer, position, k, v), 0);
    }
  }
}

// Returns a digest of a sequence's rows as read from the cache.
static uint64_t read_rows(pool_case *c, kv_seq_id seq, uint32_t tokens) {
  float rows[2][POOL_ROW];
  uint64_t digest = 1;
  for (uint32_t layer = 0; layer < kv_pool_shape(c->pool)->layers; layer++) {
    for (uint32_t position = 0; position < tokens; position++) {
      const wick_status status =
          kv_row_read(c->pool, seq, layer, position, rows[0], rows[1], &c->error);
      CHECK_EQ_INT(status, WICK_OK);
      digest = hash_bytes(rows, sizeof rows, digest);
    }
  }
  return digest;
}

// ---- PK-10 ----

static void check_extend_short_of_pages(kernel_kv_type type, uint32_t layers) {
  pool_case *c = pool_open(2, type, layers);
  const kv_seq_id seq = pool_new_seq(c, 16);
  CHECK_UNCHANGED(c, kv_seq_extend(c->pool, seq, 48, &c->shortage, &c->error), WICK_E_PAGES);
  CHECK_EQ_UINT(c->shortage.pages_needed, 2);
  CHECK_EQ_UINT(c->shortage.pages_available, 1);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 1);
  CHECK_EQ_INT(kv_seq_extend(c->pool, seq, 32, &c->shortage, &c->error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 0);
  pool_close(c);
}

TEST(pk_10_extending_without_free_pages) { check_extend_short_of_pages(KERNEL_KV_F32, 1); }

// ---- PK-22 to PK-24: shared pages ----

TEST(pk_22_no_page_for_a_copy) {
  pool_case *c = pool_open(2, KERNEL_KV_F32, 1);
  const kv_seq_id parent = pool_new_seq(c, 16);
  const kv_seq_id child = pool_fork_seq(c, parent);
  const kv_seq_id other = pool_new_seq(c, 16);
  kv_page *page = NULL;
  CHECK_UNCHANGED(c, kv_page_mut(c->pool, child, 0, &page, &c->shortage, &c->error), WICK_E_PAGES);
  CHECK_EQ_UINT(c->shortage.pages_needed, 1);
  CHECK_EQ_UINT(c->shortage.pages_available, 0);
  CHECK(page == NULL);
  CHECK_UNCHANGED(c, kv_seq_prepare_write(c->pool, child, 0, 1, NULL, NULL), WICK_E_PAGES);
  CHECK(pool_page(c, child, 0) == pool_page(c, parent, 0));
  CHECK_EQ_UINT(refs_at(c, parent, 0), 2);
  pool_free_seq(c, other);
  CHECK_EQ_INT(kv_page_mut(c->pool, child, 0, &page, &c->shortage, &c->error), WICK_OK);
  CHECK_EQ_UINT(refs_at(c, parent, 0), 1);
  pool_close(c);
}

static void check_several_forks(kernel_kv_type type, uint32_t layers) {
  pool_case *c = pool_open(100, type, layers);
  const kv_seq_id parent = pool_new_seq(c, 16);
  write_rows(c, parent, 16, 0);
  pool_set_tokens(c, parent, 16);
  const kv_seq_id child = pool_fork_seq(c, parent), other = pool_fork_seq(c, parent);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).cow_operations, 2);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).forks, 2);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 99);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, child), 16);
  kv_page *page = NULL;
  CHECK_EQ_INT(kv_page_mut(c->pool, child, 0, &page, &c->shortage, &c->error), WICK_OK);
  REQUIRE(page != NULL);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).cow_operations, 3);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).cow_copies, 1);
  CHECK_EQ_UINT(page->ref_count, 1);
  CHECK_EQ_UINT(page->fill_tokens, 16);
  CHECK_EQ_UINT(refs_at(c, other, 0), 2);
  CHECK_EQ_INT(pool_page(c, other, 0)->id, pool_page(c, parent, 0)->id);
  CHECK(page->id != pool_page(c, parent, 0)->id);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 98);
  // The child has its parent's rows until it writes new ones.
  const uint64_t before = read_rows(c, parent, 16);
  CHECK_EQ_UINT(read_rows(c, child, 16), before);
  write_rows(c, child, 1, 2);
  CHECK(read_rows(c, child, 16) != before);
  CHECK_EQ_UINT(read_rows(c, parent, 16), before);
  CHECK_EQ_UINT(read_rows(c, other, 16), before);
  pool_close(c);
}

TEST(pk_23_writing_one_of_several_forks) { check_several_forks(KERNEL_KV_F32, 1); }

static void check_freeing_forks(kernel_kv_type type, uint32_t layers) {
  pool_case *c = pool_open(100, type, layers);
  const kv_seq_id parent = pool_new_seq(c, 16);
  write_rows(c, parent, 16, 0);
  pool_set_tokens(c, parent, 16);
  const uint64_t rows = read_rows(c, parent, 16);
  const kv_seq_id child = pool_fork_seq(c, parent);
  pool_free_seq(c, parent);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 99);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).pages_freed, 0);
  CHECK_EQ_UINT(read_rows(c, child, 16), rows);
  pool_free_seq(c, child);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 100);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).pages_freed, 1);
  pool_close(c);
}

TEST(pk_24_freeing_a_sequence_with_a_fork) { check_freeing_forks(KERNEL_KV_F32, 1); }

// ---- PK-25 to PK-28: fragmentation ----

// Opens a pool in which each page is a separate sequence, and frees the one with page `freed`.
static pool_case *open_full_pool(uint32_t pages, uint32_t freed) {
  pool_case *c = pool_open(pages, KERNEL_KV_F32, 1);
  kv_seq_id seq = KV_SEQ_NONE;
  for (uint32_t i = 0; i < pages; i++) {
    const kv_seq_id fresh = pool_new_seq(c, 16);
    pool_set_tokens(c, fresh, 16);
    if (i == freed) seq = fresh;
  }
  CHECK_EQ_INT(pool_page(c, seq, 0)->id, (int)freed);
  pool_free_seq(c, seq);
  CHECK_EQ_UINT(kv_pool_pages_free(c->pool), 1);
  return c;
}

TEST(pk_25_few_free_pages) {
  pool_case *c = open_full_pool(10, 9);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 0);
  CHECK(!kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_close(c);
  c = open_full_pool(10, 4);  // with a hole: 1/10 is not below 0.1
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 1);
  CHECK(!kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_close(c);
  c = open_full_pool(11, 4);  // 1/11 is below 0.1
  CHECK(kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_close(c);
  c = open_full_pool(11, 10);  // but without a hole, compaction would gain nothing
  CHECK(!kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_close(c);
}

static void check_waste(kernel_kv_type type, uint32_t layers) {
  pool_case *c = pool_open(100, type, layers);
  const kv_seq_id first = pool_new_seq(c, 32), second = pool_new_seq(c, 32);
  const kv_seq_id third = pool_new_seq(c, 32);
  pool_free_seq(c, second);
  pool_set_tokens(c, first, 1);
  pool_set_tokens(c, third, 1);
  const kv_frag frag = kv_frag_stats(c->pool);
  CHECK_EQ_UINT(frag.holes, 1);
  CHECK_EQ_UINT(frag.wasted_capacity, 62);
  CHECK_NEAR(frag.fragmentation_ratio, 0.25, 0);
  CHECK_EQ_UINT(frag.largest_free_region, 94);
  CHECK_NEAR(frag.avg_tokens_per_page, 1, 0);
  CHECK(!kv_pool_should_defrag(c->pool, 0.3));
  CHECK(!kv_pool_should_defrag(c->pool, 0.25));
  CHECK(kv_pool_should_defrag(c->pool, 0.2));
  // A shared page counts once.
  pool_fork_seq(c, third);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).wasted_capacity, 62);
  CHECK_NEAR(kv_frag_stats(c->pool).avg_tokens_per_page, 1, 0);
  pool_close(c);
}

// Whether ten pages with this many tokens each and holes between them should be compacted.
static bool should_defrag_ten(uint32_t holes, uint32_t tokens) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  kv_seq_id seqs[16];
  for (uint32_t i = 0; i < 10 + holes; i++) {
    seqs[i] = pool_new_seq(c, 16);
    pool_set_tokens(c, seqs[i], tokens);
  }
  for (uint32_t i = 0; i < holes; i++) pool_free_seq(c, seqs[1 + 2 * i]);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, holes);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).wasted_capacity, 10 * (16 - tokens));
  const bool should_defrag = kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD);
  pool_close(c);
  return should_defrag;
}

TEST(pk_26_much_waste) {
  check_waste(KERNEL_KV_F32, 1);
  CHECK(should_defrag_ten(3, 11));   // more than a quarter is wasted
  CHECK(!should_defrag_ten(3, 12));  // a quarter
  CHECK(!should_defrag_ten(2, 11));  // but only two holes
}

TEST(pk_27_compacting_nothing) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 0);
  uint32_t moved = 9;
  CHECK_UNCHANGED(c, kv_seq_compact(c->pool, seq, &moved, &c->error), WICK_OK);
  CHECK_EQ_UINT(moved, 0);
  CHECK_UNCHANGED(c, kv_seq_compact(c->pool, POOL_UNKNOWN_SEQ, &moved, &c->error), WICK_E_SEQ);
  // Pages 0 and 2 become 0 and 1; their contents move with them, and the move is counted.
  const kv_seq_id scattered = pool_new_seq(c, 16), between = pool_new_seq(c, 16);
  CHECK_EQ_INT(kv_seq_extend(c->pool, scattered, 32, NULL, &c->error), WICK_OK);
  write_rows(c, scattered, 32, 0);
  pool_set_tokens(c, scattered, 32);
  const uint64_t rows = read_rows(c, scattered, 32);
  CHECK_UNCHANGED(c, kv_seq_compact(c->pool, scattered, &moved, &c->error), WICK_OK);
  CHECK_EQ_UINT(moved, 0);  // there is a page in between
  CHECK_NEAR(kv_seq_contiguity_ratio(c->pool, scattered), 0, 0);
  pool_free_seq(c, between);
  CHECK_EQ_INT(kv_seq_compact(c->pool, scattered, &moved, &c->error), WICK_OK);
  CHECK_EQ_UINT(moved, 1);
  CHECK_EQ_UINT(kv_pool_stats(c->pool).pages_moved, 1);
  CHECK_EQ_INT(pool_page(c, scattered, 16)->id, 1);
  CHECK_NEAR(kv_seq_contiguity_ratio(c->pool, scattered), 1, 0);
  CHECK_EQ_UINT(read_rows(c, scattered, 32), rows);
  pool_close(c);
}

TEST(pk_28_the_largest_free_region) {
  pool_case *c = pool_open(100, KERNEL_KV_F32, 1);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).largest_free_region, 100);
  const kv_seq_id first = pool_new_seq(c, 16);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).largest_free_region, 99);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 0);
  CHECK_NEAR(kv_frag_stats(c->pool).fragmentation_ratio, 0, 0);
  const kv_seq_id second = pool_new_seq(c, 32), third = pool_new_seq(c, 16);
  pool_free_seq(c, first);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 0);  // free pages before the used ones do not count
  CHECK_EQ_UINT(kv_frag_stats(c->pool).largest_free_region, 96);
  pool_free_seq(c, second);
  CHECK_EQ_INT(pool_page(c, third, 0)->id, 3);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 0);
  pool_close(c);
}

// ---- PK-29, PK-30 ----

TEST(pk_29_every_type_and_several_layers) {
  static const kernel_kv_type types[] = {KERNEL_KV_Q8, KERNEL_KV_Q4, KERNEL_KV_F16, KERNEL_KV_F32};
  for (int i = 0; i < 4; i++) {
    for (uint32_t layers = 1; layers <= 3; layers += 2) {
      check_several_forks(types[i], layers);
      check_freeing_forks(types[i], layers);
      check_extend_short_of_pages(types[i], layers);
      check_waste(types[i], layers);
    }
  }
}

TEST(pk_30_token_counts_belong_to_sequences) {
  pool_case *c = pool_open(20, KERNEL_KV_F32, 1);
  const kv_seq_id seq = pool_new_seq(c, 48);
  pool_set_tokens(c, seq, 48);
  const kv_seq_id sibling = pool_fork_seq(c, seq);
  pool_set_tokens(c, seq, 5);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 5);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, sibling), 48);
  CHECK_EQ_UINT(kv_seq_capacity(c->pool, seq), 48);  // kv_seq_tokens_set releases no pages
  CHECK_UNCHANGED(c, kv_seq_tokens_set(c->pool, seq, 49, &c->error), WICK_E_RANGE);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 5);
  pool_set_tokens(c, sibling, 20);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), 5);
  // Truncating releases the pages that hold no remaining token, here one reference to each.
  CHECK_EQ_UINT(refs_at(c, sibling, 32), 2);
  CHECK_EQ_INT(kv_seq_truncate(c->pool, seq, 5, &c->error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_capacity(c->pool, seq), 16);
  CHECK_EQ_UINT(refs_at(c, sibling, 0), 2);
  CHECK_EQ_UINT(refs_at(c, sibling, 32), 1);
  pool_close(c);
  c = open_full_pool(20, 9);
  CHECK_EQ_UINT(kv_frag_stats(c->pool).holes, 1);
  CHECK(kv_pool_should_defrag(c->pool, KV_DEFRAG_THRESHOLD));
  pool_close(c);
}

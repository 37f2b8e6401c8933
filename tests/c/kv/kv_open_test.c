// Keys of pages that are encoded when the page is full: where a pass stores the keys of pages that
// it begins and fills, and where a sequence can then be truncated.
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kv/pool_types.h"
#include "kv/state.h"
#include "platform/platform.h"

enum { LAYERS = 3, HEADS = 2, DIM = 32, ROWS = 80, PASS_BYTES_MAX = 1 << 16 };

static memory_gate memory;
static wick_error error;
static uint8_t pass_keys[PASS_BYTES_MAX];

static kv_pool *begin(kv_seq_id *seq) {
  const kv_shape shape = {LAYERS, HEADS, DIM, KERNEL_KV_C8, KERNEL_KV_F16, 0};
  kv_pool *pool = NULL;
  kv_pool_init(&memory, kernels_bind(), &shape, 8, 8, &pool, &error);
  if (!CHECK(pool != NULL) || !CHECK(kv_pool_has_open(pool))) return NULL;
  return CHECK_EQ_INT(kv_seq_new(pool, 0, seq, NULL, &error), WICK_OK) ? pool : NULL;
}

static void end(kv_pool *pool) {
  CHECK_EQ_INT(kv_pool_check(pool, &error), WICK_OK);
  kv_pool_destroy(pool);
}

static void make_row(uint32_t token, uint32_t layer, float *row) {
  for (uint32_t i = 0; i < HEADS * DIM; i++) {
    row[i] = (float)(hash_mix_u64(token * 1000003ULL + layer * 101 + i) % 2000) / 1000 - 1;
  }
}

// Writes one pass of `count` tokens at the sequence's end; `token` is the number of the first one.
static void write_pass(kv_pool *pool, kv_seq_id seq, uint32_t count, uint32_t token) {
  const uint32_t first = kv_seq_tokens(pool, seq);
  const kv_open_pass pass = {pass_keys, ROWS};
  CHECK_EQ_INT(kv_seq_prepare_write(pool, seq, first, count, NULL, &error), WICK_OK);
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    float row[HEADS * DIM];
    kv_open_rows(pool, seq, first, first + count - 1);
    for (uint32_t i = 0; i < count; i++) {
      const kv_open_row at = {seq, first + i, i};
      make_row(token + i, layer, row);
      CHECK_EQ_UINT(
          kv_open_row_write(pool, &at, layer, kv_open_keys(pool, &at, layer, &pass), row, row), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
      const kv_open_row at = {seq, first + i, i};
      if (!kv_open_row_fills(pool, &at)) continue;
      kv_open_row_encode(pool, &at, layer, kv_open_keys(pool, &at, layer, &pass));
    }
  }
  CHECK_EQ_INT(kv_seq_append(pool, seq, count, &error), WICK_OK);
}

// Layers that share keys use those of one of the last two layers, and pages are filled at the same
// time, so each page of these two layers needs separate memory.
TEST(pages_of_a_pass_do_not_share_memory) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  const kv_open_pass pass = {pass_keys, ROWS};
  const uint64_t bytes = kv_open_pass_bytes(kernels_bind(), HEADS, DIM, ROWS);
  const size_t page_bytes = HEADS * kernels_bind()->kv[KERNEL_KV_F16].k_bytes(DIM);
  REQUIRE(bytes <= sizeof pass_keys);
  CHECK_EQ_INT(kv_seq_prepare_write(pool, seq, 0, 70, NULL, &error), WICK_OK);
  kv_open_rows(pool, seq, 0, 69);
  // other rows of the pass come before those of the sequence
  for (uint32_t before = 0; before < 10; before++) {
    const uint8_t *found[2 * 4];
    uint32_t count = 0;
    for (uint32_t layer = 0; layer < 2; layer++) {
      for (uint32_t page = 0; page < 4; page++) {
        const uint8_t *keys = NULL;
        for (uint32_t slot = 0; slot < KERNEL_PAGE_TOKENS; slot++) {
          const uint32_t position = page * KERNEL_PAGE_TOKENS + slot;
          const kv_open_row row = {seq, position, before + position};
          const uint8_t *now = kv_open_keys(pool, &row, layer, &pass);
          CHECK(keys == NULL || now == keys);
          CHECK(kv_open_keys(pool, &row, layer + 2, &pass) == now);
          keys = now;
        }
        CHECK(keys >= pass_keys && keys + page_bytes <= pass_keys + bytes);
        for (uint32_t i = 0; i < count; i++) {
          CHECK(keys >= found[i] + page_bytes || keys + page_bytes <= found[i]);
        }
        found[count++] = keys;
      }
    }
  }
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// A sequence can be truncated within an encoded page only as far as the kept F16 keys still belong
// to its tokens.
TEST(a_mark_is_limited_to_keys_that_were_not_overwritten) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq, like;
  kv_pool *pool = begin(&seq), *other = begin(&like);
  REQUIRE(pool != NULL && other != NULL);
  write_pass(pool, seq, 10, 0);
  kv_open_mark(pool, seq);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 5, &error), WICK_OK);
  write_pass(pool, seq, 30, 500);
  CHECK(kv_seq_can_truncate(pool, seq, 8));  // the page in which the pass began
  write_pass(pool, seq, 20, 600);
  CHECK(kv_open_find(pool, kv_seq_find(pool, seq), kv_seq_find(pool, seq)->table[0].page) == NULL);
  CHECK(!kv_seq_can_truncate(pool, seq, 6));
  CHECK(!kv_seq_can_truncate(pool, seq, 8));
  CHECK_EQ_UINT(kv_seq_cut(pool, seq, 8), 0);
  CHECK(kv_seq_can_truncate(pool, seq, 5));
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 5, &error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_tokens(pool, seq), 5);
  write_pass(pool, seq, 11, 700);
  write_pass(other, like, 5, 0);
  write_pass(other, like, 11, 700);
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    for (uint32_t head = 0; head < HEADS; head++) {
      const void *keys = kv_page_k(pool, kv_seq_find(pool, seq)->table[0].page, layer, head);
      const void *wanted = kv_page_k(other, kv_seq_find(other, like)->table[0].page, layer, head);
      CHECK_EQ_MEM(keys, wanted, pool->layout.k_head_bytes);
    }
  }
  end(pool);
  end(other);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static const uint8_t *layer_keys(const kv_pool *pool, kv_seq_id seq, uint32_t entry) {
  return kv_page_k(pool, kv_seq_find(pool, seq)->table[entry].page, 0, 0);
}

// Dropping a range within an open page encodes only this sequence's keys early, even if other
// sequences share the page and it is full for them.
TEST(dropping_from_a_page_keeps_the_codes_of_other_sequences) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq, child;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  const size_t page_bytes = pool->layout.k_head_bytes + pool->layout.v_head_bytes;
  uint8_t wanted[LAYERS * HEADS * DIM * 128];
  REQUIRE(LAYERS * HEADS * page_bytes <= sizeof wanted);
  write_pass(pool, seq, 10, 0);
  write_pass(pool, seq, 10, 10);
  CHECK_EQ_INT(kv_seq_fork(pool, seq, &child, &error), WICK_OK);
  memcpy(wanted, layer_keys(pool, child, 0), LAYERS * HEADS * page_bytes);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 10, &error), WICK_OK);
  CHECK_EQ_INT(kv_seq_shift(pool, seq, 3, 6, NULL, &error), WICK_OK);
  CHECK_EQ_MEM(layer_keys(pool, child, 0), wanted, LAYERS * HEADS * page_bytes);
  write_pass(pool, seq, 12, 100);
  CHECK_EQ_MEM(layer_keys(pool, child, 0), wanted, LAYERS * HEADS * page_bytes);
  CHECK(memcmp(layer_keys(pool, seq, 0), wanted, pool->layout.k_head_bytes) != 0);
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// A full page that is split keeps its codes, whether or not its F16 keys still exist.
TEST(dropping_from_a_full_page_keeps_its_codes) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  uint8_t wanted[4096];
  REQUIRE(pool->layout.k_head_bytes <= sizeof wanted);
  write_pass(pool, seq, KERNEL_PAGE_TOKENS, 0);
  memcpy(wanted, layer_keys(pool, seq, 0), pool->layout.k_head_bytes);
  CHECK_EQ_INT(kv_seq_shift(pool, seq, 3, 6, NULL, &error), WICK_OK);
  CHECK_EQ_MEM(layer_keys(pool, seq, 0), wanted, pool->layout.k_head_bytes);
  CHECK_EQ_MEM(layer_keys(pool, seq, 1), wanted, pool->layout.k_head_bytes);
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Other rows come before those of the sequence whose page the pass fills.
TEST(a_pass_has_memory_for_a_page_wherever_it_begins) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  const size_t page_bytes = HEADS * kernels_bind()->kv[KERNEL_KV_F16].k_bytes(DIM);
  CHECK_EQ_INT(kv_seq_prepare_write(pool, seq, 0, 17, NULL, &error), WICK_OK);
  kv_open_rows(pool, seq, 0, KERNEL_PAGE_TOKENS);
  for (uint32_t rows = 17; rows <= ROWS; rows++) {
    const kv_open_pass pass = {pass_keys, rows};
    const kv_open_row row = {seq, 0, rows - 17};
    const uint8_t *keys = kv_open_keys(pool, &row, 1, &pass);
    const uint64_t bytes = kv_open_pass_bytes(kernels_bind(), HEADS, DIM, rows);
    CHECK(keys >= pass_keys && keys + page_bytes <= pass_keys + bytes);
  }
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// After tokens were dropped and the sequence is truncated before them, the page in which they began
// is encoded again with the tokens that follow, as if it had never held them. If tokens before it
// were dropped as well, recomputed tokens would get different values, so the partly filled page
// stays.
TEST(a_page_that_ended_early_is_recomputed) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_seq_id seq;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  write_pass(pool, seq, 20, 0);
  write_pass(pool, seq, 40, 20);
  CHECK_EQ_INT(kv_seq_shift(pool, seq, 15, 16, NULL, &error), WICK_OK);
  CHECK_EQ_INT(kv_seq_shift(pool, seq, 25, 26, NULL, &error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_cut(pool, seq, 25), 25);
  CHECK_EQ_UINT(kv_seq_cut(pool, seq, 15), 0);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 25, &error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_capacity(pool, seq), 25);
  write_pass(pool, seq, 3, 100);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 15, &error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_tokens(pool, seq), 0);
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

typedef struct record {
  uint8_t bytes[1 << 16];
  size_t size_bytes;
} record;

static bool put(void *context, const void *bytes, size_t size_bytes) {
  record *to = context;
  if (size_bytes > sizeof to->bytes - to->size_bytes) return false;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
  return true;
}

// A record contains nothing of truncated tokens.
TEST(records_depend_only_on_the_tokens) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  static record records[2];
  static const int32_t TOKENS[10] = {0};
  kv_seq_id seq, like;
  kv_pool *pool = begin(&seq);
  REQUIRE(pool != NULL);
  CHECK_EQ_INT(kv_seq_new(pool, 0, &like, NULL, &error), WICK_OK);
  write_pass(pool, seq, 10, 0);
  write_pass(pool, seq, 10, 50);
  CHECK_EQ_INT(kv_seq_truncate(pool, seq, 10, &error), WICK_OK);
  write_pass(pool, like, 10, 0);
  for (uint32_t i = 0; i < 2; i++) {
    const wick_state_sink sink = {&records[i], put};
    records[i].size_bytes = 0;
    CHECK_EQ_INT(state_save_seq(pool, 1, i ? like : seq, TOKENS, NULL, &sink, &error), WICK_OK);
  }
  CHECK_EQ_UINT(records[0].size_bytes, records[1].size_bytes);
  CHECK_EQ_MEM(records[0].bytes, records[1].bytes, records[1].size_bytes);
  end(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

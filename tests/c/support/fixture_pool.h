// The pool for the conformance cases of the paged KV cache: 8 heads of 64, pages of 16 tokens, no
// growth. Closing it checks every invariant and that no memory leaks.
#ifndef WICK_TESTS_FIXTURE_POOL_H
#define WICK_TESTS_FIXTURE_POOL_H

#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kv/pool.h"
#include "platform/platform.h"
#include "reference/pages.h"

enum { POOL_HEADS = 8, POOL_HEAD_DIM = 64, POOL_ROW = POOL_HEADS * POOL_HEAD_DIM };
enum { POOL_UNKNOWN_SEQ = 77, POOL_SEQS_MAX = 64 };

typedef struct pool_case {
  memory_gate memory;
  kv_pool *pool;
  kv_shortage shortage;
  wick_error error;
} pool_case;

static pool_case *pool_open(uint32_t pages, kernel_kv_type type, uint32_t layers) {
  static pool_case c;
  c = (pool_case){0};
  memory_init(&c.memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {layers, POOL_HEADS, POOL_HEAD_DIM, type, type, 0};
  CHECK_EQ_INT(kv_pool_init(&c.memory, kernels_bind(), &shape, pages, pages, &c.pool, &c.error),
               WICK_OK);
  return &c;
}

static void pool_close(pool_case *c) {
  CHECK_EQ_INT(kv_pool_check(c->pool, &c->error), WICK_OK);
  kv_pool_destroy(c->pool);
  CHECK_EQ_UINT(c->memory.blocks_now, 0);
}

static kv_seq_id pool_new_seq(pool_case *c, uint32_t tokens) {
  kv_seq_id seq = KV_SEQ_NONE;
  CHECK_EQ_INT(kv_seq_new(c->pool, tokens, &seq, &c->shortage, &c->error), WICK_OK);
  CHECK(seq != KV_SEQ_NONE);
  return seq;
}

static kv_seq_id pool_fork_seq(pool_case *c, kv_seq_id parent) {
  kv_seq_id seq = KV_SEQ_NONE;
  CHECK_EQ_INT(kv_seq_fork(c->pool, parent, &seq, &c->error), WICK_OK);
  CHECK(seq != KV_SEQ_NONE && seq != parent);
  return seq;
}

static void pool_set_tokens(pool_case *c, kv_seq_id seq, uint32_t tokens) {
  CHECK_EQ_INT(kv_seq_tokens_set(c->pool, seq, tokens, &c->error), WICK_OK);
  CHECK_EQ_UINT(kv_seq_tokens(c->pool, seq), tokens);
}

static void pool_free_seq(pool_case *c, kv_seq_id seq) {
  CHECK_EQ_INT(kv_seq_free(c->pool, seq, &c->error), WICK_OK);
  CHECK(!kv_seq_exists(c->pool, seq));
}

// Returns the page of a position for reading, or a page without users if the position has no page.
static const kv_page *pool_page(pool_case *c, kv_seq_id seq, uint32_t position) {
  static const kv_page none = {.id = KV_PAGE_NONE};
  const kv_page *page = &none;
  CHECK_EQ_INT(kv_page_get(c->pool, seq, position, &page, &c->error), WICK_OK);
  return page;
}

// Returns a hash of a pool's whole state: tables, counts, headers and bytes of used pages,
// statistics.
static uint64_t pool_digest(const kv_pool *pool) {
  const kv_stats stats = kv_pool_stats(pool);
  uint64_t digest = hash_bytes(&stats, sizeof stats, 1);
  for (kv_seq_id seq = 1; seq < POOL_SEQS_MAX; seq++) {
    uint32_t counts[4] = {seq, kv_seq_exists(pool, seq), kv_seq_tokens(pool, seq), 0};
    const kv_entry *table = kv_seq_table(pool, seq, &counts[3]);
    digest = hash_bytes(counts, sizeof counts, digest);
    if (counts[3] > 0) digest = hash_bytes(table, counts[3] * sizeof *table, digest);
  }
  for (uint32_t i = 0; i < kv_pool_pages(pool); i++) {
    const kv_page *page = kv_pool_page(pool, (kv_page_id)i);
    const uint32_t counts[] = {page->ref_count, page->hold_count, page->fill_tokens,
                               page->is_sealed};
    digest = hash_bytes(counts, sizeof counts, digest);
    if (page->ref_count == 0) continue;
    digest = hash_bytes(page->data.bytes, kv_pool_layout(pool)->data_bytes, digest);
  }
  return digest;
}

// Checks that the call returns this status and changes nothing.
#define CHECK_UNCHANGED(c, call, status)                          \
  do {                                                            \
    const uint64_t digest = pool_digest((c)->pool);               \
    CHECK_EQ_INT((call), (status));                               \
    CHECK_EQ_UINT(pool_digest((c)->pool), digest);                \
    CHECK_EQ_INT(kv_pool_check((c)->pool, &(c)->error), WICK_OK); \
  } while (0)

#endif

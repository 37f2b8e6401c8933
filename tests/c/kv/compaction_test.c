// Holes in the pool cost nothing: a sequence takes free pages wherever they are. The benchmarks
// measure what compaction would gain.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "consistency.h"
#include "kv/pool.h"
#include "platform/platform.h"
#include "random.h"
#include "reference/compaction.h"

// The shape of SmolLM2-135M with keys and values in F16: a page has 360 KiB.
static const kv_shape SHAPE = {30, 3, 64, KERNEL_KV_F16, KERNEL_KV_F16, 0};

enum { PAGES = 40 };

TEST(a_sequence_fills_all_holes) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {1, 1, 64, KERNEL_KV_F16, KERNEL_KV_F16, 0};
  kv_pool *pool = NULL;
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, PAGES, PAGES, &pool, NULL) == WICK_OK);
  kv_seq_id seqs[PAGES], whole;
  for (int i = 0; i < PAGES; i++) {
    CHECK_EQ_INT(kv_seq_new(pool, KERNEL_PAGE_TOKENS, &seqs[i], NULL, NULL), WICK_OK);
  }
  for (int i = 0; i < PAGES; i += 2) CHECK_EQ_INT(kv_seq_free(pool, seqs[i], NULL), WICK_OK);
  CHECK_EQ_UINT(kv_frag_stats(pool).largest_free_region, 1);
  const uint32_t tokens = PAGES / 2 * KERNEL_PAGE_TOKENS;
  CHECK_EQ_INT(kv_seq_new(pool, tokens, &whole, NULL, NULL), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(pool), 0);
  CHECK_NEAR(kv_seq_contiguity_ratio(pool, whole), 0, 0);
  CHECK_EQ_INT(kv_pool_check(pool, NULL), WICK_OK);
  kv_pool_destroy(pool);
}

// ---- measuring ----

enum { LIVE_MAX = 16, SEGMENTS_MAX = 4096, STEPS = 3000, LEFT = 3 };

typedef struct traffic {
  memory_gate memory;
  kv_pool *pool;
  kv_seq_id live[LIVE_MAX];
  uint32_t ends[LIVE_MAX];                         // the token count at which a sequence is freed
  uint32_t segments[SEGMENTS_MAX], segment_count;  // the page that ends each segment
  uint64_t random;
} traffic;

static void note_growth(traffic *t) {
  const uint32_t pages = kv_pool_pages(t->pool);
  const uint32_t last = t->segment_count == 0 ? 0 : t->segments[t->segment_count - 1];
  if (pages > last && t->segment_count < SEGMENTS_MAX) t->segments[t->segment_count++] = pages;
}

// Adds one token to each sequence. An empty slot gets a new sequence (a prompt of 64 to 575 tokens,
// and as many generated ones), for which the pool grows as it does when a request is admitted.
static void step(traffic *t) {
  for (int i = 0; i < LIVE_MAX; i++) {
    if (t->live[i] == KV_SEQ_NONE) {
      const uint32_t prompt = 64 + (uint32_t)random_below(&t->random, 512);
      t->ends[i] = prompt + 64 + (uint32_t)random_below(&t->random, 512);
      kv_pool_grow_for(t->pool, prompt / KERNEL_PAGE_TOKENS + 1 + LIVE_MAX, NULL);
      note_growth(t);
      CHECK_EQ_INT(kv_seq_new(t->pool, prompt, &t->live[i], NULL, NULL), WICK_OK);
      kv_seq_append(t->pool, t->live[i], prompt, NULL);
    }
    const uint32_t tokens = kv_seq_tokens(t->pool, t->live[i]);
    CHECK_EQ_INT(kv_seq_prepare_write(t->pool, t->live[i], tokens, 1, NULL, NULL), WICK_OK);
    kv_seq_append(t->pool, t->live[i], 1, NULL);
    note_growth(t);
    if (tokens + 1 < t->ends[i]) continue;
    kv_seq_free(t->pool, t->live[i], NULL);
    t->live[i] = KV_SEQ_NONE;
  }
}

// Returns the number of pages in segments without a used page: these could be returned to the
// system.
static uint32_t returnable_pages(const traffic *t) {
  uint32_t begin = 0, pages = 0;
  for (uint32_t s = 0; s < t->segment_count; s++) {
    uint32_t used = 0;
    for (uint32_t i = begin; i < t->segments[s]; i++) {
      used += kv_pool_page(t->pool, (kv_page_id)i)->ref_count != 0;
    }
    if (used == 0) pages += t->segments[s] - begin;
    begin = t->segments[s];
  }
  return pages;
}

BENCH(memory_after_a_burst) {
  static traffic t;
  memory_init(&t.memory, 0, platform_alloc, platform_free);
  t.random = 1;
  const uint32_t any = (uint32_t)KV_PAGES_ANY;
  REQUIRE(kv_pool_init(&t.memory, kernels_bind(), &SHAPE, 0, any, &t.pool, NULL) == WICK_OK);
  for (int i = 0; i < STEPS; i++) step(&t);
  for (int i = 0; i < LIVE_MAX - LEFT; i++) {
    if (t.live[i] != KV_SEQ_NONE) kv_seq_free(t.pool, t.live[i], NULL);
  }
  const uint32_t all = kv_pool_pages(t.pool), used = all - kv_pool_pages_free(t.pool);
  const double mb = (double)kv_pool_layout(t.pool)->page_bytes * 1e-6;
  printf("#   %u sequences, then %d: %u pages (%.0f MB) in %u segments, %u used\n",
         (unsigned)LIVE_MAX, (int)LEFT, all, all * mb, t.segment_count, used);
  printf("#   in segments without a used page: %u pages (%.0f MB)", returnable_pages(&t),
         returnable_pages(&t) * mb);
  const uint32_t moved = kv_pool_defrag(t.pool, any);
  printf("; after moving %u pages: %u (%.0f MB)\n", moved, returnable_pages(&t),
         returnable_pages(&t) * mb);
  kv_pool_destroy(t.pool);
}

enum { CONTEXT_PAGES = 128, GROUP = 3, ROUNDS = 31 };

typedef struct bench_context {
  kv_pool *pool;
  kv_seq_id seq;
  kernel_attention state;
} bench_context;

static double attend_us(bench_context *b) {
  float out[GROUP * 64];
  uint32_t count;
  const kv_entry *table = kv_seq_table(b->pool, b->seq, &count);
  const kv_layout *layout = kv_pool_layout(b->pool);
  const uint64_t start = platform_now_us();
  for (uint32_t layer = 0; layer < SHAPE.layers; layer++) {
    for (uint32_t head = 0; head < SHAPE.kv_heads; head++) {
      layout->kernels->attention_begin(&b->state);
      for (uint32_t p = 0; p < count; p += KERNEL_STEP_PAGES) {
        kernel_page pages[KERNEL_STEP_PAGES];
        for (uint32_t i = 0; i < KERNEL_STEP_PAGES; i++) {
          const uint8_t *k = kv_page_k(b->pool, table[p + i].page, layer, head);
          pages[i] = (kernel_page){
              .k = k, .v = k + layout->k_head_bytes, .first = 0, .last = KERNEL_PAGE_TOKENS};
        }
        layout->kernels->attention_step[SHAPE.k_type][SHAPE.v_type](&b->state, pages,
                                                                    KERNEL_STEP_PAGES);
      }
      layout->kernels->attention_end(&b->state, out);
    }
  }
  return (double)(platform_now_us() - start);
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Measures attention of one token over 2048 in all layers, with contiguous pages and with scattered
// ones.
BENCH(attention_over_scattered_pages) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  kv_pool *pool = NULL;
  const uint32_t pages = 3 * CONTEXT_PAGES;
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &SHAPE, pages, pages, &pool, NULL) == WICK_OK);
  kv_seq_id row, places[2 * CONTEXT_PAGES], scattered;
  kv_seq_new(pool, CONTEXT_PAGES * KERNEL_PAGE_TOKENS, &row, NULL, NULL);
  for (int i = 0; i < 2 * CONTEXT_PAGES; i++) {
    kv_seq_new(pool, KERNEL_PAGE_TOKENS, &places[i], NULL, NULL);
  }
  for (int i = 0; i < 2 * CONTEXT_PAGES; i += 2) kv_seq_free(pool, places[i], NULL);
  kv_seq_new(pool, CONTEXT_PAGES * KERNEL_PAGE_TOKENS, &scattered, NULL, NULL);
  float q[GROUP * 64], acc[GROUP * 64], max[GROUP], sum[GROUP];
  for (int i = 0; i < GROUP * 64; i++) q[i] = 0.01f * (float)(i % 7);
  const kernel_attention state = {
      .group = GROUP, .head_dim = 64, .q = q, .acc = acc, .max = max, .sum = sum};
  bench_context sides[2] = {{pool, row, state}, {pool, scattered, state}};
  static double us[2][ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    for (int side = 0; side < 2; side++) us[side][i] = attend_us(&sides[side]);
  }
  for (int side = 0; side < 2; side++) {
    qsort(us[side], ROUNDS, sizeof(double), compare_doubles);
    printf("#   %s, share of adjacent pages %.2f: best %.0f us, median %.0f us\n",
           side == 0 ? "contiguous" : "scattered", kv_seq_contiguity_ratio(pool, sides[side].seq),
           us[side][0], us[side][ROUNDS / 2]);
  }
  kv_pool_destroy(pool);
}

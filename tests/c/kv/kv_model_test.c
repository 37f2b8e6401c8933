// The pool, its sequences and the prefix cache compared with a naive model: random operations, each
// followed by a check of every invariant and of the contents. A row's content is a function of all
// tokens up to it, so a wrongly shared page is detected.
//
// With WICK_BENCH=1 in the environment, the benchmarks measure a fork and the copy-on-write after
// it.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kv/pool.h"
#include "kv/prefix.h"
#include "platform/platform.h"
#include "random.h"
#include "reference/compaction.h"
#include "reference/pages.h"

static const cache_salt TENANT = {5, 0};
enum { DIM = 32, TOKENS_MAX = 160, SEQS_MAX = 12, PAGES_MAX = 40, OPERATIONS = 25000 };

// The expected contents of a sequence: each token and the identity of its row.
typedef struct naive_seq {
  kv_seq_id id;  // KV_SEQ_NONE: the slot is free
  uint32_t count;
  int32_t tokens[TOKENS_MAX];
  uint64_t rows[TOKENS_MAX];
} naive_seq;

typedef struct naive_model {
  memory_gate memory;
  kv_pool *pool, *oracle;  // oracle: a pool of one page; shows how a row reads back
  prefix_cache *cache;
  kv_seq_id oracle_seq;
  naive_seq seqs[SEQS_MAX];
  uint64_t random;
  uint32_t refused;  // operations that found too few free pages
  uint32_t hits;
} naive_model;

static uint32_t below(naive_model *m, uint32_t limit) {
  return (uint32_t)random_below(&m->random, limit);
}

static void make_row(uint64_t row, float *k, float *v) {
  for (uint32_t i = 0; i < DIM; i++) {
    const uint64_t bits = hash_mix_u64(row + i);
    k[i] = (float)(int32_t)(bits & 0xffff) / 4096.0f - 8.0f;
    v[i] = (float)(int32_t)(bits >> 16 & 0xffff) / 4096.0f - 8.0f;
  }
}

static bool open_model(naive_model *m, kernel_kv_type k_type, kernel_kv_type v_type) {
  memset(m, 0, sizeof *m);
  memory_init(&m->memory, 0, platform_alloc, platform_free);
  m->random = (uint64_t)k_type * 4 + v_type + 1;
  const kv_shape shape = {2, 1, DIM, k_type, v_type, 0};
  const kernel_table *kernels = kernels_bind();
  wick_error error;
  if (kv_pool_init(&m->memory, kernels, &shape, 0, PAGES_MAX, &m->pool, &error) != WICK_OK ||
      kv_pool_init(&m->memory, kernels, &shape, 1, 1, &m->oracle, &error) != WICK_OK ||
      kv_seq_new(m->oracle, 1, &m->oracle_seq, NULL, &error) != WICK_OK) {
    return false;
  }
  const prefix_config config = {.entries_max = 24, .page_tokens = KERNEL_PAGE_TOKENS};
  return prefix_cache_init(&m->memory, m->pool, &config, &m->cache, &error) == WICK_OK;
}

static void close_model(naive_model *m) {
  for (int i = 0; i < SEQS_MAX; i++) {
    if (m->seqs[i].id != KV_SEQ_NONE) kv_seq_free(m->pool, m->seqs[i].id, NULL);
  }
  prefix_cache_destroy(m->cache);
  CHECK_EQ_UINT(kv_pool_pages_free(m->pool), kv_pool_pages(m->pool));
  kv_pool_destroy(m->pool);
  kv_pool_destroy(m->oracle);
  CHECK_EQ_UINT(m->memory.blocks_now, 0);
}

// ---- Checks ----

static void check_row(naive_model *m, const naive_seq *seq, uint32_t position) {
  float k[DIM], v[DIM], found_k[DIM], found_v[DIM];
  make_row(seq->rows[position], k, v);
  for (uint32_t layer = 0; layer < 2; layer++) {
    kv_row_write(m->oracle, m->oracle_seq, layer, 0, k, v);
    kv_row_read(m->oracle, m->oracle_seq, layer, 0, k, v, NULL);
    CHECK_EQ_INT(kv_row_read(m->pool, seq->id, layer, position, found_k, found_v, NULL), WICK_OK);
    CHECK_EQ_MEM(found_k, k, sizeof k);
    CHECK_EQ_MEM(found_v, v, sizeof v);
    make_row(seq->rows[position], k, v);
  }
}

static bool check_model(naive_model *m, const naive_seq *touched) {
  wick_error error = {0};
  bool is_fine = CHECK_EQ_INT(kv_pool_check(m->pool, &error), WICK_OK);
  is_fine = CHECK_EQ_INT(prefix_check(m->cache, &error), WICK_OK) && is_fine;
  if (!is_fine) return check_true(false, error.message, __FILE__, __LINE__);
  if (touched->id == KV_SEQ_NONE) return true;
  if (!CHECK_EQ_UINT(kv_seq_tokens(m->pool, touched->id), touched->count)) return false;
  for (int i = 0; i < 3 && touched->count > 0; i++) {
    check_row(m, touched, below(m, touched->count));
  }
  return true;
}

// ---- Operations ----

static void write_tokens(naive_model *m, naive_seq *seq, uint32_t count) {
  if (count > TOKENS_MAX - seq->count) count = TOKENS_MAX - seq->count;
  const wick_status status = kv_seq_prepare_write(m->pool, seq->id, seq->count, count, NULL, NULL);
  if (status != WICK_OK) {
    CHECK_EQ_INT(status, WICK_E_PAGES);
    m->refused++;
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t at = seq->count + i;
    seq->tokens[at] = (int32_t)below(m, 2);
    const uint64_t before = at == 0 ? 1 : seq->rows[at - 1];
    seq->rows[at] = hash_mix_u64(before * 31 + (uint64_t)seq->tokens[at] + 7);
    float k[DIM], v[DIM];
    make_row(seq->rows[at], k, v);
    for (uint32_t layer = 0; layer < 2; layer++) {
      CHECK_EQ_UINT(kv_row_write(m->pool, seq->id, layer, at, k, v), 0);
    }
  }
  CHECK_EQ_INT(kv_seq_append(m->pool, seq->id, count, NULL), WICK_OK);
  seq->count += count;
}

static void begin(naive_model *m, naive_seq *seq) {
  if (kv_seq_new(m->pool, below(m, 40), &seq->id, NULL, NULL) != WICK_OK) {
    seq->id = KV_SEQ_NONE;
    m->refused++;
    return;
  }
  seq->count = 0;
}

// Starts a sequence with the tokens of an existing one, whose prefix may be in the cache.
static void begin_again(naive_model *m, naive_seq *seq, const naive_seq *like) {
  if (kv_seq_new(m->pool, 0, &seq->id, NULL, NULL) != WICK_OK) return;
  seq->count = 0;
  uint32_t hit = 0;
  CHECK_EQ_INT(prefix_attach(m->cache, seq->id, TENANT, like->tokens, like->count, &hit, NULL),
               WICK_OK);
  m->hits += hit != 0;
  for (uint32_t at = 0; at < hit; at++) {
    const uint64_t before = at == 0 ? 1 : seq->rows[at - 1];
    seq->tokens[at] = like->tokens[at];
    seq->rows[at] = hash_mix_u64(before * 31 + (uint64_t)seq->tokens[at] + 7);
  }
  seq->count = hit;
}

static void fork_seq(naive_model *m, const naive_seq *seq, naive_seq *child) {
  const uint64_t copies = kv_pool_stats(m->pool).cow_copies;
  kv_seq_id id;
  CHECK_EQ_INT(kv_seq_fork(m->pool, seq->id, &id, NULL), WICK_OK);
  CHECK_EQ_UINT(kv_pool_stats(m->pool).cow_copies, copies);
  *child = *seq;
  child->id = id;
}

static void shift_seq(naive_model *m, naive_seq *seq) {
  const uint32_t first = below(m, seq->count + 1);
  const uint32_t last = first + below(m, seq->count - first + 1);
  const wick_status status = kv_seq_shift(m->pool, seq->id, first, last, NULL, NULL);
  if (status != WICK_OK) {
    CHECK_EQ_INT(status, WICK_E_PAGES);
    m->refused++;
    return;
  }
  const uint32_t rest = seq->count - last;
  memmove(seq->tokens + first, seq->tokens + last, rest * sizeof seq->tokens[0]);
  memmove(seq->rows + first, seq->rows + last, rest * sizeof seq->rows[0]);
  seq->count = first + rest;
}

static void truncate_seq(naive_model *m, naive_seq *seq) {
  const uint32_t tokens = below(m, seq->count + 1);
  CHECK_EQ_INT(kv_seq_truncate(m->pool, seq->id, tokens, NULL), WICK_OK);
  seq->count = tokens;
}

static void free_seq(naive_model *m, naive_seq *seq) {
  CHECK_EQ_INT(kv_seq_free(m->pool, seq->id, NULL), WICK_OK);
  seq->id = KV_SEQ_NONE;
  CHECK_EQ_INT(kv_seq_free(m->pool, seq->id, NULL), WICK_E_SEQ);
}

static void store_prefix_of(naive_model *m, const naive_seq *seq) {
  CHECK_EQ_INT(prefix_store(m->cache, seq->id, TENANT, seq->tokens, seq->count, NULL, NULL),
               WICK_OK);
}

// Whether the sequence equals one written from its tokens (it was never shifted).
static bool is_plain(const naive_seq *seq) {
  uint64_t row = 1;
  for (uint32_t i = 0; i < seq->count; i++) {
    row = hash_mix_u64(row * 31 + (uint64_t)seq->tokens[i] + 7);
    if (row != seq->rows[i]) return false;
  }
  return true;
}

static void operate(naive_model *m, naive_seq *seq, naive_seq *other) {
  if (seq->id == KV_SEQ_NONE) {
    if (other->id != KV_SEQ_NONE && other->count > 0 && below(m, 2) == 0) {
      begin_again(m, seq, other);
    } else {
      begin(m, seq);
    }
    return;
  }
  const uint32_t choice = below(m, 20);
  if (choice < 9) {
    write_tokens(m, seq, 1 + below(m, 24));
  } else if (choice < 11 && other->id == KV_SEQ_NONE) {
    fork_seq(m, seq, other);
  } else if (choice < 13) {
    truncate_seq(m, seq);
  } else if (choice == 13) {
    shift_seq(m, seq);
  } else if (choice < 16) {
    if (is_plain(seq)) store_prefix_of(m, seq);
  } else if (choice == 16) {
    uint32_t moved;
    CHECK_EQ_INT(kv_seq_compact(m->pool, seq->id, &moved, NULL), WICK_OK);
  } else if (choice == 17) {
    kv_pool_defrag(m->pool, 1 + below(m, PAGES_MAX));
  } else if (choice == 18) {
    free_seq(m, seq);
  } else {
    prefix_evict(m->cache);
  }
}

static void run_model(kernel_kv_type k_type, kernel_kv_type v_type) {
  naive_model m;
  REQUIRE(open_model(&m, k_type, v_type));
  for (int i = 0; i < OPERATIONS; i++) {
    naive_seq *seq = &m.seqs[below(&m, SEQS_MAX)], *other = &m.seqs[below(&m, SEQS_MAX)];
    if (seq == other) continue;
    operate(&m, seq, other);
    if (!check_model(&m, seq)) break;
  }
  const kv_stats stats = kv_pool_stats(m.pool);
  CHECK(m.refused > 100 && m.hits > 50);
  CHECK(stats.forks > 50 && stats.cow_copies > 100 && stats.pages_moved > 100);
  close_model(&m);
}

TEST(random_operations_f32) { run_model(KERNEL_KV_F32, KERNEL_KV_F32); }
TEST(random_operations_f16) { run_model(KERNEL_KV_F16, KERNEL_KV_F16); }
TEST(random_operations_q8) { run_model(KERNEL_KV_Q8, KERNEL_KV_Q8); }
TEST(random_operations_q4) { run_model(KERNEL_KV_Q4, KERNEL_KV_Q4); }
TEST(random_operations_f16_q4) { run_model(KERNEL_KV_F16, KERNEL_KV_Q4); }

TEST(a_fork_of_2000_tokens_copies_nothing_and_a_write_copies_one_page) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {30, 3, 64, KERNEL_KV_F16, KERNEL_KV_F16, 0};
  kv_pool *pool = NULL;
  wick_error error;
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, 0, 400, &pool, &error) == WICK_OK);
  kv_seq_id seq, child;
  CHECK_EQ_INT(kv_seq_new(pool, 2000 - 8, &seq, NULL, &error), WICK_OK);
  CHECK_EQ_INT(kv_seq_append(pool, seq, 2000 - 8, &error), WICK_OK);
  const uint32_t pages = kv_pool_pages_free(pool);
  CHECK_EQ_INT(kv_seq_fork(pool, seq, &child, &error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_pages_free(pool), pages);
  CHECK_EQ_UINT(kv_pool_stats(pool).cow_copies, 0);
  CHECK_EQ_INT(kv_seq_prepare_write(pool, child, 2000 - 8, 1, NULL, &error), WICK_OK);
  CHECK_EQ_UINT(kv_pool_stats(pool).cow_copies, 1);
  CHECK_EQ_UINT(kv_pool_check(pool, &error), WICK_OK);
  kv_pool_destroy(pool);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// ---- Measuring ----

enum { BENCH_REPETITIONS = 4001, BENCH_TOKENS = 2000 };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int compare_times(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static void print_times(const char *what, double *times, uint64_t bytes) {
  qsort(times, BENCH_REPETITIONS, sizeof *times, compare_times);
  printf("#   %s: median %.2f us, 99 %% %.2f us (%d repetitions), %llu bytes copied\n", what,
         times[BENCH_REPETITIONS / 2], times[BENCH_REPETITIONS * 99 / 100], BENCH_REPETITIONS,
         (unsigned long long)bytes);
}

// Measures pages of SmolLM2-135M's shape in F16: a fork, then writing its last token again, which
// copies one full page. The bytes are the growth of the used pages.
BENCH(fork_of_2000_tokens) {
  static double fork_us[BENCH_REPETITIONS], write_us[BENCH_REPETITIONS];
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  const kv_shape shape = {30, 3, 64, KERNEL_KV_F16, KERNEL_KV_F16, 0};
  kv_pool *pool = NULL;
  REQUIRE(kv_pool_init(&memory, kernels_bind(), &shape, 140, 140, &pool, NULL) == WICK_OK);
  kv_seq_id seq, child;
  CHECK_EQ_INT(kv_seq_new(pool, BENCH_TOKENS, &seq, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_append(pool, seq, BENCH_TOKENS, NULL), WICK_OK);
  const uint64_t before = kv_pool_bytes_used(pool);
  uint64_t forked = 0, written = 0;
  for (int i = 0; i < BENCH_REPETITIONS; i++) {
    const double start = now_us();
    kv_seq_fork(pool, seq, &child, NULL);
    const double middle = now_us();
    forked = kv_pool_bytes_used(pool) - before;
    const double again = now_us();
    kv_seq_prepare_write(pool, child, BENCH_TOKENS - 1, 1, NULL, NULL);
    write_us[i] = now_us() - again;
    fork_us[i] = middle - start;
    written = kv_pool_bytes_used(pool) - before;
    CHECK_EQ_INT(kv_seq_free(pool, child, NULL), WICK_OK);
  }
  print_times("fork of 2,000 tokens", fork_us, forked);
  print_times("first write to a shared page", write_us, written);
  CHECK_EQ_UINT(kv_pool_stats(pool).cow_copies, BENCH_REPETITIONS);
  CHECK_EQ_INT(kv_seq_free(pool, seq, NULL), WICK_OK);
  kv_pool_destroy(pool);
}

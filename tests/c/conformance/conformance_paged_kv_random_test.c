// Conformance case PK-31 of the seed systems: random operations on the pool compared with a naive
// model, for every type, and with each allocation of a run failing once. The model predicts the
// status of each operation, every counter, which pages are shared, how many are moved, and the
// contents of rows.
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kv/pool.h"
#include "platform/platform.h"
#include "random.h"
#include "reference/compaction.h"
#include "reference/pages.h"

enum { DIM = 32, LAYERS = 2, PAGES_MAX = 24, SEQS_MAX = 6, ENTRIES_MAX = 8, PAGE = 16 };
enum { TOKENS_MAX = ENTRIES_MAX * PAGE, OPERATIONS = 1500, OPERATIONS_FAILING = 120, GONE = -1 };

typedef struct naive_page {
  uint32_t refs;
  uint64_t rows[PAGE];  // values written; 0: unknown
} naive_page;

typedef struct naive_seq {
  kv_seq_id id;  // KV_SEQ_NONE: the slot is free
  uint32_t count, entry_count;
  int pages[ENTRIES_MAX];  // GONE: the page left the window
} naive_seq;

typedef struct naive_pool {
  memory_gate memory;
  kv_pool *pool;
  naive_page pages[PAGES_MAX];
  naive_seq seqs[SEQS_MAX];
  kv_stats stats;  // expected counters of the pool
  uint64_t random, row_last;
  uint32_t refused;  // operations that found too few free pages
  bool has_failed;   // whether the one allocation has failed
} naive_pool;

static uint32_t below(naive_pool *m, uint32_t limit) {
  return (uint32_t)random_below(&m->random, limit);
}

// Fills a row with integers of which the first is the largest, so that every type stores them
// exactly.
static void make_row(const naive_pool *m, uint64_t row, float k[DIM], float v[DIM]) {
  const int largest = kv_pool_type(m->pool) == KERNEL_KV_Q4 ? 7 : 127;
  const uint32_t levels = 2 * (uint32_t)largest + 1;
  for (uint64_t i = 0; i < DIM; i++) {
    const uint64_t bits = hash_mix_u64(row * DIM + i);
    k[i] = (float)((int)((uint32_t)bits % levels) - largest);
    v[i] = (float)((int)((uint32_t)(bits >> 32) % levels) - largest);
  }
  k[0] = v[0] = (float)largest;
}

// ---- The model's pages ----

static uint32_t pages_free(const naive_pool *m) { return PAGES_MAX - m->stats.used_pages; }

static int take(naive_pool *m) {
  int page = 0;
  while (m->pages[page].refs != 0) page++;
  m->pages[page] = (naive_page){.refs = 1};
  m->stats.pages_allocated++;
  m->stats.used_pages++;
  if (m->stats.used_pages > m->stats.used_pages_max) m->stats.used_pages_max = m->stats.used_pages;
  return page;
}

static void release(naive_pool *m, int page) {
  if (page == GONE || --m->pages[page].refs != 0) return;
  m->stats.pages_freed++;
  m->stats.used_pages--;
}

static void add_pages(naive_pool *m, naive_seq *seq, uint32_t pages) {
  for (uint32_t i = 0; i < pages; i++) seq->pages[seq->entry_count++] = take(m);
}

static bool is_shared(const naive_pool *m, int page) { return m->pages[page].refs > 1; }

static void copy_shared(naive_pool *m, int *page) {
  if (!is_shared(m, *page)) return;
  const int fresh = take(m);
  memcpy(m->pages[fresh].rows, m->pages[*page].rows, sizeof m->pages[fresh].rows);
  release(m, *page);
  *page = fresh;
  m->stats.cow_copies++;
}

// Whether the operation succeeded. The injected allocation failure may make a valid operation fail.
static bool is_done(naive_pool *m, wick_status found, wick_status wanted) {
  if (found == WICK_E_NOMEM && !m->has_failed && wanted == WICK_OK && m->memory.fail_at_call != 0 &&
      m->memory.calls >= m->memory.fail_at_call) {
    m->has_failed = true;
    return false;
  }
  m->refused += found == WICK_E_PAGES;
  return CHECK_EQ_INT(found, wanted) && found == WICK_OK;
}

// ---- Comparing ----

static void check_rows(const naive_pool *m, const naive_seq *seq) {
  float k[DIM], v[DIM], found_k[DIM], found_v[DIM];
  for (uint32_t at = 0; at < seq->count; at++) {
    const int page = seq->pages[at / PAGE];
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
      const wick_status status = kv_row_read(m->pool, seq->id, layer, at, found_k, found_v, NULL);
      CHECK_EQ_INT(status, page == GONE ? WICK_E_RANGE : WICK_OK);
      if (page == GONE || m->pages[page].rows[at % PAGE] == 0) continue;
      make_row(m, m->pages[page].rows[at % PAGE] + layer, k, v);
      CHECK_EQ_MEM(found_k, k, sizeof k);
      CHECK_EQ_MEM(found_v, v, sizeof v);
    }
  }
}

// places[i]: the pool's page for page i of the model, GONE while unknown
static void check_table(const naive_pool *m, const naive_seq *seq, int places[PAGES_MAX]) {
  uint32_t count;
  const kv_entry *table = kv_seq_table(m->pool, seq->id, &count);
  CHECK_EQ_UINT(kv_seq_tokens(m->pool, seq->id), seq->count);
  CHECK_EQ_UINT(kv_seq_capacity(m->pool, seq->id), seq->entry_count * PAGE);
  if (!CHECK_EQ_UINT(count, seq->entry_count)) return;
  for (uint32_t i = 0; i < count; i++) {
    const int page = seq->pages[i];
    if (page == GONE) {
      CHECK_EQ_INT(table[i].page, KV_PAGE_NONE);
      continue;
    }
    if (places[page] == GONE) places[page] = table[i].page;
    CHECK_EQ_INT(table[i].page, places[page]);
    const kv_page *header = kv_pool_page(m->pool, table[i].page);
    if (CHECK(header != NULL)) CHECK_EQ_UINT(header->ref_count, m->pages[page].refs);
  }
}

static void check_stats(naive_pool *m) {
  m->stats.cow_operations = m->stats.forks + m->stats.cow_copies;
  const kv_stats found = kv_pool_stats(m->pool);
  CHECK_EQ_MEM(&found, &m->stats, sizeof found);
  const uint32_t free_pages = kv_pool_pages_free(m->pool);
  CHECK_EQ_UINT(kv_pool_pages(m->pool) - free_pages, m->stats.used_pages);
  CHECK_EQ_UINT(kv_pool_pages_available(m->pool), pages_free(m));
}

// Computes, for each page of the model, the most tokens that any sequence has in it, and returns
// their sum and the number of pages.
static uint64_t count_tokens(const naive_pool *m, uint32_t *with_tokens) {
  uint32_t of_page[PAGES_MAX] = {0};
  uint64_t tokens = 0;
  for (int i = 0; i < SEQS_MAX; i++) {
    const naive_seq *seq = &m->seqs[i];
    for (uint32_t e = 0; seq->id != KV_SEQ_NONE && e < seq->entry_count; e++) {
      const uint32_t left = seq->count > e * PAGE ? seq->count - e * PAGE : 0;
      const uint32_t held = left < PAGE ? left : PAGE;
      if (seq->pages[e] != GONE && of_page[seq->pages[e]] < held) of_page[seq->pages[e]] = held;
    }
  }
  *with_tokens = 0;
  for (int i = 0; i < PAGES_MAX; i++) {
    tokens += of_page[i];
    *with_tokens += of_page[i] > 0;
  }
  return tokens;
}

static void check_frag(const naive_pool *m) {
  const uint32_t pages = kv_pool_pages(m->pool), used = m->stats.used_pages;
  uint32_t holes = 0, largest = 0, seen = 0, run = 0, with_tokens;
  const uint64_t tokens = count_tokens(m, &with_tokens);
  for (uint32_t i = 0; i < pages; i++) {
    const bool is_free = kv_pool_page(m->pool, (int32_t)i)->ref_count == 0;
    if (!is_free && run > 0 && seen > 0) holes++;
    run = is_free ? run + 1 : 0;
    if (run > largest) largest = run;
    seen += !is_free;
  }
  CHECK_EQ_UINT(seen, used);
  const kv_frag frag = kv_frag_stats(m->pool);
  CHECK_EQ_UINT(frag.holes, holes);
  CHECK_EQ_UINT(frag.largest_free_region, largest);
  CHECK_EQ_UINT(frag.wasted_capacity, (uint64_t)used * PAGE - tokens);
  CHECK_NEAR(frag.fragmentation_ratio, used == 0 ? 0 : (double)holes / used, 1e-12);
  CHECK_NEAR(frag.avg_tokens_per_page, with_tokens == 0 ? 0 : (double)tokens / with_tokens, 1e-12);
  const uint64_t page_bytes = pages == 0 ? 0 : kv_pool_bytes_capacity(m->pool) / pages;
  CHECK_EQ_UINT(kv_pool_bytes_capacity(m->pool), pages * page_bytes);
  CHECK_EQ_UINT(kv_pool_bytes_used(m->pool), used * page_bytes);
}

static bool check_pool(naive_pool *m, const naive_seq *touched) {
  wick_error error = {0};
  if (!CHECK_EQ_INT(kv_pool_check(m->pool, &error), WICK_OK)) {
    return check_true(false, error.message, __FILE__, __LINE__);
  }
  int places[PAGES_MAX];
  for (int i = 0; i < PAGES_MAX; i++) places[i] = GONE;
  for (int i = 0; i < SEQS_MAX; i++) {
    if (m->seqs[i].id != KV_SEQ_NONE) check_table(m, &m->seqs[i], places);
  }
  check_stats(m);
  check_frag(m);
  check_rows(m, touched);
  check_rows(m, &m->seqs[below(m, SEQS_MAX)]);
  return true;
}

// ---- Operations ----

static void write_row(naive_pool *m, const naive_seq *seq, uint32_t at) {
  float k[DIM], v[DIM];
  m->row_last += LAYERS;
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    make_row(m, m->row_last + layer, k, v);
    CHECK_EQ_UINT(kv_row_write(m->pool, seq->id, layer, at, k, v), 0);
  }
  m->pages[seq->pages[at / PAGE]].rows[at % PAGE] = m->row_last;
}

static void begin_seq(naive_pool *m, naive_seq *seq) {
  const uint32_t tokens = below(m, 70), pages = (tokens + PAGE - 1) / PAGE;
  const wick_status wanted = pages > pages_free(m) ? WICK_E_PAGES : WICK_OK;
  kv_seq_id id = KV_SEQ_NONE;
  if (!is_done(m, kv_seq_new(m->pool, tokens, &id, NULL, NULL), wanted)) return;
  m->stats.sequences_allocated++;
  m->stats.active_sequences++;
  CHECK_EQ_UINT(id, m->stats.sequences_allocated);
  *seq = (naive_seq){.id = id};
  add_pages(m, seq, pages);
}

static void free_seq(naive_pool *m, naive_seq *seq) {
  CHECK_EQ_INT(kv_seq_free(m->pool, seq->id, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_free(m->pool, seq->id, NULL), WICK_E_SEQ);
  for (uint32_t i = 0; i < seq->entry_count; i++) release(m, seq->pages[i]);
  *seq = (naive_seq){.id = KV_SEQ_NONE};
  m->stats.sequences_freed++;
  m->stats.active_sequences--;
}

static void fork_seq(naive_pool *m, const naive_seq *seq, naive_seq *child) {
  kv_seq_id id = KV_SEQ_NONE;
  if (!is_done(m, kv_seq_fork(m->pool, seq->id, &id, NULL), WICK_OK)) return;
  *child = *seq;
  child->id = id;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    if (seq->pages[i] != GONE) m->pages[seq->pages[i]].refs++;
  }
  m->stats.sequences_allocated++;
  m->stats.active_sequences++;
  m->stats.forks++;
}

static void extend_seq(naive_pool *m, naive_seq *seq) {
  const uint32_t tokens = below(m, TOKENS_MAX - seq->count + 1);
  const uint32_t all = (seq->count + tokens + PAGE - 1) / PAGE;
  const uint32_t pages = all > seq->entry_count ? all - seq->entry_count : 0;
  const wick_status wanted = pages > pages_free(m) ? WICK_E_PAGES : WICK_OK;
  if (!is_done(m, kv_seq_extend(m->pool, seq->id, tokens, NULL, NULL), wanted)) return;
  add_pages(m, seq, pages);
}

static void write_tokens(naive_pool *m, naive_seq *seq) {
  uint32_t tokens = 1 + below(m, 24);
  if (tokens > TOKENS_MAX - seq->count) tokens = TOKENS_MAX - seq->count;
  const uint32_t end = seq->count + tokens, all = (end + PAGE - 1) / PAGE;
  const uint32_t added = all > seq->entry_count ? all - seq->entry_count : 0;
  uint32_t copies = 0;
  wick_status wanted = WICK_OK;
  for (uint32_t i = seq->count / PAGE; i < seq->entry_count && i * PAGE < end; i++) {
    if (seq->pages[i] == GONE) {
      wanted = WICK_E_RANGE;
    } else {
      copies += is_shared(m, seq->pages[i]);
    }
  }
  if (wanted == WICK_OK && copies + added > pages_free(m)) wanted = WICK_E_PAGES;
  if (tokens == 0) return;
  const wick_status found = kv_seq_prepare_write(m->pool, seq->id, seq->count, tokens, NULL, NULL);
  if (!is_done(m, found, wanted)) return;
  for (uint32_t i = seq->count / PAGE; i < seq->entry_count && i * PAGE < end; i++) {
    copy_shared(m, &seq->pages[i]);
  }
  add_pages(m, seq, added);
  for (uint32_t at = seq->count; at < end; at++) write_row(m, seq, at);
  CHECK_EQ_INT(kv_seq_append(m->pool, seq->id, tokens, NULL), WICK_OK);
  seq->count = end;
}

// Requests write access to one page; a row with known contents is written again.
static void rewrite_row(naive_pool *m, naive_seq *seq) {
  const uint32_t at = below(m, seq->entry_count * PAGE + PAGE / 2);
  int *page = &seq->pages[at / PAGE];
  wick_status wanted = WICK_OK;
  if (at >= seq->entry_count * PAGE || *page == GONE) {
    wanted = WICK_E_RANGE;
  } else if (is_shared(m, *page) && pages_free(m) == 0) {
    wanted = WICK_E_PAGES;
  }
  kv_page *found = NULL;
  if (!is_done(m, kv_page_mut(m->pool, seq->id, at, &found, NULL, NULL), wanted)) return;
  copy_shared(m, page);
  if (at < seq->count && m->pages[*page].rows[at % PAGE] != 0) write_row(m, seq, at);
}

static void set_tokens(naive_pool *m, naive_seq *seq) {
  const uint32_t room = seq->entry_count * PAGE, tokens = below(m, room + 4);
  const wick_status wanted = tokens > room ? WICK_E_RANGE : WICK_OK;
  if (is_done(m, kv_seq_tokens_set(m->pool, seq->id, tokens, NULL), wanted)) {
    seq->count = tokens;
  }
}

static void truncate_seq(naive_pool *m, naive_seq *seq) {
  const uint32_t tokens = below(m, seq->count + 3);
  const bool is_gone = tokens > 0 && tokens < seq->count && seq->pages[(tokens - 1) / PAGE] == GONE;
  const wick_status wanted = tokens > seq->count || is_gone ? WICK_E_RANGE : WICK_OK;
  if (!is_done(m, kv_seq_truncate(m->pool, seq->id, tokens, NULL), wanted)) return;
  while (seq->entry_count * PAGE >= tokens + PAGE) release(m, seq->pages[--seq->entry_count]);
  seq->count = tokens;
}

static void window_seq(naive_pool *m, naive_seq *seq) {
  const uint32_t keep = below(m, TOKENS_MAX);
  CHECK_EQ_INT(kv_seq_window(m->pool, seq->id, keep, NULL), WICK_OK);
  for (uint32_t i = 0; i < seq->entry_count && (i + 1) * PAGE + keep <= seq->count; i++) {
    release(m, seq->pages[i]);
    seq->pages[i] = GONE;
  }
}

// Counts how many pages compacting a sequence moves, at most `budget`. Updates `refs`, the
// reference counts of the pool's pages, as the moves would.
static uint32_t count_moves(const naive_pool *m, kv_seq_id seq, uint32_t budget,
                            uint32_t refs[PAGES_MAX]) {
  uint32_t count, moves = 0;
  const kv_entry *table = kv_seq_table(m->pool, seq, &count);
  int before = count > 0 ? table[0].page : GONE;
  for (uint32_t i = 1; i < count; i++) {
    const int page = table[i].page, place = before + 1;
    before = page;
    if (page == GONE || place == 0 || place == page || moves == budget || refs[page] != 1 ||
        place >= (int)kv_pool_pages(m->pool) || refs[place] != 0) {
      continue;
    }
    refs[place] = 1;
    refs[page] = 0;
    before = place;
    moves++;
  }
  return moves;
}

static void read_refs(const naive_pool *m, uint32_t refs[PAGES_MAX]) {
  for (uint32_t i = 0; i < kv_pool_pages(m->pool); i++) {
    refs[i] = kv_pool_page(m->pool, (kv_page_id)i)->ref_count;
  }
}

static void compact_seq(naive_pool *m, const naive_seq *seq) {
  uint32_t refs[PAGES_MAX] = {0}, moved;
  read_refs(m, refs);
  const uint32_t wanted = count_moves(m, seq->id, PAGES_MAX, refs);
  CHECK_EQ_INT(kv_seq_compact(m->pool, seq->id, &moved, NULL), WICK_OK);
  CHECK_EQ_UINT(moved, wanted);
  m->stats.pages_moved += wanted;
}

static void defrag_pool(naive_pool *m) {
  uint32_t refs[PAGES_MAX] = {0}, wanted = 0;
  const uint32_t budget = below(m, PAGES_MAX);
  read_refs(m, refs);
  for (kv_seq_id id = 1; id <= m->stats.sequences_allocated; id++) {
    wanted += count_moves(m, id, budget - wanted, refs);
  }
  CHECK_EQ_UINT(kv_pool_defrag(m->pool, budget), wanted);
  m->stats.pages_moved += wanted;
  m->stats.defrag_operations += wanted > 0;
}

static void operate(naive_pool *m, naive_seq *seq, naive_seq *other) {
  const uint32_t choice = below(m, 22);
  if (seq->id == KV_SEQ_NONE) {
    begin_seq(m, seq);
  } else if (choice < 8) {
    write_tokens(m, seq);
  } else if (choice < 12) {
    if (other == seq) return;
    if (other->id != KV_SEQ_NONE) free_seq(m, other);
    fork_seq(m, seq, other);
  } else if (choice < 14) {
    rewrite_row(m, seq);
  } else if (choice < 16) {
    extend_seq(m, seq);
  } else if (choice == 16) {
    set_tokens(m, seq);
  } else if (choice == 17) {
    truncate_seq(m, seq);
  } else if (choice == 18) {
    window_seq(m, seq);
  } else if (choice == 19) {
    compact_seq(m, seq);
  } else if (choice == 20) {
    defrag_pool(m);
  } else {
    free_seq(m, seq);
  }
}

// ---- Runs ----

// Opens the pool; returns false if the injected allocation failure occurred here.
static bool open_pool(naive_pool *m, kernel_kv_type type, uint64_t fail_at_call, uint64_t seed) {
  memset(m, 0, sizeof *m);
  memory_init(&m->memory, 0, platform_alloc, platform_free);
  m->memory.fail_at_call = fail_at_call;
  m->random = seed;
  const kv_shape shape = {LAYERS, 1, DIM, type, type, 0};
  return is_done(m, kv_pool_init(&m->memory, kernels_bind(), &shape, 0, PAGES_MAX, &m->pool, NULL),
                 WICK_OK);
}

static void run_operations(naive_pool *m, uint32_t operations) {
  for (uint32_t i = 0; i < operations; i++) {
    naive_seq *seq = &m->seqs[below(m, SEQS_MAX)], *other = &m->seqs[below(m, SEQS_MAX)];
    operate(m, seq, other);
    if (!check_pool(m, seq)) return;
  }
  for (int i = 0; i < SEQS_MAX; i++) {
    if (m->seqs[i].id != KV_SEQ_NONE) free_seq(m, &m->seqs[i]);
  }
  CHECK_EQ_UINT(kv_pool_pages_free(m->pool), kv_pool_pages(m->pool));
  check_pool(m, &m->seqs[0]);
}

static void close_pool(naive_pool *m) {
  kv_pool_destroy(m->pool);
  CHECK_EQ_UINT(m->memory.blocks_now, 0);
}

static void check_type(kernel_kv_type type, uint64_t seed) {
  static naive_pool m;
  REQUIRE(open_pool(&m, type, 0, seed));
  run_operations(&m, OPERATIONS);
  CHECK(m.refused > 20);
  CHECK(m.stats.forks > 100);
  CHECK(m.stats.cow_copies > 50);
  CHECK(m.stats.defrag_operations > 5);
  close_pool(&m);
}

// Runs once for each allocation of the run and lets it fail: the operation is rejected, and the run
// continues.
static void check_failing_allocations(void) {
  static naive_pool m;
  uint64_t fail_at_call = 0;
  do {
    if (open_pool(&m, KERNEL_KV_F32, ++fail_at_call, 1)) run_operations(&m, OPERATIONS_FAILING);
    close_pool(&m);
  } while (m.has_failed);
  CHECK(fail_at_call > 40);
  CHECK_EQ_UINT(m.memory.calls, fail_at_call - 1);
}

TEST(pk_31_random_operations) {
  static const kernel_kv_type types[] = {KERNEL_KV_F32, KERNEL_KV_F16, KERNEL_KV_Q8, KERNEL_KV_Q4};
  for (uint64_t i = 0; i < soak_count(20); i++) {
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
      check_type(types[t], soak_seed() + (uint64_t)types[t] + 1 + 4 * i);
    }
  }
  check_failing_allocations();
}

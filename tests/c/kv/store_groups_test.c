// The store with several layer groups: windows free pages, a sequence is truncated where every
// group can end, and a failing call leaves all groups unchanged.
#include <stdlib.h>

#include "base/hash.h"
#include "check.h"
#include "consistency.h"
#include "kept_record.h"
#include "kernels/kernels.h"
#include "kv/open.h"
#include "kv/state.h"
#include "platform/platform.h"
#include "random.h"
#include "reference/pages.h"
#include "store/store.h"

enum { WINDOW = 40, BATCH = 32, DIM = 8, PAGES = 64, TOKENS = 500 };
enum { FULL, WINDOWED, WIDE, GROUPS };

static memory_gate memory;
static wick_error error;
static int32_t text[TOKENS + BATCH];

static store_config config_of(uint32_t groups) {
  store_config config = {.group_count = groups,
                         .batch_tokens = BATCH,
                         .pages_max = PAGES,
                         .prefix_entries_max = PAGES};
  config.groups[FULL] = (kv_shape){1, 1, DIM, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  config.groups[WINDOWED] = (kv_shape){2, 1, DIM, KERNEL_KV_F32, KERNEL_KV_F32, WINDOW};
  config.groups[WIDE] = (kv_shape){1, 2, 2 * DIM, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  return config;
}

static seq_store *open_store(const store_config *config) {
  uint64_t state = 3;
  for (int i = 0; i < TOKENS + BATCH; i++) text[i] = (int32_t)random_below(&state, 1000);
  memory_init(&memory, 0, platform_alloc, platform_free);
  seq_store *store = NULL;
  CHECK_EQ_INT(store_create(&memory, kernels_bind(), config, &store, NULL), WICK_OK);
  return store;
}

static void close_store(seq_store *store) {
  store_destroy(store);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static void check_store(const seq_store *store) {
  const bool is_whole = store_check(store, &error) == WICK_OK;
  if (!is_whole) check_true(false, error.message, __FILE__, __LINE__);
}

// ---- Tokens: a row holds its position ----

static void write_rows(const seq_store *store, kv_seq_id seq, uint32_t first, uint32_t count) {
  for (uint32_t group = 0; group < GROUPS; group++) {
    kv_pool *pool = store_group(store, group);
    if (pool == NULL) continue;
    float row[4 * DIM];
    for (uint32_t p = first; p < first + count; p++) {
      for (int i = 0; i < 4 * DIM; i++) row[i] = (float)(p + 1);
      for (uint32_t layer = 0; layer < kv_pool_shape(pool)->layers; layer++) {
        kv_row_write(pool, seq, layer, p, row, row);
      }
    }
  }
}

static wick_status read_tokens(seq_store *store, kv_seq_id seq, uint32_t count) {
  const uint32_t first = store_tokens(store, seq);
  const wick_status status = store_prepare(store, seq, count, NULL);
  if (status != WICK_OK) return status;
  CHECK_EQ_INT(store_begin_rows(store, seq, count, count, NULL), WICK_OK);
  write_rows(store, seq, first, count);
  store_commit(store, seq, count);
  return WICK_OK;
}

static void read_to(seq_store *store, kv_seq_id seq, uint32_t end) {
  while (store_tokens(store, seq) < end) {
    const uint32_t left = end - store_tokens(store, seq);
    if (!CHECK_EQ_INT(read_tokens(store, seq, left < BATCH ? left : BATCH), WICK_OK)) return;
    store_remember(store, seq, (cache_salt){0}, text, store_tokens(store, seq));
    check_store(store);
  }
}

// Checks that every position visible to the next token exists and has the written contents.
static void check_seen(const seq_store *store, kv_seq_id seq) {
  const uint32_t tokens = store_tokens(store, seq);
  for (uint32_t group = 0; group < GROUPS; group++) {
    const kv_pool *pool = store_group(store, group);
    if (pool == NULL) continue;
    const uint32_t window = kv_pool_shape(pool)->window;
    for (uint32_t p = window == 0 || tokens < window ? 0 : tokens + 1 - window; p < tokens; p++) {
      float k[4 * DIM] = {0}, v[4 * DIM] = {0};
      CHECK_EQ_INT(kv_row_read(pool, seq, 0, p, k, v, NULL), WICK_OK);
      if (k[DIM - 1] != (float)(p + 1) || v[0] != (float)(p + 1)) CHECK_EQ_UINT(p, UINT32_MAX);
    }
  }
}

static kv_seq_id new_seq(seq_store *store) {
  kv_seq_id seq = KV_SEQ_NONE;
  CHECK_EQ_INT(store_new(store, &seq, NULL), WICK_OK);
  return seq;
}

// ---- Windows ----

TEST(a_window_keeps_only_the_pages_that_its_next_rows_see) {
  store_config config = config_of(2);
  config.prefix_entries_max = 0;
  seq_store *store = open_store(&config);
  const kv_pool *windowed = store_group(store, WINDOWED);
  const uint32_t most = (WINDOW + STORE_BACK_TOKENS + BATCH) / KERNEL_PAGE_TOKENS + 2;
  const kv_seq_id seq = new_seq(store);
  while (store_tokens(store, seq) < TOKENS) {
    CHECK_EQ_INT(read_tokens(store, seq, store_tokens(store, seq) < 320 ? BATCH : 1), WICK_OK);
    CHECK(kv_seq_pages(windowed, seq) <= most);
    check_seen(store, seq);
  }
  check_store(store);
  CHECK(kv_pool_pages(windowed) <= most);
  CHECK_EQ_UINT(kv_pool_pages(store_pages(store)), (TOKENS + 15) / 16);
  const uint64_t planned = store_plan_bytes(kernels_bind(), &config, TOKENS);
  const uint64_t full_bytes = kv_pool_layout(store_pages(store))->page_bytes;
  const uint64_t window_bytes = kv_pool_layout(windowed)->page_bytes;
  CHECK_EQ_UINT(planned, (TOKENS + 15) / 16 * full_bytes + most * window_bytes);
  store_free(store, seq);
  close_store(store);
}

TEST(a_sequence_is_truncated_where_every_group_can_end) {
  const store_config config = config_of(GROUPS);
  seq_store *store = open_store(&config);
  const kv_seq_id seq = new_seq(store);
  read_to(store, seq, 200);
  CHECK_EQ_INT(store_prepare(store, seq, 1, NULL), WICK_OK);  // frees the pages before the window
  for (uint32_t at = 0; at <= 210; at++) {
    kv_seq_id child = KV_SEQ_NONE;
    CHECK_EQ_INT(store_fork(store, seq, &child, NULL), WICK_OK);
    const bool can_cut = store_can_cut_at(store, child, at);
    if (at <= 200 && at >= 200 - STORE_BACK_TOKENS) CHECK(can_cut);
    if (at == 100 || at > 200) CHECK(!can_cut);
    if (at > 200) continue;
    CHECK_EQ_UINT(store_truncate(store, child, at), can_cut ? at : 0);
    check_seen(store, child);
    check_store(store);
    store_free(store, child);
  }
  check_seen(store, seq);
  CHECK(!store_can_drop(store));
  CHECK_EQ_INT(store_drop(store, seq, 3, 9, NULL), WICK_E_UNSUPPORTED);
  close_store(store);
}

// ---- The prefix cache ----

static uint32_t attach(seq_store *store, uint32_t count, kv_seq_id *seq) {
  *seq = new_seq(store);
  const uint32_t cached = store_cached(store, (cache_salt){0}, text, count);
  const uint32_t hit = store_attach(store, *seq, (cache_salt){0}, text, count);
  CHECK_EQ_UINT(hit, cached);
  CHECK_EQ_UINT(store_tokens(store, *seq), hit);
  check_store(store);
  return hit;
}

TEST(a_hit_ends_where_every_window_is_complete) {
  store_config config = config_of(GROUPS);
  config.batch_tokens = 1000;  // large enough for the pools to keep everything that is cached
  config.pages_keep = PAGES;
  seq_store *store = open_store(&config);
  kv_seq_id seq = new_seq(store), other;
  read_to(store, seq, 200);
  store_free(store, seq);
  for (uint32_t count = 1; count <= 210; count++) {
    const uint32_t whole = (count - 1 > 200 ? 200 : count - 1) / 16 * 16;
    CHECK_EQ_UINT(attach(store, count, &other), whole);
    check_seen(store, other);
    read_to(store, other, whole + 7);
    check_seen(store, other);
    store_free(store, other);
  }
  // the window's pool runs out of pages: the sequence takes cached pages, oldest tokens first
  kv_pool *windowed = store_group(store, WINDOWED);
  kv_seq_id taker = KV_SEQ_NONE;
  const uint32_t available = kv_pool_pages_available(windowed);
  CHECK_EQ_INT(kv_seq_new(windowed, (available - 4) * 16, &taker, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_free(windowed, taker, NULL), WICK_OK);
  kv_pool_skip_ids(store_pages(store), taker + 1);
  kv_pool_skip_ids(store_group(store, WIDE), taker + 1);
  check_store(store);
  CHECK_EQ_UINT(store_cached(store, (cache_salt){0}, text, 100), 0);
  CHECK_EQ_UINT(attach(store, 210, &other), 192);
  check_seen(store, other);
  store_free(store, other);
  close_store(store);
}

// ---- Records ----

static record saved;

static wick_status load(seq_store *store, kv_seq_id *seq) {
  int32_t tokens[TOKENS];
  saved.at = 0;
  const wick_state_source source = {&saved, read_record, saved.size_bytes};
  state_reader reader;
  const wick_status status =
      store_load_begin(store, store_salt(store, 9), &source, &reader, &error);
  if (status != WICK_OK) return status;
  if (!CHECK(reader.tokens <= TOKENS)) return WICK_E_CORRUPT;
  const wick_status loaded = store_load(store, &reader, tokens, seq, &error);
  if (loaded == WICK_OK) CHECK_EQ_MEM(tokens, text, reader.tokens * sizeof *tokens);
  return loaded;
}

TEST(a_saved_sequence_contains_the_pages_of_all_groups) {
  const store_config config = config_of(GROUPS);
  seq_store *store = open_store(&config);
  const kv_seq_id seq = new_seq(store);
  read_to(store, seq, 170);
  uint64_t size_bytes = 0;
  const wick_state_sink sink = {&saved, write_record};
  saved.size_bytes = 0;
  CHECK_EQ_INT(store_save(store, store_salt(store, 9), seq, text, NULL, &sink, NULL), WICK_OK);
  CHECK_EQ_INT(store_record_bytes(store, seq, NULL, &size_bytes, NULL), WICK_OK);
  CHECK_EQ_UINT(size_bytes, saved.size_bytes);
  kv_seq_id read = KV_SEQ_NONE;
  REQUIRE(load(store, &read) == WICK_OK);
  check_seen(store, read);
  read_to(store, read, 230);
  check_seen(store, read);
  store_free(store, read);
  const kv_stats before = kv_pool_stats(store_group(store, WINDOWED));
  for (size_t at = 0; at < saved.size_bytes; at += 1 + at % 7) {
    saved.bytes[at] ^= 4;
    CHECK(load(store, &read) != WICK_OK);
    saved.bytes[at] ^= 4;
  }
  const size_t whole = saved.size_bytes;
  for (size_t left = 1; left <= whole; left += 1 + left / 5) {
    saved.size_bytes = whole - left;
    CHECK_EQ_INT(load(store, &read), WICK_E_TRUNCATED);  // reported before reading past the end
    CHECK(saved.at <= saved.size_bytes);
  }
  check_store(store);
  CHECK_EQ_UINT(kv_pool_stats(store_group(store, WINDOWED)).active_sequences,
                before.active_sequences);
  close_store(store);
}

// Exchanges the groups in the records of two sequences of the same length: each checksum is valid.
TEST(groups_of_a_different_sequence_are_rejected) {
  enum { MAGIC_BYTES = 8, COUNT = 170 };
  static record other;
  static int32_t changed[TOKENS + BATCH];
  const store_config config = config_of(GROUPS);
  seq_store *store = open_store(&config);
  const kv_seq_id seq = new_seq(store);
  read_to(store, seq, COUNT);
  memcpy(changed, text, sizeof changed);
  changed[COUNT - 1] ^= 1;
  const wick_state_sink sink = {&saved, write_record}, to_other = {&other, write_record};
  saved.size_bytes = other.size_bytes = 0;
  CHECK_EQ_INT(store_save(store, store_salt(store, 9), seq, text, NULL, &sink, NULL), WICK_OK);
  CHECK_EQ_INT(store_save(store, store_salt(store, 9), seq, changed, NULL, &to_other, NULL),
               WICK_OK);
  REQUIRE(saved.size_bytes == other.size_bytes);
  uint32_t groups = 0;
  for (size_t at = MAGIC_BYTES; at + MAGIC_BYTES < saved.size_bytes; at++) {
    if (memcmp(saved.bytes + at, saved.bytes, MAGIC_BYTES) != 0) continue;
    static record whole;
    kv_seq_id read = KV_SEQ_NONE;
    whole = saved;
    groups++;
    memcpy(saved.bytes + at, other.bytes + at, saved.size_bytes - at);
    CHECK_EQ_INT(load(store, &read), WICK_E_CORRUPT);
    saved = whole;
    CHECK_EQ_INT(load(store, &read), WICK_OK);
    store_free(store, read);
  }
  CHECK_EQ_UINT(groups, GROUPS - 1);
  check_store(store);
  close_store(store);
}

// ---- Failures ----

typedef wick_status failing(seq_store *store, kv_seq_id seq);

static wick_status make_one(seq_store *store, kv_seq_id seq) {
  kv_seq_id made;
  (void)seq;
  return store_new(store, &made, &error);
}
static wick_status fork_it(seq_store *store, kv_seq_id seq) {
  kv_seq_id made;
  return store_fork(store, seq, &made, &error);
}
static wick_status prepare_it(seq_store *store, kv_seq_id seq) {
  return store_prepare(store, seq, 100, &error);
}
static wick_status load_it(seq_store *store, kv_seq_id seq) {
  kv_seq_id made;
  (void)seq;
  return load(store, &made);
}

typedef struct counts {
  uint32_t sequences[GROUPS], used[GROUPS], capacity[GROUPS];
} counts;

static counts count_all(const seq_store *store, kv_seq_id seq) {
  counts counts;
  for (uint32_t i = 0; i < GROUPS; i++) {
    const kv_stats stats = kv_pool_stats(store_group(store, i));
    counts.sequences[i] = stats.active_sequences;
    counts.used[i] = stats.used_pages;
    counts.capacity[i] = kv_seq_capacity(store_group(store, i), seq);
  }
  return counts;
}

// Whichever allocation fails, all groups succeed or none is changed.
static void check_fails_whole(failing *call) {
  for (uint64_t fail = 1;; fail++) {
    store_config config = config_of(GROUPS);
    config.prefix_entries_max = 0;
    seq_store *store = open_store(&config);
    const kv_seq_id seq = new_seq(store);
    read_to(store, seq, 50);
    const wick_state_sink sink = {&saved, write_record};
    saved.size_bytes = 0;
    CHECK_EQ_INT(store_save(store, store_salt(store, 9), seq, text, NULL, &sink, NULL), WICK_OK);
    const counts before = count_all(store, seq);
    memory.fail_at_call = memory.calls + fail;
    error = (wick_error){0};
    const wick_status status = call(store, seq);
    memory.fail_at_call = 0;
    check_store(store);
    const counts after = count_all(store, seq);
    if (status != WICK_OK) {
      CHECK_EQ_INT(status, WICK_E_NOMEM);
      CHECK_EQ_INT(error.status, WICK_E_NOMEM);
      CHECK(strncmp(error.message, "out of memory: ", 15) == 0);
      CHECK_EQ_MEM(&after, &before, sizeof after);
    }
    const kv_seq_id next = new_seq(store);
    CHECK(next > seq);
    check_store(store);
    close_store(store);
    if (status == WICK_OK || fail == 100) {
      CHECK(fail > 1 && fail < 100);
      return;
    }
  }
}

TEST(a_failed_fork_prepare_or_load_leaves_all_groups_unchanged) {
  check_fails_whole(fork_it);
  check_fails_whole(prepare_it);
  check_fails_whole(load_it);
}

TEST(a_new_sequence_is_in_all_groups_or_in_none) {
  // the lists of sequences grow at the ninth sequence
  for (uint64_t fail = 1; fail <= 3; fail++) {
    const store_config config = config_of(GROUPS);
    seq_store *store = open_store(&config);
    for (int i = 0; i < 8; i++) new_seq(store);
    memory.fail_at_call = memory.calls + fail;
    CHECK_EQ_INT(make_one(store, KV_SEQ_NONE), WICK_E_NOMEM);
    memory.fail_at_call = 0;
    check_store(store);
    CHECK_EQ_INT(make_one(store, KV_SEQ_NONE), WICK_OK);
    check_store(store);
    close_store(store);
  }
}

TEST(tables_of_all_groups_are_reserved) {
  const store_config config = config_of(GROUPS);
  seq_store *store = open_store(&config);
  const kv_seq_id seq = new_seq(store);
  store_reserve(store, seq, TOKENS, PAGES);
  const uint64_t calls = memory.calls;
  for (uint32_t group = 0; group < GROUPS; group++) {
    CHECK_EQ_INT(kv_seq_reserve_table(store_group(store, group), seq, TOKENS, NULL), WICK_OK);
  }
  CHECK_EQ_UINT(memory.calls, calls);
  close_store(store);
}

TEST(pages_freed_by_any_group_count_as_freed) {
  store_config config = config_of(GROUPS);
  config.prefix_entries_max = 0;
  seq_store *store = open_store(&config);
  const kv_seq_id seq = new_seq(store);
  read_to(store, seq, 30);
  uint64_t wanted = store_freed(store);
  for (uint32_t group = 0; group < GROUPS; group++) {
    const uint32_t used = kv_pool_stats(store_group(store, group)).used_pages;
    CHECK_EQ_UINT(used, 2);
    wanted += used;
  }
  store_free(store, seq);
  CHECK_EQ_UINT(store_freed(store), wanted);
  close_store(store);
}

// Either no layer has keys and values, or all have windows: positions are still counted.
TEST(a_store_without_an_unwindowed_group_counts_positions) {
  store_config config = {.batch_tokens = BATCH, .pages_max = PAGES, .prefix_entries_max = PAGES};
  for (int with_window = 0; with_window < 2; with_window++) {
    if (with_window != 0) {
      config.groups[0] = config_of(2).groups[WINDOWED];
      config.group_count = 1;
    }
    seq_store *store = open_store(&config);
    kv_seq_id seq = new_seq(store), other;
    read_to(store, seq, 100);
    CHECK_EQ_UINT(store_tokens(store, seq), 100);
    store_free(store, seq);
    CHECK_EQ_UINT(attach(store, 90, &other), 80);
    CHECK_EQ_UINT(store_truncate(store, other, 0), 0);
    check_store(store);
    close_store(store);
  }
}

// ---- Keys that are encoded per page ----

static store_config coded_config(uint32_t groups, int k_type, int v_type) {
  store_config config = config_of(groups);
  for (uint32_t i = 0; i < groups; i++) {
    config.groups[i].k_type = (kernel_kv_type)k_type;
    config.groups[i].v_type = (kernel_kv_type)v_type;
  }
  return config;
}

// Runs a pass of `rows`, of which `kept` are accepted. Returns the sequence's new end.
static uint32_t settle_pass(seq_store *store, kv_seq_id seq, uint32_t rows, uint32_t kept) {
  const uint32_t first = store_tokens(store, seq);
  CHECK_EQ_INT(store_prepare(store, seq, rows, NULL), WICK_OK);
  CHECK_EQ_INT(store_begin_rows(store, seq, rows, first == 0 ? rows : 1, NULL), WICK_OK);
  kv_open_rows(store_pages(store), seq, first, first + rows - 1);
  store_commit(store, seq, kept);
  const uint32_t end = store_settle(store, seq);
  CHECK_EQ_UINT(store_tokens(store, seq), end);
  check_store(store);
  return end;
}

// Runs a first pass of `first` tokens, then `passes` passes, each a page longer than the one before
// (the first has `rows`), of which `kept` rows are accepted.
static uint32_t settle(uint32_t first, uint32_t rows, uint32_t kept, uint32_t passes) {
  const store_config config = coded_config(1, KERNEL_KV_C8, KERNEL_KV_Q8);
  seq_store *store = open_store(&config);
  CHECK(store_must_settle(store));
  const kv_seq_id seq = new_seq(store);
  uint32_t end = settle_pass(store, seq, first, first);
  CHECK_EQ_UINT(end, first);
  for (uint32_t i = 0; i < passes; i++) {
    end = settle_pass(store, seq, rows + i * KERNEL_PAGE_TOKENS, kept);
  }
  store_free(store, seq);
  close_store(store);
  return end;
}

// F16 keys are kept for the page that was open before the pass and for the last page of the pass,
// so their rows can be replaced; tokens of the pages in between are recomputed.
TEST(rejecting_rows_of_a_page_filled_by_the_pass_truncates_to_its_start) {
  CHECK_EQ_UINT(settle(5, 30, 3, 1), 8);
  CHECK_EQ_UINT(settle(5, 30, 11, 1), 16);
  CHECK_EQ_UINT(settle(5, 30, 20, 1), 16);
  CHECK_EQ_UINT(settle(5, 30, 27, 1), 32);
  CHECK_EQ_UINT(settle(5, 30, 29, 1), 34);
  CHECK_EQ_UINT(settle(16, 30, 9, 1), 16);
  // the second pass begins in the older of the two pages
  CHECK_EQ_UINT(settle(5, 30, 3, 2), 11);
  CHECK_EQ_UINT(settle(5, 30, 3, 3), 14);
}

// The end offsets of the pieces of a record that the sink received, each in whole words.
static size_t piece_ends[64];
static uint32_t piece_count;

static bool write_piece(void *context, const void *bytes, size_t size_bytes) {
  if (!write_record(context, bytes, size_bytes)) return false;
  if (!CHECK(size_bytes % 8 == 0 && piece_count < 64)) return false;
  piece_ends[piece_count++] = saved.size_bytes;
  return true;
}

// Computes a checksum as in kv/state.c.
static uint64_t sum_add(uint64_t sum, const uint8_t *bytes, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes; at += 8) {
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return hash_mix_u64(sum);
}

// Changes the record's version and updates its checksums.
static void set_version(uint8_t version) {
  saved.bytes[8] = version;
  uint64_t sum = sum_add(0x5749434b4b565354u, saved.bytes, 64);
  memcpy(saved.bytes + 64, &sum, sizeof sum);
  for (uint32_t i = 0; i + 2 < piece_count; i++) {
    sum = sum_add(sum, saved.bytes + piece_ends[i], piece_ends[i + 1] - piece_ends[i]);
  }
  memcpy(saved.bytes + saved.size_bytes - sizeof sum, &sum, sizeof sum);
}

static void check_nearly(const seq_store *store, kv_seq_id seq, uint32_t group, uint32_t first,
                         uint32_t end) {
  for (uint32_t p = first; p < end; p++) {
    float k[4 * DIM] = {0}, v[4 * DIM] = {0};
    CHECK_EQ_INT(kv_row_read(store_group(store, group), seq, 0, p, k, v, NULL), WICK_OK);
    CHECK_NEAR((double)k[DIM - 1], (double)(p + 1), 0.6);
    CHECK_NEAR((double)v[0], (double)(p + 1), 0.06 * (p + 1));
  }
}

// Loads a cache of release 0.1.0: version 4, whose q4 is KERNEL_KV_Q4, with the pages of a window
// as parts.
TEST(a_version_4_cache_with_windows_is_converted_to_the_current_types) {
  store_config former = coded_config(2, KERNEL_KV_Q4, KERNEL_KV_Q4);
  former.batch_tokens = 1000;  // large enough for the pools to keep everything that is cached
  former.pages_keep = PAGES;
  seq_store *store = open_store(&former);
  kv_seq_id seq = new_seq(store);
  read_to(store, seq, 100);
  const wick_state_sink sink = {&saved, write_piece};
  saved.size_bytes = piece_count = 0;
  CHECK_EQ_INT(state_save_cache(store_prefix(store), 7, &sink, NULL), WICK_OK);
  store_free(store, seq);
  close_store(store);

  store_config config = coded_config(2, KERNEL_KV_C4, KERNEL_KV_R4);
  config.batch_tokens = former.batch_tokens;
  config.pages_keep = former.pages_keep;
  store = open_store(&config);
  const wick_state_source source = {&saved, read_record, saved.size_bytes};
  state_reader reader;
  uint32_t entries = 0;
  saved.at = 0;
  CHECK_EQ_INT(state_begin(store_pages(store), 7, &source, &reader, NULL), WICK_E_MISMATCH);
  set_version(4);
  saved.at = 0;
  REQUIRE(state_begin(store_pages(store), 7, &source, &reader, NULL) == WICK_OK);
  CHECK_EQ_INT(state_load_cache(&reader, store_prefix(store), &entries, NULL), WICK_OK);
  CHECK_EQ_UINT(entries, 6);
  check_store(store);
  CHECK_EQ_UINT(attach(store, 100, &seq), 96);
  check_nearly(store, seq, FULL, 0, 96);
  check_nearly(store, seq, WINDOWED, 96 - WINDOW + 1, 96);
  store_free(store, seq);
  close_store(store);
}

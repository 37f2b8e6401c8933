// Fuzzes the KV pool with any operations in any order, and the reader of saved states with any
// bytes. Input: a byte of options (bit 0: operations or states; bits 1 and 2, 3 and 4: KV types;
// bit 5: a window), a byte that selects the allocation that fails (0: none), then for operations
// any number of {operation, sequence, argument, argument}, and for states the input of run_state.
// After each operation, asserts every invariant of the pool and of the cache, and that the rows
// equal those of a naive model. After a rejected state, asserts that the pool is unchanged. At the
// end, asserts that no memory has leaked.
#include <stdlib.h>
#include <string.h>

#include "../c/support/consistency.h"
#include "base/hash.h"
#include "kv/pool.h"
#include "kv/prefix.h"
#include "kv/state.h"
#include "platform/platform.h"
#include "reference/compaction.h"
#include "reference/pages.h"
#include "reference/prefix_lookup.h"
#include "schedule/session.h"
#include "store/store.h"

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

enum {
  DIM = 8,
  LAYERS = 2,
  WINDOW = 24,
  SEQS_MAX = 6,
  TOKENS_MAX = 120,
  PAGES_MAX = 24,
  ENTRIES_MAX = 12,
  STEPS_MAX = 400,
  STEP_BYTES = 4,
  SALT = 5,  // salt of the records
  RECORD_MAX = 1 << 17
};
static const cache_salt TENANT = {5, 6};

// The expected contents of a sequence. A row is identified by all tokens that preceded it when it
// was written.
typedef struct naive_seq {
  kv_seq_id id;  // KV_SEQ_NONE: the slot is free
  uint32_t count;
  uint32_t gone;  // earlier rows may have left the window
  int32_t tokens[TOKENS_MAX];
  uint64_t rows[TOKENS_MAX];
} naive_seq;

typedef struct fuzz_run {
  memory_gate memory;
  seq_store *store;
  bool has_window;  // if set, pool and cache do not belong to the store
  kv_pool *pool;
  prefix_cache *cache;
  naive_seq seqs[SEQS_MAX];
  prefix_id held;  // an entry in use, or PREFIX_NONE
} fuzz_run;

static wick_status begin_window(fuzz_run *run, const kv_shape *shape) {
  const prefix_config config = {.entries_max = ENTRIES_MAX, .page_tokens = KERNEL_PAGE_TOKENS};
  const wick_status status =
      kv_pool_init(&run->memory, kernels_bind(), shape, 0, PAGES_MAX, &run->pool, NULL);
  run->has_window = status == WICK_OK;
  if (status != WICK_OK) return status;
  return prefix_cache_init(&run->memory, run->pool, &config, &run->cache, NULL);
}

static wick_status begin(fuzz_run *run, uint8_t kind, uint8_t fail_at_call) {
  memset(run, 0, sizeof *run);
  run->held = PREFIX_NONE;
  memory_init(&run->memory, 0, platform_alloc, platform_free);
  run->memory.fail_at_call = fail_at_call;
  const kernel_kv_type k_type = (kernel_kv_type)(kind >> 1 & 3),
                       v_type = (kernel_kv_type)(kind >> 3 & 3);
  kv_shape shape = {LAYERS, 1, DIM, k_type, v_type, 0};
  const store_config config = {.groups = {shape},
                               .group_count = 1,
                               .pages_max = PAGES_MAX,
                               .prefix_entries_max = ENTRIES_MAX};
  wick_error error;
  const wick_status status =
      store_create(&run->memory, kernels_bind(), &config, &run->store, &error);
  if (status != WICK_OK) return status;
  run->pool = store_pages(run->store);
  run->cache = store_prefix(run->store);
  if ((kind & 32) == 0 || (kind & 1) != 0) return WICK_OK;
  // for operations only: a single pool with a window, whose pages the cache stores
  shape.window = WINDOW;
  run->pool = NULL;
  run->cache = NULL;
  return begin_window(run, &shape);
}

static void end(fuzz_run *run) {
  for (int i = 0; i < SEQS_MAX; i++) {
    if (run->seqs[i].id != KV_SEQ_NONE) {
      REQUIRE(kv_seq_free(run->pool, run->seqs[i].id, NULL) == WICK_OK);
    }
  }
  if (run->cache != NULL) {
    prefix_clear(run->cache);
    REQUIRE(kv_pool_pages_free(run->pool) == kv_pool_pages(run->pool));
  }
  if (run->has_window) {
    prefix_cache_destroy(run->cache);
    kv_pool_destroy(run->pool);
  }
  store_destroy(run->store);
  REQUIRE(run->memory.blocks_now == 0);
}

// Whether the status is possible: success, or insufficient memory or pages.
static bool is_done(const fuzz_run *run, wick_status status) {
  if (status == WICK_OK) return true;
  REQUIRE(status == WICK_E_PAGES || (status == WICK_E_NOMEM && run->memory.fail_at_call != 0));
  return false;
}

// ---- rows ----

// All values of a row are the same signed power of two, which every KV type represents exactly.
static float value_of(uint64_t bits) {
  const float value = (float)(1u << (bits & 15)) / 256.0f;
  return (bits & 16) != 0 ? -value : value;
}

static void write_row(const fuzz_run *run, kv_seq_id seq, uint32_t position, uint64_t row) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    float k[DIM], v[DIM];
    for (int i = 0; i < DIM; i++) {
      k[i] = value_of(row + layer);
      v[i] = value_of((row >> 8) + layer);
    }
    REQUIRE(kv_row_write(run->pool, seq, layer, position, k, v) == 0);
  }
}

static void require_value(float found, float wanted) {
  const float least = 0.9f * wanted, most = 1.1f * wanted;
  REQUIRE(wanted > 0 ? found > least && found < most : found < least && found > most);
}

static void check_row(const fuzz_run *run, const naive_seq *seq, uint32_t position) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    float k[DIM], v[DIM];
    const wick_status status = kv_row_read(run->pool, seq->id, layer, position, k, v, NULL);
    if (status != WICK_OK) {
      REQUIRE(status == WICK_E_RANGE && position < seq->gone);
      continue;
    }
    for (int i = 0; i < DIM; i++) {
      require_value(k[i], value_of(seq->rows[position] + layer));
      require_value(v[i], value_of((seq->rows[position] >> 8) + layer));
    }
  }
}

static void check_all(const fuzz_run *run, uint32_t look) {
  REQUIRE(kv_pool_check(run->pool, NULL) == WICK_OK);
  REQUIRE(prefix_check(run->cache, NULL) == WICK_OK);
  for (int i = 0; i < SEQS_MAX; i++) {
    const naive_seq *seq = &run->seqs[i];
    if (seq->id == KV_SEQ_NONE) continue;
    REQUIRE(kv_seq_tokens(run->pool, seq->id) == seq->count);
    for (uint32_t at = look % 7; at < seq->count; at += 7) check_row(run, seq, at);
  }
}

// ---- operations ----

static void note_token(naive_seq *seq, uint32_t at, int32_t token) {
  const uint64_t before = at == 0 ? 1 : seq->rows[at - 1];
  seq->tokens[at] = token;
  seq->rows[at] = hash_mix_u64(before * 31 + (uint64_t)token + 7);
}

static void begin_seq(fuzz_run *run, naive_seq *seq, uint32_t tokens) {
  if (!is_done(run, kv_seq_new(run->pool, tokens, &seq->id, NULL, NULL))) {
    seq->id = KV_SEQ_NONE;
  }
  seq->count = seq->gone = 0;
}

// Creates a sequence with the tokens of an existing one; the cache may contain their prefix.
static void begin_again(fuzz_run *run, naive_seq *seq, const naive_seq *like) {
  uint32_t hit = 0;
  begin_seq(run, seq, 0);
  if (seq->id == KV_SEQ_NONE) return;
  const wick_status status =
      prefix_attach(run->cache, seq->id, TENANT, like->tokens, like->count, &hit, NULL);
  if (!is_done(run, status)) return;
  for (uint32_t at = 0; at < hit; at++) note_token(seq, at, like->tokens[at]);
  seq->count = hit;
}

// Writes `count` tokens at `at`: the end, or the last token, which is overwritten.
static void write_tokens(fuzz_run *run, naive_seq *seq, uint32_t at, uint32_t count, uint8_t bits) {
  if (count > TOKENS_MAX - at) count = TOKENS_MAX - at;
  const wick_status status = kv_seq_prepare_write(run->pool, seq->id, at, count, NULL, NULL);
  if (status == WICK_E_RANGE) {
    REQUIRE(at < seq->gone);
    return;
  }
  if (!is_done(run, status)) return;
  const uint64_t copies = kv_pool_stats(run->pool).cow_copies;
  for (uint32_t i = 0; i < count; i++) {
    note_token(seq, at + i, bits >> (i & 7) & 1);
    write_row(run, seq->id, at + i, seq->rows[at + i]);
  }
  REQUIRE(kv_pool_stats(run->pool).cow_copies == copies);
  if (at + count > seq->count) {
    const uint32_t more = at + count - seq->count;
    REQUIRE(kv_seq_append(run->pool, seq->id, more, NULL) == WICK_OK);
    seq->count += more;
  }
}

// Reserves space for more tokens: their pages (`what` is 0), only table entries (1), or free pages
// in the pool (2).
static void extend_seq(fuzz_run *run, const naive_seq *seq, uint32_t tokens, uint32_t what) {
  kv_pool *pool = run->pool;
  if (what == 0) is_done(run, kv_seq_extend(pool, seq->id, tokens, NULL, NULL));
  if (what == 1) is_done(run, kv_seq_reserve_table(pool, seq->id, tokens * 4, NULL));
  if (what == 2) is_done(run, kv_pool_grow_for(pool, tokens / 2, NULL));
}

static void fork_seq(fuzz_run *run, const naive_seq *seq, naive_seq *child) {
  const uint64_t bytes = kv_pool_bytes_used(run->pool);
  kv_seq_id id;
  if (!is_done(run, kv_seq_fork(run->pool, seq->id, &id, NULL))) return;
  REQUIRE(kv_pool_bytes_used(run->pool) == bytes);
  *child = *seq;
  child->id = id;
}

static void truncate_seq(fuzz_run *run, naive_seq *seq, uint32_t tokens) {
  const wick_status status = kv_seq_truncate(run->pool, seq->id, tokens, NULL);
  if (status == WICK_E_RANGE) {
    REQUIRE(tokens > seq->count || seq->gone > 0);
    return;
  }
  REQUIRE(status == WICK_OK);
  seq->count = tokens;
  if (seq->gone > tokens) seq->gone = tokens;
}

static void shift_seq(fuzz_run *run, naive_seq *seq, uint32_t first, uint32_t last) {
  const wick_status status = kv_seq_shift(run->pool, seq->id, first, last, NULL, NULL);
  if (status == WICK_E_RANGE) {
    REQUIRE(first > last || last > seq->count || seq->gone > 0);
    return;
  }
  if (!is_done(run, status)) return;
  const uint32_t rest = seq->count - last;
  memmove(seq->tokens + first, seq->tokens + last, rest * sizeof seq->tokens[0]);
  memmove(seq->rows + first, seq->rows + last, rest * sizeof seq->rows[0]);
  seq->count = first + rest;
  if (seq->gone >= last) {
    seq->gone -= last - first;
  } else if (seq->gone > first) {
    seq->gone = first;
  }
}

static void drop_window(fuzz_run *run, naive_seq *seq, uint32_t keep) {
  REQUIRE(kv_seq_window(run->pool, seq->id, keep, NULL) == WICK_OK);
  if (seq->count > keep && seq->count - keep > seq->gone) seq->gone = seq->count - keep;
}

static void slide(fuzz_run *run, naive_seq *seq) {
  kv_seq_slide(run->pool, seq->id, 0);
  if (kv_pool_shape(run->pool)->window != 0 && seq->count > WINDOW - 1 &&
      seq->count - (WINDOW - 1) > seq->gone) {
    seq->gone = seq->count - (WINDOW - 1);
  }
}

static void enter_prefix(fuzz_run *run, const naive_seq *seq) {
  is_done(run, prefix_store(run->cache, seq->id, TENANT, seq->tokens, seq->count, NULL, NULL));
}

// Retains or releases the longest entry that is a prefix of the sequence.
static void use_prefix(fuzz_run *run, const naive_seq *seq) {
  if (run->held != PREFIX_NONE) {
    REQUIRE(prefix_release(run->cache, run->held) == WICK_OK);
    run->held = PREFIX_NONE;
    return;
  }
  prefix_id id;
  prefix_find_longest(run->cache, TENANT, seq->tokens, seq->count, &id);
  if (id == PREFIX_NONE) return;
  REQUIRE(prefix_retain(run->cache, id) == WICK_OK);
  run->held = id;
}

// ---- saved states ----

// Bytes that are written and later read with changes at some positions.
typedef struct record {
  uint8_t *bytes;  // [RECORD_MAX]
  size_t size_bytes, at;
  bool signs;  // recomputes checksums for the changed bytes
  bool is_session;
  size_t base;  // where the pool's part begins, after the session's part
  uint64_t sum, payload_bytes;
} record;

static bool record_write(void *context, const void *bytes, size_t size_bytes) {
  record *to = context;
  if (size_bytes > RECORD_MAX - to->size_bytes) return false;
  memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
  return true;
}

enum { HEADER_BYTES = 72, HEADER_SUM_AT = 64, HEADER_PAYLOAD_AT = 56, SUM_BYTES = 8 };

// Like kv/state.c, computes a checksum for each piece that is read.
static uint64_t sum_add(uint64_t sum, const uint8_t *at, size_t size_bytes) {
  for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  uint64_t word = size_bytes;
  for (size_t i = 0; i < size_bytes; i++) word = word << 8 | at[i];
  return hash_mix_u64(sum ^ word);
}

static void sign(record *from, uint8_t *bytes, size_t size_bytes) {
  const size_t at = from->at - from->base;
  if (at == 0 && size_bytes == HEADER_BYTES) {
    from->sum = sum_add(0x5749434b4b565354u, bytes, HEADER_SUM_AT);
    memcpy(bytes + HEADER_SUM_AT, &from->sum, SUM_BYTES);
    memcpy(&from->payload_bytes, bytes + HEADER_PAYLOAD_AT, sizeof from->payload_bytes);
  } else if (size_bytes == SUM_BYTES && at == HEADER_BYTES + from->payload_bytes) {
    memcpy(bytes, &from->sum, SUM_BYTES);
  } else {
    from->sum = sum_add(from->sum, bytes, size_bytes);
  }
}

// A session's own part comes first: head, tail and their checksum (schedule/session.h).
static void sign_session(record *from, uint8_t *bytes, size_t size_bytes) {
  if (from->at == 0) {
    uint32_t tail;
    memcpy(&tail, bytes + 12, sizeof tail);
    from->base = size_bytes + (size_t)tail * sizeof(int32_t) + SUM_BYTES;
    from->sum = hash_bytes(bytes, size_bytes, 0);
    if (tail == 0) from->sum = hash_bytes(bytes, 0, from->sum);
  } else if (from->at + SUM_BYTES == from->base) {
    memcpy(bytes, &from->sum, SUM_BYTES);
  } else {
    from->sum = hash_bytes(bytes, size_bytes, from->sum);
  }
}

static bool record_read(void *context, void *bytes, size_t size_bytes) {
  record *from = context;
  REQUIRE(size_bytes <= from->size_bytes - from->at);  // the reader knows the size
  memcpy(bytes, from->bytes + from->at, size_bytes);
  const bool is_head = from->is_session && (from->at == 0 || from->at < from->base);
  if (from->signs && is_head) sign_session(from, bytes, size_bytes);
  if (from->signs && !is_head) sign(from, bytes, size_bytes);
  from->at += size_bytes;
  return true;
}

static record record_make(void) { return (record){.bytes = malloc(RECORD_MAX)}; }

static wick_status load_seq(fuzz_run *run, record *from, kv_seq_id *seq, int32_t *tokens,
                            uint32_t tokens_max) {
  const wick_state_source source = {from, record_read, from->size_bytes};
  state_reader reader;
  wick_error error;
  const wick_status status = state_begin(run->pool, SALT, &source, &reader, &error);
  if (status != WICK_OK) return status;
  if (reader.kind == STATE_CACHE) {
    uint32_t entries;
    return state_load_cache(&reader, run->cache, &entries, &error);
  }
  REQUIRE(reader.tokens <= from->size_bytes / sizeof *tokens);
  if (reader.tokens > tokens_max) return WICK_E_FULL;
  return state_load_seq(&reader, tokens, seq, NULL, &error);
}

// Saves a sequence and loads it as a new one.
static void copy_seq(fuzz_run *run, const naive_seq *seq, naive_seq *child) {
  record saved = record_make();
  const wick_state_sink sink = {&saved, record_write};
  wick_status status = state_save_seq(run->pool, SALT, seq->id, seq->tokens, NULL, &sink, NULL);
  if (is_done(run, status)) {
    uint64_t size_bytes;
    REQUIRE(state_seq_bytes(run->pool, seq->id, NULL, &size_bytes, NULL) == WICK_OK);
    REQUIRE(size_bytes == saved.size_bytes);
    naive_seq copy = *seq;
    status = load_seq(run, &saved, &copy.id, copy.tokens, TOKENS_MAX);
    if (is_done(run, status)) {
      REQUIRE(memcmp(copy.tokens, seq->tokens, seq->count * sizeof seq->tokens[0]) == 0);
      *child = copy;
    }
  }
  free(saved.bytes);
}

// Saves the cache, empties it and loads it again.
static void copy_cache(fuzz_run *run) {
  record saved = record_make();
  const wick_state_sink sink = {&saved, record_write};
  const uint64_t size_bytes = state_cache_bytes(run->cache);
  if (is_done(run, state_save_cache(run->cache, SALT, &sink, NULL))) {
    REQUIRE(size_bytes == saved.size_bytes);
    prefix_clear(run->cache);
    is_done(run, load_seq(run, &saved, NULL, NULL, 0));
  }
  free(saved.bytes);
}

// ---- first mode: operations ----

static void operate_free(fuzz_run *run, naive_seq *seq, const naive_seq *other, const uint8_t *at) {
  REQUIRE(kv_seq_free(run->pool, seq->id, NULL) == WICK_E_SEQ);
  if (other->id != KV_SEQ_NONE && (at[2] & 1) != 0) {
    begin_again(run, seq, other);
  } else {
    begin_seq(run, seq, at[3] % 40);
  }
}

static void operate_pool(fuzz_run *run, const naive_seq *seq, const uint8_t *at) {
  uint32_t moved;
  switch (at[0] % 6) {
    case 0:
      kv_pool_defrag(run->pool, 1 + at[2]);
      break;
    case 1:
      REQUIRE(kv_seq_compact(run->pool, seq->id, &moved, NULL) == WICK_OK);
      break;
    case 2:
      prefix_evict(run->cache);
      break;
    case 3:
      use_prefix(run, seq);
      break;
    case 4:
      copy_cache(run);
      break;
    default:
      prefix_clear(run->cache);
      break;
  }
}

static void operate(fuzz_run *run, const uint8_t *at) {
  naive_seq *seq = &run->seqs[at[1] % SEQS_MAX], *other = &run->seqs[(at[1] >> 4) % SEQS_MAX];
  const bool has_place = other->id == KV_SEQ_NONE;
  if (seq->id == KV_SEQ_NONE) {
    operate_free(run, seq, other, at);
    return;
  }
  switch (at[0] >> 4) {
    case 0:
    case 1:
    case 2:
    case 3:
      write_tokens(run, seq, seq->count, 1 + at[2] % 40, at[3]);
      break;
    case 4:
      write_tokens(run, seq, seq->count - (seq->count != 0), 1, at[3]);
      break;
    case 5:
      extend_seq(run, seq, at[2] % 64, at[3] % 3);
      break;
    case 6:
      truncate_seq(run, seq, at[2] % (seq->count + 2));
      break;
    case 7:
    case 8:
      shift_seq(run, seq, at[2] % (seq->count + 1), at[3] % (seq->count + 2));
      break;
    case 9:
      if (has_place) fork_seq(run, seq, other);
      break;
    case 10:
      drop_window(run, seq, at[2] % 64);
      break;
    case 11:
      slide(run, seq);
      break;
    case 12:
      enter_prefix(run, seq);
      break;
    case 13:
      if (has_place) copy_seq(run, seq, other);
      break;
    case 14:
      REQUIRE(kv_seq_free(run->pool, seq->id, NULL) == WICK_OK);
      seq->id = KV_SEQ_NONE;
      break;
    default:
      operate_pool(run, seq, at);
      break;
  }
}

static void run_operations(fuzz_run *run, const uint8_t *data, size_t size_bytes) {
  for (size_t step = 0; step < STEPS_MAX && size_bytes >= STEP_BYTES; step++) {
    operate(run, data);
    check_all(run, (uint32_t)step);
    data += STEP_BYTES;
    size_bytes -= STEP_BYTES;
  }
}

// ---- second mode: states ----

// Makes a record of a sequence or of the cache with this pool.
static bool save_sample(fuzz_run *run, uint8_t which, record *out) {
  naive_seq *seq = &run->seqs[0];
  const wick_state_sink sink = {out, record_write};
  begin_seq(run, seq, 0);
  if (seq->id == KV_SEQ_NONE) return false;
  write_tokens(run, seq, 0, 56, 0x35);
  if (seq->count != 56) return false;
  if ((which & 3) == 3) {
    enter_prefix(run, seq);
    truncate_seq(run, seq, 20);
    write_tokens(run, seq, 20, 30, 0x5a);
    enter_prefix(run, seq);
    if (!is_done(run, state_save_cache(run->cache, SALT, &sink, NULL))) return false;
    if ((which & 4) != 0) prefix_clear(run->cache);
    return true;
  }
  if ((which & 3) == 1) shift_seq(run, seq, 20, 37);
  if ((which & 3) == 2) drop_window(run, seq, 20);
  return is_done(run, state_save_seq(run->pool, SALT, seq->id, seq->tokens, NULL, &sink, NULL));
}

// Runs operations that must work on a loaded sequence, whatever its table contains.
static void use_loaded(fuzz_run *run, kv_seq_id seq, int32_t *tokens, uint32_t part) {
  kv_pool *pool = run->pool;
  float k[DIM], v[DIM];
  uint32_t count = kv_seq_tokens(pool, seq);
  for (uint32_t at = 0; at < count; at++) {
    const wick_status status = kv_row_read(pool, seq, 0, at, k, v, NULL);
    REQUIRE(status == WICK_OK || status == WICK_E_RANGE);
  }
  if (kv_seq_prepare_write(pool, seq, count, 3, NULL, NULL) == WICK_OK) {
    for (uint32_t i = 0; i < 3; i++) write_row(run, seq, count + i, i);
    REQUIRE(kv_seq_append(pool, seq, 3, NULL) == WICK_OK);
  }
  REQUIRE(kv_pool_check(pool, NULL) == WICK_OK);
  kv_seq_id fork;
  prefix_store(run->cache, seq, TENANT, tokens, count, NULL, NULL);
  if (kv_seq_fork(pool, seq, &fork, NULL) == WICK_OK) {
    kv_seq_shift(pool, fork, part % (count + 1), count - count / 3, NULL, NULL);
    REQUIRE(kv_pool_check(pool, NULL) == WICK_OK);
    kv_seq_truncate(pool, fork, kv_seq_tokens(pool, fork) / 2, NULL);
    kv_pool_defrag(pool, PAGES_MAX);
    REQUIRE(kv_pool_check(pool, NULL) == WICK_OK);
    REQUIRE(kv_seq_free(pool, fork, NULL) == WICK_OK);
  }
  REQUIRE(kv_seq_free(pool, seq, NULL) == WICK_OK);
}

// Writes {position u16, byte} over a record of this pool and truncates it. Returns whether the
// record has changed.
static bool damage(record *record, uint32_t cut, const uint8_t *rest, size_t rest_bytes) {
  uint8_t *before = malloc(RECORD_MAX);
  memcpy(before, record->bytes, record->size_bytes);
  for (; rest_bytes >= 3; rest += 3, rest_bytes -= 3) {
    const size_t place = (size_t)rest[0] | (size_t)rest[1] << 8;
    record->bytes[place % record->size_bytes] = rest[2];
  }
  cut %= (uint32_t)record->size_bytes + 1;
  const bool is_other = cut != 0 || memcmp(before, record->bytes, record->size_bytes) != 0;
  record->size_bytes -= cut;
  free(before);
  return is_other;
}

// Makes a session from the sample's sequence, with some tokens that have no pages.
static bool save_session(fuzz_run *run, session_table *table, record *out) {
  const naive_seq *seq = &run->seqs[0];
  const wick_state_sink sink = {out, record_write};
  session *made = NULL;
  if (!is_done(run, session_make(table, seq->count + 2, &made, NULL))) return false;
  memcpy(made->tokens, seq->tokens, seq->count * sizeof *seq->tokens);
  made->tokens[seq->count] = made->tokens[seq->count + 1] = 1;
  if (!is_done(run, kv_seq_fork(run->pool, seq->id, &made->sequence, NULL))) {
    session_discard(table, made);
    return false;
  }
  const uint32_t id = session_list(table, made);
  out->size_bytes = 0;
  return is_done(run, session_save(table, id, SALT, NULL, &sink, NULL));
}

// Runs operations that must work on a loaded session.
static void use_session(fuzz_run *run, session_table *table, uint32_t id, uint32_t part) {
  session *read;
  uint32_t fork;
  REQUIRE(session_find(table, id, &read, NULL) == WICK_OK && read->id == id);
  REQUIRE(read->count >= kv_seq_tokens(run->pool, read->sequence));
  for (uint32_t i = 0; i < read->count; i++) REQUIRE(read->tokens[i] == 0 || read->tokens[i] == 1);
  if (session_fork(table, id, &fork, NULL) == WICK_OK) {
    session_drop(table, fork, part % (read->count + 1), read->count - read->count / 3, NULL);
    REQUIRE(session_close(table, fork, NULL) == WICK_OK);
  }
  session_truncate(table, id, part % (read->count + 1), NULL);
  record again = record_make();
  const wick_state_sink sink = {&again, record_write};
  session_save(table, id, SALT, NULL, &sink, NULL);
  free(again.bytes);
}

// Returns the kind of record that run_state reads; see there for the flags.
static bool make_record(fuzz_run *run, session_table *table, const uint8_t *data, size_t size_bytes,
                        record *out) {
  const uint8_t *rest = data + 5;
  size_t rest_bytes = size_bytes - 5;
  out->signs = (data[1] & 2) != 0;
  out->is_session = (data[1] & 4) != 0;
  if ((data[1] & 1) != 0) {
    if (rest_bytes > RECORD_MAX) rest_bytes = RECORD_MAX;
    memcpy(out->bytes, rest, rest_bytes);
    out->size_bytes = rest_bytes;
    return true;
  }
  if (!save_sample(run, data[0], out)) return true;
  if (out->is_session && !save_session(run, table, out)) return true;
  return damage(out, (uint32_t)data[2] | (uint32_t)data[3] << 8, rest, rest_bytes);
}

// Input: {kind of record, flags, bytes removed at the end u16, part}, then the input of `damage`.
// Flags: 1: the rest is the record itself; 2: checksums are corrected; 4: a session record.
static void run_state(fuzz_run *run, const uint8_t *data, size_t size_bytes) {
  if (size_bytes < 5) return;
  record from = record_make();
  session_table sessions;
  sessions_init(&sessions, &run->memory, run->store);
  const bool is_damaged = make_record(run, &sessions, data, size_bytes, &from);
  const uint32_t pages = kv_pool_pages(run->pool) - kv_pool_pages_free(run->pool);
  const uint32_t entries = prefix_count(run->cache);
  kv_seq_id seq = KV_SEQ_NONE;
  uint32_t id = 0;
  int32_t *tokens = malloc(RECORD_MAX);
  wick_status status;
  if (from.is_session) {
    const wick_state_source source = {&from, record_read, from.size_bytes};
    status = session_load(&sessions, SALT, 2, TOKENS_MAX, &source, &id, NULL);
  } else {
    status = load_seq(run, &from, &seq, tokens, RECORD_MAX / (uint32_t)sizeof *tokens);
  }
  check_all(run, data[4]);
  if (is_damaged && !from.signs) REQUIRE(status != WICK_OK);
  if (!is_damaged) is_done(run, status);
  if (status != WICK_OK) {
    // the attempt may have evicted pages of idle entries
    REQUIRE(prefix_count(run->cache) <= entries);
    REQUIRE(kv_pool_pages(run->pool) - kv_pool_pages_free(run->pool) <= pages);
  } else if (seq != KV_SEQ_NONE) {
    use_loaded(run, seq, tokens, data[4]);
  } else if (id != 0) {
    use_session(run, &sessions, id, data[4]);
  }
  check_all(run, data[4]);
  sessions_destroy(&sessions);
  free(tokens);
  free(from.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes < 2) return 0;
  fuzz_run run;
  if (begin(&run, data[0], data[1]) == WICK_OK) {
    if ((data[0] & 1) == 0) run_operations(&run, data + 2, size_bytes - 2);
    if ((data[0] & 1) != 0) run_state(&run, data + 2, size_bytes - 2);
    if (run.held != PREFIX_NONE) REQUIRE(prefix_release(run.cache, run.held) == WICK_OK);
  } else {
    REQUIRE(run.memory.fail_at_call != 0);
  }
  end(&run);
  return 0;
}

// Slots of recurrent states: what is evicted when memory runs out, in which order, and that a
// sequence always has the state of its tokens, after any forks, truncations, marks, caching and
// evictions. With WICK_BENCH=1 in the environment, bench_forks measures the time of a fork.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "consistency.h"
#include "platform/platform.h"
#include "random.h"
#include "store/store_types.h"

enum { PAGES = 400, TOKENS = 300, CHECKPOINTS = 3, SEQUENCES = 6, MANY = 20 };

// The state after some tokens: their count and a digest.
typedef struct state {
  uint64_t count, digest;
} state;

typedef struct rig {
  memory_gate memory;
  seq_store *store;
} rig;

// Returns memory with the contents of an earlier user.
static void *alloc_used(size_t size_bytes) {
  void *bytes = platform_alloc(size_bytes);
  if (bytes != NULL) memset(bytes, 'u', size_bytes);
  return bytes;
}

static void open_rig(rig *r, uint32_t checkpoints) {
  static const kv_shape SHAPE = {.layers = 1, .kv_heads = 1, .head_dim = 4};
  const store_config config = {.groups = {SHAPE},
                               .group_count = 1,
                               .batch_tokens = TOKENS,
                               .pages_max = PAGES,
                               .pages_keep = PAGES,
                               .prefix_entries_max = 40,
                               .state_bytes = sizeof(state),
                               .checkpoints_max = checkpoints};
  memset(r, 0, sizeof *r);
  memory_init(&r->memory, 0, alloc_used, platform_free);
  CHECK_EQ_INT(store_create(&r->memory, kernels_bind(), &config, &r->store, NULL), WICK_OK);
  store_expect(r->store, 1);
}

static void close_rig(rig *r) {
  store_destroy(r->store);
  CHECK_EQ_UINT(r->memory.blocks_now, 0);
  CHECK_EQ_UINT(r->memory.bytes_now, 0);
}

static void check_whole(const rig *r) {
  wick_error error = {0};
  const bool is_whole = store_check(r->store, &error) == WICK_OK;
  if (!is_whole) check_true(false, error.message, __FILE__, __LINE__);
}

static kv_seq_id new_seq(rig *r) {
  kv_seq_id seq = KV_SEQ_NONE;
  CHECK_EQ_INT(store_new(r->store, &seq, NULL), WICK_OK);
  return seq;
}

static state add_tokens(state from, const int32_t *tokens, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    from.digest = (from.digest ^ (uint64_t)tokens[i]) * 0x9e3779b97f4a7c15u + 1;
  }
  from.count += count;
  return from;
}

// Runs a pass of `rows` rows with these tokens, of which the first `certain` cannot be rejected and
// `kept` are accepted. Returns the sequence's new end.
static uint32_t read_rows(rig *r, kv_seq_id seq, const int32_t *tokens, uint32_t rows,
                          uint32_t certain, uint32_t kept) {
  if (!CHECK_EQ_INT(store_prepare(r->store, seq, rows, NULL), WICK_OK)) return UINT32_MAX;
  if (!CHECK_EQ_INT(store_begin_rows(r->store, seq, rows, certain, NULL), WICK_OK)) {
    return UINT32_MAX;
  }
  const store_states at = store_states_of(r->store, seq, 0);
  state from;
  memcpy(&from, at.from, sizeof from);
  CHECK((at.mid == NULL) == (at.mid_rows == 0));
  if (at.mid != NULL) {
    const state mid = add_tokens(from, tokens, at.mid_rows);
    memcpy(at.mid, &mid, sizeof mid);
  }
  const state to = add_tokens(from, tokens, rows);
  memcpy(at.to, &to, sizeof to);
  store_commit(r->store, seq, kept);
  return store_settle(r->store, seq);
}

static void read_all(rig *r, kv_seq_id seq, uint32_t count) {
  static const int32_t ZEROS[TOKENS] = {0};
  const uint32_t end = store_tokens(r->store, seq) + count;
  CHECK_EQ_UINT(read_rows(r, seq, ZEROS, count, count, count), end);
}

// Takes all remaining slots, so that none is free and none can be allocated.
static uint32_t take_rest(rig *r, slot_id *taken) {
  uint32_t count = 0;
  r->memory.fail_from_call = r->memory.calls + 1;
  while (r->store->slots_free != 0) taken[count++] = slot_take(r->store);
  return count;
}

// ---- Taking slots ----

// Blocks do not write all bytes of a state, but a saved session contains them all.
TEST(slots_contain_no_data_of_earlier_users) {
  static const uint8_t ZEROS[sizeof(state)] = {0};
  rig r;
  open_rig(&r, CHECKPOINTS);
  for (int i = 0; i < 3; i++) {
    const slot_id slot = slot_take(r.store);
    CHECK_EQ_MEM(slot_bytes(r.store, slot), ZEROS, sizeof ZEROS);
  }
  close_rig(&r);
}

TEST(slots_are_separate_and_the_lowest_free_one_is_taken) {
  rig r;
  open_rig(&r, CHECKPOINTS);
  seq_store *store = r.store;
  slot_id slots[40];
  for (int i = 0; i < 40; i++) {
    slots[i] = slot_take(store);
    CHECK_EQ_INT(slots[i], i);
    memset(slot_bytes(store, slots[i]), i, sizeof(state));
  }
  CHECK_EQ_UINT(store->slot_count, 40);
  for (int i = 0; i < 40; i++) CHECK_EQ_UINT(*slot_bytes(store, slots[i]), (uint8_t)i);
  const uint64_t freed = store_freed(store);
  slot_retain(store, slots[7]);
  slot_id again = slots[7];
  slot_release(store, &again);
  CHECK_EQ_INT(again, SLOT_NONE);
  slot_release(store, &again);  // does nothing
  CHECK_EQ_UINT(store->slots_free, 0);
  CHECK_EQ_UINT(store_freed(store), freed);
  slot_release(store, &slots[21]);
  slot_release(store, &slots[7]);
  CHECK_EQ_UINT(store->slots_free, 2);
  CHECK_EQ_UINT(store_freed(store), freed + 2);
  CHECK_EQ_INT(slots[7] = slot_take(store), 7);
  CHECK_EQ_INT(slots[21] = slot_take(store), 21);
  CHECK_EQ_INT(slot_take(store), 40);
  CHECK(slot_reserve(store, 5));
  CHECK_EQ_UINT(store->slots_free, 5);
  slot_reserve_spare(store, 3);
  CHECK_EQ_UINT(store->slots_free, 5);
  slot_reserve_spare(store, 9);
  CHECK_EQ_UINT(store->slots_free, 9);
  CHECK_EQ_UINT(store->slot_count, 50);
  close_rig(&r);
}

TEST(spare_slots_are_limited_to_the_checkpoints_and_two_per_sequence) {
  for (uint32_t sequences = 0; sequences < 4; sequences++) {
    rig r;
    open_rig(&r, CHECKPOINTS);
    for (uint32_t i = 0; i < sequences; i++) new_seq(&r);
    uint32_t count = 0;
    while (slot_take_spare(r.store) != SLOT_NONE) count++;
    CHECK_EQ_UINT(count, CHECKPOINTS + 2 * sequences);
    CHECK_EQ_UINT(r.store->slot_count, count);
    CHECK_EQ_INT(slot_take(r.store), (int)count);  // required slots are still available
    slot_id last = (slot_id)count - 1;
    if (count != 0) {
      slot_release(r.store, &last);
      CHECK_EQ_INT(slot_take_spare(r.store), (int)count - 1);
    }
    close_rig(&r);
  }
}

TEST(running_out_of_memory_leaves_the_slots_unchanged) {
  for (uint64_t call = 1; call <= 3; call++) {
    rig r;
    open_rig(&r, CHECKPOINTS);
    for (int i = 0; i < 8; i++) CHECK_EQ_INT(slot_take(r.store), i);
    r.memory.fail_from_call = r.memory.calls + call;
    const slot_id ninth = slot_take(r.store);  // both the list and the states grow
    CHECK_EQ_INT(ninth, call == 3 ? 8 : SLOT_NONE);
    CHECK(!slot_reserve(r.store, 1));
    CHECK_EQ_INT(slot_take_spare(r.store), SLOT_NONE);
    CHECK_EQ_UINT(r.store->slots_free, 0);
    CHECK_EQ_UINT(r.store->slot_count, call == 3 ? 9 : 8);
    r.memory.fail_from_call = 0;
    CHECK_EQ_INT(slot_take(r.store), call == 3 ? 9 : 8);
    close_rig(&r);
  }
}

// ---- Eviction ----

// Counts of the states kept for sequences and entries: cached states, marks, states at page ends,
// states in the middle of passes.
typedef struct kept {
  uint32_t cached, marks[2], rolling[2], mids[2];
} kept;

static kept count_kept(const rig *r, const kv_seq_id seqs[2]) {
  kept kept = {.cached = r->store->entry_slot_count};
  for (int i = 0; i < 2; i++) {
    const store_seq *seq = store_find(r->store, seqs[i]);
    kept.marks[i] = seq->mark_count;
    kept.rolling[i] = seq->rolling.slot != SLOT_NONE;
    kept.mids[i] = seq->mid != SLOT_NONE;
  }
  return kept;
}

static void check_kept(const rig *r, const kv_seq_id seqs[2], const kept *wanted) {
  const kept found = count_kept(r, seqs);
  CHECK_EQ_MEM(&found, wanted, sizeof found);
}

// Makes two sequences, and one between them that keeps nothing. They have three marks and one mark,
// separate states at page ends, and begin a pass with a state in the middle; the cache has states
// of the second one.
static void open_full(rig *r, kv_seq_id seqs[2], const int32_t *text) {
  open_rig(r, MANY);
  for (int i = 0; i < 2; i++) {
    seqs[i] = new_seq(r);
    for (int n = i; n < 3; n += 2 * i + 1) {
      read_all(r, seqs[i], 5);
      store_mark(r->store, seqs[i]);
    }
    if (i == 0) new_seq(r);
    read_all(r, seqs[i], 16 - store_tokens(r->store, seqs[i]));
    if (i == 1) store_remember(r->store, seqs[i], (cache_salt){0}, text, 16);
    read_all(r, seqs[i], 16);
    if (i == 1) store_remember(r->store, seqs[i], (cache_salt){0}, text, 32);
    read_all(r, seqs[i], 3);
  }
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_INT(store_prepare(r->store, seqs[i], 20, NULL), WICK_OK);
    CHECK_EQ_INT(store_begin_rows(r->store, seqs[i], 20, 7, NULL), WICK_OK);
  }
  const kept all = {2, {3, 1}, {1, 1}, {1, 1}};
  check_kept(r, seqs, &all);
}

TEST(cached_states_are_evicted_before_marks_then_page_ends_then_optional_states_of_passes) {
  static const int32_t TEXT[64] = {0};
  // the state at the second page end of sequence 1 is shared with the cache: its slot is free once
  // both have released it
  static const kept STEPS[] = {
      {1, {3, 1}, {1, 1}, {1, 1}}, {0, {2, 1}, {1, 1}, {1, 1}}, {0, {1, 1}, {1, 1}, {1, 1}},
      {0, {0, 1}, {1, 1}, {1, 1}}, {0, {0, 0}, {1, 1}, {1, 1}}, {0, {0, 0}, {0, 1}, {1, 1}},
      {0, {0, 0}, {0, 0}, {1, 1}}, {0, {0, 0}, {0, 0}, {0, 1}}, {0, {0, 0}, {0, 0}, {0, 0}}};
  rig r;
  kv_seq_id seqs[2];
  slot_id taken[64];
  open_full(&r, seqs, TEXT);
  uint32_t count = take_rest(&r, taken);
  const store_seq *seq = store_find(r.store, seqs[0]);
  const slot_id second_mark = seq->marks[1].slot, third_mark = seq->marks[2].slot;
  for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
    taken[count] = slot_take(r.store);
    CHECK(taken[count++] != SLOT_NONE);
    check_kept(&r, seqs, &STEPS[i]);
    if (i == 1) {  // the oldest mark is evicted
      CHECK_EQ_INT(seq->marks[0].slot, second_mark);
      CHECK_EQ_INT(seq->marks[1].slot, third_mark);
    }
    for (int k = 0; k < 2; k++) {
      const store_seq *each = store_find(r.store, seqs[k]);
      if (each->mid == SLOT_NONE) CHECK_EQ_UINT(each->mid_rows, 0);
    }
  }
  CHECK_EQ_INT(slot_take(r.store), SLOT_NONE);
  CHECK(!slot_reserve(r.store, 1));
  for (uint32_t i = 0; i < count; i++) slot_release(r.store, &taken[i]);
  for (int i = 0; i < 2; i++) {
    store_commit(r.store, seqs[i], 20);
    CHECK_EQ_UINT(store_settle(r.store, seqs[i]), 55);
  }
  check_whole(&r);
  close_rig(&r);
}

TEST(reserving_slots_evicts_checkpoints_but_never_states_of_passes) {
  static const int32_t TEXT[64] = {0};
  rig r;
  kv_seq_id seqs[2];
  slot_id taken[64];
  open_full(&r, seqs, TEXT);
  const uint32_t count = take_rest(&r, taken);
  CHECK(slot_reserve(r.store, 3));
  CHECK_EQ_UINT(r.store->slots_free, 3);
  const kept half = {0, {1, 1}, {1, 1}, {1, 1}};
  check_kept(&r, seqs, &half);
  CHECK(!slot_reserve(r.store, 40));
  const kept least = {0, {0, 0}, {0, 0}, {1, 1}};
  check_kept(&r, seqs, &least);
  for (uint32_t i = 0; i < count; i++) slot_release(r.store, &taken[i]);
  check_whole(&r);
  close_rig(&r);
}

// ---- State in the middle of a pass ----

TEST(a_pass_keeps_the_state_before_draft_tokens_or_at_its_last_whole_page) {
  static const int32_t ZEROS[TOKENS] = {0};
  for (uint32_t begin = 0; begin < 34; begin++) {
    for (uint32_t rows = 1; rows < 40; rows++) {
      for (uint32_t certain = 1; certain <= rows; certain += 1 + certain / 2) {
        rig r;
        open_rig(&r, CHECKPOINTS);
        const kv_seq_id seq = new_seq(&r);
        if (begin != 0) read_all(&r, seq, begin);
        CHECK_EQ_INT(store_prepare(r.store, seq, rows, NULL), WICK_OK);
        CHECK_EQ_INT(store_begin_rows(r.store, seq, rows, certain, NULL), WICK_OK);
        uint32_t wanted = 0;
        for (uint32_t i = 1; i < rows; i++) {
          if (certain < rows ? i == certain : (begin + i) % KERNEL_PAGE_TOKENS == 0) wanted = i;
        }
        // the state after all rows is kept in any case
        if (certain == rows && (begin + rows) % KERNEL_PAGE_TOKENS == 0) wanted = 0;
        CHECK_EQ_UINT(store_states_of(r.store, seq, 0).mid_rows, wanted);
        store_settle(r.store, seq);
        CHECK_EQ_UINT(store_tokens(r.store, seq), begin);  // the pass was abandoned
        if (rows % 13 == 0) read_rows(&r, seq, ZEROS, rows, certain, certain);
        check_whole(&r);
        close_rig(&r);
      }
    }
  }
}

// ---- Truncation ----

TEST(a_sequence_is_truncated_at_its_marks_its_last_whole_page_or_its_end) {
  // 5 and 9 are replaced by the four later marks; 16 is not a mark; a pass of 34 tokens leaves a
  // state at its page end
  static const uint32_t MARKS[] = {5, 9, 20, 25, 30, 40}, ENDS[] = {0, 20, 25, 30, 40, 64, 74};
  rig r;
  open_rig(&r, MANY);
  const kv_seq_id seq = new_seq(&r);
  store_mark(r.store, seq);  // there is no state yet, so this does nothing
  for (int i = 0; i < 6; i++) {
    read_all(&r, seq, MARKS[i] - store_tokens(r.store, seq));
    store_mark(r.store, seq);
    store_mark(r.store, seq);  // the same position is only marked once
  }
  CHECK(store_can_cut_at(r.store, seq, 32));
  read_all(&r, seq, 34);
  CHECK_EQ_UINT(store_find(r.store, seq)->mark_count, 4);
  for (uint32_t at = 0; at <= 76; at++) {
    uint32_t wanted = 0;
    for (int i = 0; i < 7 && ENDS[i] <= at; i++) wanted = ENDS[i];
    kv_seq_id child = KV_SEQ_NONE;
    CHECK_EQ_INT(store_fork(r.store, seq, &child, NULL), WICK_OK);
    CHECK(store_can_cut_at(r.store, child, at) == (at == wanted));
    CHECK_EQ_UINT(store_truncate(r.store, child, at), wanted);
    const store_seq *cut = store_find(r.store, child);
    // later marks are forgotten
    for (uint32_t i = 0; i < cut->mark_count; i++) CHECK(cut->marks[i].position <= wanted);
    CHECK(cut->rolling.slot == SLOT_NONE || cut->rolling.position <= wanted);
    check_whole(&r);
    store_free(r.store, child);
  }
  close_rig(&r);
}

// ---- Random operations ----

typedef struct text {
  kv_seq_id id;
  uint32_t count;
  int32_t tokens[2 * TOKENS];
} text;

// Checks that a sequence has the state of its tokens.
static void check_state(const rig *r, const text *t) {
  const store_seq *seq = store_find(r->store, t->id);
  CHECK_EQ_UINT(store_tokens(r->store, t->id), t->count);
  CHECK_EQ_UINT(seq->position, t->count);
  CHECK((seq->now == SLOT_NONE) == (t->count == 0));
  if (seq->now == SLOT_NONE) return;
  state found;
  memcpy(&found, slot_bytes(r->store, seq->now), sizeof found);
  const state wanted = add_tokens((state){0}, t->tokens, t->count);
  CHECK_EQ_UINT(found.count, wanted.count);
  CHECK_EQ_UINT(found.digest, wanted.digest);
}

static uint32_t below(uint64_t *random, uint32_t bound) {
  return (uint32_t)random_below(random, bound);
}

static void read_some(rig *r, text *t, uint64_t *random) {
  const uint32_t rows = 1 + below(random, 50), certain = 1 + below(random, rows);
  const uint32_t kept = certain + below(random, rows - certain + 1);
  if (t->count + rows > TOKENS) return;
  for (uint32_t i = 0; i < rows; i++) t->tokens[t->count + i] = (int32_t)below(random, 2);
  const uint32_t end = read_rows(r, t->id, t->tokens + t->count, rows, certain, kept);
  // the end is after all rows or at a state: after the certain rows, or at the start if there was
  // no spare slot
  CHECK(kept == rows ? end == t->count + rows : end == t->count + certain || end == t->count);
  t->count = end;
}

static void fork_one(rig *r, text *t, text *child) {
  store_free(r->store, child->id);
  *child = *t;
  CHECK_EQ_INT(store_fork(r->store, t->id, &child->id, NULL), WICK_OK);
}

static void cut_one(rig *r, text *t, uint64_t *random) {
  const uint32_t at = below(random, t->count + 1);
  const bool can_cut = store_can_cut_at(r->store, t->id, at);
  const uint32_t end = store_truncate(r->store, t->id, at);
  CHECK(can_cut ? end == at : end < at);
  t->count = end;
}

static void begin_again(rig *r, text *t, uint64_t *random) {
  store_remember(r->store, t->id, (cache_salt){0}, t->tokens, t->count);
  store_free(r->store, t->id);
  t->id = new_seq(r);
  const uint32_t asked = below(random, t->count + 1);
  const uint32_t cached = store_cached(r->store, (cache_salt){0}, t->tokens, asked);
  t->count = store_attach(r->store, t->id, (cache_salt){0}, t->tokens, asked);
  CHECK_EQ_UINT(t->count, cached);
  CHECK(t->count == 0 || (t->count < asked && t->count % KERNEL_PAGE_TOKENS == 0));
}

TEST(a_sequence_has_the_state_of_its_tokens_after_any_operations) {
  uint64_t random = 17 + soak_seed();
  static text texts[SEQUENCES];
  for (uint32_t run = 0; run < soak_count(200); run++) {
    rig r;
    open_rig(&r, CHECKPOINTS);
    for (int i = 0; i < SEQUENCES; i++) texts[i] = (text){.id = new_seq(&r)};
    for (int step = 0; step < 120; step++) {
      text *t = &texts[below(&random, SEQUENCES)], *other = &texts[below(&random, SEQUENCES)];
      const uint32_t what = below(&random, 12);
      // sometimes no further slot can be allocated
      r.memory.fail_from_call = 0;
      store_reserve(r.store, t->id, TOKENS, 4);
      const bool is_short = what < 6 && step % 3 == 0 && r.store->slot_count > 3 * SEQUENCES;
      if (is_short) r.memory.fail_from_call = r.memory.calls + 1 + kv_pool_pages(r.store->pool);
      if (what < 6) read_some(&r, t, &random);
      if (what == 6 && t != other) fork_one(&r, t, other);
      if (what == 7) cut_one(&r, t, &random);
      if (what == 8) begin_again(&r, t, &random);
      if (what >= 9) store_mark(r.store, t->id);
      check_whole(&r);
      for (int i = 0; i < SEQUENCES; i++) check_state(&r, &texts[i]);
    }
    for (int i = 0; i < SEQUENCES; i++) store_free(r.store, texts[i].id);
    r.memory.fail_from_call = 0;
    close_rig(&r);
  }
}

// ---- Forks ----

enum { FORK_ROUNDS = 4001, FORK_TOKENS = 1000 };

// The state size of Qwen3.5-0.8B: 18 layers of 16 heads of 128 x 128, and 3 rows of 6,144 channels
// each.
static const uint64_t QWEN35_STATE_BYTES = 18 * 4 * (16 * 128 * 128 + 3 * 6144);

static void open_forks(rig *r, uint64_t state_bytes, uint32_t layers) {
  const kv_shape shape = {layers, 2, 256, KERNEL_KV_F16, KERNEL_KV_F16, 0};
  const store_config config = {.groups = {shape},
                               .group_count = 1,
                               .batch_tokens = FORK_TOKENS,
                               .pages_max = 140,
                               .pages_keep = 140,
                               .state_bytes = state_bytes,
                               .checkpoints_max = CHECKPOINTS};
  memset(r, 0, sizeof *r);
  memory_init(&r->memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(store_create(&r->memory, kernels_bind(), &config, &r->store, NULL), WICK_OK);
  store_expect(r->store, 1);
}

// Makes a sequence of FORK_TOKENS evaluated tokens.
static kv_seq_id read_forks(rig *r) {
  const kv_seq_id seq = new_seq(r);
  CHECK_EQ_INT(store_prepare(r->store, seq, FORK_TOKENS, NULL), WICK_OK);
  CHECK_EQ_INT(store_begin_rows(r->store, seq, FORK_TOKENS, FORK_TOKENS, NULL), WICK_OK);
  store_commit(r->store, seq, FORK_TOKENS);
  return seq;
}

static uint32_t used_slots(const rig *r) {
  const store_state_counts counts = store_count_states(r->store);
  return counts.slots - counts.free;
}

// The fork takes no slot; the child's first pass takes one.
TEST(a_fork_shares_the_state_until_its_first_pass) {
  rig r;
  open_forks(&r, 1 << 20, 1);
  const kv_seq_id seq = read_forks(&r);
  const uint32_t before = used_slots(&r);
  const slot_id parents = store_find(r.store, seq)->now;
  kv_seq_id child = KV_SEQ_NONE;
  CHECK_EQ_INT(store_fork(r.store, seq, &child, NULL), WICK_OK);
  CHECK_EQ_UINT(used_slots(&r), before);
  CHECK_EQ_INT(store_find(r.store, child)->now, parents);
  CHECK_EQ_INT(store_prepare(r.store, child, 1, NULL), WICK_OK);
  CHECK_EQ_INT(store_begin_rows(r.store, child, 1, 1, NULL), WICK_OK);
  CHECK_EQ_UINT(used_slots(&r), before + 1);
  const store_states at = store_states_of(r.store, child, 0);
  CHECK(at.from == (const void *)slot_bytes(r.store, parents) && at.to != at.from);
  store_commit(r.store, child, 1);
  CHECK(store_find(r.store, child)->now != parents);
  CHECK_EQ_INT(store_find(r.store, seq)->now, parents);
  check_whole(&r);
  close_rig(&r);
}

// A pool's lists grow with a fork, and so does the store's list at the ninth sequence.
TEST(a_fork_without_memory_leaks_nothing) {
  bool is_done = false;
  for (uint64_t call = 1; !is_done && call < 20; call++) {
    rig r;
    open_forks(&r, 64, 1);
    for (int i = 0; i < 7; i++) new_seq(&r);
    const kv_seq_id seq = read_forks(&r);
    const uint32_t before = used_slots(&r);
    kv_seq_id child = KV_SEQ_NONE;
    r.memory.fail_at_call = r.memory.calls + call;
    is_done = store_fork(r.store, seq, &child, NULL) == WICK_OK;
    r.memory.fail_at_call = 0;
    CHECK_EQ_UINT(kv_pool_stats(store_pages(r.store)).active_sequences, is_done ? 9 : 8);
    CHECK_EQ_UINT(r.store->seq_count, is_done ? 9 : 8);
    CHECK_EQ_UINT(used_slots(&r), before);
    check_whole(&r);
    CHECK_EQ_INT(store_fork(r.store, seq, &child, NULL), WICK_OK);
    check_whole(&r);
    close_rig(&r);
  }
  CHECK(is_done);
}

static int compare_times(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// Measures forks with and without a recurrent state.
static void bench_forks(uint64_t state_bytes, uint32_t layers, const char *what) {
  static double fork_us[FORK_ROUNDS];
  rig r;
  open_forks(&r, state_bytes, layers);
  const kv_seq_id seq = read_forks(&r);
  for (int i = 0; i < FORK_ROUNDS; i++) {
    kv_seq_id child;
    const double start = now_us();
    store_fork(r.store, seq, &child, NULL);
    fork_us[i] = now_us() - start;
    store_free(r.store, child);
  }
  qsort(fork_us, FORK_ROUNDS, sizeof *fork_us, compare_times);
  printf("#   fork of %d tokens, %s (state of %llu bytes): median %.2f us, 99 %% %.2f us\n",
         FORK_TOKENS, what, (unsigned long long)state_bytes, fork_us[FORK_ROUNDS / 2],
         fork_us[FORK_ROUNDS * 99 / 100]);
  close_rig(&r);
}

BENCH(forks) {
  bench_forks(QWEN35_STATE_BYTES, 6, "Qwen3.5-0.8B");
  bench_forks(0, 6, "the same model without its delta nets");
}

// store/store.c — sequences: keeps the pages of all groups and the recurrent state in step.
#include "store/store.h"

#include <string.h>

#include "base/checked.h"
#include "store/store_types.h"

wick_status store_create(memory_gate *memory, const kernel_table *kernels,
                         const store_config *config, seq_store **out, wick_error *error) {
  seq_store *store = memory_alloc_zeroed(memory, sizeof *store);
  if (store == NULL) return memory_fail(memory, error, "the store of sequences");
  store->memory = memory;
  store->config = *config;
  wick_status status = pools_create(store, kernels, error);
  if (status == WICK_OK && config->prefix_entries_max != 0) {
    const bool has_more = config->state_bytes != 0 || store->side_count != 0;
    const prefix_config prefix = {.entries_max = config->prefix_entries_max,
                                  .page_tokens = KERNEL_PAGE_TOKENS,
                                  .removed = has_more ? cached_removed : NULL,
                                  .parts = cached_parts(store),
                                  .context = store};
    status = prefix_cache_init(memory, store->pool, &prefix, &store->prefix, error);
  }
  if (status != WICK_OK) {
    store_destroy(store);
    return status;
  }
  *out = store;
  return WICK_OK;
}

void store_destroy(seq_store *store) {
  if (store == NULL) return;
  while (store->seq_count != 0) store_remove_seq(store, store->seqs[0].id);
  prefix_cache_destroy(store->prefix);
  pools_destroy(store);
  slots_destroy(store);
  memory_free(store->memory, store->entry_slots);
  memory_free(store->memory, store->seqs);
  memory_free(store->memory, store);
}

prefix_cache *store_prefix(const seq_store *store) { return store->prefix; }
uint32_t store_group_count(const seq_store *store) { return store->config.group_count; }

store_state_counts store_count_states(const seq_store *store) {
  return (store_state_counts){.state_bytes = store->config.state_bytes,
                              .slots = store->slot_count,
                              .free = store->slots_free,
                              .cached = store->entry_slot_count};
}

bool store_is_recurrent(const seq_store *store) { return store->config.state_bytes != 0; }

bool store_must_settle(const seq_store *store) {
  return store_is_recurrent(store) ||
         (store->config.group_count != 0 && kv_pool_has_open(store->groups[0]));
}

// ---- The list of states, parallel to the pool's list ----

store_seq *store_find(const seq_store *store, kv_seq_id id) {
  uint32_t low = 0, high = store->seq_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (store->seqs[middle].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < store->seq_count && store->seqs[low].id == id ? &store->seqs[low] : NULL;
}

wick_status store_add_seq(seq_store *store, kv_seq_id id, wick_error *error) {
  if (!store_is_recurrent(store)) return WICK_OK;
  if (store->seq_count == store->seq_capacity) {
    const uint32_t capacity = store->seq_capacity == 0 ? 8 : store->seq_capacity * 2;
    store_seq *list = memory_resize(store->memory, store->seqs, capacity * sizeof *list);
    if (list == NULL) return memory_fail(store->memory, error, "the list of states");
    store->seqs = list;
    store->seq_capacity = capacity;
  }
  // ids increase, so the new sequence is the last
  store->seqs[store->seq_count++] = (store_seq){
      .id = id, .now = SLOT_NONE, .mid = SLOT_NONE, .next = SLOT_NONE, .rolling = {0, SLOT_NONE}};
  return WICK_OK;
}

static void release_pass(seq_store *store, store_seq *seq) {
  slot_release(store, &seq->mid);
  slot_release(store, &seq->next);
  seq->rows = seq->mid_rows = seq->committed = 0;
}

// Removes the marks after `position`.
static void cut_marks(seq_store *store, store_seq *seq, uint32_t position) {
  while (seq->mark_count != 0 && seq->marks[seq->mark_count - 1].position > position) {
    slot_release(store, &seq->marks[--seq->mark_count].slot);
  }
  if (seq->rolling.position > position) slot_release(store, &seq->rolling.slot);
}

void store_remove_seq(seq_store *store, kv_seq_id id) {
  store_seq *seq = store_find(store, id);
  if (seq == NULL) return;
  release_pass(store, seq);
  while (seq->mark_count != 0) slot_release(store, &seq->marks[--seq->mark_count].slot);
  slot_release(store, &seq->rolling.slot);
  slot_release(store, &seq->now);
  const size_t index = (size_t)(seq - store->seqs);
  memmove(seq, seq + 1, (store->seq_count - index - 1) * sizeof *seq);
  store->seq_count--;
}

// ---- Creating and freeing ----

wick_status store_new(seq_store *store, kv_seq_id *id, wick_error *error) {
  wick_status status = pools_new(store, id, error);
  if (status != WICK_OK) return status;
  status = store_add_seq(store, *id, error);
  if (status != WICK_OK) pools_free(store, *id);
  return status;
}

void store_free(seq_store *store, kv_seq_id id) {
  pools_free(store, id);
  store_remove_seq(store, id);
}

static void share_states(seq_store *store, const store_seq *parent, store_seq *seq) {
  const kv_seq_id id = seq->id;
  *seq = *parent;
  seq->id = id;
  if (seq->now != SLOT_NONE) slot_retain(store, seq->now);
  if (seq->rolling.slot != SLOT_NONE) slot_retain(store, seq->rolling.slot);
  for (uint32_t i = 0; i < seq->mark_count; i++) slot_retain(store, seq->marks[i].slot);
}

wick_status store_fork(seq_store *store, kv_seq_id id, kv_seq_id *child, wick_error *error) {
  store_settle(store, id);
  wick_status status = pools_fork(store, id, child, error);
  if (status != WICK_OK) return status;
  status = store_add_seq(store, *child, error);
  if (status != WICK_OK) {
    pools_free(store, *child);
    return status;
  }
  const store_seq *parent = store_find(store, id);
  if (parent != NULL) share_states(store, parent, store_find(store, *child));
  return WICK_OK;
}

// ---- Truncation ----

uint32_t store_tokens(const seq_store *store, kv_seq_id id) {
  return kv_seq_tokens(store->pool, id);
}

// Returns the last position up to `tokens` that has a stored state and all pages of the windows,
// with its slot (SLOT_NONE at 0).
static state_mark find_mark(const seq_store *store, const store_seq *seq, uint32_t tokens) {
  const state_mark now = {seq->position, seq->now};
  if (seq->position <= tokens && pools_can_cut(store, seq->id, seq->position)) return now;
  state_mark best = {0, SLOT_NONE};
  for (uint32_t i = 0; i <= seq->mark_count; i++) {
    const state_mark mark = i < seq->mark_count ? seq->marks[i] : seq->rolling;
    if (mark.slot == SLOT_NONE || mark.position > tokens || mark.position < best.position) continue;
    if (pools_can_cut(store, seq->id, mark.position)) best = mark;
  }
  return best;
}

bool store_can_cut_at(const seq_store *store, kv_seq_id id, uint32_t tokens) {
  const store_seq *seq = store_find(store, id);
  if (!pools_can_cut(store, id, tokens)) return false;
  return seq == NULL || find_mark(store, seq, tokens).position == tokens;
}

uint32_t store_truncate(seq_store *store, kv_seq_id id, uint32_t tokens) {
  store_settle(store, id);
  store_seq *seq = store_find(store, id);
  if (seq != NULL) {
    const state_mark mark = find_mark(store, seq, tokens);
    if (mark.slot != SLOT_NONE) slot_retain(store, mark.slot);
    slot_release(store, &seq->now);
    seq->now = mark.slot;
    seq->position = tokens = mark.position;
    cut_marks(store, seq, tokens);
  } else {
    tokens = pools_cut(store, id, tokens);
    if (!pools_can_cut(store, id, tokens)) tokens = 0;  // cached pages can be attached again
  }
  pools_truncate(store, id, tokens);
  return store_tokens(store, id);
}

void store_mark(seq_store *store, kv_seq_id id) {
  // recomputing the tokens would produce different values
  if (!store_is_plain(store, id)) kv_open_mark(store->pool, id);
  store_seq *seq = store_find(store, id);
  if (seq == NULL || seq->now == SLOT_NONE) return;
  if (seq->mark_count != 0 && seq->marks[seq->mark_count - 1].position == seq->position) return;
  if (seq->mark_count == STORE_MARKS_MAX) {
    slot_release(store, &seq->marks[0].slot);
    seq->mark_count--;
    memmove(seq->marks, seq->marks + 1, seq->mark_count * sizeof *seq->marks);
  }
  slot_retain(store, seq->now);
  seq->marks[seq->mark_count++] = (state_mark){seq->position, seq->now};
}

bool store_can_drop(const seq_store *store) {
  return !store_is_recurrent(store) && store->side_count == 0;
}

wick_status store_drop(seq_store *store, kv_seq_id id, uint32_t first, uint32_t last,
                       wick_error *error) {
  if (!store_can_drop(store)) {
    return fail_with(error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
                     "tokens cannot be dropped from a recurrent state or several layer groups");
  }
  return kv_seq_shift(store->pool, id, first, last, NULL, error);
}

bool store_is_plain(const seq_store *store, kv_seq_id id) {
  uint32_t count;
  const kv_entry *entries = kv_seq_table(store->pool, id, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (entries[i].delta != 0) return false;
  }
  return true;
}

// ---- A pass ----

void store_expect(seq_store *store, uint32_t sequences) { store->expected = sequences; }

wick_status store_prepare(seq_store *store, kv_seq_id id, uint32_t tokens, wick_error *error) {
  const store_seq *seq = store_find(store, id);
  // a sequence writes its new state to a different slot, so the old state is kept
  const uint32_t slots = seq == NULL ? 0 : store->expected + (seq->now == SLOT_NONE ? 1 : 0);
  if (slots != 0 && !slot_reserve(store, slots)) {
    return memory_fail(store->memory, error, "a recurrent state");
  }
  return pools_prepare(store, id, tokens, error);
}

// Returns the number of rows after which to keep the state: where proposals begin, or otherwise at
// the end of the last full page. 0: keep none.
static uint32_t choose_mid(const store_seq *seq, uint32_t rows, uint32_t certain) {
  if (certain < rows) return certain;
  const uint32_t end = seq->position + rows;
  const uint32_t page_end = end / KERNEL_PAGE_TOKENS * KERNEL_PAGE_TOKENS;
  return page_end > seq->position && page_end < end ? page_end - seq->position : 0;
}

wick_status store_begin_rows(seq_store *store, kv_seq_id id, uint32_t rows, uint32_t certain,
                             wick_error *error) {
  store_seq *seq = store_find(store, id);
  if (seq == NULL) return WICK_OK;
  release_pass(store, seq);
  if (seq->now == SLOT_NONE) {
    seq->now = slot_take(store);
    if (seq->now != SLOT_NONE) {
      memset(slot_bytes(store, seq->now), 0, (size_t)store->config.state_bytes);
    }
  }
  if (seq->now != SLOT_NONE) seq->next = slot_take(store);
  if (seq->next == SLOT_NONE) {
    return memory_fail(store->memory, error, "a recurrent state");
  }
  seq->rows = rows;
  seq->mid_rows = choose_mid(seq, rows, certain);
  if (seq->mid_rows != 0) seq->mid = slot_take_spare(store);
  if (seq->mid == SLOT_NONE) seq->mid_rows = 0;
  return WICK_OK;
}

void store_commit(seq_store *store, kv_seq_id id, uint32_t rows) {
  store_seq *seq = store_find(store, id);
  pools_append(store, id, rows);
  if (seq == NULL) return;
  seq->committed += rows;
  if (seq->committed == seq->rows) store_settle(store, id);
}

// Keeps the state at the end of a full page: the sequence can return to it, and the prefix cache
// can store it.
static void roll(seq_store *store, store_seq *seq, uint32_t position, slot_id slot) {
  if (position == 0 || position % KERNEL_PAGE_TOKENS != 0) return;
  slot_retain(store, slot);
  slot_release(store, &seq->rolling.slot);
  seq->rolling = (state_mark){position, slot};
}

void roll_state(seq_store *store, store_seq *seq) {
  if (seq->now != SLOT_NONE) roll(store, seq, seq->position, seq->now);
}

static void advance(seq_store *store, store_seq *seq, uint32_t rows, slot_id *slot) {
  slot_release(store, &seq->now);
  seq->now = *slot;
  *slot = SLOT_NONE;
  seq->position += rows;
  roll_state(store, seq);
}

// Truncates the pages. If rejected tokens of a full page cannot be replaced, the page's tokens are
// recomputed.
static void settle_pages(seq_store *store, kv_seq_id id) {
  const uint32_t tokens = store_tokens(store, id), end = pools_cut(store, id, tokens);
  if (end != tokens) pools_truncate(store, id, end);
}

uint32_t store_settle(seq_store *store, kv_seq_id id) {
  store_seq *seq = store_find(store, id);
  if (seq == NULL) settle_pages(store, id);
  if (seq == NULL || seq->rows == 0) return store_tokens(store, id);
  if (seq->mid != SLOT_NONE && seq->committed >= seq->mid_rows) {
    roll(store, seq, seq->position + seq->mid_rows, seq->mid);
  }
  if (seq->committed == seq->rows) {
    advance(store, seq, seq->rows, &seq->next);
  } else if (seq->mid != SLOT_NONE && seq->committed >= seq->mid_rows &&
             pools_cut(store, id, seq->position + seq->mid_rows) == seq->position + seq->mid_rows) {
    advance(store, seq, seq->mid_rows, &seq->mid);
  }
  release_pass(store, seq);
  if (seq->position != store_tokens(store, id)) {
    pools_set_tokens(store, id, seq->position);
  }
  return seq->position;
}

store_states store_states_of(const seq_store *store, kv_seq_id id, uint64_t offset_bytes) {
  const store_seq *seq = store_find(store, id);
  store_states states = {.mid_rows = seq->mid_rows};
  states.from = (const float *)(const void *)(slot_bytes(store, seq->now) + offset_bytes);
  states.to = (float *)(void *)(slot_bytes(store, seq->next) + offset_bytes);
  if (seq->mid != SLOT_NONE) {
    states.mid = (float *)(void *)(slot_bytes(store, seq->mid) + offset_bytes);
  }
  return states;
}

// ---- Capacity ----

uint64_t store_freed(const seq_store *store) {
  uint64_t freed = kv_pool_stats(store->pool).pages_freed + store->slots_freed;
  for (uint32_t i = 0; i < store->side_count; i++) {
    freed += kv_pool_stats(store->sides[i].pool).pages_freed;
  }
  return freed;
}

wick_status store_reserve_tables(seq_store *store, kv_seq_id id, uint32_t tokens,
                                 wick_error *error) {
  wick_status status = kv_seq_reserve_table(store->pool, id, tokens, error);
  for (uint32_t i = 0; status == WICK_OK && i < store->side_count; i++) {
    status = kv_seq_reserve_table(store->sides[i].pool, id, tokens, error);
  }
  return status;
}

void store_reserve(seq_store *store, kv_seq_id id, uint32_t tokens, uint32_t entries) {
  store_reserve_tables(store, id, tokens, NULL);
  if (store->prefix != NULL) prefix_reserve(store->prefix, entries, NULL);
  if (store->prefix != NULL) cached_reserve(store, entries);
  // for each sequence in a pass: the states before, within and after the pass, at the last full
  // page, and at the prompt's last full page, which the prefix cache keeps
  if (store_is_recurrent(store)) slot_reserve_spare(store, 5 * store->expected);
}

void store_reserve_states(seq_store *store) {
  // for each sequence: the states within and after a pass, and at the last full page
  if (store_is_recurrent(store)) slot_reserve_spare(store, 3 * store->expected);
}

// kv/sequence.c — block tables, which map the positions of a sequence to pages.
#include <string.h>

#include "base/checked.h"
#include "kv/pool_types.h"

kv_seq *kv_seq_find(const kv_pool *pool, kv_seq_id id) {
  uint32_t low = 0, high = pool->seq_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (pool->seqs[middle].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < pool->seq_count && pool->seqs[low].id == id ? &pool->seqs[low] : NULL;
}

wick_status kv_seq_unknown(kv_seq_id id, wick_error *error) {
  return fail_with(error, WICK_E_SEQ, WICK_NO_OFFSET, "there is no sequence %u", id);
}

uint32_t kv_seq_end(const kv_seq *seq) {
  return seq->entry_count == 0 ? 0 : kv_entry_end(&seq->table[seq->entry_count - 1]);
}

// ---- Creating and freeing ----

// Appends a new sequence to the list, with a table of `entries` entries.
static wick_status add_seq(kv_pool *pool, uint32_t entries, wick_error *error) {
  if (pool->seq_next == UINT32_MAX) {
    return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "sequence ids are used up");
  }
  if (pool->seq_count == pool->seq_capacity) {
    const uint32_t capacity = pool->seq_capacity == 0 ? 8 : pool->seq_capacity * 2;
    kv_seq *list = memory_resize(pool->memory, pool->seqs, capacity * sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of sequences");
    pool->seqs = list;
    pool->seq_capacity = capacity;
  }
  kv_seq seq = {.id = pool->seq_next};
  wick_status status = kv_seq_reserve_entries(pool, &seq, entries, error);
  if (status == WICK_OK) status = kv_open_begin(pool, &seq, error);
  if (status != WICK_OK) {
    memory_free(pool->memory, seq.table);
    return status;
  }
  pool->seq_next++;
  pool->seqs[pool->seq_count] = seq;
  pool->seq_count++;
  pool->stats.sequences_allocated++;
  return WICK_OK;
}

wick_status kv_seq_new(kv_pool *pool, uint32_t tokens, kv_seq_id *id, kv_shortage *shortage,
                       wick_error *error) {
  if (tokens > INT32_MAX - KERNEL_PAGE_TOKENS) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u tokens do not fit", tokens);
  }
  const uint32_t pages = ceil_div_u32(tokens, KERNEL_PAGE_TOKENS);
  wick_status status = kv_pool_reserve(pool, pages, shortage, error);
  if (status == WICK_OK) status = add_seq(pool, pages, error);
  if (status != WICK_OK) return status;
  kv_seq *seq = &pool->seqs[pool->seq_count - 1];
  for (uint32_t i = 0; i < pages; i++) kv_seq_add_page(pool, seq);
  *id = seq->id;
  return WICK_OK;
}

wick_status kv_seq_free(kv_pool *pool, kv_seq_id id, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    if (seq->table[i].page >= 0) kv_page_release(pool, seq->table[i].page);
  }
  memory_free(pool->memory, seq->table);
  kv_open_end(pool, seq);
  const size_t index = (size_t)(seq - pool->seqs);
  memmove(seq, seq + 1, (pool->seq_count - index - 1) * sizeof *seq);
  pool->seq_count--;
  pool->stats.sequences_freed++;
  return WICK_OK;
}

wick_status kv_seq_fork(kv_pool *pool, kv_seq_id id, kv_seq_id *child, wick_error *error) {
  const kv_seq *parent = kv_seq_find(pool, id);
  if (parent == NULL) return kv_seq_unknown(id, error);
  const wick_status status = add_seq(pool, parent->entry_count, error);
  if (status != WICK_OK) return status;
  kv_seq *seq = &pool->seqs[pool->seq_count - 1];
  parent = kv_seq_find(pool, id);  // the list may have moved
  seq->token_count = parent->token_count;
  seq->entry_count = parent->entry_count;
  if (seq->entry_count > 0) {
    memcpy(seq->table, parent->table, seq->entry_count * sizeof *seq->table);
  }
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    if (seq->table[i].page >= 0) kv_page_retain(pool, seq->table[i].page);
  }
  kv_open_share(pool, parent, seq);
  pool->stats.forks++;
  *child = seq->id;
  return WICK_OK;
}

// ---- Queries ----

kv_seq_id kv_pool_skip_ids(kv_pool *pool, kv_seq_id next) {
  if (pool->seq_next < next) pool->seq_next = next;
  return pool->seq_next;
}

bool kv_seq_exists(const kv_pool *pool, kv_seq_id seq) { return kv_seq_find(pool, seq) != NULL; }

uint32_t kv_seq_tokens(const kv_pool *pool, kv_seq_id id) {
  const kv_seq *seq = kv_seq_find(pool, id);
  return seq == NULL ? 0 : seq->token_count;
}

uint32_t kv_seq_capacity(const kv_pool *pool, kv_seq_id id) {
  const kv_seq *seq = kv_seq_find(pool, id);
  return seq == NULL ? 0 : kv_seq_end(seq);
}

uint32_t kv_seq_pages(const kv_pool *pool, kv_seq_id id) {
  const kv_seq *seq = kv_seq_find(pool, id);
  uint32_t count = 0;
  for (uint32_t i = 0; seq != NULL && i < seq->entry_count; i++) count += seq->table[i].page >= 0;
  return count;
}

const kv_entry *kv_seq_table(const kv_pool *pool, kv_seq_id id, uint32_t *count) {
  const kv_seq *seq = kv_seq_find(pool, id);
  *count = seq == NULL ? 0 : seq->entry_count;
  return seq == NULL ? NULL : seq->table;
}

const kv_entry *kv_table_find(const kv_entry *table, uint32_t count, uint32_t position) {
  const uint32_t guess = position / KERNEL_PAGE_TOKENS;
  if (guess < count && position >= kv_entry_begin(&table[guess]) &&
      position < kv_entry_end(&table[guess])) {
    return &table[guess];
  }
  uint32_t low = 0, high = count;  // first entry that ends after the position
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (kv_entry_end(&table[middle]) <= position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count ? &table[low] : NULL;
}

uint32_t kv_seq_entry_index(const kv_seq *seq, uint32_t position) {
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, position);
  return entry == NULL ? seq->entry_count : (uint32_t)(entry - seq->table);
}

// ---- Room ----

wick_status kv_seq_reserve_entries(kv_pool *pool, kv_seq *seq, uint32_t entries,
                                   wick_error *error) {
  if (entries <= seq->entry_capacity) return WICK_OK;
  uint32_t capacity = seq->entry_capacity + seq->entry_capacity / 2;
  if (capacity < entries) capacity = entries;
  kv_entry *table = memory_resize_array(pool->memory, seq->table, capacity, sizeof *table);
  if (table == NULL) {
    memory_fail(pool->memory, error, "a block table");
    return WICK_E_NOMEM;  // like memory_fail, which clang-tidy cannot see
  }
  seq->table = table;
  seq->entry_capacity = capacity;
  return WICK_OK;
}

wick_status kv_seq_reserve_table(kv_pool *pool, kv_seq_id id, uint32_t tokens, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  const uint32_t end = kv_seq_end(seq);
  const uint32_t added = tokens > end ? ceil_div_u32(tokens - end, KERNEL_PAGE_TOKENS) : 0;
  return kv_seq_reserve_entries(pool, seq, seq->entry_count + added, error);
}

void kv_seq_add_page(kv_pool *pool, kv_seq *seq) {
  const uint32_t position = kv_seq_end(seq);
  seq->table[seq->entry_count++] =
      (kv_entry){.page = kv_page_take(pool), .position = position, .last = KERNEL_PAGE_TOKENS};
}

// ---- Counting ----

// Records in private pages that rows below `tokens` were written. Shared pages already have this
// record.
static void note_fill(kv_pool *pool, const kv_seq *seq, uint32_t from, uint32_t tokens) {
  for (uint32_t i = kv_seq_entry_index(seq, from); i < seq->entry_count; i++) {
    const kv_entry *entry = &seq->table[i];
    if (kv_entry_begin(entry) >= tokens) break;
    if (entry->page < 0 || !kv_page_is_private(&pool->pages[entry->page])) continue;
    uint32_t filled = tokens - entry->position;
    if (filled > entry->last) filled = entry->last;
    kv_page *page = &pool->pages[entry->page];
    if (filled > page->fill_tokens) page->fill_tokens = (uint16_t)filled;
  }
}

wick_status kv_seq_append(kv_pool *pool, kv_seq_id id, uint32_t tokens, wick_error *error) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (tokens > kv_seq_end(seq) - seq->token_count) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "sequence %u: %u tokens after %u exceed the reserved %u", id, tokens,
                     seq->token_count, kv_seq_end(seq));
  }
  return kv_seq_tokens_set(pool, id, seq->token_count + tokens, error);
}

wick_status kv_seq_tokens_set(kv_pool *pool, kv_seq_id id, uint32_t tokens, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (tokens > kv_seq_end(seq)) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "sequence %u: %u tokens exceed the reserved %u", id, tokens, kv_seq_end(seq));
  }
  if (tokens > seq->token_count) note_fill(pool, seq, seq->token_count, tokens);
  seq->token_count = tokens;
  return WICK_OK;
}

// ---- Dropping ----

// Returns whether the position after `tokens` needs tokens that were released because they were
// outside the window.
static bool misses_window(const kv_pool *pool, const kv_seq *seq, uint32_t tokens) {
  const uint32_t window = pool->layout.shape.window;
  const uint32_t needed = window == 0 || tokens + 1 < window ? 0 : tokens + 1 - window;
  for (uint32_t i = 0; i < seq->entry_count && seq->table[i].page < 0; i++) {
    const uint32_t end = kv_entry_end(&seq->table[i]);
    const uint32_t begin = kv_entry_begin(&seq->table[i]);
    if (tokens > begin && (end >= tokens || (window != 0 && end > needed))) return true;
  }
  return false;
}

bool kv_seq_can_truncate(const kv_pool *pool, kv_seq_id id, uint32_t tokens) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL || tokens > seq->token_count) return false;
  if (tokens == seq->token_count) return true;
  return !misses_window(pool, seq, tokens) && kv_open_can_end(pool, seq, tokens);
}

uint32_t kv_seq_cut(const kv_pool *pool, kv_seq_id id, uint32_t tokens) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL || tokens > seq->token_count || kv_open_can_end(pool, seq, tokens)) return tokens;
  return kv_entry_begin(kv_table_find(seq->table, seq->entry_count, tokens - 1));
}

wick_status kv_seq_truncate(kv_pool *pool, kv_seq_id id, uint32_t tokens, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (tokens > seq->token_count) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "sequence %u holds %u tokens, not %u", id,
                     seq->token_count, tokens);
  }
  if (tokens < seq->token_count && misses_window(pool, seq, tokens)) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "sequence %u: cannot end at %u, earlier tokens left the window", id, tokens);
  }
  tokens = kv_seq_cut(pool, id, tokens);
  while (seq->entry_count > 0 && kv_entry_begin(&seq->table[seq->entry_count - 1]) >= tokens) {
    const kv_page_id page = seq->table[--seq->entry_count].page;
    if (page >= 0) kv_page_release(pool, page);
  }
  // If tokens after the last page were dropped, it may have ended early: its remaining slots are
  // free again, unless it was encoded.
  kv_open_cut(pool, seq, tokens);
  if (seq->entry_count > 0) {
    kv_entry *last = &seq->table[seq->entry_count - 1];
    const bool is_open = kv_open_find(pool, seq, last->page) != NULL;
    if (is_open || !kv_pool_has_open(pool)) last->last = KERNEL_PAGE_TOKENS;
  }
  seq->token_count = tokens;
  return WICK_OK;
}

static void release_before(kv_pool *pool, kv_seq *seq, uint32_t keep_from) {
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    kv_entry *entry = &seq->table[i];
    if (kv_entry_end(entry) > keep_from) break;
    if (entry->page >= 0) kv_page_release(pool, entry->page);
    entry->page = KV_PAGE_NONE;
  }
  kv_open_forget(pool, seq);
}

wick_status kv_seq_window(kv_pool *pool, kv_seq_id id, uint32_t keep, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (seq->token_count > keep) release_before(pool, seq, seq->token_count - keep);
  return WICK_OK;
}

void kv_seq_slide(kv_pool *pool, kv_seq_id id, uint32_t back) {
  const uint32_t window = pool->layout.shape.window;
  if (window == 0 || window > UINT32_MAX - back) return;
  // the next position attends to itself and to the window - 1 positions before it
  kv_seq_window(pool, id, window - 1 + back, NULL);
}

// ---- Pages from elsewhere ----

wick_status kv_seq_begin_after(kv_pool *pool, kv_seq_id id, uint32_t pages, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (seq->entry_count != 0) {
    return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "sequence %u already has pages", id);
  }
  const wick_status status = kv_seq_reserve_entries(pool, seq, pages, error);
  if (status != WICK_OK) return status;
  for (uint32_t i = 0; i < pages; i++) {
    seq->table[i] = (kv_entry){
        .page = KV_PAGE_NONE, .position = i * KERNEL_PAGE_TOKENS, .last = KERNEL_PAGE_TOKENS};
  }
  seq->entry_count = pages;
  seq->token_count = pages * KERNEL_PAGE_TOKENS;
  return WICK_OK;
}

void kv_seq_put_page(kv_pool *pool, kv_seq_id id, uint32_t index, kv_page_id page) {
  const kv_seq *seq = kv_seq_find(pool, id);
  kv_page_retain(pool, page);
  seq->table[index].page = page;
}

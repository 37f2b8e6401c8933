// kv/write.c — writes keys and values, copies pages on write, drops ranges of tokens.
#include "base/checked.h"
#include "kv/pool_types.h"

#include <string.h>

// ---- Copy on write ----

// Replaces an entry's page with a private copy of its rows. One page must be reserved.
static void copy_page(kv_pool *pool, kv_entry *entry) {
  const kv_page_id fresh = kv_page_take(pool);
  const kv_page *from = &pool->pages[entry->page];
  kv_page *to = &pool->pages[fresh];
  kv_data_copy(&to->data, &from->data, from->fill_tokens);
  to->fill_tokens = from->fill_tokens;
  kv_page_release(pool, entry->page);
  entry->page = fresh;
}

void kv_entry_make_private(kv_pool *pool, kv_entry *entry) {
  if (kv_page_is_private(&pool->pages[entry->page])) return;
  copy_page(pool, entry);
  pool->stats.cow_copies++;
}

wick_status kv_seq_outside(const kv_seq *seq, uint32_t position, wick_error *error) {
  return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                   "page index %u, position %u: sequence %u has %u pages for %u positions",
                   position / KERNEL_PAGE_TOKENS, position, seq->id, seq->entry_count,
                   kv_seq_end(seq));
}

// Counts the pages that writing [position, end) copies; returns false if one of these pages left
// the window.
static bool count_copies(const kv_pool *pool, const kv_seq *seq, uint32_t position, uint32_t end,
                         uint32_t *copies) {
  *copies = 0;
  for (uint32_t i = kv_seq_entry_index(seq, position); i < seq->entry_count; i++) {
    if (kv_entry_begin(&seq->table[i]) >= end) break;
    if (seq->table[i].page < 0) return false;
    *copies += !kv_page_is_private(&pool->pages[seq->table[i].page]);
  }
  return true;
}

// Returns the number of pages to add to the table for [0, end).
static uint32_t count_added(const kv_seq *seq, uint32_t end) {
  const uint32_t room = kv_seq_end(seq);
  return end <= room ? 0 : ceil_div_u32(end - room, KERNEL_PAGE_TOKENS);
}

static wick_status ensure(kv_pool *pool, kv_seq *seq, uint32_t position, uint32_t tokens,
                          kv_shortage *shortage, wick_error *error) {
  if (position > seq->token_count) return kv_seq_outside(seq, position, error);
  if (tokens > INT32_MAX - KERNEL_PAGE_TOKENS - position) {
    return fail_with(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u more tokens do not fit", tokens);
  }
  const uint32_t end = position + tokens, added = count_added(seq, end);
  uint32_t copies;
  if (!count_copies(pool, seq, position, end, &copies)) return kv_seq_outside(seq, position, error);
  const wick_status status = kv_pool_reserve(pool, added + copies, shortage, error);
  if (status != WICK_OK) return status;
  return kv_seq_reserve_entries(pool, seq, seq->entry_count + added, error);
}

wick_status kv_seq_ensure_write(kv_pool *pool, kv_seq_id id, uint32_t position, uint32_t tokens,
                                kv_shortage *shortage, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  return ensure(pool, seq, position, tokens, shortage, error);
}

wick_status kv_seq_prepare_write(kv_pool *pool, kv_seq_id id, uint32_t position, uint32_t tokens,
                                 kv_shortage *shortage, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  const wick_status status = ensure(pool, seq, position, tokens, shortage, error);
  if (status != WICK_OK) return status;
  const uint32_t end = position + tokens, added = count_added(seq, end);
  for (uint32_t i = kv_seq_entry_index(seq, position); i < seq->entry_count; i++) {
    if (kv_entry_begin(&seq->table[i]) >= end) break;
    const kv_page_id before = seq->table[i].page;
    kv_entry_make_private(pool, &seq->table[i]);
    kv_open_move(seq, before, seq->table[i].page);
  }
  for (uint32_t i = 0; i < added; i++) kv_seq_add_page(pool, seq);
  return WICK_OK;
}

// ---- Rows ----

uint32_t kv_row_write(kv_pool *pool, kv_seq_id id, uint32_t layer, uint32_t position,
                      const float *k, const float *v) {
  const kv_seq *seq = kv_seq_find(pool, id);
  const kv_entry *entry = kv_table_find(seq->table, seq->entry_count, position);
  const kv_page_data *data = &pool->pages[entry->page].data;
  const kv_shape *shape = &pool->layout.shape;
  const kernel_kv_ops *k_ops = &pool->layout.kernels->kv[shape->k_type];
  const kernel_kv_ops *v_ops = &pool->layout.kernels->kv[shape->v_type];
  const uint32_t slot = position - entry->position, dim = shape->head_dim;
  uint32_t bad = 0;
  for (uint32_t head = 0; head < shape->kv_heads; head++) {
    const size_t at = (size_t)head * dim;
    bad += k_ops->k_write(kv_page_data_k(data, layer, head), slot, k + at, dim);
    bad += v_ops->v_write(kv_page_data_v(data, layer, head), slot, v + at, dim);
  }
  if (bad != 0) atomic_fetch_add(&pool->nonfinite_values, bad);
  return bad;
}

// ---- Dropping a range of tokens ----

// Splits an entry that contains both ends of the range. The first entry receives a copy of the
// page, because no table contains a page twice. Entry and page must be reserved.
//
// If the page is open, the second entry keeps it. The first entry will never be full: its keys are
// encoded in the copy, because other tables may use the page.
static void split_entry(kv_pool *pool, kv_seq *seq, uint32_t index, uint32_t at) {
  kv_entry *entry = &seq->table[index];
  memmove(entry + 1, entry, (seq->entry_count - index) * sizeof *entry);
  seq->entry_count++;
  const uint16_t slot = (uint16_t)(at - entry->position);
  entry[0].last = slot;
  entry[1].first = slot;
  if (entry->page < 0) return;
  kv_page_retain(pool, entry->page);
  copy_page(pool, &entry[0]);
  if (kv_entry_begin(&entry[1]) < seq->token_count && kv_entry_end(&entry[1]) > seq->token_count) {
    kv_open_encode(pool, seq, &entry[0], entry[1].page);
  }
}

static void drop_range(kv_pool *pool, kv_seq *seq, uint32_t first, uint32_t last) {
  const uint32_t dropped = last - first;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    kv_entry entry = seq->table[i];
    const uint32_t begin = kv_entry_begin(&entry), end = kv_entry_end(&entry);
    if (begin >= first && end <= last) {
      if (entry.page >= 0) kv_page_release(pool, entry.page);
      continue;
    }
    if (end > last) {
      if (begin < last) entry.first = (uint16_t)(last - entry.position);
      entry.position -= dropped;
      // an entry without stored tokens: its keys will be rotated to their own positions
      entry.delta = begin >= seq->token_count ? 0 : entry.delta + (int32_t)dropped;
    } else if (end > first) {
      entry.last = (uint16_t)(first - entry.position);
    }
    seq->table[kept++] = entry;
  }
  seq->entry_count = kept;
  seq->token_count -= dropped;
  kv_open_forget(pool, seq);
}

wick_status kv_seq_shift(kv_pool *pool, kv_seq_id id, uint32_t first, uint32_t last,
                         kv_shortage *shortage, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  if (first > last || last > seq->token_count) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "sequence %u: tokens %u to %u of %u cannot be dropped", id, first, last,
                     seq->token_count);
  }
  if (first == last) return WICK_OK;
  if (last == seq->token_count) return kv_seq_truncate(pool, id, first, error);
  const uint32_t index = kv_seq_entry_index(seq, first);
  const kv_entry *entry = &seq->table[index];
  const bool is_inside = kv_entry_begin(entry) < first && last < kv_entry_end(entry);
  if (is_inside) {
    const uint32_t pages = entry->page >= 0;
    wick_status status = kv_pool_reserve(pool, pages, shortage, error);
    if (status == WICK_OK) {
      status = kv_seq_reserve_entries(pool, seq, seq->entry_count + 1, error);
    }
    if (status != WICK_OK) return status;
    split_entry(pool, seq, index, first);
  }
  drop_range(pool, seq, first, last);
  return WICK_OK;
}

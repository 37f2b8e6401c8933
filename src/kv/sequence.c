// kv/sequence.c — block tables: which pages hold which positions of a sequence.
#include <string.h>

#include "base/checked.h"
#include "kv/pool_types.h"

static kv_seq *find_seq(const wick_kv_pool *pool, uint32_t id) {
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

static wick_status unknown_seq(uint32_t seq, wick_error *error) {
  return wick_fail(error, WICK_E_SEQ, WICK_NO_OFFSET, "there is no sequence %u", seq);
}

wick_status wick_kv_seq_new(wick_kv_pool *pool, uint32_t *seq, wick_error *error) {
  if (pool->seq_next == UINT32_MAX) {
    return wick_fail(error, WICK_E_FULL, WICK_NO_OFFSET, "sequence ids are used up");
  }
  if (pool->seq_count == pool->seq_capacity) {
    const uint32_t capacity = pool->seq_capacity == 0 ? 8 : pool->seq_capacity * 2;
    kv_seq *list = memory_resize(pool->memory, pool->seqs, capacity * sizeof *list);
    if (list == NULL) return memory_fail(pool->memory, error, "the list of sequences", capacity);
    pool->seqs = list;
    pool->seq_capacity = capacity;
  }
  pool->seqs[pool->seq_count++] = (kv_seq){.id = pool->seq_next};
  *seq = pool->seq_next++;
  return WICK_OK;
}

wick_status wick_kv_seq_free(wick_kv_pool *pool, uint32_t id, wick_error *error) {
  kv_seq *seq = find_seq(pool, id);
  if (seq == NULL) return unknown_seq(id, error);
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    if (seq->table[i].page >= 0) kv_page_release(pool, seq->table[i].page);
  }
  memory_free(pool->memory, seq->table);
  const size_t index = (size_t)(seq - pool->seqs);
  memmove(seq, seq + 1, (pool->seq_count - index - 1) * sizeof *seq);
  pool->seq_count--;
  return WICK_OK;
}

bool wick_kv_seq_exists(const wick_kv_pool *pool, uint32_t seq) {
  return find_seq(pool, seq) != NULL;
}

uint32_t wick_kv_seq_tokens(const wick_kv_pool *pool, uint32_t id) {
  const kv_seq *seq = find_seq(pool, id);
  return seq == NULL ? 0 : seq->token_count;
}

// Pages that can be had: free ones, and those that the pool may still grow by.
static uint32_t pages_available(const wick_kv_pool *pool) {
  if (pool->pages_max == 0) return UINT32_MAX;
  return pool->page_free + (pool->pages_max - pool->page_count);
}

static wick_status reserve_entries(wick_kv_pool *pool, kv_seq *seq, uint32_t entries,
                                   wick_error *error) {
  if (entries <= seq->entry_capacity) return WICK_OK;
  wick_kv_entry *table = memory_resize(pool->memory, seq->table, entries * sizeof *table);
  if (table == NULL) return memory_fail(pool->memory, error, "a block table", entries);
  seq->table = table;
  seq->entry_capacity = entries;
  return WICK_OK;
}

wick_status wick_kv_seq_extend(wick_kv_pool *pool, uint32_t id, uint32_t tokens,
                               wick_kv_shortage *shortage, wick_error *error) {
  kv_seq *seq = find_seq(pool, id);
  if (seq == NULL) return unknown_seq(id, error);
  if (tokens > INT32_MAX - seq->token_count) {
    return wick_fail(error, WICK_E_OVERFLOW, WICK_NO_OFFSET, "%u more tokens do not fit", tokens);
  }
  const uint32_t entries = ceil_div_u32(seq->token_count + tokens, KERNEL_PAGE_TOKENS);
  if (entries <= seq->entry_count) return WICK_OK;
  const uint32_t needed = entries - seq->entry_count;
  if (needed > pages_available(pool)) {
    if (shortage != NULL) *shortage = (wick_kv_shortage){needed, pages_available(pool)};
    return wick_fail(error, WICK_E_PAGES, WICK_NO_OFFSET,
                     "%u KV pages are needed, %u are available", needed, pages_available(pool));
  }
  wick_status status = reserve_entries(pool, seq, entries, error);
  if (status == WICK_OK && needed > pool->page_free) {
    status = kv_pool_grow(pool, needed - pool->page_free, error);
  }
  if (status != WICK_OK) return status;
  for (uint32_t i = seq->entry_count; i < entries; i++) {
    seq->table[i] = (wick_kv_entry){
        .page = kv_page_take(pool), .position = i * KERNEL_PAGE_TOKENS, .last = KERNEL_PAGE_TOKENS};
  }
  seq->entry_count = entries;
  return WICK_OK;
}

wick_status wick_kv_seq_append(wick_kv_pool *pool, uint32_t id, uint32_t tokens,
                               wick_error *error) {
  kv_seq *seq = find_seq(pool, id);
  if (seq == NULL) return unknown_seq(id, error);
  if (tokens > seq->entry_count * KERNEL_PAGE_TOKENS - seq->token_count) {
    return wick_fail(error, WICK_E_RANGE, WICK_NO_OFFSET,
                     "sequence %u: %u tokens after %u do not fit %u pages", id, tokens,
                     seq->token_count, seq->entry_count);
  }
  seq->token_count += tokens;
  return WICK_OK;
}

wick_status wick_kv_seq_truncate(wick_kv_pool *pool, uint32_t id, uint32_t tokens,
                                 wick_error *error) {
  kv_seq *seq = find_seq(pool, id);
  if (seq == NULL) return unknown_seq(id, error);
  if (tokens > seq->token_count) {
    return wick_fail(error, WICK_E_RANGE, WICK_NO_OFFSET, "sequence %u holds %u tokens, not %u", id,
                     seq->token_count, tokens);
  }
  const uint32_t entries = ceil_div_u32(tokens, KERNEL_PAGE_TOKENS);
  while (seq->entry_count > entries) {
    const int32_t page = seq->table[--seq->entry_count].page;
    if (page >= 0) kv_page_release(pool, page);
  }
  seq->token_count = tokens;
  return WICK_OK;
}

void wick_kv_seq_slide(wick_kv_pool *pool, uint32_t id) {
  kv_seq *seq = find_seq(pool, id);
  if (seq == NULL || pool->shape.window == 0 || seq->token_count < pool->shape.window) return;
  const uint32_t keep_from = seq->token_count + 1 - pool->shape.window;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    wick_kv_entry *entry = &seq->table[i];
    if (entry->position + entry->last > keep_from) break;
    if (entry->page >= 0) kv_page_release(pool, entry->page);
    entry->page = WICK_KV_PAGE_NONE;
  }
}

const wick_kv_entry *wick_kv_seq_table(const wick_kv_pool *pool, uint32_t id, uint32_t *count) {
  const kv_seq *seq = find_seq(pool, id);
  *count = seq == NULL ? 0 : seq->entry_count;
  return seq == NULL ? NULL : seq->table;
}

uint32_t wick_kv_row_write(wick_kv_pool *pool, uint32_t id, uint32_t layer, uint32_t position,
                           const float *k, const float *v) {
  const kv_seq *seq = find_seq(pool, id);
  const wick_kv_entry *entry = &seq->table[position / KERNEL_PAGE_TOKENS];
  const kernel_kv_ops *k_ops = &pool->kernels->kv[pool->shape.k_type];
  const kernel_kv_ops *v_ops = &pool->kernels->kv[pool->shape.v_type];
  const uint32_t slot = position - entry->position;
  const uint32_t dim = pool->shape.head_dim;
  uint32_t bad = 0;
  for (uint32_t head = 0; head < pool->shape.kv_heads; head++) {
    bad +=
        k_ops->k_write(wick_kv_page_k(pool, entry->page, layer, head), slot, k + head * dim, dim);
    bad +=
        v_ops->v_write(wick_kv_page_v(pool, entry->page, layer, head), slot, v + head * dim, dim);
  }
  return bad;
}

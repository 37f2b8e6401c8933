// kv/statistics.c — counts of the pool, and the check of its invariants.
#include <string.h>

#include "kv/pool_types.h"

kv_stats kv_pool_stats(const kv_pool *pool) {
  kv_stats stats = pool->stats;
  stats.cow_operations = stats.forks + stats.cow_copies;
  stats.active_sequences = pool->seq_count;
  stats.used_pages = pool->page_count - pool->page_free;
  stats.nonfinite_values = atomic_load(&pool->nonfinite_values);
  return stats;
}

uint64_t kv_pool_bytes_used(const kv_pool *pool) {
  return (uint64_t)(pool->page_count - pool->page_free) * pool->layout.data_bytes;
}

uint64_t kv_pool_bytes_capacity(const kv_pool *pool) {
  return (uint64_t)pool->page_count * pool->layout.data_bytes;
}

// ---- Fragmentation ----

// Sets each page's mark to its number of tokens: the maximum that one sequence stores in it.
static void mark_tokens(const kv_pool *pool) {
  for (uint32_t i = 0; i < pool->page_count; i++) {
    kv_page *page = &pool->pages[i];
    page->mark = page->hold_count > 0 ? page->fill_tokens : 0;
  }
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    const kv_seq *seq = &pool->seqs[s];
    for (uint32_t i = 0; i < seq->entry_count; i++) {
      const uint32_t begin = kv_entry_begin(&seq->table[i]);
      if (seq->table[i].page < 0 || begin >= seq->token_count) continue;
      uint32_t end = kv_entry_end(&seq->table[i]);
      if (end > seq->token_count) end = seq->token_count;
      kv_page *page = &pool->pages[seq->table[i].page];
      if (end - begin > page->mark) page->mark = end - begin;
    }
  }
}

kv_frag kv_frag_stats(const kv_pool *pool) {
  mark_tokens(pool);
  kv_frag frag = {0};
  uint64_t tokens = 0;
  uint32_t used = 0, with_tokens = 0, run = 0;
  for (uint32_t i = 0; i < pool->page_count; i++) {
    if (pool->pages[i].ref_count == 0) {
      run++;
      if (run > frag.largest_free_region) frag.largest_free_region = run;
      continue;
    }
    frag.holes += run > 0 && used > 0;
    run = 0;
    used++;
    tokens += pool->pages[i].mark;
    with_tokens += pool->pages[i].mark > 0;
  }
  const uint64_t capacity = (uint64_t)used * KERNEL_PAGE_TOKENS;
  if (capacity > tokens) frag.wasted_capacity = capacity - tokens;
  if (used > 0) frag.fragmentation_ratio = (double)frag.holes / (double)used;
  if (frag.fragmentation_ratio > 1) frag.fragmentation_ratio = 1;
  if (with_tokens > 0) frag.avg_tokens_per_page = (double)tokens / (double)with_tokens;
  return frag;
}

// ---- Moving ----

// ---- Invariants ----

static wick_status broken(wick_error *error, const char *what, uint32_t where, uint64_t found,
                          uint64_t wanted) {
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "%s %u: %llu instead of %llu", what,
                   where, (unsigned long long)found, (unsigned long long)wanted);
}

// Checks that entries are sorted and within their pages, and that no page occurs twice.
static wick_status check_table(const kv_pool *pool, uint32_t index, wick_error *error) {
  const kv_seq *seq = &pool->seqs[index];
  uint32_t end = 0;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    const kv_entry *entry = &seq->table[i];
    if (entry->first >= entry->last || entry->last > KERNEL_PAGE_TOKENS) {
      return broken(error, "slots of an entry of sequence", seq->id, entry->first, entry->last);
    }
    if (kv_entry_begin(entry) != end) {
      return broken(error, "position in sequence", seq->id, kv_entry_begin(entry), end);
    }
    end = kv_entry_end(entry);
    if (entry->page < KV_PAGE_NONE || entry->page >= (int32_t)pool->page_count) {
      return broken(error, "page of sequence", seq->id, (uint32_t)entry->page, pool->page_count);
    }
    if (entry->page < 0) continue;
    if (pool->pages[entry->page].mark == index + 1) {
      return broken(error, "page twice in sequence", seq->id, (uint32_t)entry->page, 0);
    }
    pool->pages[entry->page].mark = index + 1;
  }
  if (seq->token_count > end) {
    return broken(error, "tokens of sequence", seq->id, seq->token_count, end);
  }
  if (seq->id == 0 || seq->id >= pool->seq_next ||
      (index > 0 && seq->id <= pool->seqs[index - 1].id)) {
    return broken(error, "id of sequence", index, seq->id, pool->seq_next);
  }
  return WICK_OK;
}

static void clear_marks(const kv_pool *pool) {
  for (uint32_t i = 0; i < pool->page_count; i++) pool->pages[i].mark = 0;
}

static wick_status check_page(const kv_pool *pool, uint32_t index, wick_error *error) {
  const kv_page *page = &pool->pages[index];
  if (page->id != (kv_page_id)index) return broken(error, "id", index, (uint32_t)page->id, index);
  const uint32_t wanted = page->mark + page->hold_count;
  if (page->ref_count != wanted) {
    return broken(error, "references of page", index, page->ref_count, wanted);
  }
  if (page->fill_tokens > KERNEL_PAGE_TOKENS || (page->hold_count > 0 && !page->is_sealed)) {
    return broken(error, "header of page", index, page->fill_tokens, page->hold_count);
  }
  if (page->ref_count != 0) return WICK_OK;
  if (page->fill_tokens != 0 || page->is_sealed || index < pool->free_from) {
    return broken(error, "free page", index, page->fill_tokens, pool->free_from);
  }
  return WICK_OK;
}

static wick_status check_counters(const kv_pool *pool, uint32_t free_pages, uint32_t held,
                                  wick_error *error) {
  const kv_stats *stats = &pool->stats;
  const uint64_t active = stats->sequences_allocated - stats->sequences_freed;
  const uint64_t used = stats->pages_allocated - stats->pages_freed;
  if (pool->page_free != free_pages) {
    return broken(error, "free pages of", pool->page_count, pool->page_free, free_pages);
  }
  if (held != stats->pages_held_prefix) {
    return broken(error, "held pages of", pool->page_count, stats->pages_held_prefix, held);
  }
  if (active != pool->seq_count) return broken(error, "sequences of", 0, active, pool->seq_count);
  if (used != pool->page_count - free_pages || used > stats->used_pages_max) {
    return broken(error, "used pages of", pool->page_count, used, pool->page_count - free_pages);
  }
  return WICK_OK;
}

bool kv_pools_agree(const kv_pool *a, const kv_pool *b) {
  if (a->seq_count != b->seq_count || a->seq_next != b->seq_next) return false;
  for (uint32_t i = 0; i < a->seq_count; i++) {
    const kv_seq *first = &a->seqs[i], *second = &b->seqs[i];
    if (first->id != second->id || first->token_count != second->token_count) return false;
  }
  return true;
}

wick_status kv_pool_check(const kv_pool *pool, wick_error *error) {
  clear_marks(pool);
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    const wick_status status = check_table(pool, s, error);
    if (status != WICK_OK) return status;
  }
  clear_marks(pool);
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    for (uint32_t i = 0; i < pool->seqs[s].entry_count; i++) {
      const kv_page_id page = pool->seqs[s].table[i].page;
      if (page >= 0) pool->pages[page].mark++;
    }
  }
  uint32_t free_pages = 0, held = 0;
  for (uint32_t i = 0; i < pool->page_count; i++) {
    const wick_status status = check_page(pool, i, error);
    if (status != WICK_OK) return status;
    free_pages += pool->pages[i].ref_count == 0;
    held += pool->pages[i].hold_count > 0;
  }
  return check_counters(pool, free_pages, held, error);
}

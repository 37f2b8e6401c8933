// kv/statistics.c — counts of the pool.
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

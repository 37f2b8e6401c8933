// reference/compaction.c — moves pages of the pool.
#include "reference/compaction.h"

#include <string.h>

#include "kv/pool_types.h"

double kv_seq_contiguity_ratio(const kv_pool *pool, kv_seq_id id) {
  const kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL || seq->entry_count < 2) return 1;
  uint32_t neighbours = 0;
  for (uint32_t i = 1; i < seq->entry_count; i++) {
    neighbours += seq->table[i - 1].page >= 0 && seq->table[i].page == seq->table[i - 1].page + 1;
  }
  return (double)neighbours / (double)(seq->entry_count - 1);
}

bool kv_pool_should_defrag(const kv_pool *pool, double threshold) {
  if (pool->page_count == 0) return false;
  const kv_frag frag = kv_frag_stats(pool);
  const uint64_t used = pool->page_count - pool->page_free;
  if (frag.fragmentation_ratio > threshold) return true;
  if (frag.wasted_capacity * 4 > used * KERNEL_PAGE_TOKENS && frag.holes > 2) return true;
  return (uint64_t)pool->page_free * 10 < pool->page_count && frag.holes > 0;
}

static void move_page(kv_pool *pool, kv_page_id from_id, kv_page_id to_id) {
  kv_page *from = &pool->pages[from_id], *to = &pool->pages[to_id];
  memcpy(to->data.bytes, from->data.bytes, pool->layout.page_bytes);
  to->ref_count = from->ref_count;
  to->fill_tokens = from->fill_tokens;
  to->is_sealed = from->is_sealed;
  from->ref_count = 0;
  from->fill_tokens = 0;
  from->is_sealed = false;
  if ((uint32_t)from_id < pool->free_from) pool->free_from = (uint32_t)from_id;
}

static uint32_t compact(kv_pool *pool, kv_seq *seq, uint32_t moved_max) {
  uint32_t moved = 0;
  for (uint32_t i = 1; i < seq->entry_count && moved < moved_max; i++) {
    const kv_page_id page = seq->table[i].page, place = seq->table[i - 1].page + 1;
    if (page < 0 || place <= 0 || page == place || (uint32_t)place >= pool->page_count) continue;
    const kv_page *header = &pool->pages[page];
    if (pool->pages[place].ref_count != 0 || header->ref_count != 1) continue;
    move_page(pool, page, place);
    seq->table[i].page = place;
    kv_open_move(seq, page, place);
    moved++;
  }
  pool->stats.pages_moved += moved;
  return moved;
}

wick_status kv_seq_compact(kv_pool *pool, kv_seq_id id, uint32_t *moved, wick_error *error) {
  kv_seq *seq = kv_seq_find(pool, id);
  if (seq == NULL) return kv_seq_unknown(id, error);
  *moved = compact(pool, seq, UINT32_MAX);
  return WICK_OK;
}

uint32_t kv_pool_defrag(kv_pool *pool, uint32_t pages_moved_max) {
  uint32_t moved = 0;
  for (uint32_t s = 0; s < pool->seq_count && moved < pages_moved_max; s++) {
    moved += compact(pool, &pool->seqs[s], pages_moved_max - moved);
  }
  if (moved > 0) pool->stats.defrag_operations++;
  return moved;
}

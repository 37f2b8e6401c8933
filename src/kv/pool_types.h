// kv/pool_types.h — shared by the files of the pool alone: pool.c (pages), sequence.c (tables),
// write.c (writing and copying), statistics.c (counting and moving).
#ifndef WICK_KV_POOL_TYPES_H
#define WICK_KV_POOL_TYPES_H

#include <stdatomic.h>

#include "kv/pool.h"

typedef struct kv_seq {
  wick_kv_seq_id id;
  uint32_t token_count;  // stored; not summed from pages
  uint32_t entry_count, entry_capacity;
  wick_kv_entry *table;
} kv_seq;

struct wick_kv_pool {
  wick_memory *memory;
  wick_kv_layout layout;
  uint32_t pages_max, pages_keep;
  wick_kv_page *pages;
  uint32_t page_count, page_capacity, page_free;
  uint32_t free_from;  // no page below it is free
  void **segments;
  uint32_t segment_count, segment_capacity;
  kv_seq *seqs;  // ascending ids
  uint32_t seq_count, seq_capacity;
  wick_kv_seq_id seq_next;
  wick_kv_holder holder;
  wick_kv_stats stats;  // active_sequences and used_pages are counted elsewhere
  atomic_uint nonfinite_values;
};

// Makes sure that `pages` can be taken; evicts and grows as needed.
wick_status kv_pool_reserve(wick_kv_pool *pool, uint32_t pages, wick_kv_shortage *shortage,
                            wick_error *error);
wick_kv_page_id kv_page_take(wick_kv_pool *pool);  // lowest free id, one reference; reserved before
void kv_page_release(wick_kv_pool *pool, wick_kv_page_id page);
void kv_page_retain(wick_kv_pool *pool, wick_kv_page_id page);

kv_seq *kv_seq_find(const wick_kv_pool *pool, wick_kv_seq_id id);
wick_status kv_seq_unknown(wick_kv_seq_id id, wick_error *error);
uint32_t kv_seq_end(const kv_seq *seq);  // tokens that are stored or reserved
wick_status kv_seq_reserve_entries(wick_kv_pool *pool, kv_seq *seq, uint32_t entries,
                                   wick_error *error);
// Adds an entry with a fresh page at the end; both were reserved.
void kv_seq_add_page(wick_kv_pool *pool, kv_seq *seq);
// Index of the entry that has `position`, entry_count when none has.
uint32_t kv_seq_entry_index(const kv_seq *seq, uint32_t position);

#endif

// kv/pool_types.h — what pool.c (pages) and sequence.c (tables) share; nobody else includes it.
#ifndef WICK_KV_POOL_TYPES_H
#define WICK_KV_POOL_TYPES_H

#include "kv/pool.h"

typedef struct kv_page {
  uint8_t *data;
  uint32_t ref_count;  // block tables that hold it; 0: free
} kv_page;

typedef struct kv_segment {
  uint8_t *data;
  uint32_t page_first, page_count;
} kv_segment;

typedef struct kv_seq {
  uint32_t id;
  uint32_t token_count;  // stored, the authority (not summed from pages)
  uint32_t entry_count, entry_capacity;
  wick_kv_entry *table;
} kv_seq;

struct wick_kv_pool {
  wick_memory *memory;
  const wick_kernels *kernels;
  wick_kv_shape shape;
  size_t page_bytes, k_head_bytes, v_head_bytes;
  uint32_t pages_max;
  kv_page *pages;
  uint32_t page_count, page_capacity, page_free;
  uint32_t free_from;  // no page below it is free
  kv_segment *segments;
  uint32_t segment_count, segment_capacity;
  kv_seq *seqs;  // ascending ids
  uint32_t seq_count, seq_capacity;
  uint32_t seq_next;
};

wick_status kv_pool_grow(wick_kv_pool *pool, uint32_t pages, wick_error *error);
int32_t kv_page_take(wick_kv_pool *pool);  // lowest free id, one reference; NONE when none is free
void kv_page_release(wick_kv_pool *pool, int32_t page);

#endif

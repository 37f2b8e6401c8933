// kv/pool.h — the paged KV store of one layer group: pages of 16 tokens for all layers of the
// group, and sequences that own tables of them (Kwon et al. 2023, PagedAttention).
//
//   page = [layer][ K: kv_head, V: kv_head ]     K of a head: [head_dim][16 tokens]
//                                                V of a head: [16 tokens][head_dim]
//
// Pages are reference counted and handed out lowest id first, so that the used set stays dense. The
// pool grows by segments, only when pages are reserved (between steps): writing and reading tokens
// allocate nothing. One writer thread; kernels read.
#ifndef WICK_KV_POOL_H
#define WICK_KV_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "kernels/kernels.h"

enum { WICK_KV_SEQ_NONE = 0, WICK_KV_PAGE_NONE = -1 };

typedef struct wick_kv_shape {
  uint32_t layers;  // of the group
  uint32_t kv_heads;
  uint32_t head_dim;
  kernel_kv_type k_type, v_type;
  uint32_t window;  // sliding window in tokens, 0: everything is kept
} wick_kv_shape;

typedef struct wick_kv_shortage {
  uint32_t pages_needed, pages_available;
} wick_kv_shortage;

// One line of a block table. The slots [first, last) of the page hold the tokens at the logical
// positions position + slot; their keys were rotated at position + slot + delta (delta is not 0
// once tokens before them were dropped): a query at p meets them rotated to p + delta.
typedef struct wick_kv_entry {
  int32_t page;       // WICK_KV_PAGE_NONE: fell out of the window
  uint32_t position;  // of slot 0
  int32_t delta;
  uint16_t first, last;
} wick_kv_entry;

typedef struct wick_kv_pool wick_kv_pool;

// pages_max bounds growth (0: only the memory's budget does). Nothing is allocated for pages yet.
wick_status wick_kv_pool_create(wick_memory *memory, const wick_kernels *kernels,
                                const wick_kv_shape *shape, uint32_t pages_max, wick_kv_pool **out,
                                wick_error *error);
void wick_kv_pool_destroy(wick_kv_pool *pool);
// 0 when a type is not in this build or the size does not fit.
size_t wick_kv_page_bytes(const wick_kernels *kernels, const wick_kv_shape *shape);
const wick_kv_shape *wick_kv_pool_shape(const wick_kv_pool *pool);
uint32_t wick_kv_pool_pages(const wick_kv_pool *pool);
uint32_t wick_kv_pool_pages_free(const wick_kv_pool *pool);
// Every invariant: reference counts equal the tables' sum, the free set is the rest, counts agree,
// entries do not overlap. WICK_E_CORRUPT names the first that is broken. O(pages + entries).
wick_status wick_kv_pool_check(const wick_kv_pool *pool, wick_error *error);

// An empty sequence. Ids start at 1 and are never used again.
wick_status wick_kv_seq_new(wick_kv_pool *pool, uint32_t *seq, wick_error *error);
// Releases its pages; an unknown id is WICK_E_SEQ and changes nothing.
wick_status wick_kv_seq_free(wick_kv_pool *pool, uint32_t seq, wick_error *error);
bool wick_kv_seq_exists(const wick_kv_pool *pool, uint32_t seq);
uint32_t wick_kv_seq_tokens(const wick_kv_pool *pool, uint32_t seq);  // 0 for an unknown one
// Makes room for `tokens` more than are stored: takes free pages, grows the pool when they do not
// suffice. All or nothing: WICK_E_PAGES (*shortage filled, may be NULL), WICK_E_NOMEM.
wick_status wick_kv_seq_extend(wick_kv_pool *pool, uint32_t seq, uint32_t tokens,
                               wick_kv_shortage *shortage, wick_error *error);
// `tokens` positions were written (wick_kv_row_write): counts them as stored. WICK_E_RANGE past
// what was reserved.
wick_status wick_kv_seq_append(wick_kv_pool *pool, uint32_t seq, uint32_t tokens,
                               wick_error *error);
// Drops the tail from position `tokens` on and gives back pages that hold nothing else.
wick_status wick_kv_seq_truncate(wick_kv_pool *pool, uint32_t seq, uint32_t tokens,
                                 wick_error *error);
// Gives back pages wholly before the window of the next position; a pool without one: nothing.
void wick_kv_seq_slide(wick_kv_pool *pool, uint32_t seq);

// The block table: *count entries, in the order of their positions. NULL for an unknown sequence.
// Valid until the sequence is next changed.
const wick_kv_entry *wick_kv_seq_table(const wick_kv_pool *pool, uint32_t seq, uint32_t *count);

// One KV head's K or V inside a page, for the kernels.
void *wick_kv_page_k(const wick_kv_pool *pool, int32_t page, uint32_t layer, uint32_t head);
void *wick_kv_page_v(const wick_kv_pool *pool, int32_t page, uint32_t layer, uint32_t head);

// Writes the K and V rows [kv_heads * head_dim] of one layer at `position` (reserved, in a page
// that no other sequence shares). Returns how many values were not finite.
uint32_t wick_kv_row_write(wick_kv_pool *pool, uint32_t seq, uint32_t layer, uint32_t position,
                           const float *k, const float *v);

#endif

// kv/pool.h — the paged KV cache of one layer group: a pool of pages, and sequences with block
// tables (Kwon et al. 2023, PagedAttention).
//
// Pages are reference counted. The pool hands out the lowest free id first, so used pages stay
// close together. The pool grows by segments, and only when pages are reserved (between steps).
// Writing and reading tokens allocate nothing. After an error, everything is unchanged. Only one
// thread writes; kernels read.
//
// Invariants, which tests check:
//   I1  a page is free exactly when its ref_count is 0
//   I2  ref_count = occurrences in block tables + references of the prefix cache
//   I3  used + free pages = all pages
//   I4  token_count of a sequence fits its table
//   I5  a page that is written is neither shared nor sealed (kv_seq_prepare_write)
//   I6  no table contains a page twice
//   I7  every counter equals a recount
#ifndef WICK_KV_POOL_H
#define WICK_KV_POOL_H

#include "kv/page.h"

enum { KV_PAGES_ANY = -1 };  // pages_max: only the memory budget limits growth

typedef struct kv_shortage {
  uint32_t pages_needed, pages_available;
} kv_shortage;

// An entry of a block table. The slots [first, last) of the page hold, or are reserved for, the
// tokens at the positions position + slot. Their keys were rotated at position + slot + delta.
// delta is 0 until tokens before them are dropped. For these keys, a query at p is rotated to p +
// delta.
// `position` wraps below 0 when the first slots were dropped; position + first does not. Entries
// follow each other without gaps; the first begins at position 0. Example: when tokens [4, 8) of a
// sequence were dropped, slots 8 to 15 of its first page have delta 4 and position 2^32 - 4.
typedef struct kv_entry {
  kv_page_id page;    // KV_PAGE_NONE: the page fell out of the window
  uint32_t position;  // of slot 0
  int32_t delta;
  uint16_t first, last;
} kv_entry;

static inline uint32_t kv_entry_begin(const kv_entry *e) { return e->position + e->first; }
static inline uint32_t kv_entry_end(const kv_entry *e) { return e->position + e->last; }

typedef struct kv_pool kv_pool;

// Creates a pool with `pages` pages (may be 0) that grows up to pages_max. If pages_max equals
// `pages`, it never grows; with (uint32_t)KV_PAGES_ANY, only the memory budget limits it. Returns
// the errors of kv_layout_init, and WICK_E_NOMEM.
wick_status kv_pool_init(memory_gate *memory, const kernel_table *kernels, const kv_shape *shape,
                         uint32_t pages, uint32_t pages_max, kv_pool **out, wick_error *error);
void kv_pool_destroy(kv_pool *pool);
// Grows the pool now as much as taking `pages` pages one after another would, so that taking them
// later allocates nothing. Too few pages are an error only when they are taken, not here.
// WICK_E_NOMEM.
wick_status kv_pool_grow_for(kv_pool *pool, uint32_t pages, wick_error *error);
// Sets the size up to which the pool prefers to grow. When free pages run short, a pool with fewer
// than `pages` pages grows; a larger pool first evicts idle pages of the prefix cache. 0, the
// default: it always evicts first.
void kv_pool_set_keep(kv_pool *pool, uint32_t pages);
const kv_shape *kv_pool_shape(const kv_pool *pool);
const kv_layout *kv_pool_layout(const kv_pool *pool);
uint32_t kv_pool_pages(const kv_pool *pool);
uint32_t kv_pool_pages_free(const kv_pool *pool);
// Returns the number of free pages, plus idle pages of the prefix cache, plus pages by which the
// pool may still grow.
uint32_t kv_pool_pages_available(const kv_pool *pool);
// Returns a page, or NULL for an id that is out of range. Used for diagrams of the pool.
const kv_page *kv_pool_page(const kv_pool *pool, kv_page_id page);
// Returns the bytes of a page in use [page_bytes].
uint8_t *kv_page_bytes(const kv_pool *pool, kv_page_id page);

typedef struct kv_stats {
  uint64_t sequences_allocated, sequences_freed;
  uint64_t pages_allocated, pages_freed;
  uint64_t forks, cow_copies, cow_operations;  // cow_operations = forks + cow_copies
  uint64_t defrag_operations, pages_moved;     // src/reference/compaction.h counts them
  uint64_t nonfinite_values;                   // ever written
  uint32_t active_sequences, used_pages, used_pages_max, pages_held_prefix;
} kv_stats;
kv_stats kv_pool_stats(const kv_pool *pool);
uint64_t kv_pool_bytes_used(const kv_pool *pool);      // of used pages
uint64_t kv_pool_bytes_capacity(const kv_pool *pool);  // of all pages

// A hole is a run of free pages between two used pages. A shared page counts once, with the tokens
// of the sequence that stores the most tokens in it.
typedef struct kv_frag {
  uint32_t holes;
  uint32_t largest_free_region;  // pages
  uint64_t wasted_capacity;      // tokens
  double fragmentation_ratio;    // min(1, holes / used pages)
  double avg_tokens_per_page;    // over pages that have tokens
} kv_frag;
kv_frag kv_frag_stats(const kv_pool *pool);

// ---- The holder of pages that are not in a block table: the prefix cache (kv/prefix.h) ----

typedef struct kv_holder {
  void *context;
  uint32_t (*reclaimable)(void *context);          // pages that reclaim could free
  void (*reclaim)(void *context, uint32_t pages);  // frees up to this many
} kv_holder;
void kv_pool_set_holder(kv_pool *pool, const kv_holder *holder);  // NULL: none
// Adds one of the holder's references to a page in use. The first reference seals the page.
void kv_page_hold(kv_pool *pool, kv_page_id page);
void kv_page_unhold(kv_pool *pool, kv_page_id page);
// Takes a page for the holder only (for reading a saved cache) and adds the holder's reference.
// Evicts and grows like kv_seq_extend.
wick_status kv_page_take_held(kv_pool *pool, kv_page_id *page, kv_shortage *shortage,
                              wick_error *error);

// ---- Sequences ----

// Creates a sequence with room for `tokens` tokens (0: none yet). Ids start at 1 and are never
// reused. If there are too few free pages, idle pages of the prefix cache are evicted and the pool
// grows. If that is not enough, the call fails with WICK_E_PAGES and fills *shortage, which may be
// NULL. WICK_E_NOMEM.
wick_status kv_seq_new(kv_pool *pool, uint32_t tokens, kv_seq_id *seq, kv_shortage *shortage,
                       wick_error *error);
// Frees a sequence and releases its pages. An unknown id is WICK_E_SEQ and changes nothing.
wick_status kv_seq_free(kv_pool *pool, kv_seq_id seq, wick_error *error);
// Raises the id of the next sequence to `next` if it is lower, so that pools with corresponding
// sequences have the same ids. Returns the next id.
kv_seq_id kv_pool_skip_ids(kv_pool *pool, kv_seq_id next);
bool kv_seq_exists(const kv_pool *pool, kv_seq_id seq);
uint32_t kv_seq_tokens(const kv_pool *pool, kv_seq_id seq);    // 0 for an unknown id, too
uint32_t kv_seq_capacity(const kv_pool *pool, kv_seq_id seq);  // tokens reserved
// Creates a sequence with the same tokens that shares every page. O(pages); copies no keys or
// values except those of open pages.
wick_status kv_seq_fork(kv_pool *pool, kv_seq_id seq, kv_seq_id *child, wick_error *error);
// Call before a pass writes the positions [position, position + tokens); `position` must not exceed
// the stored count. Reserves their pages, and copies pages that are shared or sealed. So the pass
// allocates nothing and writes only into private pages.
wick_status kv_seq_prepare_write(kv_pool *pool, kv_seq_id seq, uint32_t position, uint32_t tokens,
                                 kv_shortage *shortage, wick_error *error);
// Ensures that the pages that kv_seq_prepare_write takes are available, without taking them: until
// other calls take pages, that call does not fail. Returns the same errors.
wick_status kv_seq_ensure_write(kv_pool *pool, kv_seq_id seq, uint32_t position, uint32_t tokens,
                                kv_shortage *shortage, wick_error *error);
// Enlarges the block table for `tokens` tokens in total, so that the table need not grow when their
// pages are reserved later. WICK_E_SEQ, WICK_E_NOMEM.
wick_status kv_seq_reserve_table(kv_pool *pool, kv_seq_id seq, uint32_t tokens, wick_error *error);
// Counts `tokens` positions that were written (kv_row_write) as stored. WICK_E_RANGE if they exceed
// the reserved positions.
wick_status kv_seq_append(kv_pool *pool, kv_seq_id seq, uint32_t tokens, wick_error *error);
// Sets the stored count and keeps reserved pages. WICK_E_RANGE if it exceeds the reserved tokens.
wick_status kv_seq_tokens_set(kv_pool *pool, kv_seq_id seq, uint32_t tokens, wick_error *error);
// Drops the tokens at position `tokens` and later (also earlier tokens if kv_seq_cut returns an
// earlier position), and frees the pages that become empty. WICK_E_RANGE if `tokens` exceeds the
// stored count, or if tokens that its next position needs have left the window.
wick_status kv_seq_truncate(kv_pool *pool, kv_seq_id seq, uint32_t tokens, wick_error *error);
// Returns whether kv_seq_truncate can cut the sequence at `tokens`.
bool kv_seq_can_truncate(const kv_pool *pool, kv_seq_id seq, uint32_t tokens);
// Returns the position where kv_seq_truncate would end the sequence: `tokens`, or the first
// position of the page if that page was encoded and cannot be opened again (kv/open.h).
uint32_t kv_seq_cut(const kv_pool *pool, kv_seq_id seq, uint32_t tokens);
// Drops the tokens [first, last). Later tokens move down by last - first and keep their keys (the
// delta of their entries grows). Pages that become empty are freed. A range within one page needs a
// free page, since no table contains a page twice.
wick_status kv_seq_shift(kv_pool *pool, kv_seq_id seq, uint32_t first, uint32_t last,
                         kv_shortage *shortage, wick_error *error);
// Frees leading pages that lie entirely before the last `keep` stored tokens; their entries remain,
// as KV_PAGE_NONE.
wick_status kv_seq_window(kv_pool *pool, kv_seq_id seq, uint32_t keep, wick_error *error);
// Like kv_seq_window, with the pool's window: keeps the pages that the next position and the `back`
// positions before it need, so that the sequence can still be cut there. Does nothing without a
// window.
void kv_seq_slide(kv_pool *pool, kv_seq_id seq, uint32_t back);
// Returns the number of pages in the sequence's table, without those that fell out of the window.
uint32_t kv_seq_pages(const kv_pool *pool, kv_seq_id seq);
// Makes an empty sequence begin after `pages` whole pages, which count as stored but outside the
// window. WICK_E_SEQ, WICK_E_BUSY (not empty), WICK_E_NOMEM.
wick_status kv_seq_begin_after(kv_pool *pool, kv_seq_id seq, uint32_t pages, wick_error *error);
// Replaces entry `index`, one of the pages of kv_seq_begin_after, with a whole page, which is then
// shared.
void kv_seq_put_page(kv_pool *pool, kv_seq_id seq, uint32_t index, kv_page_id page);

// Returns the block table: *count entries, sorted by position. Returns NULL for an unknown
// sequence. Valid until the sequence is next changed.
const kv_entry *kv_seq_table(const kv_pool *pool, kv_seq_id seq, uint32_t *count);
// Returns the entry of a table whose slots contain `position`, or NULL. O(1) in a table that was
// never shifted, else O(log entries).
const kv_entry *kv_table_find(const kv_entry *table, uint32_t count, uint32_t position);

// Returns one KV head's K inside a page, for the kernels; V follows K.
void *kv_page_k(const kv_pool *pool, kv_page_id page, uint32_t layer, uint32_t head);

// Writes the K and V rows [kv_heads * head_dim] of one layer at `position`, which must be prepared
// (kv_seq_prepare_write). Any thread may call it; rows of different positions may be written at the
// same time. Returns how many values were not finite.
uint32_t kv_row_write(kv_pool *pool, kv_seq_id seq, uint32_t layer, uint32_t position,
                      const float *k, const float *v);

#endif

// kv/pool_types.h — types that only src/reference/ and the files of the pool share: pool.c (pages),
// sequence.c (tables), write.c (writing and copying), statistics.c (counting).
#ifndef WICK_KV_POOL_TYPES_H
#define WICK_KV_POOL_TYPES_H

#include <stdatomic.h>

#include "kv/open.h"
#include "kv/pool.h"

typedef struct kv_seq {
  kv_seq_id id;
  uint32_t token_count;  // stored tokens; not a sum over pages
  uint32_t entry_count, entry_capacity;
  kv_entry *table;
  // F16 keys of the two most recently begun pages, [2][open_bytes]; NULL if none are needed.
  uint8_t *open;
  kv_page_id open_pages[2];  // KV_PAGE_NONE: unused
  uint32_t open_newest;      // index of the buffer taken last
  // A copy of one page's F16 keys of slots [0, marked_slots); NULL without a copy (kv_open_mark).
  uint8_t *marked;
  kv_page_id marked_page;
  uint32_t marked_slots;
} kv_seq;

struct kv_pool {
  memory_gate *memory;
  kv_layout layout;
  uint32_t pages_max, pages_keep;
  kv_page *pages;
  uint32_t page_count, page_capacity, page_free;
  uint32_t free_from;  // no page below this id is free
  void **segments;
  uint32_t segment_count, segment_capacity;
  kv_seq *seqs;  // sorted by id
  uint32_t seq_count, seq_capacity;
  kv_seq_id seq_next;
  kv_holder holder;
  kv_stats stats;  // active_sequences and used_pages are counted elsewhere
  atomic_uint nonfinite_values;
};

// Ensures that `pages` pages can be taken; evicts and grows as needed.
wick_status kv_pool_reserve(kv_pool *pool, uint32_t pages, kv_shortage *shortage,
                            wick_error *error);
// Returns the lowest free id, with one reference. The page must be reserved.
kv_page_id kv_page_take(kv_pool *pool);
void kv_page_release(kv_pool *pool, kv_page_id page);
void kv_page_retain(kv_pool *pool, kv_page_id page);

// ---- open.c ----

// Allocates the buffers for open pages of a new sequence. WICK_E_NOMEM.
wick_status kv_open_begin(const kv_pool *pool, kv_seq *seq, wick_error *error);
void kv_open_share(const kv_pool *pool, const kv_seq *from, kv_seq *to);
void kv_open_end(const kv_pool *pool, kv_seq *seq);
// Forgets pages that are no longer in the table.
void kv_open_forget(const kv_pool *pool, kv_seq *seq);
// Called when a page of the table was replaced: assigns its F16 keys to the new page.
void kv_open_move(kv_seq *seq, kv_page_id from, kv_page_id to);
// Returns all layers of a page's F16 keys, or NULL if the page is not open.
uint8_t *kv_open_find(const kv_pool *pool, const kv_seq *seq, kv_page_id page);
// Returns whether the table can end at `tokens`, which are stored. If tokens after it were dropped,
// the last page may end early.
bool kv_open_can_end(const kv_pool *pool, const kv_seq *seq, uint32_t tokens);
// Called when the table now ends at `tokens`: a page whose keys were marked is opened again.
void kv_open_cut(const kv_pool *pool, kv_seq *seq, uint32_t tokens);
// Encodes the slots of an entry that will never be full; `page`, which is open, has their keys.
void kv_open_encode(const kv_pool *pool, const kv_seq *seq, const kv_entry *entry, kv_page_id page);

kv_seq *kv_seq_find(const kv_pool *pool, kv_seq_id id);
wick_status kv_seq_unknown(kv_seq_id id, wick_error *error);
uint32_t kv_seq_end(const kv_seq *seq);  // returns the number of tokens stored or reserved
wick_status kv_seq_reserve_entries(kv_pool *pool, kv_seq *seq, uint32_t entries, wick_error *error);
// Appends an entry with a fresh page; both must be reserved.
void kv_seq_add_page(kv_pool *pool, kv_seq *seq);
// Returns the index of the entry that contains `position`, or entry_count if no entry does.
uint32_t kv_seq_entry_index(const kv_seq *seq, uint32_t position);
// Returns WICK_E_RANGE because the table has no page for `position`. The message contains the page
// index and the position.
wick_status kv_seq_outside(const kv_seq *seq, uint32_t position, wick_error *error);
// Replaces the page of an entry, if it is shared or sealed, with a private copy of its rows. One
// page must be reserved.
void kv_entry_make_private(kv_pool *pool, kv_entry *entry);

#endif

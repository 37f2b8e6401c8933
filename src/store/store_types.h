// store/store_types.h — private types of the store's files (store.c: sequences, pools.c: pages of
// the groups, slots.c: states, cached.c: the prefix cache, record.c: saving); no other file
// includes it.
#ifndef WICK_STORE_STORE_TYPES_H
#define WICK_STORE_STORE_TYPES_H

#include "store/store.h"

typedef int32_t slot_id;
enum { SLOT_NONE = -1, STORE_MARKS_MAX = 4 };

// A copy of the recurrent state; ref_count 0: free.
typedef struct state_slot {
  uint8_t *bytes;  // [state_bytes]
  uint32_t ref_count;
} state_slot;

// A position of a sequence whose state is kept.
typedef struct state_mark {
  uint32_t position;
  slot_id slot;
} state_mark;

// The data stored for a sequence in addition to its pages.
typedef struct store_seq {
  kv_seq_id id;
  slot_id now;        // the state after `position` tokens; SLOT_NONE at position 0
  uint32_t position;  // outside a pass: all stored tokens
  // A pass in progress: `rows` rows starting at `position`; `mid` is the state after the first
  // `mid_rows` of them.
  slot_id mid, next;
  uint32_t rows, mid_rows, committed;
  state_mark rolling;                 // the last full page that was passed; slot SLOT_NONE: none
  state_mark marks[STORE_MARKS_MAX];  // ascending positions
  uint32_t mark_count;
} store_seq;

// A pool in addition to the one that keeps all positions. Entries of the prefix cache reference its
// pages; pages without other users are evicted, the least recently used first.
typedef struct side_pool {
  seq_store *store;
  kv_pool *pool;
  kv_page_id *entry_pages;  // [entry_capacity], by id of a prefix entry; KV_PAGE_NONE: none
} side_pool;

struct seq_store {
  memory_gate *memory;
  store_config config;
  kv_pool *groups[STORE_GROUPS_MAX];
  kv_pool *pool;  // the pool that keeps all positions
  side_pool sides[STORE_GROUPS_MAX];
  uint32_t side_count;
  prefix_cache *prefix;
  store_seq *seqs;  // ascending ids; only for recurrent models
  uint32_t seq_count, seq_capacity;
  state_slot *slots;
  uint32_t slot_count, slot_capacity, slots_free;
  uint32_t expected;     // expected number of sequences in a pass
  uint64_t slots_freed;  // since creation
  slot_id *entry_slots;  // [entry_capacity], by id of a prefix entry; SLOT_NONE: none; NULL: no
                         // state is kept
  uint32_t entry_capacity;
  uint32_t entry_slot_count;  // number of entries with a state
  prefix_parts parts;         // parts of entries: a page of each side pool, then a state
};

store_seq *store_find(const seq_store *store, kv_seq_id id);
// Adds the data kept in addition to the pages of a new sequence. WICK_E_NOMEM.
wick_status store_add_seq(seq_store *store, kv_seq_id id, wick_error *error);
void store_remove_seq(seq_store *store, kv_seq_id id);
// Keeps the current state if a full page ends here.
void roll_state(seq_store *store, store_seq *seq);

// ---- pools.c ----

wick_status pools_create(seq_store *store, const kernel_table *kernels, wick_error *error);
void pools_destroy(seq_store *store);
// Returns the first position that the token at `position` attends to.
uint32_t window_first(const kv_shape *shape, uint32_t position);
// The functions below apply to all pools; an error leaves everything unchanged.
wick_status pools_new(seq_store *store, kv_seq_id *id, wick_error *error);
wick_status pools_fork(seq_store *store, kv_seq_id id, kv_seq_id *child, wick_error *error);
void pools_free(seq_store *store, kv_seq_id id);
wick_status pools_prepare(seq_store *store, kv_seq_id id, uint32_t tokens, wick_error *error);
void pools_append(seq_store *store, kv_seq_id id, uint32_t tokens);
void pools_set_tokens(seq_store *store, kv_seq_id id, uint32_t tokens);
// Frees the pages that are before the windows.
void pools_slide(seq_store *store, kv_seq_id id);
// Returns the position at which pools_truncate would end a sequence that should end at `tokens`:
// that position or an earlier one (kv_seq_cut).
uint32_t pools_cut(const seq_store *store, kv_seq_id id, uint32_t tokens);
bool pools_can_cut(const seq_store *store, kv_seq_id id, uint32_t tokens);
void pools_truncate(seq_store *store, kv_seq_id id, uint32_t tokens);
// Removes a new sequence from the first `count` pools, because the next one could not create it.
void pools_unmake(seq_store *store, kv_seq_id id, uint32_t count);

// ---- slots.c ----

// Takes a slot, with one reference: a free slot, a new one, the slot of the checkpoint that is
// cheapest to lose or, as a last resort, the slot of a position within the rows of a pass that has
// not begun. SLOT_NONE if no slot can be taken. The slot's bytes are not changed.
slot_id slot_take(seq_store *store);
// Takes only a free slot, or a new one within the limit of checkpoints.
slot_id slot_take_spare(seq_store *store);
void slot_retain(seq_store *store, slot_id slot);
void slot_release(seq_store *store, slot_id *slot);  // *slot becomes SLOT_NONE
// Makes sure that `count` slots can be taken. Returns false if memory runs out.
bool slot_reserve(seq_store *store, uint32_t count);
// Makes up to `count` slots available, as memory allows, without evicting anything.
void slot_reserve_spare(seq_store *store, uint32_t count);
void slots_destroy(seq_store *store);
static inline uint8_t *slot_bytes(const seq_store *store, slot_id slot) {
  return store->slots[slot].bytes;
}

// ---- cached.c ----

// Frees the slot of the least recently used entry; returns false if no entry has one.
bool cached_evict_state(seq_store *store);
// Grows the list of entries, so that keeping the states of `entries` more entries allocates
// nothing.
void cached_reserve(seq_store *store, uint32_t entries);
// Called when the prefix cache has removed an entry: frees its pages and its state.
void cached_removed(void *context, prefix_id id);
// Returns the data of an entry that cache records contain in addition to its page; NULL: nothing.
const prefix_parts *cached_parts(seq_store *store);
// The callbacks of a side pool for the prefix cache (kv_holder); context: the side_pool.
uint32_t cached_reclaimable(void *context);
void cached_reclaim(void *context, uint32_t pages);

#endif

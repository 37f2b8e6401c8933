// store/store.h — the state of the tokens that a model's sequences have processed: pages of keys
// and values (kv/pool.h) for each group of layers and, for models with recurrent layers, a state of
// fixed size. The scheduler accesses sequences only through this interface.
//
// Each group has a pool with a block table per sequence; a sequence has the same id in all of them.
// One pool keeps all positions: the pool of a group without a window or, if every group has one, a
// pool of empty pages. It counts the tokens, and its pages are the entries of the prefix cache. A
// group with a sliding window frees pages while a sequence grows: the pages before the windows of
// the next token and of the STORE_BACK_TOKENS tokens before it.
//
// After some truncations, tokens must be recomputed: a recurrent state can only return to positions
// with a checkpoint, and a window's pages may have been freed. So calls that truncate return the
// new end of the sequence, which may be before the requested one. The caller recomputes the tokens
// between the two, with bit-identical results.
//
// States are never written in place. A pass reads the state before its first token from one slot
// and writes the state after its last token to another, so a failed pass changes nothing, a fork
// shares the slot, and a checkpoint needs no copy.
//
//   prepare -> begin_rows -> (pass) -> commit, commit -> settle
#ifndef WICK_STORE_STORE_H
#define WICK_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "kv/open.h"
#include "kv/pool.h"
#include "kv/prefix.h"
#include "kv/state.h"

typedef struct seq_store seq_store;

// BACK: a sequence can go back by at least this many tokens (rejected proposals, a token that is
// recomputed for its logits), regardless of its window.
enum { STORE_GROUPS_MAX = 4, STORE_POOLS_MAX = STORE_GROUPS_MAX + 1, STORE_BACK_TOKENS = 16 };

typedef struct store_config {
  kv_shape groups[STORE_GROUPS_MAX];  // groups of layers with keys and values
  uint32_t group_count;
  uint32_t batch_tokens;  // maximum tokens of a sequence in a pass; used only for windows
  uint32_t pages_max;     // each pool grows up to this many pages
  uint32_t pages_keep;  // below this size, a pool grows before it evicts cached pages; for a window
                        // group, only the pages of one sequence
  uint32_t prefix_entries_max;  // 0: no prefix cache
  uint64_t state_bytes;         // recurrent state of a sequence; 0: none
  uint32_t checkpoints_max;     // limit on states kept for the prefix cache and idle positions
} store_config;

// Returns the errors of kv_pool_init and prefix_cache_init.
wick_status store_create(memory_gate *memory, const kernel_table *kernels,
                         const store_config *config, seq_store **out, wick_error *error);
// Destroys the store and the remaining sequences. NULL does nothing.
void store_destroy(seq_store *store);

// Returns the bytes of pages, in all groups, for one sequence of this many tokens.
uint64_t store_plan_bytes(const kernel_table *kernels, const store_config *config, uint32_t tokens);
// Returns the bytes of the open pages' keys that each sequence has in addition to its pages
// (kv/open.h).
uint64_t store_open_bytes(const kernel_table *kernels, const store_config *config);
kv_pool *store_pages(const seq_store *store);                  // the pool with all positions
kv_pool *store_group(const seq_store *store, uint32_t group);  // a group's pool
prefix_cache *store_prefix(const seq_store *store);            // NULL: the cache is off
uint32_t store_group_count(const seq_store *store);
bool store_is_recurrent(const seq_store *store);

// Counts of recurrent states. Each state is in a slot.
typedef struct store_state_counts {
  uint64_t state_bytes;  // bytes per state; 0: the model has none
  uint32_t slots, free;
  uint32_t cached;  // slots used by entries of the prefix cache
} store_state_counts;
store_state_counts store_count_states(const seq_store *store);
// Whether a group has a window. If so, the pages of each pass are reserved before the pass.
bool store_has_window(const seq_store *store);
// Whether a pass may leave a sequence at a position where it cannot end, so that store_settle must
// be called: a recurrent state, or keys of full pages, exist only for some positions.
bool store_must_settle(const seq_store *store);

// ---- Sequences ----

// Creates a sequence. WICK_E_NOMEM, WICK_E_FULL.
wick_status store_new(seq_store *store, kv_seq_id *seq, wick_error *error);
void store_free(seq_store *store, kv_seq_id seq);
// Creates a sequence that shares pages and state: O(pages), nothing is copied. WICK_E_NOMEM.
wick_status store_fork(seq_store *store, kv_seq_id seq, kv_seq_id *child, wick_error *error);
// Returns the number of stored tokens, which is the position of the next one.
uint32_t store_tokens(const seq_store *store, kv_seq_id seq);
// Returns whether store_truncate can end the sequence at `tokens` exactly.
bool store_can_cut_at(const seq_store *store, kv_seq_id seq, uint32_t tokens);
// Truncates the sequence at `tokens`, or at the nearest possible position before it, and frees
// later pages. Returns the new end.
uint32_t store_truncate(seq_store *store, kv_seq_id seq, uint32_t tokens);
// Keeps a checkpoint at the current end of the sequence, if there is memory for states.
void store_mark(seq_store *store, kv_seq_id seq);
// Whether tokens can be dropped from the middle: not with a recurrent state, and not if layers have
// different windows.
bool store_can_drop(const seq_store *store);
// Drops the tokens [first, last) from the middle. Later tokens keep their keys and values, which
// were computed with attention to the dropped tokens. WICK_E_UNSUPPORTED unless store_can_drop;
// otherwise the errors of kv_seq_shift.
wick_status store_drop(seq_store *store, kv_seq_id seq, uint32_t first, uint32_t last,
                       wick_error *error);
// Whether recomputing the tokens produces the same values: not after a drop from the middle.
bool store_is_plain(const seq_store *store, kv_seq_id seq);

// ---- A pass ----

// Sets the number of sequences in the next passes; store_prepare keeps slots available for them.
void store_expect(seq_store *store, uint32_t sequences);
// Reserves pages for `tokens` more tokens, copies shared pages, and reserves slots for the states
// of a pass. WICK_E_PAGES and WICK_E_NOMEM leave everything unchanged.
wick_status store_prepare(seq_store *store, kv_seq_id seq, uint32_t tokens, wick_error *error);
// Begins a pass that processes `rows` tokens, prepared with store_prepare. The first `certain` rows
// will be committed; the others are proposals. WICK_E_NOMEM if no slot is free.
wick_status store_begin_rows(seq_store *store, kv_seq_id seq, uint32_t rows, uint32_t certain,
                             wick_error *error);
// Commits this many more of the rows.
void store_commit(seq_store *store, kv_seq_id seq, uint32_t rows);
// Ends a complete or failed pass: uncommitted rows are dropped. Returns the end of the sequence,
// which is before the committed rows if they end at a position without a state.
uint32_t store_settle(seq_store *store, kv_seq_id seq);

// Gets the states of a sequence in a pass, starting at `offset_bytes`. `to` is the state after all
// rows, and `mid`, unless it is NULL, the state after `mid_rows` rows.
typedef struct store_states {
  const float *from;
  float *mid, *to;
  uint32_t mid_rows;
} store_states;
store_states store_states_of(const seq_store *store, kv_seq_id seq, uint64_t offset_bytes);

// ---- Capacity ----

// Numbers of pages in each pool.
typedef struct store_room {
  uint32_t pages[STORE_POOLS_MAX];
} store_room;
// Adds the pages that a sequence may still take until it has `tokens`; KV_SEQ_NONE means a new
// sequence.
void store_add_room(const seq_store *store, kv_seq_id seq, uint32_t tokens, store_room *room);
// Grows the pools now by as much as taking the pages of `room` would (kv_pool_grow_for).
// WICK_E_NOMEM.
wick_status store_grow_for(seq_store *store, const store_room *room, wick_error *error);
// Whether the pages of `room` can be taken.
bool store_has_room(const seq_store *store, const store_room *room);
// Returns the number of pages and states freed since creation: a change may let a waiting request
// start.
uint64_t store_freed(const seq_store *store);
// Reserves the block tables for `tokens` tokens in total. WICK_E_NOMEM.
wick_status store_reserve_tables(seq_store *store, kv_seq_id seq, uint32_t tokens,
                                 wick_error *error);
// Reserves memory so that processing up to `tokens` in total, and adding `entries` entries to the
// prefix cache, allocates nothing.
void store_reserve(seq_store *store, kv_seq_id seq, uint32_t tokens, uint32_t entries);
// Called after store_remember, which keeps states for the prefix cache: reserves new states for the
// sequences expected in a pass, so that decoding allocates nothing.
void store_reserve_states(seq_store *store);

// ---- The prefix cache ----

// Attaches the longest cached prefix of the tokens, at most count - 1 tokens, to an empty sequence.
// Returns its length; 0 without a prefix cache.
uint32_t store_attach(seq_store *store, kv_seq_id seq, cache_salt salt, const int32_t *tokens,
                      uint32_t count);
// Returns the length that store_attach would return.
uint32_t store_cached(seq_store *store, cache_salt salt, const int32_t *tokens, uint32_t count);
// Adds the sequence's pages of the tokens [0, count) to the prefix cache, as many as fit.
void store_remember(seq_store *store, kv_seq_id seq, cache_salt salt, const int32_t *tokens,
                    uint32_t count);

// ---- Records ----
//
// The record of a sequence: kv/state.h's record of the pool with all positions, then those of the
// other pools, and for recurrent models "WICKRECU", version u32, position u32, bytes u64, the
// state, checksum u64 of all preceding bytes. Errors are those of kv/state.h.

// Returns a hash of everything that records depend on: the model's fingerprint and the groups'
// shapes.
uint64_t store_salt(const seq_store *store, uint64_t fingerprint);
// Returns the size of the record. packed: types of keys and values in the record; NULL: the store's
// types.
wick_status store_record_bytes(const seq_store *store, kv_seq_id seq, const kv_types *packed,
                               uint64_t *size_bytes, wick_error *error);
// Writes the record. tokens: the stored tokens.
wick_status store_save(seq_store *store, uint64_t salt, kv_seq_id seq, const int32_t *tokens,
                       const kv_types *packed, const wick_state_sink *sink, wick_error *error);
// Reads the first header, which has the number of tokens (reader->tokens).
wick_status store_load_begin(seq_store *store, uint64_t salt, const wick_state_source *source,
                             state_reader *reader, wick_error *error);
// Reads the rest of the record. tokens: must have room for reader->tokens tokens.
wick_status store_load(seq_store *store, state_reader *reader, int32_t *tokens, kv_seq_id *seq,
                       wick_error *error);

#endif

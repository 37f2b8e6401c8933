// store/store.h — the state of the tokens that a model's sequences have read: pages of keys and
// values (kv/pool.h) of each group of its layers and, for models with recurrent layers, a state of
// fixed size. This is all that the scheduler knows of a sequence.
//
// Each group has a pool with a block table for each sequence; a sequence has the same id in all of
// them. One pool keeps all positions: that of a group without a window, or, where no group is so,
// one of pages that hold nothing. It counts the tokens, and the prefix cache enters its pages. A
// group with a sliding window frees pages while a sequence grows: those before the window of
// the next token and of the STORE_BACK_TOKENS before that.
//
// A sequence cannot be cut everywhere without reading again. A recurrent state can go back only to
// positions of which a copy was kept (checkpoints), and a window's pages may be gone. So calls that
// cut answer where the sequence now ends, at most where they were asked to; the tokens between are
// read again, which gives the same bits.
//
// States are never written in place. A pass reads the state before its first token from one slot
// and writes the one after its last token to another, so a failed pass has changed nothing, a fork
// shares the slot, and keeping a checkpoint costs no copy.
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

// BACK: a text can go back by at least this many tokens (proposals that failed, a token that is
// read again for its logits), whatever window it has.
enum { STORE_GROUPS_MAX = 4, STORE_POOLS_MAX = STORE_GROUPS_MAX + 1, STORE_BACK_TOKENS = 16 };

typedef struct store_config {
  kv_shape groups[STORE_GROUPS_MAX];  // of layers with keys and values; group_count 0: none has
  uint32_t group_count;
  uint32_t batch_tokens;        // that a sequence reads in a pass at most; of windows alone
  uint32_t pages_max;           // each pool grows up to this many
  uint32_t pages_keep;          // below this many it grows before it evicts what is cached; for a
                                // window fewer, those of one sequence
  uint32_t prefix_entries_max;  // 0: no prefix cache
  uint64_t state_bytes;         // recurrent state of a sequence; 0: none
  uint32_t checkpoints_max;     // states that the prefix cache and idle positions may keep
} store_config;

// Errors of kv_pool_init and prefix_cache_init.
wick_status store_create(memory_gate *memory, const kernel_table *kernels,
                         const store_config *config, seq_store **out, wick_error *error);
// Every sequence is freed before, or goes with it. NULL is fine.
void store_destroy(seq_store *store);

// Bytes of pages, in all groups, for one sequence of this many tokens.
uint64_t store_plan_bytes(const kernel_table *kernels, const store_config *config, uint32_t tokens);
// Bytes of keys of open pages that each sequence has next to its pages (kv/open.h).
uint64_t store_open_bytes(const kernel_table *kernels, const store_config *config);
kv_pool *store_pages(const seq_store *store);                  // that keeps all positions
kv_pool *store_group(const seq_store *store, uint32_t group);  // of config.groups
prefix_cache *store_prefix(const seq_store *store);            // NULL: there is none
uint32_t store_group_count(const seq_store *store);
bool store_is_recurrent(const seq_store *store);

// Recurrent states. Each is in a slot.
typedef struct store_state_counts {
  uint64_t state_bytes;  // of one; 0: the model has none
  uint32_t slots, free;
  uint32_t cached;  // that entries of the prefix cache have
} store_state_counts;
store_state_counts store_count_states(const seq_store *store);
// Whether a group has a window: then the pages of each pass are made sure of before it.
bool store_has_window(const seq_store *store);
// Whether a pass may leave a sequence where it cannot end, so that store_settle is to be asked:
// where a recurrent state or keys of full pages are kept only of some positions.
bool store_must_settle(const seq_store *store);

// ---- Sequences ----

// WICK_E_NOMEM, WICK_E_FULL.
wick_status store_new(seq_store *store, kv_seq_id *seq, wick_error *error);
void store_free(seq_store *store, kv_seq_id seq);
// Shares pages and state: O(pages), nothing is copied. WICK_E_NOMEM.
wick_status store_fork(seq_store *store, kv_seq_id seq, kv_seq_id *child, wick_error *error);
// Tokens that are stored: the next one that is read has this position.
uint32_t store_tokens(const seq_store *store, kv_seq_id seq);
// Whether the sequence can be made to end there without reading again.
bool store_can_cut_at(const seq_store *store, kv_seq_id seq, uint32_t tokens);
// Ends the sequence at `tokens`, or at the nearest position before it where it can be cut; pages
// after it are freed. Returns where it ends.
uint32_t store_truncate(seq_store *store, kv_seq_id seq, uint32_t tokens);
// Keeps the position where the sequence ends now, as one that it can be cut at, as long as memory
// for states allows.
void store_mark(seq_store *store, kv_seq_id seq);
// Whether tokens can be dropped from the middle: not where a recurrent state holds them, nor where
// layers look back differently far.
bool store_can_drop(const seq_store *store);
// Drops the tokens [first, last) of the middle; what follows keeps what it has seen of them.
// WICK_E_UNSUPPORTED where that cannot be; else as kv_seq_shift.
wick_status store_drop(seq_store *store, kv_seq_id seq, uint32_t first, uint32_t last,
                       wick_error *error);
// Whether reading the tokens again brings the same: not after tokens were dropped from the middle.
bool store_is_plain(const seq_store *store, kv_seq_id seq);

// ---- A pass ----

// This many sequences may take part in the passes to come: store_prepare keeps slots for them.
void store_expect(seq_store *store, uint32_t sequences);
// Makes sure of room for `tokens` more, copies pages among theirs that are shared, and of slots for
// the states of a pass. WICK_E_PAGES, WICK_E_NOMEM; then nothing has changed.
wick_status store_prepare(seq_store *store, kv_seq_id seq, uint32_t tokens, wick_error *error);
// A pass is about to read `rows` tokens, of which the first `certain` will count; the others are
// proposals. They have room (store_prepare). WICK_E_NOMEM when there is no slot.
wick_status store_begin_rows(seq_store *store, kv_seq_id seq, uint32_t rows, uint32_t certain,
                             wick_error *error);
// This many more of the rows count.
void store_commit(seq_store *store, kv_seq_id seq, uint32_t rows);
// The pass is over, or given up: uncommitted rows are dropped. Returns where the sequence
// ends: before the committed rows when they end where no state is.
uint32_t store_settle(seq_store *store, kv_seq_id seq);

// The states of a sequence in a pass, from `offset_bytes` of them on. The rows before `mid_rows`
// end in `mid` when it is not NULL; all of them end in `to`.
typedef struct store_states {
  const float *from;
  float *mid, *to;
  uint32_t mid_rows;
} store_states;
store_states store_states_of(const seq_store *store, kv_seq_id seq, uint64_t offset_bytes);

// ---- Room ----

// Pages of each pool.
typedef struct store_room {
  uint32_t pages[STORE_POOLS_MAX];
} store_room;
// Adds what a sequence may yet come to take until it has `tokens`; KV_SEQ_NONE: a new one.
void store_add_room(const seq_store *store, kv_seq_id seq, uint32_t tokens, store_room *room);
// Grows now, as far as taking these pages would (kv_pool_grow_for). WICK_E_NOMEM.
wick_status store_grow_for(seq_store *store, const store_room *room, wick_error *error);
// Whether this many can be taken.
bool store_has_room(const seq_store *store, const store_room *room);
// Pages and states freed since creation: a change may let a waiting request start.
uint64_t store_freed(const seq_store *store);
// Memory for what lists the pages of `tokens` in all. WICK_E_NOMEM.
wick_status store_reserve_tables(seq_store *store, kv_seq_id seq, uint32_t tokens,
                                 wick_error *error);
// So that reading up to `tokens` in all allocates nothing; and `entries` of the prefix cache.
void store_reserve(seq_store *store, kv_seq_id seq, uint32_t tokens, uint32_t entries);
// The cached part of a prompt is no longer free for sequences that only decode: makes
// states for those expected in a pass.
void store_reserve_states(seq_store *store);

// ---- The prefix cache ----

// Gives an empty sequence the longest cached beginning of the tokens, at most count - 1; 0 without
// a prefix cache. Returns its tokens.
uint32_t store_attach(seq_store *store, kv_seq_id seq, cache_salt salt, const int32_t *tokens,
                      uint32_t count);
// How long it would be.
uint32_t store_cached(seq_store *store, cache_salt salt, const int32_t *tokens, uint32_t count);
// Enters what the sequence has of the tokens [0, count), as far as there is room.
void store_remember(seq_store *store, kv_seq_id seq, cache_salt salt, const int32_t *tokens,
                    uint32_t count);

// ---- Records ----
//
// A sequence: kv/state.h's record of the pool with all positions, then those of the other pools,
// and for recurrent models "WICKRECU", version u32, position u32, bytes u64, the state, checksum
// u64 of all this. Errors as kv/state.h says.

// A number for all that records depend on: the model's fingerprint, and the shapes of all groups.
uint64_t store_salt(const seq_store *store, uint64_t fingerprint);
// packed: types of keys and values in the record; NULL: the store's own.
wick_status store_record_bytes(const seq_store *store, kv_seq_id seq, const kv_types *packed,
                               uint64_t *size_bytes, wick_error *error);
// tokens: the stored ones.
wick_status store_save(seq_store *store, uint64_t salt, kv_seq_id seq, const int32_t *tokens,
                       const kv_types *packed, const wick_state_sink *sink, wick_error *error);
// Reads the first head: how many tokens there are (reader->tokens).
wick_status store_load_begin(seq_store *store, uint64_t salt, const wick_state_source *source,
                             state_reader *reader, wick_error *error);
// tokens: room for reader->tokens.
wick_status store_load(seq_store *store, state_reader *reader, int32_t *tokens, kv_seq_id *seq,
                       wick_error *error);

// Pages, entries, slots and references against a recount; WICK_E_CORRUPT.
wick_status store_check(const seq_store *store, wick_error *error);

#endif

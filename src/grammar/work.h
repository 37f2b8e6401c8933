// grammar/work.h — the working memory of a compilation: it is freed as a whole, limited in bytes
// and in steps, and keeps the first failure. After a failure, calls return NULL or 0 without
// relevant changes, so callers may check once at the end.
//
// A compilation may be done in slices. A pause is a failure (WICK_E_BUSY) that work_resume clears.
// The interrupted set of strings continues first. Then the compilation starts over: it finds the
// finished sets (work_memo) and, for a schema, the rules (work_keep).
#ifndef WICK_GRAMMAR_WORK_H
#define WICK_GRAMMAR_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

enum { GRAMMAR_WORK_BYTES_MAX = 192 << 20, GRAMMAR_WORK_STEPS_MAX = 60000000 };

// The limits on a compilation; 0: the default.
typedef struct grammar_limits {
  uint64_t bytes, steps;
} grammar_limits;

typedef struct work_chunk work_chunk;

typedef struct work_arena {
  work_chunk *chunks;
  uint8_t *at;
  size_t left, used;
} work_arena;

// A memoized result: its value, or the partial result up to the pause.
typedef struct work_memo {
  const void *value;
  void *progress;
  bool is_product;  // used by dfa.c
  uint64_t key[2];
} work_memo;

typedef struct grammar_work {
  memory_gate *memory;
  grammar_limits limits;
  work_arena arenas[2];  // [0] valid until the next pause, [1] beyond it
  uint64_t steps, lasting_steps;
  bool is_lasting;  // memory and steps count as lasting
  uint64_t slice_steps, slice_taken, slice_lasting;
  work_memo *paused;  // the memo that was being computed at the pause
  work_memo **memos;  // [memo_slots], a power of two
  uint32_t memo_count, memo_slots;
  void *kept;          // state of a paused compilation, or NULL
  void *kept_calls;    // state of the surrounding calls (reply/hold_slices.c)
  void *kept_built;    // a built_grammar that is not finished, or NULL
  wick_status status;  // WICK_OK until the first failure
  wick_error error;
  const char *left_out;  // the error if nothing can match without the omitted part, or NULL
} grammar_work;

void work_begin(grammar_work *work, memory_gate *memory);
// Sets the limits. With slice_steps 0, the initial value, the work never pauses.
void work_limit(grammar_work *work, const grammar_limits *limits, uint64_t slice_steps);
void work_end(grammar_work *work);
// Begins a slice. Must be called after a pause, and before the first slice.
void work_resume(grammar_work *work);
static inline bool work_is_paused(const grammar_work *work) { return work->status == WICK_E_BUSY; }
// Called between two parts of lasting work. Returns true after a failure; the end of the slice
// counts as a failure.
bool work_pause(grammar_work *work);
// Called between two parts of a compilation. If the slice is nearly over, it ends, and allocated
// memory is kept beyond the pause; the result is true, as after a failure.
bool work_keep(grammar_work *work);
// Keeps all allocated memory beyond the pause, including later allocations in this slice.
void work_settle(grammar_work *work);
// Returns the entry of a key, which is created if necessary; NULL after a failure. `kind`
// distinguishes the keys of different functions. The value must depend only on the key.
work_memo *work_remember(grammar_work *work, uint32_t kind, const void *key, size_t size_bytes);

// Returns zeroed memory, aligned to 8 bytes; NULL after a failure, including a failure of this call
// (WICK_E_NOMEM, WICK_E_FULL).
void *work_alloc(grammar_work *work, size_t count, size_t item_bytes);
// Returns a larger copy of `old`, whose additional items are not zeroed; the old one remains valid.
void *work_grow(grammar_work *work, const void *old, size_t count, size_t new_count,
                size_t item_bytes);
// Counts steps; returns false if the limit is exceeded, or after another failure.
bool work_step(grammar_work *work, uint32_t steps);
// Called before the next part of lasting work: counts a step. Returns false after a failure or at
// the end of the slice.
bool work_advance(grammar_work *work);
// Records the failure if it is the first. Always returns false.
bool work_fail(grammar_work *work, wick_status status, uint64_t offset_bytes, const char *format,
               ...) __attribute__((format(printf, 4, 5)));
static inline bool work_is_ok(const grammar_work *work) { return work->status == WICK_OK; }

// Grows a list of items of one type: `list` has the fields items, count, capacity. Returns false if
// memory runs out.
#define WORK_PUSH(work, list, item)                                             \
  work_push((work), (void **)&(list)->items, &(list)->count, &(list)->capacity, \
            (__typeof__(*(list)->items)[1]){item}, sizeof *(list)->items)
bool work_push(grammar_work *work, void **items, uint32_t *count, uint32_t *capacity,
               const void *item, size_t item_bytes);
bool work_grow_list(grammar_work *work, void **items, uint32_t *capacity, size_t item_bytes);

typedef struct work_u32_list {
  uint32_t *items;
  uint32_t count, capacity;
} work_u32_list;

// Assigns ids to lists of numbers; equal lists have the same id.
typedef struct work_sets {
  struct {
    uint32_t first, count;
  } *sets;
  uint32_t set_count, set_capacity;
  uint32_t *slots;  // set + 1, or 0
  uint32_t slot_count;
  work_u32_list values;
} work_sets;

// Returns the id; UINT32_MAX after a failure.
uint32_t work_intern(grammar_work *work, work_sets *sets, const uint32_t *values, uint32_t count);

#endif

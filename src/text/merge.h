// text/merge.h — merges neighbouring symbols in order of priority until no pair can be merged, for
// SPM and BPE. O(n log n) for a word of n bytes, for any text.
#ifndef WICK_TEXT_MERGE_H
#define WICK_TEXT_MERGE_H

#include "base/memory.h"
#include "base/status.h"
#include "text/heap.h"

static const uint32_t SYMBOL_END = UINT32_MAX;

// Symbols are indexed by the offset of their first byte; other elements of the array are unused.
typedef struct merge_symbol {
  uint32_t previous;  // SYMBOL_END: none
  uint32_t next;
  int32_t id;           // token, or TOKEN_NONE
  int32_t pair_id;      // token of this symbol and the next one merged, or TOKEN_NONE
  uint32_t pair_order;  // smaller orders merge first; among equals the leftmost
} merge_symbol;

// Returns whether two neighbours merge into a token, and its `id` and the `order` of the merge. The
// left symbol begins at byte `left`; the right one begins at `right` and ends before `end`.
typedef bool (*merge_find_pair)(const void *context, const merge_symbol *symbols, uint32_t left,
                                uint32_t right, uint32_t end, uint32_t *order, int32_t *id);

// Working memory, reused from word to word. It is initialised with zeros.
typedef struct merger {
  memory_gate *memory;
  merge_symbol *symbols;
  size_t capacity;
  key_heap heap;
} merger;

// Allocates memory for a word of size_bytes; returns false if memory runs out. The contents are
// lost.
bool merger_reserve(merger *merger, size_t size_bytes);
void merger_free(merger *merger);

// Merges the list of symbols from 0 to size_bytes; previous, next and id of each must be filled in.
// Afterwards `next` leads from 0 through the remaining symbols. Returns false if memory runs out.
bool merger_run(merger *merger, uint32_t size_bytes, merge_find_pair find, const void *context);

#endif

// text/merge.h — joins neighbouring symbols in order of priority until no pair can be joined: the
// heart of both SPM and BPE. O(n log n) for a word of n bytes, whatever the text.
#ifndef WICK_TEXT_MERGE_H
#define WICK_TEXT_MERGE_H

#include "base/memory.h"
#include "base/status.h"
#include "text/heap.h"

static const uint32_t SYMBOL_END = UINT32_MAX;

// Symbols are indexed by the offset of their first byte; what lies between two is not used.
typedef struct merge_symbol {
  uint32_t previous;  // SYMBOL_END: there is none
  uint32_t next;
  int32_t id;           // token, or TOKEN_NONE
  int32_t pair_id;      // token that it makes with its neighbour to the right, or TOKEN_NONE
  uint32_t pair_order;  // smaller joins first; among equals the leftmost
} merge_symbol;

// Whether two neighbours make a token: `id` of that token and `order` of the joining. The left one
// begins at byte `left`, the right one at `right` and ends before `end`.
typedef bool (*merge_find_pair)(const void *context, const merge_symbol *symbols, uint32_t left,
                                uint32_t right, uint32_t end, uint32_t *order, int32_t *id);

// Working memory, kept from word to word. All zero is an empty one.
typedef struct merger {
  wick_memory *memory;
  merge_symbol *symbols;
  size_t capacity;
  key_heap heap;
} merger;

// Room for a word of size_bytes; false when memory is refused. Contents are lost.
bool merger_reserve(merger *merger, size_t size_bytes);
void merger_free(merger *merger);

// Joins the chain of symbols that begins at 0 and ends at size_bytes: previous, next and id have
// been filled in. Afterwards `next` leads from 0 through what is left. False: memory was refused.
bool merger_run(merger *merger, uint32_t size_bytes, merge_find_pair find, const void *context);

#endif

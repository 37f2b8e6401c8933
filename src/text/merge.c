// text/merge.c — merging with a heap whose entries may be stale: an entry is valid only while its
// symbol's pair still has the order that it had when it was pushed.
#include "text/merge.h"

#include "text/tokenizer.h"

enum { SYMBOLS_FIRST = 256 };

bool merger_reserve(merger *merger, size_t size_bytes) {
  if (size_bytes <= merger->capacity) return true;
  size_t wanted = merger->capacity > SIZE_MAX / 2 ? size_bytes : merger->capacity * 2;
  if (wanted < SYMBOLS_FIRST) wanted = SYMBOLS_FIRST;
  if (wanted < size_bytes) wanted = size_bytes;
  memory_free(merger->memory, merger->symbols);
  merger->symbols = memory_alloc_array(merger->memory, wanted, sizeof *merger->symbols);
  merger->capacity = merger->symbols != NULL ? wanted : 0;
  return merger->symbols != NULL;
}

void merger_free(merger *merger) {
  memory_free(merger->memory, merger->symbols);
  heap_free(&merger->heap, merger->memory);
}

// One word while it is being merged.
typedef struct merge_run_state {
  merger *merger;
  uint32_t size_bytes;
  merge_find_pair find;
  const void *context;
} merge_run_state;

// Adds the pair that begins with `left` to the heap if it merges into a token.
static bool consider_pair(const merge_run_state *run, uint32_t left) {
  merge_symbol *symbols = run->merger->symbols;
  merge_symbol *symbol = &symbols[left];
  symbol->pair_id = TOKEN_NONE;
  const uint32_t right = symbol->next;
  if (right == SYMBOL_END) return true;
  const uint32_t after = symbols[right].next;
  const uint32_t end = after == SYMBOL_END ? run->size_bytes : after;
  if (!run->find(run->context, symbols, left, right, end, &symbol->pair_order, &symbol->pair_id)) {
    return true;
  }
  return heap_push(&run->merger->heap, run->merger->memory,
                   (uint64_t)symbol->pair_order << 32 | left);
}

static bool join_pair(const merge_run_state *run, uint32_t left) {
  merge_symbol *symbols = run->merger->symbols;
  merge_symbol *symbol = &symbols[left];
  merge_symbol *gone = &symbols[symbol->next];
  gone->pair_id = TOKEN_NONE;  // makes its entries in the heap stale
  symbol->id = symbol->pair_id;
  symbol->next = gone->next;
  if (symbol->next != SYMBOL_END) symbols[symbol->next].previous = left;
  if (!consider_pair(run, left)) return false;
  return symbol->previous == SYMBOL_END || consider_pair(run, symbol->previous);
}

bool merger_run(merger *merger, uint32_t size_bytes, merge_find_pair find, const void *context) {
  const merge_run_state run = {merger, size_bytes, find, context};
  merger->heap.count = 0;
  for (uint32_t at = 0; at != SYMBOL_END; at = merger->symbols[at].next) {
    if (!consider_pair(&run, at)) return false;
  }
  while (merger->heap.count > 0) {
    const uint64_t key = heap_pop(&merger->heap);
    const uint32_t left = (uint32_t)key;
    const merge_symbol *symbol = &merger->symbols[left];
    if (symbol->pair_id == TOKEN_NONE || symbol->pair_order != (uint32_t)(key >> 32)) continue;
    if (!join_pair(&run, left)) return false;
  }
  return true;
}

// grammar/shelf.h — the constraints of an engine's requests: the vocabulary's trie, made at first
// use, and the grammars that were used last, compiled, with their masks.
#ifndef WICK_GRAMMAR_SHELF_H
#define WICK_GRAMMAR_SHELF_H

#include "grammar/mask.h"

enum {
  SHELF_IDLE_MAX = 2,  // grammars that nobody uses and that are kept
  SHELF_RESERVE_BYTES = 48 << 10,
};

// A compiled grammar with its masks.
typedef struct constraint {
  struct constraint *next;
  grammar *grammar;
  mask_cache *masks;
  wick_grammar wanted;  // its texts are copies in `texts`
  char *texts;
  uint64_t used;
  uint32_t users;
} constraint;

typedef struct grammar_shelf {
  vocabulary_trie *trie;  // NULL: no grammar was asked for yet
  void *reserve;          // memory for tokenising short texts while requests run
  constraint *constraints;
  uint64_t clock;
} grammar_shelf;

// Errors as grammar_create. The grammar's matcher and masks are the callers' of one thread.
wick_status shelf_take(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                       const wick_grammar *wanted, constraint **out, wick_error *error);
void shelf_give_back(grammar_shelf *shelf, memory_gate *memory, constraint *constraint);
// Nobody uses any of them.
void shelf_clear(grammar_shelf *shelf, memory_gate *memory);

#endif

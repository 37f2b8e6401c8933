// grammar/shelf.h — the constraints of an engine's requests: the vocabulary's trie, which is built
// at first use, and the most recently used compiled grammars with their masks.
#ifndef WICK_GRAMMAR_SHELF_H
#define WICK_GRAMMAR_SHELF_H

#include "grammar/mask.h"

enum {
  SHELF_IDLE_MAX = 2,  // number of unused grammars that are kept
  SHELF_REFUSED_MAX = 32,
  SHELF_SLICE_STEPS = 60000,  // a few milliseconds
  SHELF_QUICK_SLICES = 20,    // slices after which a grammar is slow and waits for other slow ones
  SHELF_SLOW_MAX = 32,
  SHELF_RESERVE_BYTES = 48 << 10,
};

// A compiled grammar with its masks, or the reason why it was rejected.
typedef struct constraint {
  struct constraint *next;
  grammar *grammar;  // NULL: rejected
  wick_error refusal;
  mask_cache *masks;
  wick_grammar wanted;  // its strings are copies in `texts`
  char *texts;
  uint64_t used;
  uint32_t users;
} constraint;

// A grammar that is being compiled in slices.
typedef struct shelf_job {
  grammar_work work;
  constraint *made;
  uint32_t slices;
  uint64_t used;
} shelf_job;

typedef struct grammar_shelf {
  grammar_limits limits;
  shelf_job *quick, *slow;             // a compilation with few slices so far, and a longer one
  uint64_t slow_ones[SHELF_SLOW_MAX];  // hashes of grammars that need SHELF_QUICK_SLICES or more
  uint32_t slow_count;
  vocabulary_trie *trie;  // NULL: no grammar was requested yet
  void *reserve;          // memory for tokenizing short strings while requests run
  constraint *constraints;
  uint64_t clock;
} grammar_shelf;

// Compiles for one slice. Returns true once the grammar is compiled or rejected; shelf_take then
// returns the result immediately. Call it until it returns true: a compilation that is not
// continued is dropped.
bool shelf_prepare(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                   const wick_grammar *wanted);
// Gets the constraint of a grammar, which is compiled if necessary. Returns the errors of
// grammar_create. Callers that share the grammar's matcher and masks must run on one thread.
wick_status shelf_take(grammar_shelf *shelf, memory_gate *memory, const tokenizer *tokens,
                       const wick_grammar *wanted, constraint **out, wick_error *error);
void shelf_give_back(grammar_shelf *shelf, memory_gate *memory, constraint *constraint);
// Frees everything; no constraint may be in use.
void shelf_clear(grammar_shelf *shelf, memory_gate *memory);

#endif

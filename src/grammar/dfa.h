// grammar/dfa.h — sets of strings as deterministic automata over code points: patterns, formats,
// ranges of numbers, member names. They never change, every state can reach an end, and they are
// memoized by the arguments of their construction (work.h).
#ifndef WICK_GRAMMAR_DFA_H
#define WICK_GRAMMAR_DFA_H

#include "grammar/work.h"

enum { DFA_STATES_MAX = 200000, CODE_POINT_MAX = 0x10ffff };

typedef struct dfa_edge {
  uint32_t low, high, to;
} dfa_edge;

// State 0 is the start; the empty set has no states. The edges of a state are sorted and do not
// overlap.
typedef struct dfa {
  uint32_t count;
  uint32_t *first;  // [count + 1] the first edge of each state
  dfa_edge *edges;
  bool *accepts;
} dfa;

typedef enum dfa_operation { DFA_AND, DFA_OR, DFA_WITHOUT } dfa_operation;

// The functions below return NULL after a failure, or if an argument is NULL.
const dfa *dfa_combine(grammar_work *work, const dfa *a, const dfa *b, dfa_operation operation);
const dfa *dfa_none(grammar_work *work);
const dfa *dfa_any_text(grammar_work *work);
// Returns the set of one string, which must be valid UTF-8.
const dfa *dfa_of_text(grammar_work *work, const uint8_t *text, size_t size_bytes);
// Returns the set of strings of `least` to `most` characters; most may be UINT32_MAX.
const dfa *dfa_of_lengths(grammar_work *work, uint32_t least, uint32_t most);
// Returns the same set with the fewest states (Moore 1956); `set` itself if it has many states, or
// if a few rounds do not determine which states are equivalent. Returns NULL when `work` pauses:
// call again with the same *progress, which is NULL at first.
typedef struct state_parter state_parter;
const dfa *dfa_minimise(grammar_work *work, const dfa *set, state_parter **progress);
bool dfa_holds(const dfa *set, const uint8_t *text, size_t size_bytes);
static inline bool dfa_is_empty(const dfa *set) { return set != NULL && set->count == 0; }

// ---- from nondeterministic automata ----

// Edges read a character or are skipped; AT_START and AT_END are skipped only at the beginning and
// the end of the string.
typedef enum nfa_kind { NFA_RANGE, NFA_SKIP, NFA_AT_START, NFA_AT_END } nfa_kind;

typedef struct nfa {
  grammar_work *work;
  struct {
    struct {
      uint32_t next, low, high, to;
      nfa_kind kind;
    } *items;
    uint32_t count, capacity;
  } edges;
  work_u32_list first;  // [states] the first edge + 1
  uint64_t key[2];      // hash of all edges
} nfa;

void nfa_begin(nfa *nfa, grammar_work *work);
uint32_t nfa_state(nfa *nfa);
void nfa_range(nfa *nfa, uint32_t from, uint32_t low, uint32_t high, uint32_t to);
void nfa_skip(nfa *nfa, uint32_t from, nfa_kind kind, uint32_t to);
// Adds one string, which must be valid UTF-8, from one state to another.
void nfa_text(nfa *nfa, uint32_t from, const uint8_t *text, size_t size_bytes, uint32_t to);
// Adds the strings of a set, from one state to another.
void nfa_copy(nfa *nfa, const dfa *set, uint32_t from, uint32_t to);
// Returns the set of strings that lead from `start` to `end`. No edge may lead to `start`, so that
// the beginning of a string differs from the rest.
const dfa *dfa_of_nfa(nfa *nfa, uint32_t start, uint32_t end);
// Continues building the set that was interrupted by a pause. Returns false at another pause, or
// after a failure.
bool dfa_resume_paused(grammar_work *work);

#endif

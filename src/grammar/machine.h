// grammar/machine.h — runs a program on bytes. A configuration is a set of pairs: a state, and the
// set of states to return to, which are pairs of the same kind (a graph-structured stack, Tomita
// 1987). Equal sets have the same number, so the configuration after a byte is computed once and
// then looked up.
//
// The machine has a fixed amount of memory. When it is full, only the sets that marks still need
// are kept.
#ifndef WICK_GRAMMAR_MACHINE_H
#define WICK_GRAMMAR_MACHINE_H

#include "grammar/program.h"

enum {
  MACHINE_BYTES = 6 << 20,
  MACHINE_DEPTH_MAX = 1000,      // nested return states
  MACHINE_PLACES_MAX = 8 << 10,  // states in a configuration, before and after closing
  MACHINE_DEAD = 0,              // the empty set
};

typedef struct machine machine;

// A configuration that is kept: while it is in the machine's list, its number stays valid.
typedef struct machine_mark {
  struct machine_mark *next, *previous;
  machine *machine;
  uint32_t state;
} machine_mark;

wick_status machine_create(memory_gate *memory, const grammar_program *program, machine **out,
                           wick_error *error);
void machine_destroy(machine *machine);

// Sets the mark to the initial configuration.
void machine_mark_begin(machine *machine, machine_mark *mark);
void machine_mark_copy(const machine_mark *from, machine_mark *to);
void machine_mark_end(machine_mark *mark);

// Returns the configuration after a byte; MACHINE_DEAD if the byte does not match, or if the
// configuration exceeds the machine's memory (see machine_is_full). Numbers without a mark are
// valid until the next collection, which only machine_make_room runs.
uint32_t machine_step(machine *machine, uint32_t state, uint8_t byte);
// Returns the configuration after following the edges of the token, merged with `bytes`, the
// configuration after its bytes (MACHINE_DEAD: none).
uint32_t machine_step_token(machine *machine, uint32_t state, uint32_t token, uint32_t bytes);
// Frees memory so that a mask or a token can be computed; marks are renumbered. Returns false if
// too little memory is free.
bool machine_make_room(machine *machine);

bool machine_accepts(const machine *machine, uint32_t state);
// Whether the text may continue.
bool machine_continues(const machine *machine, uint32_t state);
// Returns the minimum number of plain characters that may follow (program.h).
uint32_t machine_plain(const machine *machine, uint32_t state);
// Returns the only byte that may follow, or -1 if several bytes, a token or the end may follow.
int machine_only_byte(machine *machine, uint32_t state);
// Whether anything has exceeded the memory since the machine was created.
bool machine_is_full(const machine *machine);

// Iterates over the token edges of a configuration: `at` starts with 0.
typedef struct machine_token_edge {
  uint32_t token;
  bool is_not;
} machine_token_edge;
bool machine_next_token_edge(const machine *machine, uint32_t state, uint64_t *at,
                             machine_token_edge *edge);

// Returns the number of collections so far. State numbers from before a collection are no longer
// valid.
uint32_t machine_generation(const machine *machine);

#endif

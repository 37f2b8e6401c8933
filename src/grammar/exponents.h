// grammar/exponents.h — the numbers of a set in spellings with an exponent.
#ifndef WICK_GRAMMAR_EXPONENTS_H
#define WICK_GRAMMAR_EXPONENTS_H

#include "grammar/dfa.h"
#include "grammar/program.h"

// Adds them from a place to another. `set` is one of numbers.h: it has all spellings of a value
// without an exponent. It leaves out spellings of sets with more than EXPONENTS_STATES_MAX states,
// spellings with more than 22 digits after the point or with more than 12 digits over which the
// point moves to the left, and exponents beyond the set's bounds. The numbers are finite as
// doubles, if they have at most 209 digits before the point.
enum { EXPONENTS_STATES_MAX = 1000 };
void exponents_add(program_builder *builder, const dfa *set, uint32_t from, uint32_t to);
// The exponents that may follow any number, or one with a single digit before the point.
void exponents_add_any(program_builder *builder, uint32_t from, bool is_long, uint32_t to);

#endif

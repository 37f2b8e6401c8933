// grammar/exponents.h — notations with an exponent for the numbers in a set.
#ifndef WICK_GRAMMAR_EXPONENTS_H
#define WICK_GRAMMAR_EXPONENTS_H

#include "grammar/dfa.h"
#include "grammar/program.h"

// Adds the notations between two states. `set` comes from numbers.h: it has all notations of a
// value without an exponent. Not added: notations for sets with more than EXPONENTS_STATES_MAX
// states, notations with more than 22 digits after the point or whose exponent moves the point to
// the left by more than 12 digits, and exponents beyond the set's bounds. The numbers are finite as
// doubles if they have at most 209 digits before the point.
enum { EXPONENTS_STATES_MAX = 1000 };
void exponents_add(program_builder *builder, const dfa *set, uint32_t from, uint32_t to);
// Adds the exponents that may follow any number, or one with a single digit before the point.
void exponents_add_any(program_builder *builder, uint32_t from, bool is_long, uint32_t to);

#endif

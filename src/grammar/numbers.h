// grammar/numbers.h — sets of JSON numbers by their value, without an exponent: a set that contains
// one notation of a value contains all of them (1, 1.0, 1.00).
#ifndef WICK_GRAMMAR_NUMBERS_H
#define WICK_GRAMMAR_NUMBERS_H

#include "grammar/dfa.h"
#include "grammar/document.h"

#define NUMBERS_COUNT_MAX (UINT32_MAX - 1)

typedef enum number_bound {
  NUMBER_AT_LEAST,
  NUMBER_ABOVE,
  NUMBER_AT_MOST,
  NUMBER_BELOW
} number_bound;

const dfa *numbers_all(grammar_work *work);
const dfa *numbers_of_one_digit(grammar_work *work);  // one digit before the point
const dfa *numbers_integers(grammar_work *work);
// Returns the numbers within a bound. WICK_E_UNSUPPORTED if the bound has too many digits.
const dfa *numbers_bounded(grammar_work *work, document_text bound, number_bound kind);
const dfa *numbers_equal(grammar_work *work, document_text value);
// Returns the multiples of a positive number, which must have few digits (otherwise
// WICK_E_UNSUPPORTED).
const dfa *numbers_multiple(grammar_work *work, document_text divisor);
// Returns the notations without superfluous digits: no ".0" at the end, no "-0", and at most 15
// digits, so that doubles distinguish them.
const dfa *numbers_short(grammar_work *work);
// Whether no double has a larger magnitude.
bool numbers_is_largest(document_text value);
// Returns the value as a count: UINT32_MAX if the value is negative or fractional,
// NUMBERS_COUNT_MAX if it is at least that large.
uint32_t numbers_count(document_text value);

#endif

// grammar/regex.h — regular expressions of ECMA-262 (2025) with the flag u, without features that
// are not regular: look-around, back references, word boundaries and \p are refused by name.
#ifndef WICK_GRAMMAR_REGEX_H
#define WICK_GRAMMAR_REGEX_H

#include "grammar/dfa.h"

// The texts in which the pattern is found, or, `whole`, those that it matches from end to end. NULL
// after a failure: WICK_E_ARG with the place in the pattern, WICK_E_UNSUPPORTED, WICK_E_FULL.
const dfa *regex_compile(grammar_work *work, const uint8_t *pattern, size_t size_bytes, bool whole);

#endif

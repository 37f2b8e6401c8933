// grammar/regex.h — regular expressions of ECMA-262 (2025) with the u flag. Unsupported features
// (look-behind, back references, word boundaries, \p) are rejected with an error that names them.
#ifndef WICK_GRAMMAR_REGEX_H
#define WICK_GRAMMAR_REGEX_H

#include "grammar/dfa.h"

// Returns the strings in which the pattern is found or, with `whole`, the strings that it matches
// entirely. NULL after a failure: WICK_E_ARG with the position in the pattern, WICK_E_UNSUPPORTED,
// WICK_E_FULL.
const dfa *regex_compile(grammar_work *work, const uint8_t *pattern, size_t size_bytes, bool whole);

#endif

// grammar/schema.h — JSON Schema (drafts 4, 6, 7, 2019-09, 2020-12) as a grammar of JSON texts.
//
// A schema that cannot be honoured is refused with its keyword and its place (WICK_E_UNSUPPORTED).
// Members stand in the order in which the schema declares them, others behind them.
#ifndef WICK_GRAMMAR_SCHEMA_H
#define WICK_GRAMMAR_SCHEMA_H

#include "grammar/program.h"

// `any`: every spelling of a value that JSON has, with white space, and members that nobody
// declared where the schema does not say that there are none. Else one spelling: ", " and ": "
// between, no white space besides, no exponents; members that are declared or that a schema for
// others allows.
//
// Answers the rule of a whole text; 0 after a failure.
uint32_t schema_build(program_builder *builder, const uint8_t *text, size_t size_bytes, bool any);

#endif

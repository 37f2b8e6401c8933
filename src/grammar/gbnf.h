// grammar/gbnf.h — GBNF, the grammars of llama.cpp (grammars/README.md there): rules, literals,
// classes, groups, repetition, and tokens by id or text.
#ifndef WICK_GRAMMAR_GBNF_H
#define WICK_GRAMMAR_GBNF_H

#include "grammar/program.h"
#include "text/tokenizer.h"

// The names of rules, for messages.
typedef struct gbnf_names gbnf_names;

// Builds the rules; if `tokens` is NULL, grammars that refer to tokens are rejected. Returns the
// rule "root", or 0 after a failure: WICK_E_ARG with the line and the position, WICK_E_FULL.
uint32_t gbnf_build(program_builder *builder, const tokenizer *tokens, const uint8_t *text,
                    size_t size_bytes, gbnf_names **names);
// A program_namer; the context is a gbnf_names.
const char *gbnf_name(void *names, uint32_t rule);

#endif

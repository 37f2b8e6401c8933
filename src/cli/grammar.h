// cli/grammar.h — the options that specify a grammar.
#ifndef WICK_CLI_GRAMMAR_H
#define WICK_CLI_GRAMMAR_H

#include "cli/args.h"
#include "cli/input.h"

typedef struct grammar_options {
  const char *schema, *grammar, *regex;
  args_strings choices;
} grammar_options;

// Appends the options; returns their number (4).
size_t grammar_list(grammar_options *given, args_option *options);
// Reads the options. If none is given, *grammar has the kind WICK_GRAMMAR_NONE; otherwise its text
// is in `text`. More than one option is a usage error.
exit_code grammar_read(const grammar_options *given, input_text *text, wick_grammar *grammar);

#endif

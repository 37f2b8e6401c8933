// grammar/schema.h — JSON Schema (drafts 4, 6, 7, 2019-09, 2020-12) as a grammar for JSON.
//
// An unsupported schema is rejected with its keyword and position (WICK_E_UNSUPPORTED). Members are
// in the order in which the schema declares them, followed by other members.
#ifndef WICK_GRAMMAR_SCHEMA_H
#define WICK_GRAMMAR_SCHEMA_H

#include "grammar/program.h"

// With `any`, every JSON notation of a value is accepted, with any white space, and so are
// undeclared members unless the schema forbids them. Otherwise each value has one notation:
// separators are ", " and ": ", with no other white space and no exponents; only members that are
// declared, or that a schema for other members allows, are permitted.
//
// Returns the rule for the whole text; 0 after a failure.
uint32_t schema_build(program_builder *builder, const uint8_t *text, size_t size_bytes, bool any);

// How the arguments of a call are written.
typedef enum argument_style {
  ARGUMENT_JSON,    // {"name": value}
  ARGUMENT_PYTHON,  // name=value) with Python's words; strings, lists and dicts are written as in
                    // JSON
  ARGUMENT_MARKED,  // {name:value}, with strings between two delimiters
  ARGUMENT_PARAMS   // tags around names and values: strings unchanged, other values as JSON
} argument_style;

// Patterns: SCHEMA_GAP stands for a line break, a space, or nothing, SCHEMA_NAME for the name of
// the argument, SCHEMA_TYPE for the JSON type of its value.
#define SCHEMA_NAME "\1"
#define SCHEMA_GAP "\3"
#define SCHEMA_TYPE "\7"
typedef struct argument_form {
  argument_style style;
  const char *quote;                      // MARKED
  const char *before_name;                // PARAMS: patterns
  const char *before_text, *before_json;  // between the name and the value
  // Follows the value. It contains a "<" and may end with the name; strings never contain the part
  // before the name.
  const char *end;
  const char *wrap, *unwrap;  // around a string that may contain `end`; NULL: none
  bool has_lines;             // a line break before and after each value
  bool has_attribute;  // before_text and before_json differ, so a parser can distinguish the kinds
  bool escapes_names;  // & and " are &amp; and &quot;
} argument_form;

// Returns the rule for an object of the schema, in one notation. WICK_E_UNSUPPORTED also if the
// format cannot represent a name.
uint32_t schema_build_argument(program_builder *builder, const uint8_t *text, size_t size_bytes,
                               const argument_form *form);

#endif

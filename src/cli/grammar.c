// cli/grammar.c — reads a grammar from a file or the command line.
#include "cli/grammar.h"

#include <string.h>

#include "base/json.h"

size_t grammar_list(grammar_options *given, args_option *options) {
  const args_option own[] = {
      args_string("--json-schema", &given->schema, "FILE",
                  "constrain the output to JSON that matches this schema"),
      args_string("--grammar", &given->grammar, "FILE",
                  "constrain the output to this GBNF grammar"),
      args_string("--regex", &given->regex, "TEXT",
                  "constrain the output to this regular expression"),
      args_string_list("--choice", &given->choices, "TEXT",
                       "constrain the output to this choice (repeatable)"),
  };
  memcpy(options, own, sizeof own);
  return sizeof own / sizeof own[0];
}

// Writes the choices as a JSON array.
static exit_code write_choices(const args_strings *choices, input_text *text) {
  json_writer json;
  json_begin(&json, input_append, text);
  json_open(&json, NULL, '[');
  for (uint32_t i = 0; i < choices->count; i++) json_text(&json, NULL, choices->items[i]);
  json_close(&json, '[');
  if (!text->is_lost) return EXIT_DONE;
  report("out of memory for the choices");
  return EXIT_MEMORY;
}

exit_code grammar_read(const grammar_options *given, input_text *text, wick_grammar *grammar) {
  const int count = (given->schema != NULL) + (given->grammar != NULL) + (given->regex != NULL) +
                    (given->choices.count != 0);
  exit_code code = EXIT_DONE;
  *grammar = (wick_grammar){.kind = WICK_GRAMMAR_NONE};
  *text = (input_text){0};
  if (count == 0) return EXIT_DONE;
  if (count > 1) {
    report("--json-schema, --grammar, --regex and --choice cannot be used together");
    return EXIT_USAGE;
  }
  if (given->choices.count != 0) {
    code = write_choices(&given->choices, text);
    grammar->kind = WICK_GRAMMAR_CHOICE;
  } else {
    const char *path = given->schema != NULL ? given->schema : given->grammar;
    code = input_read(given->regex, path, "", text);
    grammar->kind = given->schema != NULL    ? WICK_GRAMMAR_JSON_SCHEMA
                    : given->grammar != NULL ? WICK_GRAMMAR_GBNF
                                             : WICK_GRAMMAR_REGEX;
  }
  grammar->text = text->bytes;
  grammar->text_bytes = text->size_bytes;
  return code;
}

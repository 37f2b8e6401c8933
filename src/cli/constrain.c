// cli/constrain.c — checks strings against a grammar.
#include <string.h>

#include "cli/args.h"
#include "cli/input.h"
#include "cli/model_file.h"

typedef struct constrain_options {
  const char *schema, *grammar, *regex, *choices, *model, *texts;
  bool one_spelling;
} constrain_options;

// Reads the requested grammar; there must be exactly one.
static exit_code read_grammar(const constrain_options *given, input_text *text,
                              wick_grammar *grammar) {
  const char *const paths[] = {given->grammar, given->schema, NULL, given->choices};
  uint32_t count = given->regex != NULL;
  for (uint32_t i = 0; i < 4; i++) count += paths[i] != NULL;
  if (count != 1) {
    report("one of --json-schema, --grammar, --regex and --choices is needed");
    return EXIT_USAGE;
  }
  *grammar = (wick_grammar){.kind = WICK_GRAMMAR_REGEX, .any_spelling = !given->one_spelling};
  const char *path = NULL;
  for (uint32_t i = 0; i < 4; i++) {
    if (paths[i] == NULL) continue;
    path = paths[i];
    grammar->kind = (wick_grammar_kind)(i + 1);
  }
  const exit_code code = input_read(given->regex, path, "", text);
  grammar->text = text->bytes;
  grammar->text_bytes = text->size_bytes;
  return code;
}

static exit_code check(wick_constraint *constraint, const char *path) {
  input_text texts;
  wick_error error;
  const exit_code code = input_read(NULL, path, "", &texts);
  if (code != EXIT_DONE) return code;
  const wick_status status = wick_constraint_check(constraint, texts.bytes, texts.size_bytes,
                                                   output_text_json, NULL, &error);
  input_free(&texts);
  if (status != WICK_OK) {
    output_end();
    return report_error(path, &error) == EXIT_MEMORY ? EXIT_MEMORY : EXIT_FILE;
  }
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

static exit_code constrain(const constrain_options *given, wick_engine *engine) {
  input_text text = {0};
  wick_grammar grammar;
  wick_constraint *constraint;
  wick_error error;
  exit_code code = read_grammar(given, &text, &grammar);
  if (code != EXIT_DONE) return code;
  if (wick_constraint_create(engine, &grammar, &constraint, &error) != WICK_OK) {
    code = report_error("the grammar", &error) == EXIT_MEMORY ? EXIT_MEMORY : EXIT_USAGE;
  } else {
    code = given->texts == NULL ? EXIT_DONE : check(constraint, given->texts);
    wick_constraint_destroy(constraint);
  }
  input_free(&text);
  return code;
}

exit_code command_constrain(int argc, char **argv) {
  constrain_options given = {0};
  const args_option options[] = {
      args_string("--json-schema", &given.schema, "FILE", "use this JSON schema"),
      args_string("--grammar", &given.grammar, "FILE", "use this GBNF grammar"),
      args_string("--regex", &given.regex, "TEXT", "use this regular expression"),
      args_string("--choices", &given.choices, "FILE", "use the strings of this JSON array"),
      args_string("--model", &given.model, "MODEL", "check strings as tokens of this model"),
      args_string("--check", &given.texts, "FILE", "check the strings of this JSON array"),
      args_flag("--one-spelling", &given.one_spelling,
                "accept only the spelling that generation uses"),
  };
  const args_spec spec = {
      "wick constrain (--json-schema FILE | --grammar FILE | --regex TEXT) --check FILE [options]",
      "Prints a JSON array: whether each string is a complete match. Exits with 2 if the grammar "
      "is invalid.",
      options, sizeof options / sizeof options[0], 0};
  const char *none[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, none);
  if (parsed != EXIT_NOT_YET) return parsed;
  wick_engine *engine = NULL;
  exit_code code = EXIT_DONE;
  if (given.model != NULL) code = model_open_vocabulary(given.model, NULL, &engine);
  if (code == EXIT_DONE) code = constrain(&given, engine);
  model_close(engine);
  return code;
}

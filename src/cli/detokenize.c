// cli/detokenize.c — token ids to text. Needs a vocabulary, but no weights.
#include <stdlib.h>

#include "cli/args.h"
#include "cli/model_file.h"
#include "cli/settings.h"

static bool are_in_vocabulary(const args_tokens *tokens, uint32_t vocab) {
  for (size_t i = 0; i < tokens->count; i++) {
    if (tokens->ids[i] >= 0 && (uint32_t)tokens->ids[i] < vocab) continue;
    report("token %d is not in the vocabulary (0 to %u)", (int)tokens->ids[i], (unsigned)vocab - 1);
    return false;
  }
  return true;
}

static exit_code decode(wick_engine *engine, const args_tokens *tokens, bool special) {
  if (!are_in_vocabulary(tokens, wick_tokenizer_vocab(engine))) return EXIT_USAGE;
  char *text = malloc(wick_detokenize_bytes_max(engine, tokens->count));
  if (text == NULL) {
    report("out of memory for the text");
    return EXIT_MEMORY;
  }
  size_t size_bytes;
  wick_error error;
  const wick_status status =
      wick_detokenize(engine, tokens->ids, tokens->count, true, special, text, &size_bytes, &error);
  output_put(OUTPUT_TEXT, text, size_bytes);
  free(text);
  return status == WICK_OK ? output_end() : report_error("detokenize", &error);
}

exit_code command_detokenize(int argc, char **argv) {
  args_tokens tokens = {0};
  bool special = false;
  const char *pre_tokenizer = NULL;
  const args_option options[] = {
      args_token_list("--tokens", &tokens, "1,2,3",
                      "use these token ids, separated by commas or spaces"),
      args_flag("--special", &special, "print control tokens, too"),
      settings_pre_tokenizer(&pre_tokenizer),
  };
  const args_spec spec = {"wick detokenize MODEL --tokens 1,2,3 [--special]",
                          "Prints the text without a newline. Exits with 2 if an id is not in "
                          "the vocabulary.",
                          options, sizeof options / sizeof options[0], 1};
  const char *model[ARGS_POSITIONALS_MAX];
  wick_engine *engine = NULL;
  exit_code code = args_parse(&spec, argc, argv, model);
  if (code == EXIT_NOT_YET && !tokens.is_given) {
    report("--tokens is missing (usage: %s)", spec.usage);
    code = EXIT_USAGE;
  }
  if (code == EXIT_NOT_YET) code = model_open_vocabulary(model[0], pre_tokenizer, &engine);
  if (engine != NULL) code = decode(engine, &tokens, special);
  model_close(engine);
  args_tokens_free(&tokens);
  return code;
}

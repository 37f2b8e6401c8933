// cli/tokenize.c — text to token ids. Needs a vocabulary, but no weights.
#include <stdlib.h>

#include "base/text.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/model_file.h"
#include "cli/settings.h"

typedef struct tokenize_options {
  const char *text, *path, *pre_tokenizer;
  bool no_special, no_bos;
} tokenize_options;

static exit_code print_tokens(const int32_t *tokens, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char text[16];
    output_put(OUTPUT_TEXT, text,
               text_format(text, sizeof text, "%s%d", i == 0 ? "" : " ", (int)tokens[i]));
  }
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

static exit_code encode(wick_engine *engine, const input_text *text, uint32_t flags) {
  // a byte usually becomes at most one token; otherwise the first call reports how many there are
  size_t capacity = text->size_bytes + 8, count = 0;
  int32_t *tokens = NULL;
  wick_error error;
  wick_status status;
  do {
    free(tokens);
    if (count > capacity) capacity = count;
    tokens = calloc(capacity, sizeof *tokens);
    if (tokens == NULL) {
      report("out of memory for the tokens");
      return EXIT_MEMORY;
    }
    status = wick_tokenize(engine, text->bytes, text->size_bytes, flags, tokens, capacity, &count,
                           &error);
  } while (status == WICK_E_FULL && count > capacity);
  const exit_code code =
      status == WICK_OK ? print_tokens(tokens, count) : report_error("tokenize", &error);
  free(tokens);
  return code;
}

exit_code command_tokenize(int argc, char **argv) {
  tokenize_options given = {0};
  const args_option options[] = {
      args_string("-p", &given.text, "TEXT", "the text (default: standard input)"),
      args_string("-f", &given.path, "FILE", "read the text from a file, byte for byte"),
      args_flag("--no-special", &given.no_special,
                "treat special tokens in the text as plain text"),
      args_flag("--no-bos", &given.no_bos, "add no special tokens around the text"),
      settings_pre_tokenizer(&given.pre_tokenizer),
  };
  const args_spec spec = {
      "wick tokenize MODEL [-p TEXT | -f FILE] [options]",
      "Prints token ids separated by spaces. A GGUF file without tensors is enough.", options,
      sizeof options / sizeof options[0], 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;

  input_text text;
  exit_code code = input_read(given.text, given.path, model[0], &text);
  if (code != EXIT_DONE) return code;
  wick_engine *engine;
  code = model_open_vocabulary(model[0], given.pre_tokenizer, &engine);
  if (code == EXIT_DONE) {
    const uint32_t flags = (given.no_bos ? 0 : (uint32_t)WICK_TOKENIZE_ADD_SPECIAL) |
                           (given.no_special ? 0 : (uint32_t)WICK_TOKENIZE_PARSE_SPECIAL);
    code = encode(engine, &text, flags);
    model_close(engine);
  }
  input_free(&text);
  return code;
}

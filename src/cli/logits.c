// cli/logits.c — the logits of every position of a list of tokens, with FP32 keys and values.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/generation.h"
#include "cli/model_file.h"
#include "cli/settings.h"

typedef struct logits_options {
  args_tokens tokens;
  const char *path;
  model_settings model;
} logits_options;

typedef struct logits_file {
  FILE *stream;
  uint32_t positions;  // written so far
  int failed_errno;
} logits_file;

// wick_request.on_logits; every host of this program is little-endian.
static void write_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  logits_file *file = context;
  (void)position;
  if (file->failed_errno != 0) return;
  errno = 0;
  if (fwrite(logits, sizeof *logits, vocab, file->stream) != vocab) {
    file->failed_errno = errno != 0 ? errno : EIO;
  }
  file->positions++;
}

static exit_code compute(const logits_options *given, wick_engine *engine, logits_file *file) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = given->tokens.ids;
  request.token_count = given->tokens.count;
  request.max_tokens = 1;
  request.ignore_end = true;
  request.on_logits = write_logits;
  request.on_logits_context = file;
  generation done;
  exit_code code = generation_run(engine, &request, NULL, NULL, &done);
  if (fflush(file->stream) != 0 && file->failed_errno == 0) file->failed_errno = errno;
  if (code == EXIT_DONE && file->failed_errno != 0 && file->failed_errno != EPIPE) {
    report("cannot write %s: %s", given->path, strerror(file->failed_errno));
    code = EXIT_FILE;
  }
  if (code == EXIT_DONE && file->positions != given->tokens.count) {
    report("%u of %zu positions were computed", (unsigned)file->positions, given->tokens.count);
    code = EXIT_INTERNAL;
  }
  return code;
}

static exit_code write_file(const logits_options *given, wick_engine *engine) {
  const bool is_stdout = strcmp(given->path, "-") == 0;
  logits_file file = {.stream = is_stdout ? stdout : fopen(given->path, "wb")};
  if (file.stream == NULL) {
    report("cannot create %s: %s", given->path, strerror(errno));
    return EXIT_FILE;
  }
  exit_code code = compute(given, engine, &file);
  if (!is_stdout && fclose(file.stream) != 0 && code == EXIT_DONE) {
    report("cannot write %s: %s", given->path, strerror(errno));
    code = EXIT_FILE;
  }
  return code;
}

static exit_code run_logits(const logits_options *given, const char *path) {
  wick_config config;
  wick_engine *engine = NULL;
  if (!given->tokens.is_given || given->path == NULL) {
    report("%s is missing ('wick logits --help')", given->path == NULL ? "--out" : "--tokens");
    return EXIT_USAGE;
  }
  exit_code code = settings_apply(&given->model, &config);
  if (code == EXIT_DONE) code = model_open(path, &config, &engine);
  if (code == EXIT_DONE) code = settings_check_threads(&given->model, engine);
  if (code == EXIT_DONE) code = write_file(given, engine);
  if (engine != NULL) wick_engine_destroy(engine);
  return code;
}

exit_code command_logits(int argc, char **argv) {
  logits_options given = {.model = settings_default()};
  given.model.kv = KERNEL_KV_F32;
  args_option options[8] = {
      args_token_list("--tokens", &given.tokens, "1,2,3",
                      "token ids, fed as they are: nothing is added"),
      args_string("--out", &given.path, "FILE", "where to; -: standard output"),
  };
  const args_spec spec = {
      "wick logits MODEL --tokens 1,2,3 --out FILE [options]",
      "Writes little-endian float32 [tokens, vocab]: row i holds the logits after token i.",
      options, 2 + settings_list(&given.model, SETTINGS_CTX | SETTINGS_THREADS, options + 2), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const args_result parsed = args_parse(&spec, argc, argv, model);
  exit_code code = EXIT_USAGE;
  if (parsed == ARGS_HELP) code = output_end();
  if (parsed == ARGS_OK) code = run_logits(&given, model[0]);
  args_tokens_free(&given.tokens);
  return code;
}

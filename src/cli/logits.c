// cli/logits.c — the logits of every position of a list of tokens, or of the text positions of a
// prompt with images and audio, with FP32 keys and values.
#include "cli/adapter_files.h"
#include "cli/args.h"
#include "cli/generation.h"
#include "cli/media_request.h"
#include "cli/model_file.h"
#include "cli/settings.h"

typedef struct logits_options {
  args_tokens tokens;
  const char *path;
  adapter_files adapters;
  model_settings model;
  media_files media;
} logits_options;

typedef struct logits_sink {
  output_file file;
  uint32_t positions;  // written so far
} logits_sink;

// Implements wick_request.on_logits. Writes floats as they are in memory: every host of this
// program is little-endian.
static void write_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  logits_sink *sink = context;
  (void)position;
  output_file_write(&sink->file, logits, vocab * sizeof *logits);
  sink->positions++;
}

static exit_code compute(const logits_options *given, wick_engine *engine, media_input *media,
                         logits_sink *sink) {
  wick_request request;
  wick_request_default(&request);
  request.tokens = given->tokens.ids;
  request.token_count = given->tokens.count;
  request.adapters = given->adapters.uses;
  request.adapter_count = given->adapters.files.count;
  request.max_tokens = 1;
  request.ignore_end = true;
  request.on_logits = write_logits;
  request.on_logits_context = sink;
  generation done;
  const size_t count = media == NULL ? given->tokens.count : media_request_texts(media);
  const exit_code code = media_request_run(media, engine, &request, NULL, NULL, &done);
  if (code != EXIT_DONE || sink->positions == count) return code;
  report("%u of %zu positions were computed", (unsigned)sink->positions, count);
  return EXIT_INTERNAL;
}

static exit_code write_file(const logits_options *given, wick_engine *engine, media_input *media) {
  logits_sink sink = {.file = {.path = given->path}};
  const exit_code code = compute(given, engine, media, &sink);
  return output_file_end(&sink.file, code);
}

static exit_code check_given(const logits_options *given) {
  const bool has_parts = media_has_parts(&given->media);
  if (given->path != NULL && given->tokens.is_given != has_parts) return EXIT_DONE;
  if (given->path != NULL && has_parts) {
    report("pass --tokens or --parts, not both");
  } else {
    report("%s is missing ('wick logits --help')", given->path == NULL ? "--out" : "--tokens");
  }
  return EXIT_USAGE;
}

static exit_code run_logits(logits_options *given, const char *path) {
  wick_config config;
  wick_engine *engine = NULL;
  media_input *media = NULL;
  exit_code code = check_given(given);
  if (code == EXIT_DONE) code = settings_apply(&given->model, &config);
  if (code == EXIT_DONE) {
    code = media_request_open(&given->media, path, &given->model, &config, &media);
  }
  if (code == EXIT_DONE) code = model_open(path, &config, &engine);
  if (code == EXIT_DONE) code = settings_check_threads(&given->model, engine);
  if (code == EXIT_DONE) code = adapter_files_load(&given->adapters, engine);
  if (code == EXIT_DONE) code = media_request_encode(media, engine);
  if (code == EXIT_DONE) code = write_file(given, engine, media);
  model_close(engine);
  media_request_close(media);
  return code;
}

exit_code command_logits(int argc, char **argv) {
  logits_options given = {.model = settings_default()};
  given.model.kv[0] = given.model.kv[1] = WICK_KV_F32;
  args_option options[8 + MEDIA_OPTIONS_MAX] = {
      args_token_list("--tokens", &given.tokens, "1,2,3",
                      "use these token ids, without adding special tokens"),
      args_string("--out", &given.path, "FILE", "write the logits to FILE (-: standard output)"),
      adapter_files_option(&given.adapters),
  };
  size_t count = 3 + media_parts_list(&given.media, options + 3);
  count += settings_list(&given.model, SETTINGS_CTX | SETTINGS_THREADS | SETTINGS_TABLES,
                         options + count);
  const args_spec spec = {
      "wick logits MODEL --tokens 1,2,3 --out FILE [options]",
      "Writes little-endian float32 [tokens, vocab]: row i holds the logits after token i.",
      options, count, 1};
  const char *model[ARGS_POSITIONALS_MAX];
  exit_code code = args_parse(&spec, argc, argv, model);
  if (code == EXIT_NOT_YET) code = run_logits(&given, model[0]);
  args_tokens_free(&given.tokens);
  return code;
}

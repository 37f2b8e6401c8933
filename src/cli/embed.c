// cli/embed.c — computes vectors of texts and scores of documents. Both are written as JSON to
// standard output.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/adapter_files.h"
#include "cli/args.h"
#include "cli/input.h"
#include "cli/model_file.h"
#include "cli/settings.h"

enum { BUDGET_US = 1000 * 1000 };

typedef struct embed_options {
  args_strings texts;  // values of -p or --document
  args_tokens tokens;
  const char *path, *out, *query;
  uint32_t pooling, dimensions;
  bool normalizes, no_normalize, truncates, is_json;
  adapter_files adapters;
  model_settings model;
} embed_options;

// The texts of a request, and the buffers with their bytes.
typedef struct embed_texts {
  wick_embed_text *items;
  uint32_t count;
  input_text file;
} embed_texts;

static void free_texts(embed_texts *texts) {
  free(texts->items);
  input_free(&texts->file);
}

// Splits the file into lines, without their line ends.
static void take_lines(embed_texts *texts) {
  const char *at = texts->file.bytes, *end = at + texts->file.size_bytes;
  while (at < end) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (line == NULL) line = end;
    texts->items[texts->count++] = (wick_embed_text){.text = at, .text_bytes = (size_t)(line - at)};
    at = line + 1;
  }
}

static uint32_t count_lines(const input_text *file) {
  uint32_t lines = 1;
  for (size_t i = 0; i < file->size_bytes; i++) lines += file->bytes[i] == '\n';
  return lines;
}

// Takes the texts from -p, --tokens, or the lines of -f or standard input.
static exit_code read_texts(const embed_options *given, const char *model, embed_texts *texts) {
  const uint32_t few = given->texts.count;
  const bool has_few = few != 0 || given->tokens.is_given;
  *texts = (embed_texts){0};
  if (!has_few || given->path != NULL) {
    const exit_code code = input_read(has_few ? "" : NULL, given->path, model, &texts->file);
    if (code != EXIT_DONE) return code;
  }
  texts->items = calloc((size_t)few + 1 + count_lines(&texts->file), sizeof *texts->items);
  if (texts->items == NULL) {
    report("out of memory for the texts");
    return EXIT_MEMORY;
  }
  for (uint32_t i = 0; i < few; i++) {
    const char *text = given->texts.items[i];
    wick_embed_text *item = &texts->items[texts->count++];
    *item = (wick_embed_text){.text = text, .text_bytes = strlen(text)};
    if (given->query == NULL) continue;
    *item = (wick_embed_text){given->query, strlen(given->query), text, strlen(text), NULL, 0};
  }
  if (given->tokens.is_given) {
    texts->items[texts->count++] =
        (wick_embed_text){.tokens = given->tokens.ids, .token_count = given->tokens.count};
  }
  if (texts->file.bytes != NULL) take_lines(texts);
  return EXIT_DONE;
}

// ---- Output ----

static void put_row(json_writer *json, const char *key, const float *row, uint32_t width) {
  json_open(json, key, '[');
  for (uint32_t i = 0; i < width; i++) json_f32(json, NULL, row[i]);
  json_close(json, '[');
}

// Writes [{"tokens": 5, "embedding": [...]}]. Without pooling, the member is "embeddings"; with a
// head, it is "scores".
static exit_code print_json(const wick_engine *engine, bool is_score) {
  json_writer json;
  wick_vectors vectors;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '[');
  for (uint32_t i = 0; wick_embed_get(engine, i, &vectors); i++) {
    json_open(&json, NULL, '{');
    json_u64(&json, "tokens", vectors.tokens);
    if (vectors.rows == 1) {
      put_row(&json, is_score ? "scores" : "embedding", vectors.values, vectors.width);
    } else {
      json_open(&json, "embeddings", '[');
      for (uint32_t r = 0; r < vectors.rows; r++) {
        put_row(&json, NULL, vectors.values + (size_t)r * vectors.width, vectors.width);
      }
      json_close(&json, '[');
    }
    json_close(&json, '{');
  }
  json_close(&json, '[');
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

// Writes the values as they are in memory: every host of this program is little-endian.
static exit_code write_floats(const wick_engine *engine, const char *path) {
  output_file file = {.path = path};
  wick_vectors vectors;
  for (uint32_t i = 0; wick_embed_get(engine, i, &vectors); i++) {
    const size_t floats = (size_t)vectors.rows * vectors.width;
    output_file_write(&file, vectors.values, floats * sizeof(float));
  }
  return output_file_end(&file, EXIT_DONE);
}

static void print_document(const args_strings *documents, uint32_t index, float score,
                           json_writer *json) {
  char number[JSON_NUMBER_BYTES];
  if (json != NULL) {
    json_open(json, NULL, '{');
    json_u64(json, "index", index);
    json_f32(json, "score", score);
    json_close(json, '{');
    return;
  }
  json_format_f32(number, score);
  output_format(OUTPUT_TEXT, "%s\t%s\n", number, documents->items[index]);
}

// Sorts documents by descending score; equal scores keep their order.
static exit_code print_ranking(const embed_options *given, const wick_engine *engine) {
  const args_strings *documents = &given->texts;
  bool is_printed[ARGS_STRINGS_MAX] = {false};
  json_writer writer, *json = given->is_json ? &writer : NULL;
  json_begin(&writer, output_text_json, NULL);
  if (json != NULL) json_open(json, NULL, '[');
  for (uint32_t rank = 0; rank < documents->count; rank++) {
    uint32_t best = UINT32_MAX;
    float best_score = 0;
    for (uint32_t i = 0; i < documents->count; i++) {
      wick_vectors vectors;
      if (is_printed[i] || !wick_embed_get(engine, i, &vectors)) continue;
      if (best != UINT32_MAX && vectors.values[0] <= best_score) continue;
      best = i;
      best_score = vectors.values[0];
    }
    is_printed[best] = true;
    print_document(documents, best, best_score, json);
  }
  if (json != NULL) {
    json_close(json, '[');
    output_put(OUTPUT_TEXT, "\n", 1);
  }
  return output_end();
}

// ---- Running ----

static exit_code compute(const embed_options *given, const embed_texts *texts,
                         wick_engine *engine) {
  const wick_embed_request request = {.texts = texts->items,
                                      .text_count = texts->count,
                                      .pooling = (wick_pooling)given->pooling,
                                      .dimensions = given->dimensions,
                                      .normalizes = given->normalizes && !given->no_normalize,
                                      .truncates = given->truncates,
                                      .adapters = given->adapters.uses,
                                      .adapter_count = given->adapters.files.count};
  wick_step_result result = WICK_STEP_PROGRESS;
  wick_error error;
  wick_status status = wick_embed(engine, &request, &error);
  while (status == WICK_OK && result == WICK_STEP_PROGRESS) {
    status = wick_embed_step(engine, BUDGET_US, &result, &error);
  }
  return status == WICK_OK ? EXIT_DONE
                           : report_error(given->query == NULL ? "embed" : "rerank", &error);
}

static bool is_score(const embed_options *given, const wick_engine *engine) {
  wick_model_info info = {0};
  wick_model_get_info(engine, &info, NULL);
  return (given->pooling == WICK_POOLING_MODEL ? info.pooling : given->pooling) ==
         WICK_POOLING_RANK;
}

static exit_code run_embed(embed_options *given, const char *path) {
  wick_config config;
  wick_engine *engine = NULL;
  embed_texts texts;
  exit_code code = read_texts(given, path, &texts);
  if (code == EXIT_DONE) code = settings_apply(&given->model, &config);
  if (code == EXIT_DONE) code = model_open(path, &config, &engine);
  if (code == EXIT_DONE) code = settings_check_threads(&given->model, engine);
  if (code == EXIT_DONE) code = adapter_files_load(&given->adapters, engine);
  if (code == EXIT_DONE) code = compute(given, &texts, engine);
  if (code == EXIT_DONE && given->query != NULL) {
    code = print_ranking(given, engine);
  } else if (code == EXIT_DONE) {
    code = given->out == NULL ? print_json(engine, is_score(given, engine))
                              : write_floats(engine, given->out);
  }
  model_close(engine);
  free_texts(&texts);
  return code;
}

exit_code command_embed(int argc, char **argv) {
  static const char *const poolings[] = {"model", "none", "mean", "cls", "last", "rank", NULL};
  embed_options given = {.model = settings_default()};
  args_option options[16] = {
      args_string_list("-p", &given.texts, "TEXT", "embed TEXT (repeatable)"),
      args_string("-f", &given.path, "FILE", "embed each line of FILE (default: standard input)"),
      args_token_list("--tokens", &given.tokens, "1,2,3", "embed token ids unchanged"),
      args_choice("--pooling", &given.pooling, "KIND", poolings,
                  "pool by model (default: as the file says), none, mean, cls, last or rank"),
      args_u32("--dimensions", &given.dimensions, "N", 1, 1 << 20,
               "print only the first N dimensions"),
      args_flag("--normalize", &given.normalizes, "divide vectors by their length"),
      args_flag("--no-normalize", &given.no_normalize, "keep their length (default)"),
      args_flag("--json", &given.is_json, "print JSON (default)"),
      args_flag("--truncate", &given.truncates,
                "truncate texts that exceed the context instead of rejecting them"),
      args_string("--out", &given.out, "FILE", "print little-endian float32 instead of JSON"),
      adapter_files_option(&given.adapters),
  };
  const args_spec spec = {
      "wick embed MODEL [-p TEXT ... | -f FILE] [options]",
      "Prints a JSON array with one object per text: its token count, and its embedding, "
      "embeddings or scores.",
      options, 11 + settings_list(&given.model, SETTINGS_ALL | SETTINGS_TABLES, options + 11), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  exit_code code = args_parse(&spec, argc, argv, model);
  if (code == EXIT_NOT_YET) code = run_embed(&given, model[0]);
  args_tokens_free(&given.tokens);
  return code;
}

exit_code command_rerank(int argc, char **argv) {
  embed_options given = {.model = settings_default(), .pooling = WICK_POOLING_RANK};
  args_option options[9] = {
      args_string("--query", &given.query, "TEXT", "rank documents by this query"),
      args_string_list("--document", &given.texts, "TEXT", "rank TEXT (repeatable)"),
      args_flag("--truncate", &given.truncates,
                "truncate pairs that exceed the context instead of rejecting them"),
      args_flag("--json", &given.is_json, "print a JSON array of index and score"),
  };
  const args_spec spec = {
      "wick rerank MODEL --query TEXT --document TEXT ... [options]",
      "Prints scores and documents, best first.", options,
      4 + settings_list(&given.model, SETTINGS_ALL | SETTINGS_TABLES, options + 4), 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  if (given.query != NULL && given.texts.count != 0) return run_embed(&given, model[0]);
  report("%s is missing ('wick rerank --help')", given.query == NULL ? "--query" : "--document");
  return EXIT_USAGE;
}

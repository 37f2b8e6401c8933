// cli/media_request.c — see media_request.h.
#include "cli/media_request.h"

#include <stdlib.h>
#include <string.h>

#include "api/parts.h"
#include "base/hash.h"
#include "cli/media_input.h"

enum { BATCH_TOKENS_USUAL = 128 };  // the default of wick_config

// ---- files ----

static exit_code check_files(const media_files *files, const char *model) {
  const char *option = files->parts_path != NULL  ? "--parts"
                       : files->images.count != 0 ? "--image"
                                                  : "--audio";
  if (files->mmproj == NULL) {
    report("%s requires --mmproj FILE, the encoder that comes with the model", option);
    return EXIT_USAGE;
  }
  if (strcmp(model, "-") == 0) {
    report("%s requires a model in a file, not standard input", option);
    return EXIT_USAGE;
  }
  return EXIT_DONE;
}

// ---- sizes ----

static const media_chunk *chunk_at(const media_input *input, const prompt_chunk *chunk) {
  return &input->items[chunk->image].plan.chunks[chunk->chunk];
}

static uint64_t count_rows(const media_input *input) {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < input->item_count; i++) rows += input->items[i].plan.rows;
  return rows;
}

size_t media_request_texts(const media_input *input) { return input->prompt.token_count; }

// Returns the number of rows of the largest image that the model must process in one pass.
static uint32_t largest_at_once(const media_input *input) {
  uint32_t largest = 0;
  for (uint32_t i = 0; i < input->prompt.count; i++) {
    const prompt_chunk *chunk = &input->prompt.chunks[i];
    if (!chunk->is_rows || !chunk_at(input, chunk)->is_non_causal) continue;
    const uint32_t rows = chunk_at(input, chunk)->rows;
    if (rows > largest) largest = rows;
  }
  return largest;
}

static exit_code configure(const media_input *input, const media_files *files,
                           wick_config *config) {
  const uint64_t total = count_rows(input) + input->prompt.token_count;
  const uint32_t at_once = largest_at_once(input);
  if (at_once > WICK_BATCH_TOKENS_MAX) {
    report("%s: an image has %u tokens in one batch, limit is %u", input->mmproj, (unsigned)at_once,
           (unsigned)WICK_BATCH_TOKENS_MAX);
    return EXIT_USAGE;
  }
  if (at_once > BATCH_TOKENS_USUAL) config->batch_tokens = at_once;
  if (files->parts_path != NULL && config->context_tokens == 0 && total < UINT32_MAX) {
    config->context_tokens = (uint32_t)total + 1;
    config->beyond_trained = true;
  }
  return EXIT_DONE;
}

static exit_code read_prompt(media_input *input, const media_files *files) {
  const exit_code code = files->parts_path != NULL
                             ? media_parts_read(&input->memory, files->parts_path, &input->parts)
                             : media_parts_make(&files->images, &files->audio, files->text,
                                                files->text_bytes, &input->parts);
  return code == EXIT_DONE ? media_input_plan(input) : code;
}

exit_code media_request_read(const media_files *files, const char *model,
                             const model_settings *settings, wick_config *config,
                             media_input **out) {
  const media_input_files opened = {.model = model,
                                    .mmproj = files->mmproj,
                                    .pre_tokenizer = settings->pre_tokenizer,
                                    .threads = settings->threads,
                                    .options = files->options};
  exit_code code = check_files(files, model);
  if (code != EXIT_DONE) return code;
  media_input *input = calloc(1, sizeof *input);
  if (input == NULL) {
    report("out of memory for the images");
    return EXIT_MEMORY;
  }
  code = media_input_open(input, &opened);
  if (code == EXIT_DONE) code = read_prompt(input, files);
  if (code == EXIT_DONE) code = configure(input, files, config);
  *out = input;
  return code;
}

void media_request_free(media_input *input) {
  media_input_close(input);
  free(input);
}

exit_code media_request_compute(media_input *input, const wick_engine *engine) {
  wick_plan plan;
  wick_error error;
  if (wick_memory_plan(engine, &plan, &error) != WICK_OK) {
    return report_error(input->model, &error);
  }
  const uint64_t rows = count_rows(input), total = rows + input->prompt.token_count;
  if (total > plan.context_tokens) {
    report("the prompt has %llu tokens (%llu of images and audio); the context holds %u (--ctx)",
           (unsigned long long)total, (unsigned long long)rows, (unsigned)plan.context_tokens);
    return EXIT_USAGE;
  }
  if (rows != 0 && input->width != engine_media_width(engine)) {
    report("%s: rows have %u values, but the model needs %u", input->mmproj, (unsigned)input->width,
           (unsigned)engine_media_width(engine));
    return EXIT_FILE;
  }
  return media_input_encode(input);
}

// ---- requests ----

typedef struct submission {
  prompt_part *parts;  // [count]
  media_rows *rows;    // [count], for parts that have rows
} submission;

// Returns the rows of a chunk. Their key contains everything that the rows depend on: the content,
// the encoder, and the chunk of the image.
static media_rows rows_of(const media_input *input, const prompt_chunk *chunk) {
  const media_item *item = &input->items[chunk->image];
  const media_chunk *part = chunk_at(input, chunk);
  const bool is_grid = input->text.has_axes && !part->counts_rows;
  return (media_rows){.rows = media_input_rows(input, item, chunk->chunk),
                      .count = part->rows,
                      .width = input->width,
                      .grid_x = is_grid ? part->across : 0,
                      .grid_y = is_grid ? part->down : 0,
                      .is_image = !part->is_audio,
                      .key = {item->key, hash_mix_u64(input->fingerprints[item->kind] +
                                                      hash_mix_u64(chunk->chunk + 1))}};
}

static void fill(const media_input *input, const submission *to) {
  for (uint32_t i = 0; i < input->prompt.count; i++) {
    const prompt_chunk *chunk = &input->prompt.chunks[i];
    if (chunk->is_rows) {
      to->rows[i] = rows_of(input, chunk);
      to->parts[i] = (prompt_part){.media = &to->rows[i]};
    } else {
      to->parts[i] = (prompt_part){.tokens = input->prompt.tokens + chunk->first_token,
                                   .token_count = chunk->token_count};
    }
  }
}

static exit_code submit(const media_input *input, wick_engine *engine, const wick_request *request,
                        uint32_t *id) {
  wick_error error;
  exit_code code = EXIT_DONE;
  const uint32_t count = input->prompt.count;
  const submission to = {calloc((size_t)count + 1, sizeof(prompt_part)),
                         calloc((size_t)count + 1, sizeof(media_rows))};
  if (to.parts == NULL || to.rows == NULL) {
    report("out of memory for the prompt");
    code = EXIT_MEMORY;
  } else {
    fill(input, &to);
    if (engine_submit_parts(engine, request, to.parts, count, id, &error) != WICK_OK) {
      code = generation_report_refusal(&error);
    }
  }
  free(to.parts);
  free(to.rows);
  return code;
}

exit_code media_request_follow(media_input *input, wick_engine *engine, const wick_request *request,
                               generation_on_token on_token, void *context, generation *done) {
  uint32_t id;
  wick_request whole = *request;
  whole.text = NULL;
  whole.text_bytes = 0;
  whole.tokens = NULL;
  whole.token_count = 0;
  const exit_code code = submit(input, engine, &whole, &id);
  return code == EXIT_DONE ? generation_follow(engine, id, on_token, context, done) : code;
}

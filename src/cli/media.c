// cli/media.c — images of a prompt, encoded for a text model.
#include "cli/media.h"

#include <stdlib.h>

#include "base/json.h"
#include "cli/args.h"
#include "media/prompt.h"
#include "platform/platform.h"

typedef struct media_command {
  const char *model, *mmproj, *parts_path, *out, *pixels_out;
  bool is_json;
  uint32_t threads;
  media_options options;
  memory_gate memory;
  gguf_file text_file, mmproj_file;
  media_text text;
  tokenizer *tokenizer;
  media_model *encoder;
  thread_pool *pool;
  media_parts parts;
  media_plan *plans;  // [images]
  media_prepared *prepared;
  uint64_t *keys;
  uint32_t images;
  media_prompt prompt;
} media_command;

// ---- opening ----

static exit_code open_models(media_command *command) {
  wick_error error;
  exit_code code = gguf_file_open(&command->memory, command->model, &command->text_file);
  if (code != EXIT_DONE) return code;
  const gguf_directory *directory = command->text_file.directory;
  if (media_text_read(directory, &command->text, &error) != WICK_OK ||
      tokenizer_create(&command->memory, directory, NULL, &command->tokenizer, &error) != WICK_OK) {
    return report_error(command->model, &error);
  }
  code = gguf_file_open(&command->memory, command->mmproj, &command->mmproj_file);
  if (code != EXIT_DONE) return code;
  const media_reader reader = gguf_file_reader(&command->mmproj_file);
  if (media_open(&command->memory, kernels_bind(), command->mmproj_file.directory, &command->text,
                 &reader, &command->options, &command->encoder, &error) != WICK_OK) {
    return report_error(command->mmproj, &error);
  }
  if (thread_pool_create(&command->memory, NULL, command->threads, &command->pool, &error) !=
      WICK_OK) {
    return report_error("media", &error);
  }
  return EXIT_DONE;
}

// ---- the prompt ----

static exit_code add_image(media_command *command, const media_part *part) {
  wick_error error;
  media_plan *plan = &command->plans[command->images];
  const image_view image = image_whole(part->rgb, part->width, part->height);
  if (media_plan_image(command->encoder, part->width, part->height, plan, &error) != WICK_OK) {
    return report_error(command->parts_path, &error);
  }
  command->keys[command->images++] = media_hash_pixels(image);
  if (media_prepare(command->encoder, plan, image, &command->prepared[command->images - 1],
                    &error) != WICK_OK ||
      media_prompt_add_plan(&command->prompt, plan, &error) != WICK_OK) {
    return report_error(command->parts_path, &error);
  }
  return EXIT_DONE;
}

static exit_code build_prompt(media_command *command) {
  wick_error error;
  const uint32_t count = command->parts.count;
  command->plans = calloc((size_t)count + 1, sizeof *command->plans);
  command->prepared = calloc((size_t)count + 1, sizeof *command->prepared);
  command->keys = calloc((size_t)count + 1, sizeof *command->keys);
  if (command->plans == NULL || command->prepared == NULL || command->keys == NULL) {
    report("out of memory for the images");
    return EXIT_MEMORY;
  }
  wick_status status =
      media_prompt_begin(&command->memory, command->tokenizer, &command->prompt, &error);
  for (uint32_t i = 0; i < count && status == WICK_OK; i++) {
    const media_part *part = &command->parts.items[i];
    if (part->text == NULL) {
      const exit_code code = add_image(command, part);
      if (code != EXIT_DONE) return code;
    } else {
      status = media_prompt_add_text(&command->prompt, part->text, part->text_bytes, &error);
    }
  }
  if (status == WICK_OK) status = media_prompt_end(&command->prompt, &error);
  return status == WICK_OK ? EXIT_DONE : report_error(command->parts_path, &error);
}

// ---- what comes out ----

static void put_tokens(json_writer *json, const media_prompt *prompt, const prompt_chunk *chunk) {
  json_text(json, "type", "text");
  json_u64(json, "pos0", chunk->position);
  json_open(json, "tokens", '[');
  for (size_t i = 0; i < chunk->token_count; i++) {
    json_i64(json, NULL, prompt->tokens[chunk->first_token + i]);
  }
  json_close(json, '[');
}

// Positions of time, column and line for each row, and the fourth one.
static void put_positions(json_writer *json, const media_chunk *part, uint32_t first) {
  json_open(json, "pos_txy", '[');
  for (uint32_t i = 0; i < part->rows; i++) {
    json_open(json, NULL, '[');
    json_u64(json, NULL, part->counts_rows ? first + i : first);
    json_u64(json, NULL, first + (part->counts_rows ? i : i % part->across));
    json_u64(json, NULL, first + (part->counts_rows ? i : i / part->across));
    json_close(json, '[');
  }
  json_close(json, '[');
  json_open(json, "pos_z", '[');
  for (uint32_t i = 0; i < part->rows; i++) json_u64(json, NULL, part->counts_rows ? first + i : 0);
  json_close(json, '[');
}

// The rows depend on the encoder and the pixels of the image alone.
static void put_key(json_writer *json, const media_command *command, uint32_t image) {
  static const char DIGITS[] = "0123456789abcdef";
  char text[16];
  const uint64_t key = command->keys[image] ^ media_fingerprint(command->encoder);
  for (int i = 0; i < 16; i++) text[i] = DIGITS[key >> (60 - 4 * i) & 15];
  json_string(json, "key", text, sizeof text);
}

static void put_image(json_writer *json, const media_command *command, const prompt_chunk *chunk) {
  const media_chunk *part = &command->plans[chunk->image].chunks[chunk->chunk];
  json_text(json, "type", "image");
  json_u64(json, "pos0", chunk->position);
  json_u64(json, "n_tokens", part->rows);
  json_u64(json, "n_pos", part->positions);
  json_u64(json, "non_causal", part->is_non_causal);
  if (command->text.has_axes) put_positions(json, part, chunk->position);
  json_u64(json, "nx", part->across);
  json_u64(json, "ny", part->down);
  json_u64(json, "n_embd", media_row_width(command->encoder));
  json_u64(json, "width", part->width);
  json_u64(json, "height", part->height);
  json_u64(json, "macs", part->macs);
  put_key(json, command, chunk->image);
}

static exit_code print_chunks(const media_command *command) {
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '[');
  for (uint32_t i = 0; i < command->prompt.count; i++) {
    const prompt_chunk *chunk = &command->prompt.chunks[i];
    json_open(&json, NULL, '{');
    if (chunk->is_rows) {
      put_image(&json, command, chunk);
    } else {
      put_tokens(&json, &command->prompt, chunk);
    }
    json_close(&json, '{');
  }
  json_close(&json, '[');
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

static exit_code write_pixels(const media_command *command) {
  output_file file = {.path = command->pixels_out};
  for (uint32_t i = 0; i < command->prompt.count; i++) {
    const prompt_chunk *chunk = &command->prompt.chunks[i];
    if (!chunk->is_rows) continue;
    const image_view view = media_chunk_pixels(&command->plans[chunk->image],
                                               &command->prepared[chunk->image], chunk->chunk);
    for (uint32_t y = 0; y < view.height; y++) {
      output_file_write(&file, view.rgb + y * view.stride_bytes, (size_t)view.width * 3);
    }
  }
  return output_file_end(&file, EXIT_DONE);
}

static wick_status encode(const media_command *command, const prompt_chunk *chunk, float *rows,
                          wick_error *error) {
  media_encoding *encoding;
  bool is_done = false;
  wick_status status = media_encode_begin(command->encoder, &command->plans[chunk->image],
                                          &command->prepared[chunk->image], chunk->chunk,
                                          command->pool, command->threads, rows, &encoding, error);
  while (status == WICK_OK && !is_done) status = media_encode_step(encoding, &is_done, error);
  media_encode_end(encoding);
  return status;
}

static exit_code write_rows(media_command *command) {
  output_file file = {.path = command->out};
  wick_error error;
  exit_code code = EXIT_DONE;
  for (uint32_t i = 0; i < command->prompt.count && code == EXIT_DONE; i++) {
    const prompt_chunk *chunk = &command->prompt.chunks[i];
    if (!chunk->is_rows) continue;
    const uint64_t values = (uint64_t)media_row_width(command->encoder) *
                            command->plans[chunk->image].chunks[chunk->chunk].rows;
    float *rows = memory_alloc_wide(&command->memory, values * sizeof *rows);
    if (rows == NULL) {
      report("out of memory for the rows of an image");
      code = EXIT_MEMORY;
    } else if (encode(command, chunk, rows, &error) != WICK_OK) {
      code = report_error(command->mmproj, &error);
    } else {
      output_file_write(&file, rows, (size_t)(values * sizeof *rows));
    }
    memory_free(&command->memory, rows);
  }
  return output_file_end(&file, code);
}

// ---- the command ----

static exit_code run(media_command *command) {
  exit_code code = open_models(command);
  if (code == EXIT_DONE) {
    code = media_parts_read(&command->memory, command->parts_path, &command->parts);
  }
  if (code == EXIT_DONE) code = build_prompt(command);
  if (code == EXIT_DONE && command->pixels_out != NULL) code = write_pixels(command);
  if (code == EXIT_DONE && command->out != NULL) code = write_rows(command);
  if (code == EXIT_DONE && command->is_json) code = print_chunks(command);
  return code;
}

static void close_all(media_command *command) {
  media_prompt_free(&command->prompt);
  for (uint32_t i = 0; i < command->images; i++) {
    media_prepared_free(command->encoder, &command->prepared[i]);
    media_plan_free(command->encoder, &command->plans[i]);
  }
  free(command->keys);
  free(command->prepared);
  free(command->plans);
  media_parts_free(&command->parts);
  thread_pool_destroy(command->pool);
  media_close(command->encoder);
  tokenizer_destroy(command->tokenizer);
  gguf_file_close(&command->mmproj_file);
  gguf_file_close(&command->text_file);
}

exit_code command_media(int argc, char **argv) {
  media_command command = {.threads = 1};
  const args_option options[] = {
      args_string("--mmproj", &command.mmproj, "FILE", "the file of the encoder"),
      args_string("--parts", &command.parts_path, "FILE",
                  "the prompt: a JSON array of {\"text\"} and {\"image\"}"),
      args_string("--out", &command.out, "FILE", "write the rows of every image, float32"),
      args_string("--pixels", &command.pixels_out, "FILE",
                  "write the resized images that are encoded, RGB"),
      args_flag("--json", &command.is_json, "print the chunks of the prompt"),
      args_flag("--published", &command.options.follows_publication,
                "follow the published models where llama.cpp differs"),
      args_u32("--threads", &command.threads, "N", 1, WICK_THREADS_MAX, "threads (default: 1)"),
  };
  const args_spec spec = {
      "wick media MODEL --mmproj FILE --parts FILE.json [--out FILE] [--json] [options]",
      "Encodes the images of a prompt. Images are PPM files (P6), or raw RGB with \"width\" and "
      "\"height\".",
      options, sizeof options / sizeof options[0], 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const args_result parsed = args_parse(&spec, argc, argv, model);
  if (parsed != ARGS_OK) return parsed == ARGS_HELP ? output_end() : EXIT_USAGE;
  if (command.mmproj == NULL || command.parts_path == NULL) {
    report("%s is missing ('wick media --help')", command.mmproj == NULL ? "--mmproj" : "--parts");
    return EXIT_USAGE;
  }
  command.model = model[0];
  memory_init(&command.memory, 0, platform_alloc, platform_free);
  const exit_code code = run(&command);
  close_all(&command);
  return code;
}

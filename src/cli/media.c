// cli/media.c — images and recordings of a prompt, encoded for a text model.
#include "cli/media.h"

#include <stdlib.h>

#include "base/json.h"
#include "cli/args.h"
#include "media/prompt.h"
#include "platform/platform.h"

typedef struct media_item {
  const media_model *encoder;
  media_plan plan;
  media_prepared prepared;
  uint64_t key;
} media_item;

typedef struct media_command {
  const char *model, *mmproj, *parts_path, *out, *inputs_out;
  bool is_json;
  uint32_t threads;
  media_options options;
  memory_gate memory;
  gguf_file text_file, mmproj_file;
  media_text text;
  tokenizer *tokenizer;
  media_model *encoders[2];  // by media_kind; NULL: the file has none
  thread_pool *pool;
  media_parts parts;
  media_item *items;  // images and recordings
  uint32_t item_count;
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
  bool has[2];
  if (media_find_encoders(command->mmproj_file.directory, &has[MEDIA_IMAGES], &has[MEDIA_AUDIO],
                          &error) != WICK_OK) {
    return report_error(command->mmproj, &error);
  }
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO; kind++) {
    if (has[kind] && media_open(&command->memory, kernels_bind(), command->mmproj_file.directory,
                                (media_kind)kind, &command->text, &reader, &command->options,
                                &command->encoders[kind], &error) != WICK_OK) {
      return report_error(command->mmproj, &error);
    }
  }
  if (thread_pool_create(&command->memory, NULL, command->threads, &command->pool, &error) !=
      WICK_OK) {
    return report_error("media", &error);
  }
  return EXIT_DONE;
}

// ---- the prompt ----

static wick_status plan_item(const media_part *part, media_item *item, wick_error *error) {
  if (part->samples != NULL) {
    item->key = media_hash_samples(part->samples, part->sample_count);
    const wick_status status =
        media_plan_audio(item->encoder, part->sample_count, &item->plan, error);
    if (status != WICK_OK) return status;
    return media_prepare_audio(item->encoder, &item->plan, part->samples, &item->prepared, error);
  }
  const image_view image = image_whole(part->rgb, part->width, part->height);
  item->key = media_hash_pixels(image);
  const wick_status status =
      media_plan_image(item->encoder, part->width, part->height, &item->plan, error);
  if (status != WICK_OK) return status;
  return media_prepare(item->encoder, &item->plan, image, &item->prepared, error);
}

static exit_code add_item(media_command *command, const media_part *part) {
  wick_error error;
  const bool is_audio = part->samples != NULL;
  media_item *item = &command->items[command->item_count];
  item->encoder = command->encoders[is_audio ? MEDIA_AUDIO : MEDIA_IMAGES];
  if (item->encoder == NULL) {
    report("%s: no encoder for %s", command->mmproj, is_audio ? "audio" : "images");
    return EXIT_USAGE;
  }
  command->item_count++;
  if (plan_item(part, item, &error) != WICK_OK ||
      media_prompt_add_plan(&command->prompt, &item->plan, &error) != WICK_OK) {
    return report_error(command->parts_path, &error);
  }
  return EXIT_DONE;
}

static exit_code build_prompt(media_command *command) {
  wick_error error;
  const uint32_t count = command->parts.count;
  command->items = calloc((size_t)count + 1, sizeof *command->items);
  if (command->items == NULL) {
    report("out of memory for the images");
    return EXIT_MEMORY;
  }
  wick_status status =
      media_prompt_begin(&command->memory, command->tokenizer, &command->prompt, &error);
  for (uint32_t i = 0; i < count && status == WICK_OK; i++) {
    const media_part *part = &command->parts.items[i];
    if (part->text == NULL) {
      const exit_code code = add_item(command, part);
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
static void put_key(json_writer *json, const media_item *item) {
  static const char DIGITS[] = "0123456789abcdef";
  char text[16];
  const uint64_t key = item->key ^ media_fingerprint(item->encoder);
  for (int i = 0; i < 16; i++) text[i] = DIGITS[key >> (60 - 4 * i) & 15];
  json_string(json, "key", text, sizeof text);
}

static void put_media(json_writer *json, const media_command *command, const prompt_chunk *chunk) {
  const media_item *item = &command->items[chunk->image];
  const media_chunk *part = &item->plan.chunks[chunk->chunk];
  json_text(json, "type", part->is_audio ? "audio" : "image");
  json_u64(json, "pos0", chunk->position);
  json_u64(json, "n_tokens", part->rows);
  json_u64(json, "n_pos", part->positions);
  json_u64(json, "non_causal", part->is_non_causal);
  if (command->text.has_axes) put_positions(json, part, chunk->position);
  json_u64(json, "nx", part->across);
  json_u64(json, "ny", part->down);
  json_u64(json, "n_embd", media_row_width(item->encoder));
  json_u64(json, "width", part->width);
  json_u64(json, "height", part->height);
  json_u64(json, "macs", part->macs);
  put_key(json, item);
}

static exit_code print_chunks(const media_command *command) {
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '[');
  for (uint32_t i = 0; i < command->prompt.count; i++) {
    const prompt_chunk *chunk = &command->prompt.chunks[i];
    json_open(&json, NULL, '{');
    if (chunk->is_rows) {
      put_media(&json, command, chunk);
    } else {
      put_tokens(&json, &command->prompt, chunk);
    }
    json_close(&json, '{');
  }
  json_close(&json, '[');
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

// Resized images as RGB, spectra as float32 [bands][frames].
static exit_code write_inputs(const media_command *command) {
  output_file file = {.path = command->inputs_out};
  for (uint32_t i = 0; i < command->prompt.count; i++) {
    const prompt_chunk *chunk = &command->prompt.chunks[i];
    if (!chunk->is_rows) continue;
    const media_item *item = &command->items[chunk->image];
    const media_chunk *part = &item->plan.chunks[chunk->chunk];
    if (part->is_audio) {
      const float *spectrum = media_chunk_spectrum(&item->plan, &item->prepared, chunk->chunk);
      output_file_write(&file, spectrum, (size_t)part->width * part->height * sizeof *spectrum);
      continue;
    }
    const image_view view = media_chunk_pixels(&item->plan, &item->prepared, chunk->chunk);
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
  const media_item *item = &command->items[chunk->image];
  wick_status status = media_encode_begin(item->encoder, &item->plan, &item->prepared, chunk->chunk,
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
    const media_item *item = &command->items[chunk->image];
    const uint64_t values =
        (uint64_t)media_row_width(item->encoder) * item->plan.chunks[chunk->chunk].rows;
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
  if (code == EXIT_DONE && command->inputs_out != NULL) code = write_inputs(command);
  if (code == EXIT_DONE && command->out != NULL) code = write_rows(command);
  if (code == EXIT_DONE && command->is_json) code = print_chunks(command);
  return code;
}

static void close_all(media_command *command) {
  media_prompt_free(&command->prompt);
  for (uint32_t i = 0; i < command->item_count; i++) {
    media_item *item = &command->items[i];
    media_prepared_free(item->encoder, &item->prepared);
    media_plan_free(item->encoder, &item->plan);
  }
  free(command->items);
  media_parts_free(&command->parts);
  thread_pool_destroy(command->pool);
  media_close(command->encoders[MEDIA_IMAGES]);
  media_close(command->encoders[MEDIA_AUDIO]);
  tokenizer_destroy(command->tokenizer);
  gguf_file_close(&command->mmproj_file);
  gguf_file_close(&command->text_file);
}

exit_code command_media(int argc, char **argv) {
  media_command command = {.threads = 1};
  const args_option options[] = {
      args_string("--mmproj", &command.mmproj, "FILE", "the file of the encoder"),
      args_string("--parts", &command.parts_path, "FILE",
                  "the prompt: a JSON array of {\"text\"}, {\"image\"} and {\"audio\"}"),
      args_string("--out", &command.out, "FILE",
                  "write the rows of all images and recordings, float32"),
      args_string("--inputs", &command.inputs_out, "FILE",
                  "write the resized images, RGB, and the spectra, float32"),
      args_flag("--json", &command.is_json, "print the chunks of the prompt"),
      args_flag("--published", &command.options.follows_publication,
                "follow the published models where llama.cpp differs"),
      args_u32("--threads", &command.threads, "N", 1, WICK_THREADS_MAX, "threads (default: 1)"),
  };
  const args_spec spec = {
      "wick media MODEL --mmproj FILE --parts FILE.json [--out FILE] [--json] [options]",
      "Encodes the images and recordings of a prompt. Images are PPM files (P6), or raw RGB with "
      "\"width\" and \"height\". Recordings are WAV files or raw float32, 16 kHz.",
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

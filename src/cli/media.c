// cli/media.c — images and recordings of a prompt, encoded for a text model.
#include "base/json.h"
#include "cli/media_input.h"
#include "cli/media_request.h"

typedef struct media_command {
  const char *parts_path, *out, *inputs_out;
  bool is_json, wants_cost;
  media_input_files files;
} media_command;

// ---- output ----

static void put_tokens(json_writer *json, const media_prompt *prompt, const prompt_chunk *chunk) {
  json_text(json, "type", "text");
  json_u64(json, "pos0", chunk->position);
  json_open(json, "tokens", '[');
  for (size_t i = 0; i < chunk->token_count; i++) {
    json_i64(json, NULL, prompt->tokens[chunk->first_token + i]);
  }
  json_close(json, '[');
}

// Writes the time, column and line positions of each row, and its fourth position.
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

// Writes the key of the rows, which depend only on the encoder and the content.
static void put_key(json_writer *json, const media_input *input, const media_item *item) {
  static const char DIGITS[] = "0123456789abcdef";
  char text[16];
  const uint64_t key = item->key ^ input->fingerprints[item->kind];
  for (int i = 0; i < 16; i++) text[i] = DIGITS[key >> (60 - 4 * i) & 15];
  json_string(json, "key", text, sizeof text);
}

static void put_media(json_writer *json, const media_input *input, const prompt_chunk *chunk) {
  const media_item *item = &input->items[chunk->image];
  const media_chunk *part = &item->plan.chunks[chunk->chunk];
  json_text(json, "type", part->is_audio ? "audio" : "image");
  json_u64(json, "pos0", chunk->position);
  json_u64(json, "n_tokens", part->rows);
  json_u64(json, "n_pos", part->positions);
  json_u64(json, "non_causal", part->is_non_causal);
  if (input->text.has_axes) put_positions(json, part, chunk->position);
  json_u64(json, "nx", part->across);
  json_u64(json, "ny", part->down);
  json_u64(json, "n_embd", input->width);
  json_u64(json, "width", part->width);
  json_u64(json, "height", part->height);
  json_u64(json, "macs", part->macs);
  put_key(json, input, item);
}

static exit_code print_chunks(const media_input *input) {
  json_writer json;
  json_begin(&json, output_text_json, NULL);
  json_open(&json, NULL, '[');
  for (uint32_t i = 0; i < input->prompt.count; i++) {
    const prompt_chunk *chunk = &input->prompt.chunks[i];
    json_open(&json, NULL, '{');
    if (chunk->is_rows) {
      put_media(&json, input, chunk);
    } else {
      put_tokens(&json, &input->prompt, chunk);
    }
    json_close(&json, '{');
  }
  json_close(&json, '[');
  output_put(OUTPUT_TEXT, "\n", 1);
  return output_end();
}

// Prints a line for each image and recording. The memory figures are for the weights, the
// preparation, the prepared data, and the encoding of one chunk.
static exit_code print_costs(const media_input *input) {
  for (uint32_t i = 0; i < input->item_count; i++) {
    const media_item *item = &input->items[i];
    const media_plan *plan = &item->plan;
    json_writer json;
    json_begin(&json, output_text_json, NULL);
    json_open(&json, NULL, '{');
    json_text(&json, "type", item->kind == MEDIA_AUDIO ? "audio" : "image");
    json_u64(&json, "chunks", plan->tiles);
    json_u64(&json, "tokens", plan->rows);
    json_u64(&json, "macs", plan->macs);
    json_u64(&json, "weight_bytes", media_weight_bytes(input->encoders[item->kind]));
    json_u64(&json, "prepare_bytes", plan->prepare_bytes + plan->resize_bytes);
    json_u64(&json, "prepared_bytes", plan->prepare_bytes);
    json_u64(&json, "encode_bytes", plan->encode_bytes);
    json_u64(&json, "row_bytes", (uint64_t)plan->rows * input->width * sizeof(float));
    json_close(&json, '{');
    output_put(OUTPUT_TEXT, "\n", 1);
  }
  return output_end();
}

static wick_status write_spectrum(media_input *input, output_file *file, const media_item *item,
                                  uint32_t chunk, wick_error *error) {
  const media_chunk *part = &item->plan.chunks[chunk];
  const uint64_t size_bytes = (uint64_t)part->width * part->height * sizeof(float);
  float *spectrum = memory_alloc_wide(&input->memory, size_bytes);
  if (spectrum == NULL) return memory_fail(&input->memory, error, "a spectrum");
  const wick_status status = media_chunk_spectrum(input->encoders[MEDIA_AUDIO], &item->plan,
                                                  &item->prepared, chunk, spectrum, error);
  if (status == WICK_OK) output_file_write(file, spectrum, (size_t)size_bytes);
  memory_free(&input->memory, spectrum);
  return status;
}

static void write_pixels(output_file *file, const media_item *item, uint32_t chunk) {
  const image_view view = media_chunk_pixels(&item->plan, &item->prepared, chunk);
  for (uint32_t y = 0; y < view.height; y++) {
    output_file_write(file, view.rgb + y * view.stride_bytes, (size_t)view.width * 3);
  }
}

// Writes resized images as RGB, and spectra as float32 [bands][frames].
static exit_code write_inputs(media_input *input, const char *path) {
  output_file file = {.path = path};
  wick_error error;
  exit_code code = EXIT_DONE;
  for (uint32_t i = 0; i < input->prompt.count && code == EXIT_DONE; i++) {
    const prompt_chunk *chunk = &input->prompt.chunks[i];
    if (!chunk->is_rows) continue;
    media_item *item = &input->items[chunk->image];
    wick_status status = media_input_prepare(input, item, &error);
    if (status == WICK_OK && item->kind == MEDIA_AUDIO) {
      status = write_spectrum(input, &file, item, chunk->chunk, &error);
    } else if (status == WICK_OK) {
      write_pixels(&file, item, chunk->chunk);
    }
    if (status != WICK_OK) code = report_error(input->mmproj, &error);
  }
  return output_file_end(&file, code);
}

static exit_code write_rows(const media_input *input, const char *path) {
  output_file file = {.path = path};
  for (uint32_t i = 0; i < input->item_count; i++) {
    const media_item *item = &input->items[i];
    output_file_write(&file, item->rows, (size_t)item->plan.rows * input->width * sizeof(float));
  }
  return output_file_end(&file, EXIT_DONE);
}

// ---- the command ----

static exit_code run(const media_command *command, media_input *input) {
  exit_code code = media_input_open(input, &command->files);
  if (code == EXIT_DONE) {
    code = media_parts_read(&input->memory, command->parts_path, &input->parts);
  }
  if (code == EXIT_DONE) code = media_input_plan(input);
  if (code == EXIT_DONE && command->wants_cost) return print_costs(input);
  if (code == EXIT_DONE && command->inputs_out != NULL) {
    code = write_inputs(input, command->inputs_out);
  }
  if (code == EXIT_DONE && command->out != NULL) {
    code = media_input_encode(input);
    if (code == EXIT_DONE) code = write_rows(input, command->out);
  }
  return code == EXIT_DONE && command->is_json ? print_chunks(input) : code;
}

exit_code command_media(int argc, char **argv) {
  media_command command = {.files = {.threads = 1}};
  args_option options[7 + MEDIA_LIMITS_MAX] = {
      args_string("--mmproj", &command.files.mmproj, "FILE", "load the encoder from FILE"),
      args_string("--parts", &command.parts_path, "FILE",
                  "read the prompt, a JSON array of {\"text\"}, {\"image\"} and {\"audio\"}"),
      args_string("--out", &command.out, "FILE",
                  "write the rows of all images and recordings as float32"),
      args_string("--inputs", &command.inputs_out, "FILE",
                  "write the resized images as RGB and the spectra as float32"),
      args_flag("--json", &command.is_json, "print the chunks of the prompt"),
      args_flag("--cost", &command.wants_cost,
                "print the costs of images and recordings as JSON lines, without encoding"),
      args_u32("--threads", &command.files.threads, "N", 1, WICK_THREADS_MAX,
               "use N threads (default: 1)"),
  };
  const size_t count = 7 + media_limits_list(&command.files.options, options + 7);
  const args_spec spec = {
      "wick media MODEL --mmproj FILE --parts FILE.json [--out FILE] [--json] [options]",
      "Encodes the images and recordings of a prompt. Images are PPM files (P6), or raw RGB with "
      "\"width\" and \"height\". Recordings are WAV files or raw float32, 16 kHz.",
      options, count, 1};
  const char *model[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, model);
  if (parsed != EXIT_NOT_YET) return parsed;
  if (command.files.mmproj == NULL || command.parts_path == NULL) {
    report("%s is missing ('wick media --help')",
           command.files.mmproj == NULL ? "--mmproj" : "--parts");
    return EXIT_USAGE;
  }
  command.files.model = model[0];
  media_input input = {0};
  const exit_code code = run(&command, &input);
  media_input_close(&input);
  return code;
}

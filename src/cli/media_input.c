// cli/media_input.c — see media_input.h.
#include "cli/media_input.h"

#include <stdlib.h>

#include "platform/platform.h"

// ---- opening ----

static exit_code open_vocabulary(media_input *input, const char *pre_tokenizer) {
  wick_error error;
  const exit_code code = gguf_file_open(&input->memory, input->model, &input->text_file);
  if (code != EXIT_DONE) return code;
  const gguf_directory *directory = input->text_file.directory;
  wick_status status = media_text_read(directory, &input->text, &error);
  if (status == WICK_OK) {
    status = tokenizer_create(&input->memory, directory, pre_tokenizer, &input->tokenizer, &error);
  }
  return status == WICK_OK ? EXIT_DONE : report_error(input->model, &error);
}

static exit_code open_encoders(media_input *input, const media_options *options) {
  wick_error error;
  const exit_code code = gguf_file_open(&input->memory, input->mmproj, &input->mmproj_file);
  if (code != EXIT_DONE) return code;
  const gguf_directory *directory = input->mmproj_file.directory;
  const media_reader reader = gguf_file_reader(&input->mmproj_file);
  bool has[2];
  wick_status status =
      media_find_encoders(directory, &has[MEDIA_IMAGES], &has[MEDIA_AUDIO], &error);
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO && status == WICK_OK; kind++) {
    media_model **encoder = &input->encoders[kind];
    if (!has[kind]) continue;
    status = media_open(&input->memory, kernels_bind(), directory, (media_kind)kind, &input->text,
                        &reader, options, encoder, &error);
    if (status == WICK_OK) input->fingerprints[kind] = media_fingerprint(*encoder);
  }
  return status == WICK_OK ? EXIT_DONE : report_error(input->mmproj, &error);
}

exit_code media_input_open(media_input *input, const media_input_files *files) {
  wick_error error;
  input->model = files->model;
  input->mmproj = files->mmproj;
  input->threads = files->threads;
  memory_init(&input->memory, 0, platform_alloc, platform_free);
  exit_code code = open_vocabulary(input, files->pre_tokenizer);
  if (code == EXIT_DONE) code = open_encoders(input, &files->options);
  if (code == EXIT_DONE &&
      thread_pool_create(&input->memory, NULL, files->threads, &input->pool, &error) != WICK_OK) {
    code = report_error("threads", &error);
  }
  return code;
}

// Frees everything that only encoding uses.
static void free_encoders(media_input *input) {
  thread_pool_destroy(input->pool);
  input->pool = NULL;
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO; kind++) {
    media_close(input->encoders[kind]);
    input->encoders[kind] = NULL;
  }
  gguf_file_close(&input->mmproj_file);
  media_parts_free(&input->parts);
}

static void free_prepared(media_input *input, media_item *item) {
  media_prepared_free(&input->memory, &item->prepared);
  item->is_prepared = false;
}

void media_input_close(media_input *input) {
  for (uint32_t i = 0; i < input->item_count; i++) {
    media_item *item = &input->items[i];
    free_prepared(input, item);
    media_plan_free(&input->memory, &item->plan);
    memory_free(&input->memory, item->rows);
  }
  free(input->items);
  media_prompt_free(&input->prompt);
  free_encoders(input);
  tokenizer_destroy(input->tokenizer);
  gguf_file_close(&input->text_file);
}

// ---- plans ----

static exit_code plan_item(media_input *input, const media_part *part) {
  wick_error error;
  wick_status status;
  media_item *item = &input->items[input->item_count];
  *item = (media_item){.kind = part->samples != NULL ? MEDIA_AUDIO : MEDIA_IMAGES, .part = part};
  const media_model *encoder = input->encoders[item->kind];
  if (encoder == NULL) {
    report("%s: no encoder for %s", input->mmproj, item->kind == MEDIA_AUDIO ? "audio" : "images");
    return EXIT_USAGE;
  }
  input->width = media_row_width(encoder);
  input->item_count++;
  if (item->kind == MEDIA_AUDIO) {
    item->key = media_hash_samples(part->samples, part->sample_count);
    status = media_plan_audio(encoder, part->sample_count, &item->plan, &error);
  } else {
    item->key = media_hash_pixels(image_whole(part->rgb, part->width, part->height));
    status = media_plan_image(encoder, part->width, part->height, &item->plan, &error);
  }
  if (status != WICK_OK) return report_error(input->mmproj, &error);
  status = media_prompt_add_plan(&input->prompt, &item->plan, &error);
  return status == WICK_OK ? EXIT_DONE : report_error(input->model, &error);
}

exit_code media_input_plan(media_input *input) {
  wick_error error;
  exit_code code = EXIT_DONE;
  const media_parts *parts = &input->parts;
  media_prompt *prompt = &input->prompt;
  input->items = calloc((size_t)parts->count + 1, sizeof *input->items);
  if (input->items == NULL) {
    report("out of memory for the images");
    return EXIT_MEMORY;
  }
  wick_status status = media_prompt_begin(&input->memory, input->tokenizer, prompt, &error);
  for (uint32_t i = 0; i < parts->count && status == WICK_OK && code == EXIT_DONE; i++) {
    const media_part *part = &parts->items[i];
    if (part->text == NULL) {
      code = plan_item(input, part);
    } else {
      status = media_prompt_add_text(prompt, part->text, part->text_bytes, &error);
    }
  }
  if (status == WICK_OK) status = media_prompt_end(prompt, &error);
  return status == WICK_OK ? code : report_error(input->model, &error);
}

// ---- rows ----

wick_status media_input_prepare(media_input *input, media_item *item, wick_error *error) {
  const media_model *encoder = input->encoders[item->kind];
  const media_part *part = item->part;
  if (item->is_prepared) return WICK_OK;
  const wick_status status =
      item->kind == MEDIA_AUDIO
          ? media_prepare_audio(encoder, &item->plan, part->samples, &item->prepared, error)
          : media_prepare(encoder, &item->plan, image_whole(part->rgb, part->width, part->height),
                          &item->prepared, error);
  item->is_prepared = status == WICK_OK;
  return status;
}

static float *rows_at(const media_input *input, const media_item *item, uint32_t chunk) {
  size_t rows = 0;
  for (uint32_t i = 0; i < chunk; i++) {
    if (!item->plan.chunks[i].is_text) rows += item->plan.chunks[i].rows;
  }
  return item->rows + rows * input->width;
}

const float *media_input_rows(const media_input *input, const media_item *item, uint32_t chunk) {
  return rows_at(input, item, chunk);
}

static wick_status encode_chunk(media_input *input, const media_item *item, uint32_t chunk,
                                wick_error *error) {
  media_encoding *encoding = NULL;
  bool is_done = false;
  wick_status status = media_encode_begin(input->encoders[item->kind], &item->plan, &item->prepared,
                                          chunk, input->pool, input->threads,
                                          rows_at(input, item, chunk), &encoding, error);
  while (status == WICK_OK && !is_done) status = media_encode_step(encoding, &is_done, error);
  media_encode_end(encoding);
  return status;
}

static wick_status encode_item(media_input *input, media_item *item, wick_error *error) {
  const uint64_t values = (uint64_t)item->plan.rows * input->width;
  item->rows = memory_alloc_wide(&input->memory, values * sizeof *item->rows);
  if (item->rows == NULL) return memory_fail(&input->memory, error, "the rows of an image");
  wick_status status = media_input_prepare(input, item, error);
  for (uint32_t i = 0; i < item->plan.count && status == WICK_OK; i++) {
    if (!item->plan.chunks[i].is_text) status = encode_chunk(input, item, i, error);
  }
  free_prepared(input, item);
  item->part = NULL;
  return status;
}

exit_code media_input_encode(media_input *input) {
  wick_error error;
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < input->item_count && status == WICK_OK; i++) {
    status = encode_item(input, &input->items[i], &error);
  }
  free_encoders(input);
  return status == WICK_OK ? EXIT_DONE : report_error(input->mmproj, &error);
}

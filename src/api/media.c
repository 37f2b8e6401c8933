// api/media.c — the functions of wick.h for images and audio: the encoders of an mmproj file, and
// the items that they encode. Builds without src/media do not include this file.
#include <string.h>

#include "api/media_items.h"
#include "api/media_strips.h"
#include "base/hash.h"

enum { MEDIA_BYTES_USUAL = 64 << 20 };

// ---- the file ----

typedef struct file_bytes {
  const uint8_t *bytes;
  size_t size_bytes;
} file_bytes;

static size_t read_memory(void *context, uint32_t file, uint64_t offset_bytes, void *bytes,
                          size_t size_bytes) {
  const file_bytes *from = context;
  (void)file;
  if (offset_bytes >= from->size_bytes) return 0;
  const size_t left = from->size_bytes - (size_t)offset_bytes;
  const size_t count = size_bytes < left ? size_bytes : left;
  memcpy(bytes, from->bytes + offset_bytes, count);
  return count;
}

static bool read_at(void *context, uint64_t offset_bytes, void *out, size_t size_bytes) {
  const wick_reader *reader = context;
  for (size_t done = 0; done < size_bytes;) {
    const size_t got = reader->read(reader->context, 0, offset_bytes + done, (uint8_t *)out + done,
                                    size_bytes - done);
    if (got == 0 || got > size_bytes - done) return false;
    done += got;
  }
  return true;
}

static wick_status read_directory(const wick_reader *reader, gguf_directory *directory,
                                  wick_error *error) {
  uint64_t at = 0;
  while (!gguf_directory_is_complete(directory)) {
    size_t used;
    const size_t got = reader->read(reader->context, 0, at, reader->piece, reader->piece_bytes);
    if (got > reader->piece_bytes) {
      return fail_with(error, WICK_E_IO, at, "the mmproj file cannot be read");
    }
    if (got == 0) return gguf_directory_finish(directory, error);
    const wick_status status = gguf_directory_feed(directory, reader->piece, got, &used, error);
    if (status != WICK_OK) return status;
    at += got;
  }
  return WICK_OK;
}

static void close_items(wick_engine *engine);

static media_options options_of(const wick_engine *engine) {
  return (media_options){.follows_llama_cpp = engine->config.media_like_llama_cpp,
                         .max_tiles = engine->config.media_tiles_max,
                         .max_image_tokens = engine->config.media_rows_max};
}

static uint64_t cache_bytes_of(const wick_engine *engine) {
  const uint64_t given = engine->config.media_bytes_max;
  return given == 0 ? (uint64_t)MEDIA_BYTES_USUAL : given;
}

// Reads the text model's settings; an mmproj file that is inspected without a model is not compared
// with them.
static wick_status read_text(const wick_engine *engine, media_items *items, wick_error *error) {
  if (engine->model != NULL) return media_text_read(engine_directory(engine), &items->text, error);
  items->text = (media_text){0};
  return WICK_OK;
}

static uint32_t context_of(const wick_engine *engine) {
  enum { CONTEXT_USUAL = 4096 };
  wick_plan plan;
  return wick_memory_plan(engine, &plan, NULL) == WICK_OK ? plan.context_tokens
                                                          : (uint32_t)CONTEXT_USUAL;
}

static wick_status check_room(const wick_engine *engine, uint64_t weights_bytes,
                              wick_error *error) {
  const uint64_t limit = wick_engine_memory_limit(engine), used = engine->memory.bytes_now;
  if (limit == 0 || used + weights_bytes <= limit || engine->config.directory_only) return WICK_OK;
  return fail_with(
      error, WICK_E_NOMEM, WICK_NO_OFFSET,
      "memory: the mmproj file's encoders take %llu bytes, and %llu of %llu are in use",
      (unsigned long long)weights_bytes, (unsigned long long)used, (unsigned long long)limit);
}

// Plans the memory before any weights are read.
static wick_status measure_encoders(wick_engine *engine, const gguf_directory *directory,
                                    media_items *items, wick_error *error) {
  const media_options options = options_of(engine);
  wick_media_memory *plan = &items->base.plan;
  bool has[2];
  wick_status status = media_find_encoders(directory, &has[MEDIA_IMAGES], &has[MEDIA_AUDIO], error);
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO && status == WICK_OK; kind++) {
    media_memory one;
    if (!has[kind]) continue;
    status =
        media_measure(&engine->memory, engine->kernels, directory, (media_kind)kind, &items->text,
                      &options, context_of(engine), engine->config.threads, &one, error);
    plan->weights_bytes += one.weight_bytes;
    if (one.prepare_bytes > plan->prepare_bytes) plan->prepare_bytes = one.prepare_bytes;
    if (one.encode_bytes > plan->encode_bytes) plan->encode_bytes = one.encode_bytes;
  }
  plan->cache_bytes = cache_bytes_of(engine);
  plan->total_bytes =
      plan->weights_bytes + plan->cache_bytes +
      (plan->prepare_bytes > plan->encode_bytes ? plan->prepare_bytes : plan->encode_bytes);
  return status == WICK_OK ? check_room(engine, plan->weights_bytes, error) : status;
}

static wick_status open_encoders(wick_engine *engine, const wick_reader *reader,
                                 const gguf_directory *directory, media_items *items,
                                 wick_error *error) {
  const media_reader from = {read_at, (void *)(uintptr_t)reader};
  const media_options options = options_of(engine);
  bool has[2];
  wick_status status = media_find_encoders(directory, &has[MEDIA_IMAGES], &has[MEDIA_AUDIO], error);
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO && status == WICK_OK; kind++) {
    if (!has[kind]) continue;
    status = media_open(&engine->memory, engine->kernels, directory, (media_kind)kind, &items->text,
                        &from, &options, &items->encoders[kind], error);
  }
  return status;
}

static wick_status check_load(const wick_engine *engine, const wick_reader *reader,
                              wick_error *error) {
  const bool has_model = engine->model != NULL || engine->config.directory_only;
  if (!has_model || engine_directory(engine) == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                     "an mmproj file must be loaded after the directory of the model");
  }
  if (engine->media != NULL) {
    return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "the engine already has an mmproj file");
  }
  if (reader->piece_bytes == 0) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the reader's buffer is empty");
  }
  return WICK_OK;
}

wick_status wick_media_load_from(wick_engine *engine, const wick_reader *reader,
                                 wick_error *error) {
  gguf_directory *directory = NULL;
  wick_status status = check_load(engine, reader, error);
  if (status != WICK_OK) return status;
  media_items *items = memory_alloc_zeroed(&engine->memory, sizeof *items);
  if (items == NULL) return memory_fail(&engine->memory, error, "encoders of images");
  items->base = (engine_media){.close = close_items, .find = media_items_find_rows};
  engine->media = &items->base;
  status = gguf_directory_create(&engine->memory, &directory, error);
  if (status == WICK_OK) status = read_directory(reader, directory, error);
  if (status == WICK_OK) status = read_text(engine, items, error);
  if (status == WICK_OK) status = measure_encoders(engine, directory, items, error);
  if (status == WICK_OK && !engine->config.directory_only) {
    status = open_encoders(engine, reader, directory, items, error);
  }
  gguf_directory_destroy(directory);
  if (status != WICK_OK) close_items(engine);
  return status;
}

wick_status wick_media_load_bytes(wick_engine *engine, const void *bytes, size_t size_bytes,
                                  wick_error *error) {
  uint8_t piece[4096];
  file_bytes from = {bytes, size_bytes};
  const wick_reader reader = {&from, read_memory, piece, sizeof piece};
  return wick_media_load_from(engine, &reader, error);
}

wick_status wick_media_get_memory(const wick_engine *engine, wick_media_memory *memory,
                                  wick_error *error) {
  if (engine->media == NULL) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET,
                     "the model is loaded without an mmproj file");
  }
  *memory = engine->media->plan;
  return WICK_OK;
}

bool wick_media_has(const wick_engine *engine, wick_media_kind kind) {
  return engine->media != NULL && items_of(engine)->encoders[kind] != NULL;
}

// ---- items ----

media_item *media_item_find(const wick_engine *engine, uint32_t id) {
  const media_items *items = engine->media == NULL ? NULL : items_of(engine);
  for (uint32_t i = 0; items != NULL && i < items->count; i++) {
    if (items->list[i]->id == id) return items->list[i];
  }
  return NULL;
}

static wick_status unknown(uint32_t id, wick_error *error) {
  return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "no image or recording has the number %u",
                   id);
}

static void free_prepared(wick_engine *engine, media_item *item) {
  media_prepared_free(&engine->memory, &item->prepared);
  memory_free(&engine->memory, item->samples);
  memory_free(&engine->memory, item->pixels);
  item->samples = NULL;
  item->pixels = NULL;
}

static void free_item(wick_engine *engine, media_item *item) {
  memory_gate *memory = &engine->memory;
  media_encode_end(item->encoding);
  for (uint32_t i = 0; item->spans != NULL && i < item->plan.count; i++) {
    media_span_release(memory, item->spans[i]);
  }
  free_prepared(engine, item);
  media_plan_free(memory, &item->plan);
  memory_free(memory, item->heads);
  memory_free(memory, item->spans);
  memory_free(memory, item->tokens);
  memory_free(memory, item);
}

static void close_items(wick_engine *engine) {
  media_items *items = items_of(engine);
  for (uint32_t i = 0; i < items->count; i++) free_item(engine, items->list[i]);
  for (int kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO; kind++) media_close(items->encoders[kind]);
  memory_free(&engine->memory, items->list);
  memory_free(&engine->memory, items->prompt);
  memory_free(&engine->memory, items);
  engine->media = NULL;
}

static uint64_t rows_bytes(const media_items *items, const media_item *item) {
  return (uint64_t)item->plan.rows * media_row_width(items->encoders[item->kind]) * sizeof(float);
}

static void drop_item(wick_engine *engine, uint32_t index) {
  media_items *items = items_of(engine);
  free_item(engine, items->list[index]);
  items->count--;
  memmove(&items->list[index], &items->list[index + 1],
          (items->count - index) * sizeof *items->list);
}

// Drops unused items, the least recently used first, until the remaining ones fit.
static void keep_within_budget(wick_engine *engine) {
  const media_items *items = items_of(engine);
  const uint64_t limit = cache_bytes_of(engine);
  for (;;) {
    uint64_t sum = 0;
    uint32_t oldest = UINT32_MAX;
    for (uint32_t i = 0; i < items->count; i++) {
      const media_item *item = items->list[i];
      if (item->users != 0) continue;
      sum += rows_bytes(items, item);
      if (oldest == UINT32_MAX || item->turn < items->list[oldest]->turn) oldest = i;
    }
    if (sum <= limit) return;
    drop_item(engine, oldest);
  }
}

wick_status wick_media_remove(wick_engine *engine, uint32_t media) {
  media_item *item = media_item_find(engine, media);
  if (item == NULL || item->users == 0) return WICK_E_ARG;
  item->turn = ++items_of(engine)->turns;
  if (--item->users != 0) return WICK_OK;
  if (!media_item_is_ready(item)) {
    const media_items *items = items_of(engine);
    for (uint32_t i = 0; i < items->count; i++) {
      if (items->list[i] == item) drop_item(engine, i);
    }
  }
  keep_within_budget(engine);
  return WICK_OK;
}

// ---- plans ----

// The content to encode: an image's pixels, or samples.
typedef struct content {
  media_kind kind;
  uint32_t width, height;
  uint64_t samples;
  const uint8_t *rgb;
  const float *values;
} content;

static wick_status find_encoder(const wick_engine *engine, media_kind kind, media_model **out,
                                wick_error *error) {
  *out = engine->media == NULL ? NULL : items_of(engine)->encoders[kind];
  if (*out != NULL) return WICK_OK;
  return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "%s: %s",
                   kind == MEDIA_AUDIO ? "audio" : "image",
                   engine->media == NULL ? "the model is loaded without an mmproj file"
                   : kind == MEDIA_AUDIO ? "the mmproj file has no encoder for audio"
                                         : "the mmproj file has no encoder for images");
}

static wick_status check_batch(const wick_engine *engine, const media_item *item,
                               wick_error *error) {
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < item->plan.count && status == WICK_OK; i++) {
    if (item->plan.chunks[i].is_text) continue;
    status = media_head_check(engine->model, engine->config.batch_tokens, &item->heads[i], error);
  }
  return status;
}

// Creates an item for some content, with its plan and tokens, but does not add it to the list.
// Returns NULL on failure.
static media_item *plan_item(wick_engine *engine, const content *from, uint64_t key,
                             wick_status *status, wick_error *error) {
  media_model *encoder;
  *status = find_encoder(engine, from->kind, &encoder, error);
  if (*status != WICK_OK) return NULL;
  media_item *item = memory_alloc_zeroed(&engine->memory, sizeof *item);
  if (item == NULL) {
    *status = memory_fail(&engine->memory, error, "an image");
    return NULL;
  }
  item->kind = from->kind;
  item->key = key;
  *status = from->kind == MEDIA_AUDIO
                ? media_plan_audio(encoder, from->samples, &item->plan, error)
                : media_plan_image(encoder, from->width, from->height, &item->plan, error);
  if (*status == WICK_OK) *status = media_item_make_tokens(engine, item, error);
  if (*status == WICK_OK) *status = check_batch(engine, item, error);
  if (*status == WICK_OK) return item;
  free_item(engine, item);
  return NULL;
}

static wick_media_info info_of(const wick_engine *engine, const media_item *item) {
  return (wick_media_info){.kind = item->kind == MEDIA_AUDIO ? WICK_MEDIA_AUDIO : WICK_MEDIA_IMAGE,
                           .tokens = item->token_count,
                           .rows = item->plan.rows,
                           .tiles = item->plan.tiles,
                           .macs = item->plan.macs,
                           .rows_bytes = rows_bytes(items_of(engine), item),
                           .encode_bytes = item->plan.prepare_bytes + item->plan.encode_bytes,
                           .is_ready = media_item_is_ready(item)};
}

static wick_status plan_alone(wick_engine *engine, const content *from, wick_media_info *info,
                              wick_error *error) {
  wick_status status;
  media_item *item = plan_item(engine, from, 0, &status, error);
  if (item == NULL) return status;
  *info = info_of(engine, item);
  free_item(engine, item);
  return WICK_OK;
}

wick_status wick_media_plan_image(wick_engine *engine, uint32_t width, uint32_t height,
                                  wick_media_info *info, wick_error *error) {
  const content from = {.kind = MEDIA_IMAGES, .width = width, .height = height};
  return plan_alone(engine, &from, info, error);
}

wick_status wick_media_plan_audio(wick_engine *engine, uint64_t samples, wick_media_info *info,
                                  wick_error *error) {
  const content from = {.kind = MEDIA_AUDIO, .samples = samples};
  return plan_alone(engine, &from, info, error);
}

wick_status wick_media_get_info(const wick_engine *engine, uint32_t media, wick_media_info *info,
                                wick_error *error) {
  const media_item *item = media_item_find(engine, media);
  if (item == NULL) return unknown(media, error);
  *info = info_of(engine, item);
  return WICK_OK;
}

// ---- adding ----

// Copies the samples, because the caller may free them before they are encoded.
static wick_status keep_samples(wick_engine *engine, media_item *item, const content *from,
                                wick_error *error) {
  const size_t count = (size_t)from->samples;
  item->samples = memory_alloc_array(&engine->memory, count, sizeof *item->samples);
  if (item->samples == NULL) return memory_fail(&engine->memory, error, "a recording");
  memcpy(item->samples, from->values, count * sizeof *item->samples);
  return WICK_OK;
}

// An image that must be enlarged is resized only when it is encoded. Until then, many small images,
// which may exceed the context, need no more memory than the caller's images.
static wick_status begin_rows(wick_engine *engine, media_item *item, uint32_t width,
                              uint32_t height, wick_error *error) {
  const uint64_t size_bytes = (uint64_t)width * height * 3;
  item->width = width;
  item->height = height;
  if (size_bytes >= item->plan.prepare_bytes) {
    return media_begin_image(items_of(engine)->encoders[MEDIA_IMAGES], &item->plan, &item->prepared,
                             error);
  }
  item->pixels = memory_alloc(&engine->memory, (size_t)size_bytes);
  return item->pixels != NULL ? WICK_OK : memory_fail(&engine->memory, error, "an image");
}

static wick_status take_rows(wick_engine *engine, media_item *item, const uint8_t *rgb,
                             uint32_t rows, wick_error *error) {
  const size_t row_bytes = (size_t)item->width * 3;
  wick_status status = WICK_OK;
  if (item->pixels != NULL) {
    memcpy(item->pixels + item->fed * row_bytes, rgb, rows * row_bytes);
  } else {
    status = media_feed_image(items_of(engine)->encoders[MEDIA_IMAGES], &item->prepared, rgb,
                              row_bytes, rows, error);
  }
  if (status == WICK_OK) item->fed += rows;
  return status;
}

static wick_status prepare(wick_engine *engine, media_item *item, const content *from,
                           wick_error *error) {
  wick_status status;
  if (from->kind == MEDIA_AUDIO) {
    status = keep_samples(engine, item, from, error);
    if (status == WICK_OK) media_begin_audio(item->samples, &item->prepared);
    return status;
  }
  status = begin_rows(engine, item, from->width, from->height, error);
  if (status != WICK_OK || from->rgb == NULL) return status;
  return take_rows(engine, item, from->rgb, from->height, error);
}

static wick_status enter(wick_engine *engine, media_item *item, wick_error *error) {
  media_items *items = items_of(engine);
  media_item **list =
      memory_resize_array(&engine->memory, items->list, items->count + 1, sizeof *items->list);
  if (list == NULL) return memory_fail(&engine->memory, error, "an image");
  items->list = list;
  items->list[items->count++] = item;
  item->id = ++items->last_id;
  return WICK_OK;
}

static wick_status add_new(wick_engine *engine, const content *from, uint64_t key, media_item **out,
                           wick_error *error) {
  wick_status status;
  media_item *item = plan_item(engine, from, key, &status, error);
  *out = item;
  if (item == NULL) return status;
  status = prepare(engine, item, from, error);
  if (status == WICK_OK) status = enter(engine, item, error);
  if (status != WICK_OK) free_item(engine, item);
  return status;
}

static wick_status use(wick_engine *engine, media_item *item, uint32_t *media) {
  item->users++;
  item->turn = ++items_of(engine)->turns;
  *media = item->id;
  return WICK_OK;
}

// Whether the image's pixels are lost because memory ran out while it was resized.
static bool has_lost_pixels(const media_item *item) {
  const media_prepared *prepared = &item->prepared;
  return item->kind == MEDIA_IMAGES && !media_item_is_ready(item) && item->pixels == NULL &&
         prepared->tiles == NULL && prepared->overview == NULL;
}

// Returns an item with this content that is not `other`, or NULL.
static media_item *find_key(const wick_engine *engine, media_kind kind, uint64_t key,
                            const media_item *other) {
  const media_items *items = items_of(engine);
  for (uint32_t i = 0; i < items->count; i++) {
    media_item *held = items->list[i];
    if (held != other && held->kind == kind && held->key == key && held->fed == held->height &&
        !has_lost_pixels(held)) {
      return held;
    }
  }
  return NULL;
}

static wick_status add(wick_engine *engine, const content *from, uint64_t key, uint32_t *media,
                       wick_error *error) {
  media_item *item = find_key(engine, from->kind, key, NULL);
  const wick_status status = item == NULL ? add_new(engine, from, key, &item, error) : WICK_OK;
  return status == WICK_OK ? use(engine, item, media) : status;
}

static wick_status check_image(const wick_engine *engine, uint32_t width, uint32_t height,
                               wick_error *error) {
  media_model *encoder;
  const wick_status status = find_encoder(engine, MEDIA_IMAGES, &encoder, error);
  return status == WICK_OK ? image_check(width, height, error) : status;
}

wick_status engine_media_begin_image(wick_engine *engine, uint32_t width, uint32_t height,
                                     uint32_t *media, wick_error *error) {
  media_item *item;
  const content from = {.kind = MEDIA_IMAGES, .width = width, .height = height};
  wick_status status = check_image(engine, width, height, error);
  if (status == WICK_OK) {
    status = add_new(engine, &from, media_hash_size(width, height), &item, error);
  }
  return status == WICK_OK ? use(engine, item, media) : status;
}

wick_status engine_media_feed_image(wick_engine *engine, uint32_t media, const uint8_t *rgb,
                                    uint32_t rows, wick_error *error) {
  media_item *item = media_item_find(engine, media);
  if (item == NULL) return unknown(media, error);
  if (rows > item->height - item->fed) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "image: %u rows after row %u of %u",
                     (unsigned)rows, (unsigned)item->fed, (unsigned)item->height);
  }
  const uint64_t key = media_hash_rows(image_whole(rgb, item->width, rows), item->key);
  const wick_status status = take_rows(engine, item, rgb, rows, error);
  if (status != WICK_OK) return status;
  item->key = key;
  if (item->fed == item->height) media_item_set_key(engine, item, key);
  return WICK_OK;
}

wick_status wick_media_add_image(wick_engine *engine, const uint8_t *rgb, uint32_t width,
                                 uint32_t height, uint32_t *media, wick_error *error) {
  const wick_status status = check_image(engine, width, height, error);
  if (status != WICK_OK) return status;
  const content from = {.kind = MEDIA_IMAGES, .width = width, .height = height, .rgb = rgb};
  const uint64_t key = media_hash_pixels(image_whole(rgb, width, height));
  return add(engine, &from, key, media, error);
}

wick_status wick_media_add_audio(wick_engine *engine, const float *samples, uint64_t count,
                                 uint32_t *media, wick_error *error) {
  media_model *encoder;
  const wick_status status = find_encoder(engine, MEDIA_AUDIO, &encoder, error);
  if (status != WICK_OK) return status;
  for (uint64_t i = 0; i < count; i++) {
    if (samples[i] - samples[i] == 0) continue;
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "audio: sample %llu is not a number",
                     (unsigned long long)i);
  }
  const content from = {.kind = MEDIA_AUDIO, .samples = count, .values = samples};
  return add(engine, &from, media_hash_samples(samples, count), media, error);
}

// ---- encoding ----

static wick_status begin_chunk(wick_engine *engine, media_item *item, wick_error *error) {
  const uint32_t chunk = item->done;
  wick_status status =
      media_span_make(&engine->memory, &item->heads[chunk], &item->spans[chunk], error);
  if (status != WICK_OK) return status;
  status = media_encode_begin(items_of(engine)->encoders[item->kind], &item->plan, &item->prepared,
                              chunk, engine->threads, engine->config.threads,
                              item->spans[chunk]->rows, &item->encoding, error);
  return status;
}

static void end_chunk(wick_engine *engine, media_item *item, bool is_done) {
  media_encode_end(item->encoding);
  item->encoding = NULL;
  if (is_done) {
    item->done++;
  } else {
    media_span_release(&engine->memory, item->spans[item->done]);
    item->spans[item->done] = NULL;
  }
}

// Resizes some rows of a stored image. Narrow rows may expand to wide ones.
static wick_status resize_kept(wick_engine *engine, media_item *item, wick_error *error) {
  enum { SLICE_BYTES = 1 << 20, SLICE_ROWS = 256 };
  const media_model *encoder = items_of(engine)->encoders[MEDIA_IMAGES];
  const size_t row_bytes = (size_t)item->width * 3;
  const uint32_t fitting = SLICE_BYTES / (uint32_t)row_bytes + 1;
  const uint32_t most = fitting < SLICE_ROWS ? fitting : SLICE_ROWS;
  const uint32_t left = item->height - item->resized, rows = left < most ? left : most;
  wick_status status = WICK_OK;
  if (item->resized == 0) {
    status = media_begin_image(encoder, &item->plan, &item->prepared, error);
  }
  if (status == WICK_OK) {
    status = media_feed_image(encoder, &item->prepared, item->pixels + item->resized * row_bytes,
                              row_bytes, rows, error);
  }
  item->resized = status == WICK_OK ? item->resized + rows : 0;
  if (item->resized < item->height) return status;
  memory_free(&engine->memory, item->pixels);
  item->pixels = NULL;
  return status;
}

// Runs a slice of the work before the first chunk.
static wick_status prepare_more(wick_engine *engine, media_item *item, wick_error *error) {
  const media_model *encoder = items_of(engine)->encoders[item->kind];
  if (item->kind == MEDIA_AUDIO) {
    return media_listen(encoder, &item->plan, &item->prepared, &item->is_prepared, error);
  }
  if (item->pixels != NULL) return resize_kept(engine, item, error);
  if (has_lost_pixels(item)) {
    return memory_fail(&engine->memory, error, "a resized image");
  }
  return media_resize(encoder, &item->plan, &item->prepared, &item->is_prepared, error);
}

// Shares the rows of an existing item with the same content. The content of an image that arrives
// in parts is known only after its last row.
static void share_rows(wick_engine *engine, media_item *item) {
  media_item *held = find_key(engine, item->kind, item->key, item);
  if (item->done != 0 || item->encoding != NULL || held == NULL || !media_item_is_ready(held)) {
    return;
  }
  for (; item->done < item->plan.count; item->done++) {
    item->spans[item->done] = held->spans[item->done];
    if (item->spans[item->done] != NULL) item->spans[item->done]->users++;
  }
  free_prepared(engine, item);
  for (uint32_t i = 0; held->users == 0 && i < items_of(engine)->count; i++) {
    if (items_of(engine)->list[i] == held) {
      drop_item(engine, i);
      return;
    }
  }
}

static wick_status step(wick_engine *engine, media_item *item, wick_error *error) {
  bool is_done = false;
  wick_status status = WICK_OK;
  if (item->plan.chunks[item->done].is_text) {
    item->done++;
    return WICK_OK;
  }
  if (!item->is_prepared) return prepare_more(engine, item, error);
  if (item->encoding == NULL) status = begin_chunk(engine, item, error);
  if (status == WICK_OK) status = media_encode_step(item->encoding, &is_done, error);
  if (status != WICK_OK || is_done) end_chunk(engine, item, is_done);
  return status;
}

// Checks that an item fits in the context, because otherwise it cannot be used and need not be
// encoded.
static wick_status check_context(const wick_engine *engine, const media_item *item,
                                 wick_error *error) {
  const uint32_t most = context_of(engine);
  if (item->token_count <= most) return WICK_OK;
  fail_with(error, WICK_E_FULL, WICK_NO_OFFSET, "prompt: %s has %u tokens; the context has %u",
            item->kind == MEDIA_AUDIO ? "a recording" : "an image", (unsigned)item->token_count,
            (unsigned)most);
  return status_about(WICK_E_FULL, error, WICK_SUBJECT_PROMPT, item->token_count, most);
}

static wick_status check_begin(wick_engine *engine, media_item *item, wick_error *error) {
  if (item->fed < item->height) {
    return fail_with(error, WICK_E_NODATA, WICK_NO_OFFSET, "image: only %u of %u rows were fed",
                     (unsigned)item->fed, (unsigned)item->height);
  }
  share_rows(engine, item);
  return check_context(engine, item, error);
}

wick_status wick_media_step(wick_engine *engine, uint32_t media, uint64_t budget_us, bool *is_ready,
                            wick_error *error) {
  media_item *item = media_item_find(engine, media);
  wick_status status = WICK_OK;
  if (item == NULL) return unknown(media, error);
  if (item->done == 0 && item->encoding == NULL) status = check_begin(engine, item, error);
  const uint64_t begin_us = engine->now_us();
  thread_pool_limit(engine->threads, 0);  // each pass sets its own limit
  while (status == WICK_OK && !media_item_is_ready(item)) {
    status = step(engine, item, error);
    if (engine->now_us() - begin_us >= budget_us) break;
  }
  *is_ready = media_item_is_ready(item);
  if (*is_ready) free_prepared(engine, item);
  return status;
}

// Tests an encoder with random weights: incomplete files, allocation failures, threads, steps.
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "gguf_files.h"
#include "media/encode.h"
#include "media/media.h"
#include "platform/platform.h"
#include "random.h"
#include "shared_files.h"

enum { WIDTH = 16, FFN = 24, PATCH = 4, SIDE = 12, TEXT = 20, NOTHING = 1000 };

static memory_gate memory;
static wick_error error;

typedef struct sample_shape {
  const char *name;
  uint64_t dims[4];
  uint32_t count;
} sample_shape;

static const sample_shape SHAPES[] = {
    {"v.patch_embd.weight", {PATCH, PATCH, 3, WIDTH}, 4},
    {"v.patch_embd.bias", {WIDTH}, 1},
    {"v.position_embd.weight", {WIDTH, 9}, 2},
    {"v.blk.0.ln1.weight", {WIDTH}, 1},
    {"v.blk.0.ln1.bias", {WIDTH}, 1},
    {"v.blk.0.attn_qkv.weight", {WIDTH, 3 * WIDTH}, 2},
    {"v.blk.0.attn_out.weight", {WIDTH, WIDTH}, 2},
    {"v.blk.0.ln2.weight", {WIDTH}, 1},
    {"v.blk.0.ffn_up.weight", {WIDTH, FFN}, 2},
    {"v.blk.0.ffn_down.weight", {FFN, WIDTH}, 2},
    {"v.post_ln.weight", {WIDTH}, 1},
    {"mm.model.fc.weight", {9 * WIDTH, TEXT}, 2},
};
enum { SHAPES_COUNT = sizeof SHAPES / sizeof *SHAPES };

static const char *const NUMBERS[] = {
    "clip.vision.image_size",          "clip.vision.patch_size",  "clip.vision.embedding_length",
    "clip.vision.feed_forward_length", "clip.vision.block_count", "clip.vision.projection_dim",
    "clip.vision.attention.head_count"};
static const uint32_t VALUES[] = {SIDE, PATCH, WIDTH, FFN, 1, TEXT, 2};
enum { NUMBERS_COUNT = sizeof VALUES / sizeof *VALUES };

static bool is_optional(uint32_t shape) {
  const char *name = SHAPES[shape].name;
  return strstr(name, ".bias") != NULL || strcmp(name, "v.post_ln.weight") == 0;
}

static uint64_t values_of(const sample_shape *shape) {
  uint64_t values = 1;
  for (uint32_t i = 0; i < shape->count; i++) values *= shape->dims[i];
  return values;
}

static void add_metadata(gguf_writer *writer, uint32_t without) {
  const float colour[3] = {0.5f, 0.5f, 0.5f};
  gguf_writer_add_string(writer, "general.architecture", "clip", 4);
  gguf_writer_add_bool(writer, "clip.has_vision_encoder", true);
  gguf_writer_add_bool(writer, "clip.use_gelu", true);
  gguf_writer_add_string(writer, "clip.projector_type", "idefics3", 8);
  gguf_writer_add_u32(writer, "clip.vision.projector.scale_factor", 3);
  gguf_writer_add_u32(writer, "clip.vision.preproc_image_size", 24);
  gguf_writer_add_f32(writer, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
  gguf_writer_add_array(writer, "clip.vision.image_mean", GGUF_F32, colour, 3);
  gguf_writer_add_array(writer, "clip.vision.image_std", GGUF_F32, colour, 3);
  for (uint32_t i = 0; i + 1 < NUMBERS_COUNT; i++) {
    if (i != without) gguf_writer_add_u32(writer, NUMBERS[i], VALUES[i]);
  }
}

// ---- heads of 2 values, with and without 2 zeros of padding ----

typedef enum head_shape { HEADS_OF_8, HEADS_OF_2, HEADS_FILLED } head_shape;

enum { SMALL_HEADS = 8, SMALL = 2, FILLED = 4, QKV = 5, OUT = 6 };  // QKV, OUT: indices in SHAPES

static sample_shape shape_of(uint32_t index, head_shape heads) {
  sample_shape shape = SHAPES[index];
  if (heads == HEADS_FILLED && index == QKV) shape.dims[1] = 3 * SMALL_HEADS * FILLED;
  if (heads == HEADS_FILLED && index == OUT) shape.dims[0] = SMALL_HEADS * FILLED;
  return shape;
}

// Converts a channel of padded heads to the channel without padding; returns -1 for padding.
static int64_t unfilled(uint64_t channel) {
  return channel % FILLED < SMALL ? (int64_t)(channel / FILLED * SMALL + channel % FILLED) : -1;
}

// Returns a value of a tensor; padded heads have the values of unpadded ones. Scores are divided by
// the square root of the head's width, so padded queries are scaled by the square root of 2.
static float value_at(uint32_t index, head_shape heads, uint64_t at) {
  float factor = 1;
  if (heads == HEADS_FILLED && index == QKV) {
    const int64_t row = unfilled(at / WIDTH);
    if (row < 0) return 0;
    if (row < WIDTH) factor = 1.41421356f;
    at = (uint64_t)row * WIDTH + at % WIDTH;
  } else if (heads == HEADS_FILLED && index == OUT) {
    const int64_t column = unfilled(at % (SMALL_HEADS * FILLED));
    if (column < 0) return 0;
    at = at / (SMALL_HEADS * FILLED) * WIDTH + (uint64_t)column;
  }
  uint64_t random = 1000 * index + at * 7919;
  return factor * ((float)random_below(&random, 1001) / 1000.0f - 0.5f);
}

static void add_heads(gguf_writer *writer, head_shape heads, uint32_t without) {
  const char *key = NUMBERS[NUMBERS_COUNT - 1];
  if (without == NUMBERS_COUNT - 1) return;
  gguf_writer_add_u32(writer, key, heads == HEADS_OF_8 ? 2 : SMALL_HEADS);
  if (heads == HEADS_FILLED) {
    gguf_writer_add_u32(writer, "clip.vision.attention.head_dim", FILLED);
  }
}

// Writes a file, optionally without one number or one tensor.
static memory_file make_heads(uint32_t without_number, uint32_t without_tensor, head_shape heads) {
  memory_gate gate;
  memory_file file = {0};
  gguf_writer *writer;
  memory_init(&gate, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(gguf_writer_create(&gate, file_write, &file, 32, &writer, &error), WICK_OK);
  add_metadata(writer, without_number);
  add_heads(writer, heads, without_number);
  for (uint32_t i = 0; i < SHAPES_COUNT; i++) {
    const sample_shape shape = shape_of(i, heads);
    if (i == without_tensor) continue;
    gguf_writer_add_tensor(writer, shape.name, GGML_TYPE_F32, shape.dims, shape.count);
  }
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_OK);
  for (uint32_t i = 0; i < SHAPES_COUNT; i++) {
    const sample_shape shape = shape_of(i, heads);
    if (i == without_tensor) continue;
    for (uint64_t n = 0; n < values_of(&shape); n++) {
      const float value = value_at(i, heads, n);
      CHECK_EQ_INT(gguf_writer_write_data(writer, &value, sizeof value, &error), WICK_OK);
    }
  }
  CHECK_EQ_INT(gguf_writer_finish(writer, &error), WICK_OK);
  gguf_writer_destroy(writer);
  return file;
}

static memory_file make_file(uint32_t without_number, uint32_t without_tensor) {
  return make_heads(without_number, without_tensor, HEADS_OF_8);
}

static bool read_memory(void *context, uint64_t offset_bytes, void *out, size_t size_bytes) {
  const memory_file *file = context;
  if (offset_bytes > file->size_bytes || size_bytes > file->size_bytes - offset_bytes) return false;
  memcpy(out, file->bytes + offset_bytes, size_bytes);
  return true;
}

// Opens the model in a file and frees the file's directory.
static wick_status open_kind(memory_file *file, media_kind kind, const media_text *text,
                             media_model **out) {
  const media_reader reader = {read_memory, file};
  const media_options options = {0};
  gguf_directory *directory = NULL;
  size_t used;
  *out = NULL;
  wick_status status = gguf_directory_create(&memory, &directory, &error);
  if (status == WICK_OK) {
    status = gguf_directory_feed(directory, file->bytes, file->size_bytes, &used, &error);
  }
  if (status == WICK_OK) {
    status =
        media_open(&memory, kernels_bind(), directory, kind, text, &reader, &options, out, &error);
  }
  gguf_directory_destroy(directory);
  return status;
}

static wick_status open_file(memory_file *file, uint32_t text_width, media_model **out) {
  const media_text text = {.width = text_width};
  return open_kind(file, MEDIA_IMAGES, &text, out);
}

static void fill_image(uint8_t *rgb, size_t size_bytes) {
  uint64_t random = 9;
  for (size_t i = 0; i < size_bytes; i++) rgb[i] = (uint8_t)random_below(&random, 256);
}

// Encodes all chunks of an image into `rows` (`room` floats); sets *used to the number of floats.
static wick_status encode_all(const media_model *model, uint32_t threads, float *rows, size_t room,
                              size_t *used, uint32_t *steps) {
  enum { ACROSS = 20, DOWN = 13 };
  uint8_t rgb[ACROSS * DOWN * 3];
  media_plan plan;
  media_prepared prepared = {0};
  thread_pool *pool = NULL;
  fill_image(rgb, sizeof rgb);
  *used = 0;
  wick_status status = media_plan_image(model, ACROSS, DOWN, &plan, &error);
  if (status == WICK_OK) status = thread_pool_create(&memory, NULL, threads, &pool, &error);
  if (status == WICK_OK) {
    status = media_prepare(model, &plan, image_whole(rgb, ACROSS, DOWN), &prepared, &error);
  }
  for (uint32_t i = 0; i < plan.count && status == WICK_OK; i++) {
    media_encoding *encoding = NULL;
    bool is_done = plan.chunks[i].is_text;
    if (!is_done) {
      status = media_encode_begin(model, &plan, &prepared, i, pool, threads, rows + *used,
                                  &encoding, &error);
    }
    while (status == WICK_OK && !is_done) {
      status = media_encode_step(encoding, &is_done, &error);
      ++*steps;
    }
    media_encode_end(encoding);
    *used += (size_t)plan.chunks[i].rows * media_row_width(model);
    CHECK(*used <= room);
  }
  media_prepared_free(&memory, &prepared);
  media_plan_free(&memory, &plan);
  thread_pool_destroy(pool);
  return status;
}

enum { ROWS_ROOM = 64 * TEXT };

TEST(rows_are_the_same_for_any_number_of_threads) {
  static float one[ROWS_ROOM], three[ROWS_ROOM];
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  size_t used, used_too;
  uint32_t steps = 0;
  REQUIRE(open_file(&file, TEXT, &model) == WICK_OK);
  CHECK_EQ_INT(encode_all(model, 1, one, ROWS_ROOM, &used, &steps), WICK_OK);
  // 24 x 15, rounded to even sizes: 2 x 2 tiles and the overview, one row each
  CHECK_EQ_UINT(used, 5 * TEXT);
  // steps: patches, one layer, the projector
  CHECK_EQ_UINT(steps, 5 * 3);
  CHECK_EQ_INT(encode_all(model, 3, three, ROWS_ROOM, &used_too, &steps), WICK_OK);
  CHECK_EQ_UINT(used, used_too);
  CHECK_EQ_MEM(one, three, used * sizeof *one);
  media_close(model);
  file_free(&file);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(attention_supports_any_head_width) {
  static float rows[2][ROWS_ROOM];
  size_t used[2] = {0};
  for (int i = 0; i < 2; i++) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory_file file = make_heads(NOTHING, NOTHING, i == 0 ? HEADS_OF_2 : HEADS_FILLED);
    media_model *model;
    uint32_t steps = 0;
    REQUIRE(open_file(&file, TEXT, &model) == WICK_OK);
    CHECK_EQ_INT(encode_all(model, 1, rows[i], ROWS_ROOM, &used[i], &steps), WICK_OK);
    media_close(model);
    file_free(&file);
  }
  CHECK_EQ_UINT(used[0], used[1]);
  for (size_t i = 0; i < used[0]; i++) CHECK_NEAR(rows[0][i], rows[1][i], 1e-4);
}

TEST(a_plan_states_the_cost_before_encoding) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  media_plan plan;
  REQUIRE(open_file(&file, TEXT, &model) == WICK_OK);
  CHECK_EQ_INT(media_plan_image(model, 20, 13, &plan, &error), WICK_OK);
  CHECK_EQ_UINT(plan.tiles, 5);
  CHECK_EQ_UINT(plan.rows, 5);
  // a tile of 9 patches takes 9 (4 w^2 + 2 w f) + 2 * 9^2 w in the layer, plus the matrix products
  // before and after it
  const uint32_t layer = 9 * (4 * WIDTH * WIDTH + 2 * WIDTH * FFN) + 2 * 81 * WIDTH;
  const uint32_t others = 9 * 3 * PATCH * PATCH * WIDTH + 9 * WIDTH * TEXT;
  CHECK_EQ_UINT(plan.macs, 5 * (layer + others));
  CHECK_EQ_UINT(plan.prepare_bytes, (24 * 24 + 12 * 12) * 3);
  const uint64_t planned_bytes = plan.encode_bytes;
  media_plan_free(&memory, &plan);
  const uint64_t before_bytes = memory.bytes_now;
  static float rows[ROWS_ROOM];
  size_t used;
  uint32_t steps = 0;
  memory.bytes_peak = before_bytes;
  CHECK_EQ_INT(encode_all(model, 1, rows, ROWS_ROOM, &used, &steps), WICK_OK);
  CHECK(memory.bytes_peak - before_bytes < planned_bytes + 64 * 1024);
  media_close(model);
  file_free(&file);
}

TEST(an_incomplete_file_is_rejected_with_the_missing_name) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  media_model *model;
  for (uint32_t i = 0; i < NUMBERS_COUNT; i++) {
    memory_file file = make_file(i, NOTHING);
    CHECK_EQ_INT(open_file(&file, TEXT, &model), WICK_E_NODATA);
    CHECK(strstr(error.message, NUMBERS[i]) != NULL);
    file_free(&file);
  }
  for (uint32_t i = 0; i < SHAPES_COUNT; i++) {
    if (is_optional(i)) continue;
    memory_file file = make_file(NOTHING, i);
    const wick_status status = open_file(&file, TEXT, &model);
    CHECK_EQ_INT(status, WICK_E_NODATA);
    // if the fused matrix is missing, the loader looks for three separate ones
    const char *name = strstr(SHAPES[i].name, "qkv") != NULL ? "attn_q" : SHAPES[i].name;
    if (!CHECK(strstr(error.message, name) != NULL)) CHECK_EQ_STR(error.message, name);
    file_free(&file);
  }
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

TEST(a_truncated_file_is_rejected) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  file.size_bytes -= 100;
  CHECK_EQ_INT(open_file(&file, TEXT, &model), WICK_E_TRUNCATED);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  file_free(&file);
}

TEST(rows_must_fit_the_text_model) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  CHECK_EQ_INT(open_file(&file, TEXT + 4, &model), WICK_E_SHAPE);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  file_free(&file);
}

TEST(the_fingerprint_depends_on_weights_and_settings) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  uint64_t fingerprints[2] = {0};
  for (int i = 0; i < 2; i++) {
    REQUIRE(open_file(&file, TEXT, &model) == WICK_OK);
    fingerprints[i] = media_fingerprint(model);
    media_close(model);
    file.bytes[file.size_bytes - 50] ^= 1;
  }
  CHECK(fingerprints[0] != fingerprints[1]);
  file_free(&file);
}

TEST(allocation_failures_are_reported_and_nothing_leaks) {
  static float rows[ROWS_ROOM];
  memory_file file = make_file(NOTHING, NOTHING);
  media_model *model;
  size_t used;
  uint32_t steps = 0;
  uint64_t call = 0;
  wick_status status = WICK_E_NOMEM;
  while (status != WICK_OK && call < 1000) {
    memory_init(&memory, 0, platform_alloc, platform_free);
    memory.fail_from_call = ++call;
    status = open_file(&file, TEXT, &model);
    if (status == WICK_OK) {
      status = encode_all(model, 1, rows, ROWS_ROOM, &used, &steps);
      media_close(model);
    }
    CHECK(status == WICK_OK || status == WICK_E_NOMEM);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
  CHECK(call > 50);
  CHECK_EQ_INT(status, WICK_OK);
  file_free(&file);
}

// ---- the encoders used for the reference vectors, run under sanitizers ----

enum { VECTORS_WIDTH = 48, SECOND = 16000 };

static uint64_t slice_max;   // multiply-adds per slice; 0: the default
static uint32_t slices_run;  // by all encodings
static uint64_t rows_hash;   // of the rows of all encodings

static wick_status encode_plan(const media_model *model, const media_plan *plan,
                               const media_prepared *prepared) {
  thread_pool *pool = NULL;
  wick_status status = thread_pool_create(&memory, NULL, 2, &pool, &error);
  for (uint32_t i = 0; i < plan->count && status == WICK_OK; i++) {
    media_encoding *encoding = NULL;
    bool is_done = plan->chunks[i].is_text;
    if (is_done) continue;
    const uint64_t values = (uint64_t)plan->chunks[i].rows * media_row_width(model);
    float *rows = memory_alloc_array(&memory, (size_t)values, sizeof *rows);
    status = media_encode_begin(model, plan, prepared, i, pool, 2, rows, &encoding, &error);
    if (status == WICK_OK && slice_max != 0) encoding->slice_macs_max = slice_max;
    while (status == WICK_OK && !is_done) {
      status = media_encode_step(encoding, &is_done, &error);
      slices_run++;
      if (slice_max == 0) CHECK(encoding->slice_macs <= ENCODE_SLICE_MACS);
    }
    if (status == WICK_OK) rows_hash = hash_bytes(rows, (size_t)values * sizeof *rows, rows_hash);
    media_encode_end(encoding);
    memory_free(&memory, rows);
  }
  thread_pool_destroy(pool);
  return status;
}

static wick_status encode_image(const media_model *model) {
  enum { ACROSS = 200, DOWN = 133 };
  static uint8_t rgb[ACROSS * DOWN * 3];
  media_plan plan;
  media_prepared prepared = {0};
  fill_image(rgb, sizeof rgb);
  wick_status status = media_plan_image(model, ACROSS, DOWN, &plan, &error);
  if (status == WICK_OK) {
    status = media_prepare(model, &plan, image_whole(rgb, ACROSS, DOWN), &prepared, &error);
  }
  if (status == WICK_OK) status = encode_plan(model, &plan, &prepared);
  media_prepared_free(&memory, &prepared);
  media_plan_free(&memory, &plan);
  return status;
}

static wick_status encode_audio(const media_model *model) {
  static float samples[SECOND];
  media_plan plan;
  media_prepared prepared = {0};
  uint64_t random = 3;
  for (uint32_t i = 0; i < SECOND; i++) samples[i] = (float)random_below(&random, 1001) / 1000;
  wick_status status = media_plan_audio(model, SECOND, &plan, &error);
  if (status == WICK_OK) status = media_prepare_audio(model, &plan, samples, &prepared, &error);
  if (status == WICK_OK) status = encode_plan(model, &plan, &prepared);
  media_prepared_free(&memory, &prepared);
  media_plan_free(&memory, &plan);
  return status;
}

// The text models have 48 values per row; one of them takes deepstack input in 2 layers.
static wick_status run_vector(memory_file *file, media_kind kind) {
  media_model *model;
  media_text text = {.width = VECTORS_WIDTH, .has_axes = true};
  wick_status status = open_kind(file, kind, &text, &model);
  text.deepstack_count = 2;
  if (status == WICK_E_SHAPE) status = open_kind(file, kind, &text, &model);
  if (status != WICK_OK) return status;
  status = kind == MEDIA_IMAGES ? encode_image(model) : encode_audio(model);
  media_close(model);
  return status;
}

// Checks that small slices give the same rows.
static wick_status run_sliced(memory_file *file, media_kind kind) {
  slice_max = slices_run = 0;
  rows_hash = 0;
  wick_status status = run_vector(file, kind);
  const uint64_t hash = rows_hash;
  const uint32_t slices = slices_run;
  if (status != WICK_OK) return status;
  for (slice_max = 1; slice_max < 1000000 && status == WICK_OK; slice_max *= 300000) {
    rows_hash = slices_run = 0;
    status = run_vector(file, kind);
    CHECK_EQ_UINT(rows_hash, hash);
    CHECK(slice_max != 1 || slices_run > 2 * slices);
  }
  return status;
}

static bool check_vector(const memory_file *file, const char *name, uint32_t number) {
  memory_file copy = *file;
  uint32_t runs = 0;
  if (strncmp(name, "mmproj-", 7) != 0 || number % level_step(3) != 0) return true;
  memory_init(&memory, 0, platform_alloc, platform_free);
  for (media_kind kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO; kind++) {
    const wick_status status = run_sliced(&copy, kind);
    runs += status == WICK_OK;
    // the other media kind
    if (status != WICK_OK)
      CHECK(status == WICK_E_NODATA || status == WICK_E_FORMAT || status == WICK_E_UNSUPPORTED);
  }
  if (!CHECK(runs != 0)) CHECK_EQ_STR(error.message, name);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return runs != 0;
}

TEST(encoders_of_all_kinds_run) {
  const char *path = check_shared("vectors/vision/models");
  if (path == NULL) SKIP("no shared folder");
  CHECK(shared_check("vectors/vision/models", check_vector) > 20);
}

// ---- extreme sizes ----

static void check_extreme_image(const media_model *model, uint32_t width, uint32_t height) {
  enum { PIXELS_MAX = 10000 };
  static uint8_t rgb[3 * PIXELS_MAX];
  media_plan plan;
  media_prepared prepared = {0};
  const uint64_t before_bytes = memory.bytes_now;
  wick_status status = media_plan_image(model, width, height, &plan, &error);
  CHECK(status == WICK_OK || status == WICK_E_ARG);
  if (status != WICK_OK) return;
  CHECK(plan.rows != 0);
  for (uint32_t i = 0; i < plan.count && model->kind->positions == POSITIONS_AXES; i++) {
    const uint32_t patch = model->layout.patch, most = model->position_rows;
    CHECK(plan.chunks[i].width / patch <= most && plan.chunks[i].height / patch <= most);
  }
  CHECK(plan.prepare_bytes + plan.resize_bytes + plan.encode_bytes < 1u << 30);
  const uint64_t planned_bytes = memory.bytes_now - before_bytes;
  memory.bytes_peak = memory.bytes_now;
  if ((uint64_t)width * height <= PIXELS_MAX) {
    status = media_prepare(model, &plan, image_whole(rgb, width, height), &prepared, &error);
    CHECK_EQ_INT(status, WICK_OK);
    CHECK(memory.bytes_peak - before_bytes - planned_bytes <=
          plan.prepare_bytes + plan.resize_bytes + 4096);
  }
  media_prepared_free(&memory, &prepared);
  media_plan_free(&memory, &plan);
}

// A recording needs memory for its longest chunk, unless every row attends to all others.
static void check_hour(const media_model *model) {
  media_plan hour, minutes;
  REQUIRE(media_plan_audio(model, 3600ull * SECOND, &hour, &error) == WICK_OK);
  REQUIRE(media_plan_audio(model, 90ull * SECOND, &minutes, &error) == WICK_OK);
  CHECK_EQ_UINT(hour.prepare_bytes, 0);
  if (minutes.tiles > 1) CHECK_EQ_UINT(hour.encode_bytes, minutes.encode_bytes);
  CHECK(hour.rows >= 30 * minutes.rows);  // Whisper adds a silent chunk
  media_plan_free(&memory, &hour);
  media_plan_free(&memory, &minutes);
}

// Makes each allocation at the start of an audio encoding fail.
static void check_audio_memory(const media_model *model) {
  static float samples[SECOND], row[1];
  media_plan plan;
  media_prepared prepared;
  media_encoding *encoding;
  REQUIRE(media_plan_audio(model, SECOND, &plan, &error) == WICK_OK);
  REQUIRE(media_prepare_audio(model, &plan, samples, &prepared, &error) == WICK_OK);
  uint32_t chunk = 0;
  while (plan.chunks[chunk].is_text) chunk++;
  const uint64_t blocks = memory.blocks_now, bytes = memory.bytes_now;
  for (uint64_t call = 1; call <= 3; call++) {
    memory.fail_at_call = memory.calls + call;
    const wick_status status =
        media_encode_begin(model, &plan, &prepared, chunk, NULL, 1, row, &encoding, &error);
    CHECK_EQ_INT(status, WICK_E_NOMEM);
    CHECK(encoding == NULL);
    CHECK_EQ_UINT(memory.blocks_now, blocks);
  }
  memory.bytes_peak = bytes;
  CHECK_EQ_INT(media_encode_begin(model, &plan, &prepared, chunk, NULL, 1, row, &encoding, &error),
               WICK_OK);
  CHECK(memory.bytes_peak - bytes <= plan.encode_bytes + 4096);
  media_encode_end(encoding);
  media_prepared_free(&memory, &prepared);
  media_plan_free(&memory, &plan);
}

static bool check_extremes(const memory_file *file, const char *name, uint32_t number) {
  static const uint32_t SIZES[][2] = {{1, 1},     {1, 10000},     {10000, 1},   {3, 3000},
                                      {100, 100}, {10000, 10000}, {65536, 4096}};
  memory_file copy = *file;
  (void)number;
  if (strncmp(name, "mmproj-", 7) != 0) return true;
  memory_init(&memory, 0, platform_alloc, platform_free);
  for (media_kind kind = MEDIA_IMAGES; kind <= MEDIA_AUDIO; kind++) {
    media_model *model;
    media_text text = {.width = VECTORS_WIDTH, .has_axes = true};
    wick_status status = open_kind(&copy, kind, &text, &model);
    text.deepstack_count = 2;
    if (status == WICK_E_SHAPE) status = open_kind(&copy, kind, &text, &model);
    if (status != WICK_OK) continue;
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES && kind == MEDIA_IMAGES; i++) {
      check_extreme_image(model, SIZES[i][0], SIZES[i][1]);
    }
    if (kind == MEDIA_AUDIO) {
      check_hour(model);
      check_audio_memory(model);
    }
    media_close(model);
  }
  CHECK_EQ_UINT(memory.blocks_now, 0);
  return true;
}

TEST(extreme_images_and_recordings_are_scaled_or_rejected) {
  const char *path = check_shared("vectors/vision/models");
  if (path == NULL) SKIP("no shared folder");
  CHECK(shared_check("vectors/vision/models", check_extremes) > 20);
}

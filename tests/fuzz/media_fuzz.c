// Fuzzes image and audio encoders: an mmproj file from the folders in WICK_REFERENCES with some of
// its metadata changed, opened for a text model, with an image of any size or a recording that is
// planned, prepared and, if that is cheap, encoded; and the headers of PPM and WAV files. Asserts
// that an unchanged file opens and gives finite rows, that plans obey their limits, that memory
// matches the plan, that failures are typed, and that nothing leaks.
#include <string.h>

#include "../../src/media/formats.h"
#include "media/media.h"
#include "platform/platform.h"
#include "references.h"

enum {
  INPUT_MAX = 4096,
  PIXELS_MAX = 1 << 16,
  SAMPLES_MAX = 1 << 15,
  MACS_MAX = 1 << 27,  // the smallest image of Gemma 4 takes 118 million
  SLACK_BYTES = 1 << 16
};

static const uint64_t MEMORY_MAX_BYTES = 1u << 28;
static reference_list references;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  references_read(&references, "WICK_REFERENCES", "mmproj-");
  return 0;
}

typedef struct media_run {
  memory_gate memory;
  wick_error error;
  memory_file file;
  media_model *model;
  media_options options;
  media_plan plan;
  media_prepared prepared;
  bool is_changed;  // the file is changed, or an allocation fails
} media_run;

static bool read_file(void *context, uint64_t offset_bytes, void *out, size_t size_bytes) {
  const memory_file *file = context;
  if (offset_bytes > file->size_bytes || size_bytes > file->size_bytes - offset_bytes) return false;
  memcpy(out, file->bytes + offset_bytes, size_bytes);
  return true;
}

static void check(const media_run *run, wick_status status) {
  if (status == WICK_OK) return;
  REQUIRE(run->error.status == status && run->error.message[0] != '\0');
}

// The reference text models have rows of 48 values; one of them has two additional parts per row.
static wick_status open_model(media_run *run, media_kind *kind) {
  const media_reader reader = {read_file, &run->file};
  gguf_directory *directory = NULL;
  size_t used;
  wick_status status = gguf_directory_create(&run->memory, &directory, &run->error);
  if (status == WICK_OK) {
    status =
        gguf_directory_feed(directory, run->file.bytes, run->file.size_bytes, &used, &run->error);
  }
  bool has_images = false, has_audio = false;
  if (status == WICK_OK) {
    status = media_find_encoders(directory, &has_images, &has_audio, &run->error);
  }
  *kind =
      has_audio && (!has_images || run->options.max_tiles % 2 == 0) ? MEDIA_AUDIO : MEDIA_IMAGES;
  for (uint32_t deepstacks = 0; deepstacks <= 2; deepstacks += 2) {
    const media_text text = {.width = 48, .deepstack_count = deepstacks};
    if (status != (deepstacks == 0 ? WICK_OK : WICK_E_SHAPE)) break;
    status = media_open(&run->memory, kernels_bind(), directory, *kind, &text, &reader,
                        &run->options, &run->model, &run->error);
  }
  gguf_directory_destroy(directory);
  return status;
}

static wick_status encode(media_run *run, uint32_t chunk) {
  const media_chunk *part = &run->plan.chunks[chunk];
  const uint64_t values = (uint64_t)part->rows * media_row_width(run->model);
  float *rows = memory_alloc_wide(&run->memory, values * sizeof *rows);
  media_encoding *encoding = NULL;
  thread_pool *pool = NULL;
  bool is_done = false;
  if (rows == NULL) return memory_fail(&run->memory, &run->error, "rows");
  wick_status status = thread_pool_create(&run->memory, NULL, 1, &pool, &run->error);
  const uint64_t before_bytes = run->memory.bytes_now;
  run->memory.bytes_peak = before_bytes;
  if (status == WICK_OK) {
    status = media_encode_begin(run->model, &run->plan, &run->prepared, chunk, pool, 1, rows,
                                &encoding, &run->error);
  }
  while (status == WICK_OK && !is_done) {
    status = media_encode_step(encoding, &is_done, &run->error);
  }
  REQUIRE(run->memory.bytes_peak - before_bytes <= run->plan.encode_bytes + SLACK_BYTES);
  for (uint64_t i = 0; i < values && status == WICK_OK; i++) REQUIRE(rows[i] - rows[i] == 0);
  media_encode_end(encoding);
  thread_pool_destroy(pool);
  memory_free(&run->memory, rows);
  return status;
}

static wick_status encode_some(media_run *run, input *in) {
  wick_status status = WICK_OK;
  uint32_t chunk = next_u8(in) % run->plan.count;
  while (run->plan.chunks[chunk].is_text) chunk = (chunk + 1) % run->plan.count;
  if (run->plan.chunks[chunk].macs <= MACS_MAX) status = encode(run, chunk);
  return status;
}

static void check_plan(const media_run *run) {
  const media_plan *plan = &run->plan;
  uint64_t rows = 0, macs = 0;
  uint32_t tiles = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    const media_chunk *chunk = &plan->chunks[i];
    REQUIRE(chunk->is_text || (chunk->rows != 0 && chunk->positions != 0));
    tiles += !chunk->is_text;
    rows += chunk->rows;
    macs += chunk->macs;
  }
  REQUIRE(rows == plan->rows && tiles == plan->tiles && macs == plan->macs && tiles != 0);
  if (plan->image == NULL) return;
  REQUIRE(run->options.max_tiles == 0 || tiles <= run->options.max_tiles);
  REQUIRE(run->options.max_image_tokens == 0 || rows <= run->options.max_image_tokens);
}

// Feeds the image in strips of any height.
static wick_status resize_image(media_run *run, image_view image, input *in) {
  bool is_done = false;
  wick_status status = media_begin_image(run->model, &run->plan, &run->prepared, &run->error);
  for (uint32_t row = 0; row < image.height && status == WICK_OK;) {
    const uint32_t left = image.height - row, wanted = 1u + next_u8(in);
    const uint32_t rows = left < wanted ? left : wanted;
    status = media_feed_image(run->model, &run->prepared, image.rgb + row * image.stride_bytes,
                              image.stride_bytes, rows, &run->error);
    row += rows;
  }
  while (status == WICK_OK && !is_done) {
    status = media_resize(run->model, &run->plan, &run->prepared, &is_done, &run->error);
  }
  return status;
}

static wick_status run_image(media_run *run, input *in) {
  const uint32_t width = (uint32_t)choose_number(in), height = (uint32_t)choose_number(in);
  wick_status status = media_plan_image(run->model, width, height, &run->plan, &run->error);
  if (status != WICK_OK) return status;
  check_plan(run);
  const uint64_t pixels = (uint64_t)width * height;
  if (pixels > PIXELS_MAX || run->plan.prepare_bytes > 16 * PIXELS_MAX) return status;
  static uint8_t rgb[3 * PIXELS_MAX];
  for (size_t i = 0; i < 3 * pixels; i += 1 + i / 64) rgb[i] = (uint8_t)next_u8(in);
  const uint64_t before_bytes = run->memory.bytes_now;
  run->memory.bytes_peak = before_bytes;
  status = resize_image(run, image_whole(rgb, width, height), in);
  REQUIRE(run->memory.bytes_peak - before_bytes <=
          run->plan.prepare_bytes + run->plan.resize_bytes + SLACK_BYTES);
  return status == WICK_OK ? encode_some(run, in) : status;
}

static wick_status run_audio(media_run *run, input *in) {
  static float samples[SAMPLES_MAX];
  const uint64_t count = choose_number(in);
  wick_status status = media_plan_audio(run->model, count, &run->plan, &run->error);
  if (status != WICK_OK) return status;
  check_plan(run);
  if (count > SAMPLES_MAX) return status;
  for (size_t i = 0; i < count; i++) samples[i] = (float)(int8_t)next_u8(in) / 128;
  status = media_prepare_audio(run->model, &run->plan, samples, &run->prepared, &run->error);
  return status == WICK_OK ? encode_some(run, in) : status;
}

static void run_model(input *in) {
  if (references.count == 0) return;
  const reference *from = &references.files[next_u16(in) % references.count];
  media_run run = {.file = reference_change(from, in)};
  const uint32_t fail_at = next_u8(in);
  media_kind kind;
  memory_init(&run.memory, MEMORY_MAX_BYTES, platform_alloc, platform_free);
  run.memory.fail_at_call = fail_at < 128 ? 0 : fail_at;
  run.options.follows_llama_cpp = next_u8(in) & 1;
  run.options.max_tiles = next_u8(in) % 8;
  run.options.max_image_tokens = next_u16(in) % 4 == 0 ? 0 : next_u16(in);
  run.is_changed = run.memory.fail_at_call != 0 ||
                   memcmp(run.file.bytes, from->file.bytes, from->file.size_bytes) != 0;
  wick_status status = open_model(&run, &kind);
  REQUIRE(status == WICK_OK || run.is_changed);
  if (status == WICK_OK) {
    status = kind == MEDIA_AUDIO ? run_audio(&run, in) : run_image(&run, in);
    REQUIRE(run.is_changed || status == WICK_OK || status == WICK_E_ARG);
  }
  check(&run, status);
  media_prepared_free(&run.memory, &run.prepared);
  media_plan_free(&run.memory, &run.plan);
  media_close(run.model);
  REQUIRE(run.memory.blocks_now == 0);
  file_free(&run.file);
}

static void run_formats(const uint8_t *bytes, size_t size_bytes) {
  uint32_t width, height;
  size_t offset_bytes;
  wav_file wav;
  if (ppm_parse(bytes, size_bytes, &width, &height, &offset_bytes)) {
    REQUIRE(offset_bytes <= size_bytes + 1 && width < 1000000000 && height < 1000000000);
  }
  if (wav_parse(bytes, size_bytes, &wav) != NULL) return;
  REQUIRE(wav.count <= size_bytes);
  for (uint64_t i = 0; i < wav.count; i++) (void)wav_sample(&wav, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes == 0 || size_bytes > INPUT_MAX) return 0;
  input in = {data + 1, size_bytes - 1};
  if (data[0] % 4 == 0) {
    run_formats(data + 1, size_bytes - 1);
  } else {
    run_model(&in);
  }
  return 0;
}

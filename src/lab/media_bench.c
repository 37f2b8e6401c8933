// lab/media_bench.c — measures an encoder: multiply-adds per second for one tile of an image, or
// one chunk of a recording, and the longest slice.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/args.h"
#include "cli/media.h"
#include "lab/lab.h"
#include "media/encode.h"
#include "platform/platform.h"

typedef struct media_bench {
  const char *path;
  uint32_t width, height, seconds, threads, runs;
  media_kind kind;
  media_options options;
  memory_gate memory;
  gguf_file file;
  media_model *model;
  media_plan plan;
  media_prepared prepared;
  thread_pool *pool;
  uint8_t *rgb;
  float *samples, *rows;
  uint64_t prepare_us;            // time for resizing or for computing spectra
  uint64_t slice_us, slice_macs;  // the longest time and the largest size of a slice in all runs
  wick_error error;
} media_bench;

// Returns a text model that fits the rows of the encoder.
static media_text text_of(const gguf_directory *directory, media_kind kind) {
  media_text text = {0};
  wick_error error;
  (void)gguf_get_u32(
      directory, kind == MEDIA_AUDIO ? "clip.audio.projection_dim" : "clip.vision.projection_dim",
      &text.width, &error);
  for (unsigned layer = 0; layer < 256; layer++) {
    char name[48];
    text_format(name, sizeof name, "v.deepstack.%u.fc1.weight", layer);
    if (gguf_find_tensor(directory, name) != NULL) text.deepstack_count++;
  }
  return text;
}

// Returns the chunk with the most multiply-adds; all tiles cost the same.
static uint32_t largest_chunk(const media_plan *plan) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < plan->count; i++) {
    if (plan->chunks[i].macs > plan->chunks[best].macs) best = i;
  }
  return best;
}

static wick_status open_encoder(media_bench *bench) {
  const gguf_directory *directory = bench->file.directory;
  const media_reader reader = gguf_file_reader(&bench->file);
  bool has_images, has_audio;
  const wick_status status = media_find_encoders(directory, &has_images, &has_audio, &bench->error);
  if (status != WICK_OK) return status;
  const bool is_audio = has_audio && (bench->seconds != 0 || !has_images);
  bench->kind = is_audio ? MEDIA_AUDIO : MEDIA_IMAGES;
  const media_text text = text_of(directory, bench->kind);
  return media_open(&bench->memory, kernels_bind(), directory, bench->kind, &text, &reader,
                    &bench->options, &bench->model, &bench->error);
}

static wick_status plan_input(media_bench *bench) {
  const uint32_t seconds = bench->seconds == 0 ? 1 : bench->seconds;
  if (bench->kind == MEDIA_AUDIO) {
    return media_plan_audio(bench->model, (uint64_t)seconds * SOUND_RATE, &bench->plan,
                            &bench->error);
  }
  return media_plan_image(bench->model, bench->width, bench->height, &bench->plan, &bench->error);
}

static wick_status prepare_input(media_bench *bench) {
  const uint64_t pixels = (uint64_t)bench->width * bench->height;
  wick_status status;
  if (bench->kind == MEDIA_AUDIO) {
    for (uint64_t i = 0; i < bench->plan.samples; i++) {
      bench->samples[i] = (float)((i * 2654435761u >> 13) % 256) / 256 - 0.5f;
    }
  } else {
    for (uint64_t i = 0; i < pixels * 3; i++) bench->rgb[i] = (uint8_t)(i * 2654435761u >> 13);
  }
  const uint64_t from_us = platform_now_us();
  if (bench->kind == MEDIA_AUDIO) {
    status = media_prepare_audio(bench->model, &bench->plan, bench->samples, &bench->prepared,
                                 &bench->error);
  } else {
    const image_view image = image_whole(bench->rgb, bench->width, bench->height);
    status = media_prepare(bench->model, &bench->plan, image, &bench->prepared, &bench->error);
  }
  bench->prepare_us = platform_now_us() - from_us;
  return status;
}

static wick_status prepare(media_bench *bench) {
  memory_gate *memory = &bench->memory;
  wick_status status = open_encoder(bench);
  if (status == WICK_OK) status = plan_input(bench);
  if (status != WICK_OK) return status;
  bench->rgb = memory_alloc_wide(memory, (uint64_t)bench->width * bench->height * 3);
  bench->samples = memory_alloc_wide(memory, bench->plan.samples * sizeof(float) + 1);
  bench->rows = memory_alloc_wide(
      memory, (uint64_t)bench->plan.rows * media_row_width(bench->model) * sizeof(float));
  if (bench->rgb == NULL || bench->samples == NULL || bench->rows == NULL) {
    return memory_fail(memory, &bench->error, "an input and its rows");
  }
  status = prepare_input(bench);
  if (status != WICK_OK) return status;
  return thread_pool_create(memory, NULL, bench->threads, &bench->pool, &bench->error);
}

static wick_status encode_once(media_bench *bench, uint32_t chunk, uint64_t *us) {
  media_encoding *encoding = NULL;
  bool is_done = false;
  const uint64_t from_us = platform_now_us();
  wick_status status =
      media_encode_begin(bench->model, &bench->plan, &bench->prepared, chunk, bench->pool,
                         bench->threads, bench->rows, &encoding, &bench->error);
  for (uint64_t slice_us = from_us; status == WICK_OK && !is_done;) {
    status = media_encode_step(encoding, &is_done, &bench->error);
    const uint64_t now_us = platform_now_us();
    if (now_us - slice_us > bench->slice_us) bench->slice_us = now_us - slice_us;
    if (encoding->slice_macs > bench->slice_macs) bench->slice_macs = encoding->slice_macs;
    slice_us = now_us;
  }
  media_encode_end(encoding);
  *us = platform_now_us() - from_us;
  return status;
}

static wick_status measure(media_bench *bench) {
  const uint32_t chunk = largest_chunk(&bench->plan);
  const media_chunk *picture = &bench->plan.chunks[chunk];
  uint64_t best_us = UINT64_MAX;
  for (uint32_t i = 0; i < bench->runs; i++) {
    uint64_t us;
    const wick_status status = encode_once(bench, chunk, &us);
    if (status != WICK_OK) return status;
    if (us < best_us) best_us = us;
  }
  output_printf(OUTPUT_TEXT,
                "{\"pictures\":%u,\"rows\":%u,\"gmac_all\":%.1f,\"width\":%u,\"height\":%u,"
                "\"gmac\":%.2f,\"best_ms\":%.1f,\"gmac_per_s\":%.2f,\"encode_mb\":%.1f,"
                "\"slice_gmac\":%.3f,\"slice_ms\":%.1f,\"prepare_ms\":%.1f}\n",
                (unsigned)bench->plan.tiles, (unsigned)bench->plan.rows,
                (double)bench->plan.macs / 1e9, (unsigned)picture->width, (unsigned)picture->height,
                (double)picture->macs / 1e9, (double)best_us / 1e3,
                (double)picture->macs / 1e3 / (double)best_us,
                (double)bench->plan.encode_bytes / 1e6, (double)bench->slice_macs / 1e9,
                (double)bench->slice_us / 1e3, (double)bench->prepare_us / 1e3);
  return WICK_OK;
}

static void close_bench(media_bench *bench) {
  thread_pool_destroy(bench->pool);
  media_prepared_free(&bench->memory, &bench->prepared);
  media_plan_free(&bench->memory, &bench->plan);
  memory_free(&bench->memory, bench->rgb);
  memory_free(&bench->memory, bench->samples);
  memory_free(&bench->memory, bench->rows);
  media_close(bench->model);
  gguf_file_close(&bench->file);
}

exit_code lab_media(int argc, char **argv) {
  media_bench bench = {.width = 512, .height = 512, .threads = 1, .runs = 3};
  const args_option options[] = {
      args_u32("--width", &bench.width, "N", 1, IMAGE_SIDE_MAX, "pixels (default: 512)"),
      args_u32("--height", &bench.height, "N", 1, IMAGE_SIDE_MAX, "pixels (default: 512)"),
      args_u32("--seconds", &bench.seconds, "N", 1, SOUND_SECONDS_MAX, "encode N seconds of noise"),
      args_u32("--threads", &bench.threads, "N", 1, WICK_THREADS_MAX, "use N threads (default 1)"),
      args_u32("--runs", &bench.runs, "N", 1, 1000, "take the best of N runs (default: 3)"),
  };
  const args_spec spec = {"wick-lab media MMPROJ [options]",
                          "Measures the encoding of one tile of an image, or of a chunk of noise.",
                          options, sizeof options / sizeof options[0], 1};
  const char *given[ARGS_POSITIONALS_MAX];
  const exit_code parsed = args_parse(&spec, argc, argv, given);
  if (parsed != EXIT_NOT_YET) return parsed;
  memory_init(&bench.memory, 0, platform_alloc, platform_free);
  exit_code code = gguf_file_open(&bench.memory, given[0], &bench.file);
  if (code == EXIT_DONE && (prepare(&bench) != WICK_OK || measure(&bench) != WICK_OK)) {
    code = report_error(given[0], &bench.error);
  }
  close_bench(&bench);
  return code == EXIT_DONE ? output_end() : code;
}

// media/measure.c — computes the memory of an encoder from the directory of its file (media.h): it
// opens the encoder without a reader, so that matrices are skipped, and plans inputs for it.
#include "media/encode.h"
#include "media/sound.h"

// The shorter side of an image: an image whose other side is four times as long has
// IMAGE_PIXELS_MAX pixels.
enum { SIDE_MAX = 1 << 13, SIDE_MIN = 32 };

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Returns the memory of a planned input while a number of threads encode it.
static uint64_t bytes_of(const media_model *model, const media_plan *plan, uint32_t threads) {
  uint64_t encode = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    const media_chunk *chunk = &plan->chunks[i];
    if (chunk->is_text) continue;
    encode = larger(encode, encode_bytes(model, chunk, threads) - encode_bytes(model, chunk, 1));
  }
  return encode + plan->encode_bytes + plan->prepare_bytes + plan->samples * sizeof(float) +
         (uint64_t)plan->rows * media_row_width(model) * sizeof(float);
}

// Inputs of one kind that differ only in size: the side of an image, or the seconds of a recording.
typedef struct input {
  const media_model *model;
  media_kind kind;
  uint32_t across, down;  // aspect ratio of an image
} input;

static wick_status plan_input(const input *of, uint32_t size, media_plan *plan, wick_error *error) {
  if (of->kind == MEDIA_AUDIO) {
    return media_plan_audio(of->model, (uint64_t)size * SOUND_RATE, plan, error);
  }
  return media_plan_image(of->model, size * of->across, size * of->down, plan, error);
}

// Sets *fits if the input has at most rows_max rows.
static wick_status look(const input *of, uint32_t size, uint32_t rows_max, bool *fits,
                        wick_error *error) {
  media_plan plan;
  const wick_status status = plan_input(of, size, &plan, error);
  *fits = status == WICK_OK && plan.rows <= rows_max;
  if (status == WICK_OK) media_plan_free(of->model->memory, &plan);
  return status == WICK_E_NOMEM ? status : WICK_OK;
}

// Finds the largest size that fits, or the smallest size if none fits.
static wick_status find_largest(const input *of, uint32_t rows_max, uint32_t *size,
                                wick_error *error) {
  uint32_t least = of->kind == MEDIA_AUDIO ? 1 : SIDE_MIN;
  uint32_t most = of->kind == MEDIA_AUDIO ? (uint32_t)SOUND_SECONDS_MAX : (uint32_t)SIDE_MAX;
  wick_status status = WICK_OK;
  while (least < most && status == WICK_OK) {
    bool fits;
    const uint32_t middle = most - (most - least) / 2;
    status = look(of, middle, rows_max, &fits, error);
    if (fits) least = middle;
    if (!fits) most = middle - 1;
  }
  *size = least;
  return status;
}

static wick_status measure_input(const input *of, uint32_t rows_max, uint32_t threads,
                                 media_memory *out, wick_error *error) {
  media_plan plan;
  uint32_t size;
  wick_status status = find_largest(of, rows_max, &size, error);
  if (status == WICK_OK) status = plan_input(of, size, &plan, error);
  if (status != WICK_OK) return status == WICK_E_NOMEM ? status : WICK_OK;
  out->encode_bytes = larger(out->encode_bytes, bytes_of(of->model, &plan, threads));
  media_plan_free(of->model->memory, &plan);
  if (of->kind == MEDIA_AUDIO) return WICK_OK;
  // resizing the largest image needs the most memory, regardless of the result's size
  status = plan_input(of, SIDE_MAX, &plan, error);
  if (status != WICK_OK) return status == WICK_E_NOMEM ? status : WICK_OK;
  out->prepare_bytes = larger(out->prepare_bytes, plan.prepare_bytes + plan.resize_bytes);
  media_plan_free(of->model->memory, &plan);
  return WICK_OK;
}

static wick_status measure_inputs(const media_model *model, media_kind kind, uint32_t rows_max,
                                  uint32_t threads, media_memory *out, wick_error *error) {
  static const uint32_t SHAPES[][2] = {{1, 1}, {4, 1}, {1, 4}};
  const uint32_t shapes = kind == MEDIA_AUDIO ? 1 : sizeof SHAPES / sizeof *SHAPES;
  wick_status status = WICK_OK;
  for (uint32_t i = 0; i < shapes && status == WICK_OK; i++) {
    const input of = {model, kind, SHAPES[i][0], SHAPES[i][1]};
    status = measure_input(&of, rows_max, threads, out, error);
  }
  return status;
}

wick_status media_measure(memory_gate *memory, const kernel_table *kernels,
                          const gguf_directory *directory, media_kind kind, const media_text *text,
                          const media_options *options, uint32_t rows_max, uint32_t threads,
                          media_memory *out, wick_error *error) {
  media_model *model;
  *out = (media_memory){0};
  wick_status status =
      media_open(memory, kernels, directory, kind, text, NULL, options, &model, error);
  if (status != WICK_OK) return status;
  out->weight_bytes = media_weight_bytes(model);
  status = measure_inputs(model, kind, rows_max, threads, out, error);
  media_close(model);
  return status;
}

// media/stem.c — converts a spectrum to rows: the first convolutions of audio encoders.
#include <string.h>

#include "media/audio.h"
#include "media/audio_encode.h"

// The values of channels over a plane, with any strides.
typedef struct sound_map {
  const float *values;
  uint32_t height, width, channels;
  size_t down, across, deep;  // strides
} sound_map;

typedef struct map_kernel {
  uint32_t height, width, step_down, step_across;
} map_kernel;

typedef struct map_job {
  const sound_map *in;
  const map_kernel *kernel;
  const float *taps, *bias;  // per channel
  uint32_t first, out_width;
} map_job;

static uint32_t steps_of(uint32_t size, uint32_t kernel, uint32_t step) {
  return (size + kernel / 2 * 2 - kernel) / step + 1;
}

static uint32_t out_height(const sound_map *in, const map_kernel *kernel) {
  return steps_of(in->height, kernel->height, kernel->step_down);
}
static uint32_t out_width(const sound_map *in, const map_kernel *kernel) {
  return steps_of(in->width, kernel->width, kernel->step_across);
}

// Returns the input under a tap of output `at`, or NULL beyond an edge.
static const float *below(const map_job *map, uint32_t at, uint32_t tap) {
  const sound_map *in = map->in;
  const map_kernel *kernel = map->kernel;
  const uint32_t y = at / map->out_width * kernel->step_down + tap / kernel->width;
  const uint32_t x = at % map->out_width * kernel->step_across + tap % kernel->width;
  const uint32_t top = kernel->height / 2, left = kernel->width / 2;
  if (y < top || x < left || y - top >= in->height || x - left >= in->width) return NULL;
  return in->values + (y - top) * in->down + (x - left) * in->across;
}

static void gather(const row_job *job, uint32_t row) {
  const map_job *map = job->more;
  const uint32_t taps = map->kernel->height * map->kernel->width;
  float *to = job->rows + row * job->stride;
  for (uint32_t tap = 0; tap < taps; tap++) {
    const float *from = below(map, map->first + row, tap);
    for (uint32_t c = 0; c < map->in->channels; c++) {
      to[c * taps + tap] = from == NULL ? 0 : from[c * map->in->deep];
    }
  }
}

// Computes rows[height * width][stride] = a convolution of the map.
static void convolve(media_encoding *encoding, const media_linear *linear, const sound_map *in,
                     const map_kernel *kernel, float *rows, size_t stride) {
  map_job map = {.in = in, .kernel = kernel, .out_width = out_width(in, kernel)};
  const uint32_t count = out_height(in, kernel) * map.out_width;
  const row_job job = {.encoding = encoding,
                       .run = gather,
                       .rows = encoding->wide,
                       .stride = encoding->wide_stride,
                       .macs = 8ull * kernel->height * kernel->width * in->channels,
                       .more = &map};
  for (map.first = 0; map.first < count; map.first += ENCODE_BLOCK_ROWS) {
    const uint32_t left = count - map.first;
    const uint32_t some = left < ENCODE_BLOCK_ROWS ? left : ENCODE_BLOCK_ROWS;
    rows_run(&job, some);
    rows_multiply(encoding, linear, encoding->wide, encoding->wide_stride, some,
                  rows + map.first * stride, stride);
  }
}

static void add_taps(const row_job *job, uint32_t row) {
  const map_job *map = job->more;
  const uint32_t taps = map->kernel->height * map->kernel->width, channels = map->in->channels;
  float *to = job->rows + row * job->stride;
  for (uint32_t c = 0; c < channels; c++) to[c] = map->bias == NULL ? 0 : map->bias[c];
  for (uint32_t tap = 0; tap < taps; tap++) {
    const float *from = below(map, row, tap);
    if (from == NULL) continue;
    for (uint32_t c = 0; c < channels; c++) {
      to[c] += map->taps[c * taps + tap] * from[c * map->in->deep];
    }
  }
}

static sound_map map_of(const float *rows, uint32_t height, uint32_t width, uint32_t channels) {
  const size_t stride = arena_line_floats(channels);
  return (sound_map){rows, height, width, channels, width * stride, stride, 1};
}

static void relu_row(const row_job *job, uint32_t row) {
  job->encoding->model->kernels->relu_mul(job->rows + row * job->stride, NULL, job->width);
}

static void relu(media_encoding *encoding, float *rows, const sound_map *map) {
  const row_job job = {.encoding = encoding,
                       .run = relu_row,
                       .rows = rows,
                       .stride = map->across,
                       .width = map->channels};
  rows_run(&job, map->height * map->width);
}

static const map_kernel HALF = {3, 3, 2, 2};

// Returns rows as the map that a stage with half the height and width of `in` computes.
static sound_map half_of(const media_encoding *encoding, uint32_t stage, const sound_map *in,
                         const float *rows) {
  return map_of(rows, out_height(in, &HALF), out_width(in, &HALF),
                encoding->model->sound->channels[stage]);
}

static sound_map convolve_half(media_encoding *encoding, uint32_t stage, const sound_map *in,
                               float *rows) {
  const sound_map out = half_of(encoding, stage, in, rows);
  convolve(encoding, &encoding->model->sound->convolutions[stage], in, &HALF, rows, out.across);
  return out;
}

static void add_table(media_encoding *encoding, uint32_t first, uint32_t count) {
  const media_model *model = encoding->model;
  const bool is_now = encode_takes(encoding, (uint64_t)count * model->width);
  for (uint32_t i = 0; i < count && is_now; i++) {
    model->kernels->add(encoding->hidden + (first + i) * encoding->stride,
                        model->positions + (size_t)i * model->width, model->width);
  }
}

// ---- kinds ----

static void embed_whisper(media_encoding *encoding) {
  const media_model *model = encoding->model;
  const audio_weights *sound = model->sound;
  const uint32_t frames = encoding->chunk.width, channels = sound->channels[0];
  const sound_map spectrum = {encoding->spectrum, 1, frames, model->bands, 0, 1, frames};
  const map_kernel same = {1, 3, 1, 1}, half = {1, 3, 1, 2};
  const size_t stride = arena_line_floats(channels);
  convolve(encoding, &sound->convolutions[0], &spectrum, &same, encoding->maps[0], stride);
  rows_activate(encoding, ACTIVATION_GELU_ERF, encoding->maps[0], NULL, stride, channels, frames);
  const sound_map inner = map_of(encoding->maps[0], 1, frames, channels);
  convolve(encoding, &sound->convolutions[1], &inner, &half, encoding->hidden, encoding->stride);
  rows_activate(encoding, ACTIVATION_GELU_ERF, encoding->hidden, NULL, encoding->stride,
                model->width, encoding->grid.rows);
  add_table(encoding, 0, encoding->grid.rows);
}

// Joins the channels of a column of the map: row x, value c * height + y; or y * channels + c.
typedef struct columns_job {
  const sound_map *map;
  bool channels_first, are_lines;
} columns_job;

static void take_column(const row_job *job, uint32_t i) {
  const columns_job *columns = job->more;
  const sound_map *map = columns->map;
  const bool are_lines = columns->are_lines;
  const uint32_t other = are_lines ? map->width : map->height;
  float *row = job->rows + i * job->stride;
  for (uint32_t j = 0; j < other; j++) {
    const float *from =
        map->values + (are_lines ? i : j) * map->down + (are_lines ? j : i) * map->across;
    for (uint32_t c = 0; c < map->channels; c++) {
      row[columns->channels_first ? c * other + j : j * map->channels + c] = from[c];
    }
  }
}

static void take_columns(media_encoding *encoding, const sound_map *map, bool channels_first,
                         float *rows, size_t stride, bool are_lines) {
  const columns_job columns = {map, channels_first, are_lines};
  const row_job job = {.encoding = encoding,
                       .run = take_column,
                       .rows = rows,
                       .stride = stride,
                       .width = map->channels * (are_lines ? map->width : map->height),
                       .more = &columns};
  rows_run(&job, are_lines ? map->height : map->width);
}

static void embed_qwen3a_piece(media_encoding *encoding, uint32_t piece) {
  const media_model *model = encoding->model;
  sound_map map = {encoding->spectrum + (size_t)piece * QWEN3A_FRAMES,
                   model->bands,
                   QWEN3A_FRAMES,
                   1,
                   encoding->chunk.width,
                   1,
                   1};
  for (uint32_t i = 0; i < 3; i++) {
    float *rows = encoding->maps[i % 2];
    map = convolve_half(encoding, i, &map, rows);
    rows_activate(encoding, ACTIVATION_GELU_ERF, rows, NULL, map.across, map.channels,
                  map.height * map.width);
  }
  const uint32_t first = piece * map.width;
  const size_t stride = arena_line_floats(map.channels * map.height);
  take_columns(encoding, &map, true, encoding->maps[1], stride, false);
  rows_multiply(encoding, &model->sound->input, encoding->maps[1], stride, map.width,
                encoding->hidden + first * encoding->stride, encoding->stride);
  add_table(encoding, first, map.width);
}

// Returns the spectrum as lines of time.
static sound_map lines_of(const media_encoding *encoding) {
  const uint32_t frames = encoding->chunk.width;
  return (sound_map){encoding->spectrum, frames, encoding->model->bands, 1, 1, frames, 1};
}

static void multiply_lines(media_encoding *encoding, const sound_map *map, bool channels_first,
                           float *room) {
  const size_t stride = arena_line_floats(map->channels * map->width);
  take_columns(encoding, map, channels_first, room, stride, true);
  rows_multiply(encoding, &encoding->model->sound->input, room, stride, map->height,
                encoding->hidden, encoding->stride);
}

static void embed_gemma4a(media_encoding *encoding) {
  sound_map map = lines_of(encoding);
  for (uint32_t i = 0; i < 2; i++) {
    float *rows = encoding->maps[i];
    map = convolve_half(encoding, i, &map, rows);
    rows_norm(encoding, &encoding->model->sound->norms[i], false, 1e-6f, map.channels, rows,
              map.across, rows, map.across, map.height * map.width);
    relu(encoding, rows, &map);
  }
  multiply_lines(encoding, &map, false, encoding->maps[0]);
}

// Computes a stage with filters of each channel, then a product across channels.
static sound_map filter_half(media_encoding *encoding, uint32_t stage, const sound_map *in,
                             float *rows) {
  const audio_weights *sound = encoding->model->sound;
  const sound_map out = half_of(encoding, stage, in, rows);
  const map_job taps = {.in = in,
                        .kernel = &HALF,
                        .taps = sound->by_channel[stage],
                        .bias = sound->by_channel_bias[stage],
                        .out_width = out.width};
  const row_job job = {.encoding = encoding,
                       .run = add_taps,
                       .rows = encoding->maps[1],
                       .stride = arena_line_floats(in->channels),
                       .width = 9 * in->channels,
                       .more = &taps};
  rows_run(&job, out.height * out.width);
  rows_multiply(encoding, &sound->convolutions[stage], job.rows, job.stride, out.height * out.width,
                rows, out.across);
  return out;
}

static void embed_lfm2a(media_encoding *encoding) {
  float *rows = encoding->maps[0];
  sound_map map = lines_of(encoding);
  for (uint32_t i = 0; i < 3; i++) {
    map = (i == 0 ? convolve_half : filter_half)(encoding, i, &map, rows);
    relu(encoding, rows, &map);
  }
  multiply_lines(encoding, &map, true, encoding->maps[1]);
}

static void embed_granite(media_encoding *encoding) {
  const uint32_t frames = encoding->chunk.width;
  const sound_map map = {encoding->spectrum, frames, 2 * encoding->model->bands, 1, 1, frames, 1};
  multiply_lines(encoding, &map, false, encoding->maps[0]);
}

static void compute_spectrum(media_encoding *encoding) {
  enum { PIECE = 64 };
  sound_job *job = encoding->sound_job;
  const uint32_t frames = sound_frames(job);
  for (uint32_t first = 0; first < frames; first += PIECE) {
    const uint32_t some = frames - first < PIECE ? frames - first : PIECE;
    if (encode_takes(encoding, (uint64_t)some * SOUND_FRAME_MACS)) sound_compute(job, first, some);
  }
  if (encode_takes(encoding, (uint64_t)frames * SOUND_FRAME_MACS / 16)) {
    sound_finish(job, encoding->spectrum);
  }
}

void stem_embed(media_encoding *encoding) {
  compute_spectrum(encoding);
  switch (encoding->model->audio->stem) {
    case STEM_WHISPER:
      embed_whisper(encoding);
      return;
    case STEM_QWEN3A:
      for (uint32_t i = 0; i < encoding->chunk.width / QWEN3A_FRAMES; i++) {
        embed_qwen3a_piece(encoding, i);
      }
      return;
    case STEM_GEMMA4A:
      embed_gemma4a(encoding);
      return;
    case STEM_LFM2A:
      embed_lfm2a(encoding);
      return;
    case STEM_GRANITE:
      embed_granite(encoding);
      return;
  }
}

// ---- sizes ----

static uint32_t halved(uint32_t value) { return value == 0 ? 0 : (value - 1) / 2 + 1; }

uint32_t audio_inner_rows(const media_model *model, uint32_t frames) {
  switch (model->audio->stem) {
    case STEM_WHISPER:
      return halved(frames);
    case STEM_QWEN3A:
      return frames / QWEN3A_FRAMES * halved(halved(halved(QWEN3A_FRAMES)));
    case STEM_GEMMA4A:
      return halved(halved(frames));
    case STEM_LFM2A:
      return halved(halved(halved(frames)));
    default:
      return frames;
  }
}

uint32_t audio_rows(const media_model *model, uint32_t frames) {
  uint32_t rows = audio_inner_rows(model, frames);
  const bool is_published = !model->options.follows_llama_cpp;
  if (model->audio->stem == STEM_GRANITE) {
    const audio_qformer *former = &model->sound->qformer;
    return ceil_div_u32(rows, former->window) * former->queries;
  }
  for (const media_step *step = model->audio->steps; step->op != OP_END; step++) {
    if (step->op == OP_MEAN_OF_TWO && !(step->is_unpublished && is_published)) rows /= 2;
    if (step->op == OP_STACK) rows = (rows + (is_published ? model->stack - 1 : 0)) / model->stack;
  }
  return rows;
}

uint64_t stem_map_floats(const media_model *model, uint32_t frames) {
  const audio_weights *sound = model->sound;
  uint32_t height = frames, width = model->bands;
  uint64_t most = (uint64_t)frames * arena_line_floats(2 * model->bands);
  const uint64_t gated =
      (uint64_t)audio_inner_rows(model, frames) * arena_line_floats(2 * sound->conv_channels);
  if (gated > most) most = gated;
  if (model->audio->stem == STEM_WHISPER) return frames * arena_line_floats(sound->channels[0]);
  if (model->audio->stem == STEM_QWEN3A) height = QWEN3A_FRAMES;
  for (uint32_t i = 0; i < STEM_STAGES_MAX && sound->channels[i] != 0; i++) {
    height = halved(height);
    width = halved(width);
    const uint64_t map = (uint64_t)height * width * arena_line_floats(sound->channels[i]);
    const uint64_t lines = (uint64_t)height * arena_line_floats(width * sound->channels[i]);
    if (map > most) most = map;
    if (lines > most) most = lines;
  }
  return most;
}

uint32_t stem_widest(const media_model *model) {
  const audio_weights *sound = model->sound;
  uint32_t most = sound->input.matrix.dims[0];
  for (uint32_t i = 0; i < STEM_STAGES_MAX; i++) {
    if (sound->convolutions[i].matrix.dims[0] > most) most = sound->convolutions[i].matrix.dims[0];
  }
  if (2 * sound->conv_channels > most) most = 2 * sound->conv_channels;
  if (sound->qformer.in > most) most = sound->qformer.in;
  if (sound->aside.matrix.dims[1] > most) most = sound->aside.matrix.dims[1];
  for (uint32_t i = 0; i < model->layer_count && sound->layers != NULL; i++) {
    for (int k = 0; k < 2; k++) {
      if (sound->layers[i].ffn[k].width > most) most = sound->layers[i].ffn[k].width;
    }
  }
  for (uint32_t i = 0; i < sound->qformer.blocks; i++) {
    if (sound->qformer.layers[i].ffn.width > most) most = sound->qformer.layers[i].ffn.width;
  }
  return most;
}

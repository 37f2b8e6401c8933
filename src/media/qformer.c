// media/qformer.c — Granite's projector (Li et al. 2023, "BLIP-2"): a few learned queries attend to
// each window of rows. A norm follows each attention and feed-forward.
#include <string.h>

#include "base/math.h"
#include "media/audio_encode.h"

static const float EPSILON = 1e-12f;

typedef struct former_rows {
  uint32_t windows, rows;                     // rows: of queries
  size_t in_stride, stride;                   // floats
  float *in;                                  // [windows * window]
  float *state, *q, *k, *v, *attended, *sum;  // [windows * window]
} former_rows;

static uint32_t windows_of(const audio_qformer *former, uint32_t rows) {
  return ceil_div_u32(rows, former->window);
}

uint64_t qformer_floats(const media_model *model, uint32_t rows) {
  const audio_qformer *former = &model->sound->qformer;
  const uint64_t padded = (uint64_t)windows_of(former, rows) * former->window;
  return padded * (arena_line_floats(former->in) + 6ull * arena_line_floats(former->width));
}

static former_rows take_rows(media_encoding *encoding) {
  const audio_qformer *former = &encoding->model->sound->qformer;
  former_rows rows = {.windows = windows_of(former, encoding->grid.rows)};
  rows.rows = rows.windows * former->queries;
  rows.in_stride = arena_line_floats(former->in);
  rows.stride = arena_line_floats(former->width);
  const size_t padded = (size_t)rows.windows * former->window, step = padded * rows.stride;
  rows.in = encoding->relative;
  rows.state = rows.in + padded * rows.in_stride;
  rows.q = rows.state + step;
  rows.k = rows.q + step;
  rows.v = rows.k + step;
  rows.attended = rows.v + step;
  rows.sum = rows.attended + step;
  return rows;
}

typedef struct former_attention {
  const former_rows *rows;
  uint32_t keys;  // keys per window
} former_attention;

static float dot(const float *a, const float *b, uint32_t n) {
  float sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Computes the attention of one query of a window over the window's keys, with an online softmax.
static void attend_row(const row_job *job, uint32_t row) {
  const audio_qformer *former = &job->encoding->model->sound->qformer;
  const former_attention *attention = job->more;
  const former_rows *rows = attention->rows;
  const uint32_t dim = former->width / former->heads;
  const size_t first = (size_t)(row / former->queries) * attention->keys * rows->stride;
  const float scale = 1 / __builtin_sqrtf((float)dim);
  for (uint32_t at = 0; at < former->width; at += dim) {
    const float *q = rows->q + row * rows->stride + at;
    float *out = rows->attended + row * rows->stride + at;
    float most = -3e38f, sum = 0;
    memset(out, 0, dim * sizeof *out);
    for (uint32_t j = 0; j < attention->keys; j++) {
      const float score = scale * dot(q, rows->k + first + j * rows->stride + at, dim);
      const float *v = rows->v + first + j * rows->stride + at;
      const float more = score > most ? score : most;
      const float kept = (float)math_exp((double)most - more);
      const float part = (float)math_exp((double)score - more);
      for (uint32_t c = 0; c < dim; c++) out[c] = out[c] * kept + part * v[c];
      sum = sum * kept + part;
      most = more;
    }
    for (uint32_t c = 0; c < dim; c++) out[c] /= sum;
  }
}

// Computes state = norm(state + sum).
static void add_and_norm(media_encoding *encoding, const former_rows *rows,
                         const media_norm *norm) {
  const media_model *model = encoding->model;
  const uint32_t width = model->sound->qformer.width;
  const bool is_now = encode_takes(encoding, (uint64_t)rows->rows * width);
  for (uint32_t row = 0; row < rows->rows && is_now; row++) {
    model->kernels->add(rows->state + row * rows->stride, rows->sum + row * rows->stride, width);
  }
  rows_norm(encoding, norm, false, EPSILON, width, rows->state, rows->stride, rows->state,
            rows->stride, rows->rows);
}

static void attend(media_encoding *encoding, const former_rows *rows,
                   const qformer_attention *weights, bool is_cross) {
  const audio_qformer *former = &encoding->model->sound->qformer;
  const former_attention attention = {rows, is_cross ? former->window : former->queries};
  const uint32_t keys = rows->windows * attention.keys;
  const float *from = is_cross ? rows->in : rows->state;
  const size_t from_stride = is_cross ? rows->in_stride : rows->stride;
  rows_multiply(encoding, &weights->q, rows->state, rows->stride, rows->rows, rows->q,
                rows->stride);
  rows_multiply(encoding, &weights->k, from, from_stride, keys, rows->k, rows->stride);
  rows_multiply(encoding, &weights->v, from, from_stride, keys, rows->v, rows->stride);
  const row_job job = {.encoding = encoding,
                       .run = attend_row,
                       .macs = 16ull * attention.keys * former->width,
                       .more = &attention};
  rows_run(&job, rows->rows);
  rows_multiply(encoding, &weights->out, rows->attended, rows->stride, rows->rows, rows->sum,
                rows->stride);
  add_and_norm(encoding, rows, &weights->norm);
}

// Fills the rows with `from`, padded, and the queries of each window.
static void fill_rows(const media_encoding *encoding, const former_rows *rows, const float *from,
                      size_t from_stride) {
  const audio_qformer *former = &encoding->model->sound->qformer;
  memset(rows->in, 0, (size_t)rows->windows * former->window * rows->in_stride * sizeof(float));
  for (uint32_t row = 0; row < encoding->grid.rows; row++) {
    memcpy(rows->in + row * rows->in_stride, from + row * from_stride, former->in * sizeof(float));
  }
  for (uint32_t row = 0; row < rows->rows; row++) {
    memcpy(rows->sum + row * rows->stride, former->query + row % former->queries * former->width,
           former->width * sizeof(float));
  }
}

uint32_t qformer_run(media_encoding *encoding, const float *from, size_t from_stride, float **out,
                     size_t *out_stride) {
  const audio_qformer *former = &encoding->model->sound->qformer;
  const former_rows rows = take_rows(encoding);
  if (encode_takes(encoding, (uint64_t)encoding->grid.rows * former->in)) {
    fill_rows(encoding, &rows, from, from_stride);
  }
  rows_norm(encoding, &former->norm, false, EPSILON, former->width, rows.sum, rows.stride,
            rows.state, rows.stride, rows.rows);
  for (uint32_t i = 0; i < former->blocks; i++) {
    const qformer_layer *layer = &former->layers[i];
    attend(encoding, &rows, &layer->self, false);
    attend(encoding, &rows, &layer->cross, true);
    rows_feed_forward(encoding, &layer->ffn, ACTIVATION_GELU_TANH, rows.state, rows.stride,
                      rows.rows, rows.sum, rows.stride);
    add_and_norm(encoding, &rows, &layer->norm);
  }
  *out = rows.state;
  *out_stride = rows.stride;
  return rows.rows;
}

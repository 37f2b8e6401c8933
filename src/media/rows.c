// media/rows.c — operations on rows: matrix products, norms, activations (encode.h).
#include <string.h>

#include "media/encode.h"

// VALUE_MACS: the cost of an activation or a norm. For matrix products, ROWS_LEAST is the minimum
// number of rows of a slice, and ROWS_TOGETHER the number of rows that kernels multiply together.
enum { VALUE_MACS = 16, ROWS_LEAST = 16, ROWS_TOGETHER = 64 };

static void run_rows(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  row_job job = *(const row_job *)context;
  job.thread = thread;
  for (uint32_t row = first; row < last; row++) job.run(&job, job.first + row);
}

// Returns the number of rows that fit into a slice, at least `least` and at most `most`.
static uint32_t rows_of_slice(const media_encoding *encoding, uint64_t row_macs, uint32_t least,
                              uint32_t most) {
  const uint64_t rows = encoding->slice_macs_max / (row_macs == 0 ? 1 : row_macs);
  if (rows < least) return least;
  return rows < most ? (uint32_t)rows : most;
}

void rows_run(const row_job *job, uint32_t count) {
  row_job piece = *job;
  const uint64_t macs = job->macs != 0 ? job->macs : (uint64_t)VALUE_MACS * (job->width + 1);
  const uint32_t most = rows_of_slice(job->encoding, macs, 1, UINT32_MAX);
  for (uint32_t left = count; left != 0; piece.first += most) {
    const uint32_t some = left < most ? left : most;
    if (encode_takes(job->encoding, some * macs)) {
      thread_pool_for(job->encoding->threads, some, run_rows, &piece);
    }
    left -= some;
  }
}

static void clamp_to(float *x, uint32_t n, float low, float high) {
  for (uint32_t i = 0; i < n; i++) x[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

static void clamp_input_row(const row_job *job, uint32_t row) {
  const media_clamps *clamps = job->more;
  float *to = job->rows + row * job->stride;
  memcpy(to, job->from + row * job->from_stride, job->width * sizeof *to);
  clamp_to(to, job->width, clamps->input_min, clamps->input_max);
}

static void clamp_output_row(const row_job *job, uint32_t row) {
  const media_clamps *clamps = job->more;
  clamp_to(job->rows + row * job->stride, job->width, clamps->output_min, clamps->output_max);
}

static void run_product(media_encoding *encoding, const media_linear *linear, const float *x,
                        size_t x_stride, uint32_t count, float *y, size_t y_stride) {
  model_product product = {.kernels = encoding->model->kernels,
                           .threads = encoding->threads,
                           .x = x,
                           .x_stride = x_stride,
                           .cols = linear->matrix.dims[0],
                           .tokens = count,
                           .act = encoding->act};
  product_add(&product, &linear->matrix, linear->bias, y, y_stride);
  product_run(&product);
}

static void multiply_block(media_encoding *encoding, const media_linear *linear, const float *x,
                           size_t x_stride, uint32_t count, float *y, size_t y_stride) {
  const uint32_t cols = linear->matrix.dims[0];
  row_job job = {.encoding = encoding, .more = linear->clamps, .width = cols};
  if (linear->clamps != NULL) {
    job.run = clamp_input_row;
    job.from = x;
    job.from_stride = x_stride;
    job.rows = encoding->copy;
    job.stride = x_stride = encoding->wide_stride;
    rows_run(&job, count);
    x = encoding->copy;
  }
  if (encode_takes(encoding, (uint64_t)cols * linear->matrix.dims[1] * count)) {
    run_product(encoding, linear, x, x_stride, count, y, y_stride);
  }
  if (linear->clamps == NULL) return;
  job.run = clamp_output_row;
  job.rows = y;
  job.stride = y_stride;
  job.width = linear->matrix.dims[1];
  rows_run(&job, count);
}

void rows_multiply(media_encoding *encoding, const media_linear *linear, const float *x,
                   size_t x_stride, uint32_t count, float *y, size_t y_stride) {
  const uint64_t macs = (uint64_t)linear->matrix.dims[0] * linear->matrix.dims[1];
  uint32_t most = rows_of_slice(encoding, macs, ROWS_LEAST, ENCODE_BLOCK_ROWS);
  if (most > ROWS_TOGETHER) most -= most % ROWS_TOGETHER;
  for (uint32_t row = 0, some; row < count; row += some) {
    const uint32_t left = count - row;
    some = left < most ? left : most;
    // kernels are slower with few rows, so the remaining rows are divided into halves instead of
    // leaving a few
    const bool leaves_few = left > most && left - most < ROWS_TOGETHER / 2;
    if (leaves_few && most >= ROWS_TOGETHER) some = left / 2;
    multiply_block(encoding, linear, x + row * x_stride, x_stride, some, y + row * y_stride,
                   y_stride);
  }
}

static void norm_row_of(const row_job *job, uint32_t row) {
  const kernel_table *kernels = job->encoding->model->kernels;
  const float *from = job->from + row * job->from_stride;
  float *to = job->rows + row * job->stride;
  if (job->is_rms) {
    kernels->rms_norm(from, job->norm->weight, job->width, job->epsilon, to);
  } else {
    kernels->layer_norm(from, job->norm->weight, job->norm->bias, job->width, job->epsilon, to);
  }
}

void rows_norm(media_encoding *encoding, const media_norm *norm, bool is_rms, float epsilon,
               uint32_t width, const float *from, size_t from_stride, float *to, size_t stride,
               uint32_t count) {
  const row_job job = {.encoding = encoding,
                       .run = norm_row_of,
                       .rows = to,
                       .stride = stride,
                       .from = from,
                       .from_stride = from_stride,
                       .norm = norm,
                       .is_rms = is_rms,
                       .epsilon = epsilon,
                       .width = width};
  rows_run(&job, count);
}

// Computes x sigmoid(1.702 x), with the arguments of the sigmoid in small pieces on the stack.
static void gelu_quick(const kernel_table *kernels, float *x, uint32_t n) {
  enum { PIECE = 256 };
  float scaled[PIECE];
  for (uint32_t at = 0; at < n; at += PIECE) {
    const uint32_t count = n - at < PIECE ? n - at : PIECE;
    memcpy(scaled, x + at, count * sizeof *scaled);
    kernels->scale(scaled, 1.702f, count);
    kernels->sigmoid_mul(x + at, scaled, count);
  }
}

static void activate_row(const row_job *job, uint32_t row) {
  const kernel_table *kernels = job->encoding->model->kernels;
  float *x = job->rows + row * job->stride;
  const float *factors = job->from == NULL ? NULL : job->from + row * job->from_stride;
  switch (job->activation) {
    case ACTIVATION_GELU_TANH:
      kernels->gelu_mul(x, factors, job->width);
      return;
    case ACTIVATION_GELU_ERF:
      kernels->gelu_erf_mul(x, factors, job->width);
      return;
    case ACTIVATION_SILU:
      kernels->silu(x, job->width);
      break;
    default:
      gelu_quick(kernels, x, job->width);
      break;
  }
  if (factors != NULL) kernels->multiply(x, factors, job->width);
}

void rows_activate(media_encoding *encoding, media_activation activation, float *rows,
                   const float *factors, size_t stride, uint32_t width, uint32_t count) {
  const row_job job = {
      .encoding = encoding,
      .run = activate_row,
      .rows = rows,
      .stride = stride,
      .from = factors,
      .from_stride = stride,
      .width = width,
      .activation = activation == ACTIVATION_FILE ? encoding->model->activation : activation};
  rows_run(&job, count);
}

void rows_feed_forward(media_encoding *encoding, const media_feed_forward *ffn,
                       media_activation activation, const float *x, size_t x_stride, uint32_t count,
                       float *y, size_t y_stride) {
  const size_t stride = encoding->wide_stride;
  const bool has_gate = linear_is_present(&ffn->gate);
  float *inner = encoding->wide;
  for (uint32_t row = 0; row < count; row += ENCODE_BLOCK_ROWS) {
    const uint32_t left = count - row;
    const uint32_t some = left < ENCODE_BLOCK_ROWS ? left : ENCODE_BLOCK_ROWS;
    const float *in = x + row * x_stride;
    float *factors = has_gate ? encoding->gate : NULL;
    rows_multiply(encoding, has_gate ? &ffn->gate : &ffn->up, in, x_stride, some, inner, stride);
    if (has_gate) rows_multiply(encoding, &ffn->up, in, x_stride, some, factors, stride);
    rows_activate(encoding, activation, inner, factors, stride, ffn->width, some);
    rows_multiply(encoding, &ffn->down, inner, stride, some, y + row * y_stride, y_stride);
  }
}

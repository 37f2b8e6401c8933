// media/project.c — the steps after the layers: merging patches, and the projector (encode.h).
#include <string.h>

#include "media/encode.h"

// Returns whether the step merges blocks of patches.
static bool merges(const media_bound_step *bound) {
  if (bound->step->op == OP_GATHER) return bound->out != bound->in;
  return bound->step->op == OP_SHUFFLE || bound->step->op == OP_POOL;
}

// Returns whether the step joins consecutive rows.
static bool joins(const media_model *model, const media_step *step) {
  const bool is_left_out = step->is_unpublished && !model->options.follows_llama_cpp;
  return (step->op == OP_STACK || step->op == OP_MEAN_OF_TWO) && !is_left_out;
}

uint64_t project_rows(const media_model *model, const media_bound_step *bound, uint32_t merge,
                      uint64_t rows) {
  if (merges(bound)) return rows / ((uint64_t)merge * merge);
  if (!joins(model, bound->step)) return rows;
  return rows / (bound->step->op == OP_STACK ? model->stack : 2);
}

uint64_t project_floats(const media_projector *projector, uint32_t patches, uint32_t merge) {
  uint64_t most = 0;
  uint64_t rows = patches;
  for (uint32_t i = 0; i < projector->count; i++) {
    const media_bound_step *bound = &projector->steps[i];
    if (bound->step->op == OP_STACK) rows = rows / (bound->out / bound->in) + 1;
    // blocks at two edges may be incomplete, which adds at most that many rows
    if (merges(bound) && merge > 1) rows = rows / merge + merge + 1;
    const uint64_t floats = rows * arena_line_floats(bound->out);
    if (floats > most) most = floats;
  }
  return most;
}

typedef struct merge_job {
  uint32_t merge, width, blocks_across;
  media_op op;
} merge_job;

// Turns a block of patches into one row; patches beyond the grid are zeros.
static void merge_block(const row_job *job, uint32_t block) {
  const merge_job *merge = job->more;
  const patch_grid *grid = &job->encoding->grid;
  const uint32_t n = merge->merge, width = merge->width, area = n * n;
  float *to = job->rows + block * job->stride;
  if (merge->op == OP_POOL) memset(to, 0, width * sizeof *to);
  for (uint32_t i = 0; i < area; i++) {
    const uint32_t y = block / merge->blocks_across * n + i / n;
    const uint32_t x = block % merge->blocks_across * n + i % n;
    const bool is_inside = y < grid->down && x < grid->across;
    const float *from =
        is_inside ? job->from + grid->row_of[y * grid->across + x] * job->from_stride : NULL;
    for (uint32_t c = 0; c < width; c++) {
      const float value = from == NULL ? 0 : from[c];
      if (merge->op == OP_POOL) to[c] += value;
      if (merge->op == OP_SHUFFLE) to[i * width + c] = value;
      if (merge->op == OP_GATHER) to[c * area + i] = value;
    }
  }
  if (merge->op == OP_POOL) job->encoding->model->kernels->scale(to, 1.0f / (float)area, width);
}

// Joins `stack` rows, or computes the mean of two rows. Rows beyond the last one are zeros.
static void join_row(const row_job *job, uint32_t row) {
  const merge_job *merge = job->more;
  float *to = job->rows + row * job->stride;
  const bool is_mean = merge->op == OP_MEAN_OF_TWO;
  memset(to, 0, (size_t)merge->width * (is_mean ? 1 : merge->merge) * sizeof *to);
  for (uint32_t i = 0; i < merge->merge; i++) {
    const uint32_t at = row * merge->merge + i;
    if (at >= merge->blocks_across) break;
    const float *from = job->from + at * job->from_stride;
    for (uint32_t c = 0; c < merge->width; c++) {
      if (is_mean) to[c] += 0.5f * from[c];
      if (!is_mean) to[i * merge->width + c] = from[c];
    }
  }
}

static uint32_t join_rows(row_job *job, const media_bound_step *bound, uint32_t rows) {
  const media_model *model = job->encoding->model;
  const bool is_mean = bound->step->op == OP_MEAN_OF_TWO;
  const merge_job merge = {is_mean ? 2 : model->stack, bound->in, rows, bound->step->op};
  const bool keeps_rest = !is_mean && !model->options.follows_llama_cpp;
  const uint32_t joined = (rows + (keeps_rest ? merge.merge - 1 : 0)) / merge.merge;
  job->run = join_row;
  job->more = &merge;
  rows_run(job, joined);
  return joined;
}

static uint32_t merge_rows(row_job *job, const media_bound_step *bound, uint32_t n) {
  const patch_grid *grid = &job->encoding->grid;
  const merge_job merge = {n, bound->in, ceil_div_u32(grid->across, n), bound->step->op};
  const uint32_t blocks = merge.blocks_across * ceil_div_u32(grid->down, n);
  job->run = merge_block;
  job->more = &merge;
  rows_run(job, blocks);
  return blocks;
}

static void scale_row(const row_job *job, uint32_t row) {
  float *to = job->rows + row * job->stride;
  const media_model *model = job->encoding->model;
  memmove(to, job->from + row * job->from_stride, job->width * sizeof *to);
  if (job->scale != NULL) model->kernels->scale(to, *job->scale, job->width);
  if (job->post == NULL) return;
  for (uint32_t i = 0; i < job->width; i++) to[i] = (to[i] - job->post[i]) * job->after[i];
}

static void copy_rows(row_job *job, const media_bound_step *bound, uint32_t rows) {
  const media_model *model = job->encoding->model;
  const float root = __builtin_sqrtf((float)bound->in);
  job->run = scale_row;
  if (bound->step->op == OP_ROOT_OF_WIDTH) job->scale = &root;
  if (bound->step->op == OP_STANDARDISE && model->std_bias != NULL && model->std_scale != NULL) {
    job->post = model->std_bias;
    job->after = model->std_scale;
  }
  rows_run(job, rows);
  if (bound->step->op == OP_ACTIVATION) {
    rows_activate(job->encoding, bound->step->activation, job->rows, NULL, job->stride, bound->in,
                  rows);
  }
}

// Computes A silu(B).
static void swiglu_row(const row_job *job, uint32_t row) {
  const kernel_table *kernels = job->encoding->model->kernels;
  const float *from = job->from + row * job->from_stride;
  float *to = job->rows + row * job->stride;
  memcpy(to, from + job->width, job->width * sizeof *to);
  kernels->silu_mul(to, from, job->width);
}

// Applies one step to rows. Input and output must not overlap.
static uint32_t run_step(media_encoding *encoding, const media_bound_step *bound, uint32_t merge,
                         uint32_t rows, const float *from, size_t from_stride, float *to,
                         size_t stride) {
  const media_step *step = bound->step;
  const float epsilon = step->epsilon != 0 ? step->epsilon : encoding->model->epsilon;
  const bool is_rms = step->op != OP_LAYER_NORM;
  row_job job = {.encoding = encoding,
                 .rows = to,
                 .stride = stride,
                 .from = from,
                 .from_stride = from_stride,
                 .width = bound->out};
  if (merges(bound)) return merge_rows(&job, bound, merge);
  if (joins(encoding->model, step)) return join_rows(&job, bound, rows);
  switch (step->op) {
    case OP_SWIGLU:
      job.run = swiglu_row;
      rows_run(&job, rows);
      return rows;
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
    case OP_UNIT_NORM:
      if (step->op != OP_UNIT_NORM && bound->norm.weight == NULL) break;
      rows_norm(encoding, &bound->norm, is_rms, epsilon, bound->in, from, from_stride, to, stride,
                rows);
      return rows;
    case OP_LINEAR:
    case OP_LINEAR_TURNED:
      if (!linear_is_present(&bound->linear)) break;
      rows_multiply(encoding, &bound->linear, from, from_stride, rows, to, stride);
      return rows;
    case OP_GATED:
      rows_feed_forward(encoding, &bound->gated, step->activation, from, from_stride, rows, to,
                        stride);
      return rows;
    default:
      break;
  }
  copy_rows(&job, bound, rows);
  return rows;
}

void project(media_encoding *encoding, const media_projector *projector, const float *from,
             size_t from_stride, uint32_t merge, float *out, size_t out_stride) {
  uint32_t rows = encoding->grid.patches;
  for (uint32_t i = 0; i < projector->count; i++) {
    const media_bound_step *bound = &projector->steps[i];
    const size_t stride = arena_line_floats(bound->out);
    float *to = i % 2 == 0 ? encoding->ping : encoding->pong;
    rows = run_step(encoding, bound, merge, rows, from, from_stride, to, stride);
    from = to;
    from_stride = stride;
  }
  const uint32_t line = encoding->model->line_break == NULL ? UINT32_MAX : encoding->chunk.across;
  const bool is_now = encode_takes(encoding, (uint64_t)rows * projector->out);
  for (uint32_t row = 0; row < rows && is_now; row++) {
    memcpy(out + (row + row / line) * out_stride, from + row * from_stride,
           projector->out * sizeof *out);
  }
}

// model/pass.c — see pass.h.
#include "model/pass.h"

#include <string.h>

#include "model/measure.h"

void norm_row(const model_pass *pass, const float *x, const float *weight, const float *bias,
              uint32_t n, float *out) {
  const model_config *config = &pass->model->config;
  if (config->has_layer_norms) {
    pass->kernels->layer_norm(x, weight, bias, n, config->norm_epsilon, out);
  } else {
    pass->kernels->rms_norm(x, weight, n, config->norm_epsilon, out);
    if (bias != NULL) pass->kernels->add(out, bias, n);
  }
}

typedef struct norm_job {
  const model_pass *pass;
  const float *rows, *weight, *bias;
  float scale;
} norm_job;

static void norm_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const norm_job *job = context;
  const model_pass *pass = job->pass;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    norm_row(pass, job->rows + at, job->weight, job->bias, pass->model->config.hidden,
             pass->normed + at);
  }
}

void pass_norm(model_pass *pass, const float *rows, const float *weight, const float *bias) {
  norm_job job = {.pass = pass, .rows = rows, .weight = weight, .bias = bias};
  thread_pool_for(pass->threads, pass->count, norm_tokens, &job);
  measure_rows(pass->ops, OP_NORM, pass->count, 2ull * pass->model->config.hidden);
}

static void add_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const norm_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t hidden = pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    float *row = pass->normed + at;
    if (job->weight != NULL) norm_row(pass, row, job->weight, NULL, hidden, row);
    if (job->scale != 1) pass->kernels->scale(row, job->scale, hidden);
    pass->kernels->add(pass->hidden + at, row, hidden);
  }
}

void pass_add_normed(model_pass *pass, const float *weight, float scale) {
  norm_job job = {pass, NULL, weight, NULL, scale};
  thread_pool_for(pass->threads, pass->count, add_tokens, &job);
  measure_rows(pass->ops, OP_NORM, pass->count, 3ull * pass->model->config.hidden);
}

void pass_multiply(model_pass *pass, op_kind op, const weight_tensor *matrix, const float *bias,
                   const float *x, uint32_t x_stride, float *y, uint32_t y_stride) {
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = pass_product(pass, x, x_stride, matrix->dims[0]);
  product_add(&product, matrix, bias, y, y_stride);
  product_run(&product);
  measure_product(pass->ops, op, &product);
  arena_release(&pass->arena, begin);
}

void pass_add_output(model_pass *pass, const pass_output *output, const float *rows,
                     uint32_t stride) {
  const bool is_direct = output->post_norm == NULL && output->scale == 1;
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = pass_product(pass, rows, stride, output->matrix->dims[0]);
  product_add_residual(&product, output->matrix, output->bias, pass->normed,
                       is_direct ? pass->hidden : NULL, pass->hidden_stride);
  product_run(&product);
  measure_product(pass->ops, output->op, &product);
  if (!is_direct) pass_add_normed(pass, output->post_norm, output->scale);
  arena_release(&pass->arena, begin);
}

static void norm_sums(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const norm_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t hidden = pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = pass->hidden + (size_t)t * pass->hidden_stride;
    if (job->rows != NULL) {
      pass->kernels->add(row, job->rows + (size_t)t * pass->hidden_stride, hidden);
    }
    norm_row(pass, row, job->weight, job->bias, hidden, row);
  }
}

void pass_norm_sums(model_pass *pass, bool with_aside, const float *weight, const float *bias) {
  norm_job job = {pass, with_aside ? pass->aside : NULL, weight, bias, 1};
  if (weight == NULL) return;
  thread_pool_for(pass->threads, pass->count, norm_sums, &job);
  measure_rows(pass->ops, OP_NORM, pass->count, 2ull * pass->model->config.hidden);
}

void pass_set_aside(model_pass *pass, const float *rows) {
  memcpy(pass->aside, rows, (size_t)pass->count * pass->hidden_stride * sizeof(float));
}

model_product pass_product(model_pass *pass, const float *x, uint32_t x_stride, uint32_t cols) {
  return (model_product){.kernels = pass->kernels,
                         .threads = pass->threads,
                         .x = x,
                         .x_stride = x_stride,
                         .cols = cols,
                         .tokens = pass->count,
                         .adapters = pass->has_adapters ? pass->adapters : NULL,
                         .act = arena_take_act(&pass->arena, pass->arena.batch_tokens, cols)};
}

bool pass_keep_wanted(model_pass *pass, float *rows, uint32_t stride, uint32_t width) {
  if (pass->layer + 1 != pass->model->config.layers || pass->keeps_rows) return true;
  for (uint32_t i = 0; i < pass->wanted_count; i++) {
    const size_t from = pass->wanted[i], to = i;
    if (from == to) continue;
    pass->adapters[to] = pass->adapters[from];
    memcpy(pass->hidden + to * pass->hidden_stride, pass->hidden + from * pass->hidden_stride,
           pass->model->config.hidden * sizeof(float));
    if (pass->aside != NULL) {
      memcpy(pass->aside + to * pass->hidden_stride, pass->aside + from * pass->hidden_stride,
             pass->model->config.hidden * sizeof(float));
    }
    const size_t wide = (size_t)pass->model->streams * pass->hidden_stride;
    memcpy(pass->streams + to * wide, pass->streams + from * wide, wide * sizeof(float));
    memcpy(rows + to * stride, rows + from * stride, width * sizeof(float));
  }
  pass->count = pass->wanted_count;
  return pass->count != 0;
}

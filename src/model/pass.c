// model/pass.c — see pass.h.
#include "model/pass.h"

#include <string.h>

#include "model/measure.h"

typedef struct norm_job {
  const model_pass *pass;
  const float *weight;
} norm_job;

static void norm_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const norm_job *job = context;
  const model_pass *pass = job->pass;
  const model_config *config = &pass->model->config;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    pass->kernels->rms_norm(pass->hidden + at, job->weight, config->hidden, config->norm_epsilon,
                            pass->normed + at);
  }
}

void pass_norm(model_pass *pass, const float *weight) {
  norm_job job = {pass, weight};
  thread_pool_for(pass->threads, pass->count, norm_tokens, &job);
  measure_rows(pass->ops, OP_NORM, pass->count, 2ull * pass->model->config.hidden);
}

model_product pass_product(model_pass *pass, const float *x, uint32_t x_stride, uint32_t cols) {
  return (model_product){.kernels = pass->kernels,
                         .threads = pass->threads,
                         .x = x,
                         .x_stride = x_stride,
                         .cols = cols,
                         .tokens = pass->count,
                         .act = arena_take_act(&pass->arena, pass->arena.batch_tokens, cols)};
}

bool pass_keep_wanted(model_pass *pass, float *rows, uint32_t stride, uint32_t width) {
  if (pass->layer + 1 != pass->model->config.layers) return true;
  for (uint32_t i = 0; i < pass->wanted_count; i++) {
    const size_t from = pass->wanted[i], to = i;
    if (from == to) continue;
    memcpy(pass->hidden + to * pass->hidden_stride, pass->hidden + from * pass->hidden_stride,
           pass->model->config.hidden * sizeof(float));
    memcpy(rows + to * stride, rows + from * stride, width * sizeof(float));
  }
  pass->count = pass->wanted_count;
  return pass->count != 0;
}

// model/blocks/altup.c — see altup.h.
#include "model/blocks/altup.h"

#include <string.h>

#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"

enum { STREAMS = ALTUP_STREAMS, OTHERS = STREAMS - 1 };

// Returns row `stream` of a token; 0 is the prediction of the first row, which itself is in
// pass->hidden.
static float *stream_row(const model_pass *pass, uint32_t token, uint32_t stream) {
  return pass->streams + ((size_t)token * STREAMS + stream) * pass->hidden_stride;
}

// ---- Converting between one row and four ----

typedef struct ends_block {
  model_block block;
  const char *name;
  weight_tensor projections;  // [OTHERS][hidden, hidden]
} ends_block;

static void bind_ends(model_block *block, model_binder *binder) {
  ends_block *ends = (ends_block *)block;
  const uint32_t hidden = binder->model->config.hidden;
  const int32_t layer = binder->layer;
  binder->layer = MODEL_LAYER_NONE;
  bind_stack(binder, ends->name, OTHERS, hidden, hidden, BINDING_REQUIRED, &ends->projections);
  binder->layer = layer;
}

static void reserve_ends(const model_block *block, scratch_arena *arena) {
  const ends_block *ends = (const ends_block *)block;
  arena_take_act(arena, arena->batch_tokens, ends->projections.dims[0]);
}

static double length_of(const float *row, uint32_t n) {
  double squares = 0;
  for (uint32_t i = 0; i < n; i++) squares += (double)row[i] * row[i];
  return __builtin_sqrt(squares);
}

// Scales a row to the length of a reference row. A row of zeros is unchanged.
static void set_length(const model_pass *pass, float *row, const float *as) {
  const uint32_t hidden = pass->model->config.hidden;
  const double length = length_of(row, hidden);
  if (length == 0) return;
  pass->kernels->scale(row, (float)(length_of(as, hidden) / length), hidden);
}

static void finish_spread(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const float *row = pass->hidden + (size_t)t * pass->hidden_stride;
    for (uint32_t i = 1; i < STREAMS; i++) set_length(pass, stream_row(pass, t, i), row);
  }
}

static wick_status run_spread(const model_block *block, model_pass *pass, wick_error *error) {
  const ends_block *ends = (const ends_block *)block;
  const uint32_t stride = pass->hidden_stride;
  (void)error;
  model_product product = pass_product(pass, pass->hidden, stride, ends->projections.dims[0]);
  for (uint32_t i = 0; i < OTHERS; i++) {
    product_add_rows(&product, &ends->projections, i, NULL, 0, pass->count,
                     stream_row(pass, 0, i + 1), STREAMS * (size_t)stride);
  }
  product_run(&product);
  measure_product(pass->ops, OP_EMBED, &product);
  thread_pool_for(pass->threads, pass->count, finish_spread, pass);
  return WICK_OK;
}

// Computes hidden += normed, scaled to the length of the last layer's output.
static void merge_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * pass->hidden_stride;
    set_length(pass, pass->normed + at, pass->aside + at);
    pass->kernels->add(pass->hidden + at, pass->normed + at, pass->model->config.hidden);
  }
}

static void average_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const model_pass *pass = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    pass->kernels->scale(pass->hidden + (size_t)t * pass->hidden_stride, 1 / (float)STREAMS,
                         pass->model->config.hidden);
  }
}

static wick_status run_merge(const model_block *block, model_pass *pass, wick_error *error) {
  const ends_block *ends = (const ends_block *)block;
  const uint32_t stride = pass->hidden_stride;
  (void)error;
  pass_set_aside(pass, pass->hidden);
  for (uint32_t i = 0; i < OTHERS; i++) {
    const uint64_t begin = arena_mark(&pass->arena);
    model_product product =
        pass_product(pass, stream_row(pass, 0, i + 1), STREAMS * stride, ends->projections.dims[0]);
    product_add_rows(&product, &ends->projections, i, NULL, 0, pass->count, pass->normed, stride);
    product_run(&product);
    measure_product(pass->ops, OP_DOWN, &product);
    thread_pool_for(pass->threads, pass->count, merge_tokens, pass);
    arena_release(&pass->arena, begin);
  }
  thread_pool_for(pass->threads, pass->count, average_tokens, pass);
  return WICK_OK;
}

// ---- In a layer ----

typedef struct altup_router {
  float *norm, *norm_bias;  // [hidden]
  weight_tensor matrix;     // [STREAMS, hidden]
} altup_router;

typedef struct altup_block {
  model_block block;
  altup_router own;            // of a prediction
  const altup_router *router;  // the block's own router, or that of the preceding prediction
  float *factors;              // [STREAMS * STREAMS, STREAMS], or [STREAMS, STREAMS]
} altup_block;

static void bind_predict(model_block *block, model_binder *binder) {
  altup_block *altup = (altup_block *)block;
  const uint32_t hidden = binder->model->config.hidden;
  bind_norm(binder, "altup_router_norm.weight", hidden, &altup->own.norm, &altup->own.norm_bias);
  bind_matrix(binder, "altup_router.weight", STREAMS, hidden, BINDING_REQUIRED, &altup->own.matrix);
  bind_table(binder, "altup_predict_coef.weight", STREAMS * STREAMS, STREAMS, BINDING_REQUIRED,
             &altup->factors);
}

static void bind_correct(model_block *block, model_binder *binder) {
  bind_table(binder, "altup_correct_coef.weight", STREAMS, STREAMS, BINDING_REQUIRED,
             &((altup_block *)block)->factors);
}

static float *take_routes(scratch_arena *arena) {
  return arena_take_floats(arena, (uint64_t)arena->batch_tokens * arena_line_floats(STREAMS));
}

static void reserve_altup(const model_block *block, scratch_arena *arena) {
  const altup_block *altup = (const altup_block *)block;
  take_routes(arena);
  arena_take_act(arena, arena->batch_tokens, altup->router->matrix.dims[0]);
}

typedef struct altup_job {
  const altup_block *altup;
  const model_pass *pass;
  float *routes;  // [tokens, STREAMS]
} altup_job;

// Computes out[i] = sum over j of factors[i][j] tanh(route[j] / hidden).
static void make_factors(const altup_job *job, uint32_t token, uint32_t count, float *out) {
  const kernel_table *kernels = job->pass->kernels;
  float *route = job->routes + (size_t)token * arena_line_floats(STREAMS);
  kernels->scale(route, 1.0f / (float)job->pass->model->config.hidden, STREAMS);
  kernels->soft_cap(route, 1, STREAMS);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = 0;
    for (uint32_t j = 0; j < STREAMS; j++) {
      out[i] += job->altup->factors[(size_t)i * STREAMS + j] * route[j];
    }
  }
}

static void predict_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const altup_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t hidden = pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float c[STREAMS * STREAMS], *to[STREAMS];
    float *row = pass->hidden + (size_t)t * pass->hidden_stride;
    make_factors(job, t, STREAMS * STREAMS, c);
    for (uint32_t i = 0; i < STREAMS; i++) to[i] = stream_row(pass, t, i);
    for (uint32_t d = 0; d < hidden; d++) {
      const float s[STREAMS] = {row[d], to[1][d], to[2][d], to[3][d]};
      for (uint32_t i = 0; i < STREAMS; i++) {
        const float *of = c + (size_t)i * STREAMS;
        to[i][d] = of[0] * s[0] + of[1] * s[1] + of[2] * s[2] + of[3] * s[3] + s[i];
      }
    }
    memcpy(row, to[0], hidden * sizeof *row);
  }
}

static void correct_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const altup_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t hidden = pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float d[STREAMS], *row = pass->hidden + (size_t)t * pass->hidden_stride;
    const float *predicted = stream_row(pass, t, 0);
    make_factors(job, t, STREAMS, d);
    for (uint32_t i = STREAMS; i-- > 0;) {
      const float *from = stream_row(pass, t, i);
      float *to = i == 0 ? row : stream_row(pass, t, i);
      for (uint32_t k = 0; k < hidden; k++) {
        to[k] = from[k] + (d[i] + 1) * (row[k] - predicted[k]);
      }
    }
  }
}

// Calls `job` with the routes of all tokens.
static void route_tokens(const model_block *block, model_pass *pass, thread_job run) {
  const altup_block *altup = (const altup_block *)block;
  const altup_router *router = altup->router;
  altup_job job = {altup, pass, take_routes(&pass->arena)};
  pass_norm(pass, pass->hidden, router->norm, router->norm_bias);
  pass_multiply(pass, OP_ROUTE, &router->matrix, NULL, pass->normed, pass->hidden_stride,
                job.routes, arena_line_floats(STREAMS));
  thread_pool_for(pass->threads, pass->count, run, &job);
  measure_rows(pass->ops, OP_NORM, pass->count, 2ull * STREAMS * pass->model->config.hidden);
}

static wick_status run_predict(const model_block *block, model_pass *pass, wick_error *error) {
  (void)error;
  route_tokens(block, pass, predict_tokens);
  return WICK_OK;
}

static wick_status run_correct(const model_block *block, model_pass *pass, wick_error *error) {
  (void)error;
  route_tokens(block, pass, correct_tokens);
  return WICK_OK;
}

// ---- Planning ----

model_block *altup_spread_make(model_plan *plan) {
  static const model_block_ops OPS = {"altup spread", bind_ends, reserve_ends, run_spread};
  ends_block *ends = plan_block(plan, &OPS, sizeof *ends);
  if (ends == NULL) return NULL;
  ends->name = "altup_proj.weight";
  plan->model->streams = STREAMS;
  return &ends->block;
}

model_block *altup_merge_make(model_plan *plan) {
  static const model_block_ops OPS = {"altup merge", bind_ends, reserve_ends, run_merge};
  ends_block *ends = plan_block(plan, &OPS, sizeof *ends);
  if (ends == NULL) return NULL;
  ends->name = "altup_unembd_proj.weight";
  plan->model->keeps_inputs = true;
  return &ends->block;
}

model_block *altup_predict_make(model_plan *plan) {
  static const model_block_ops OPS = {"altup predict", bind_predict, reserve_altup, run_predict};
  altup_block *altup = plan_block(plan, &OPS, sizeof *altup);
  if (altup == NULL) return NULL;
  altup->router = &altup->own;
  return &altup->block;
}

model_block *altup_correct_make(model_plan *plan, const model_block *predict) {
  static const model_block_ops OPS = {"altup correct", bind_correct, reserve_altup, run_correct};
  altup_block *altup = plan_block(plan, &OPS, sizeof *altup);
  if (altup == NULL) return NULL;
  altup->router = &((const altup_block *)predict)->own;
  return &altup->block;
}

// model/blocks/short_conv.c — see short_conv.h.
#include "model/blocks/short_conv.h"

#include <stdatomic.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/convolution.h"
#include "model/measure.h"

typedef struct short_conv_block {
  model_block block;
  uint32_t hidden, taps;
  uint64_t state_offset_bytes;
  float *norm;             // [hidden]
  weight_tensor in_proj;   // [3 * hidden, hidden]: b, c, x
  float *filter;           // [taps, hidden]
  weight_tensor out_proj;  // [hidden, hidden]
} short_conv_block;

static void bind(model_block *block, model_binder *binder) {
  short_conv_block *conv = (short_conv_block *)block;
  const uint32_t hidden = conv->hidden;
  bind_vector(binder, "attn_norm.weight", hidden, BINDING_REQUIRED, &conv->norm);
  bind_matrix(binder, "shortconv.in_proj.weight", 3 * hidden, hidden, BINDING_REQUIRED,
              &conv->in_proj);
  bind_turned(binder, "shortconv.conv.weight", hidden, conv->taps, BINDING_REQUIRED, &conv->filter);
  bind_matrix(binder, "shortconv.out_proj.weight", hidden, hidden, BINDING_REQUIRED,
              &conv->out_proj);
}

typedef struct conv_buffers {
  uint32_t stride, out_stride;  // floats
  float *rows;                  // [batch_tokens, 3 * hidden]: b, c, x
  float *out;                   // [batch_tokens, hidden]: b * x, then the input of the projection
} conv_buffers;

static conv_buffers take_buffers(const short_conv_block *conv, scratch_arena *arena) {
  conv_buffers buffers = {.stride = arena_line_floats(3 * conv->hidden),
                          .out_stride = arena_line_floats(conv->hidden)};
  buffers.rows = arena_take_floats(arena, (uint64_t)arena->batch_tokens * buffers.stride);
  buffers.out = arena_take_floats(arena, (uint64_t)arena->batch_tokens * buffers.out_stride);
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const short_conv_block *conv = (const short_conv_block *)block;
  take_buffers(conv, arena);
  arena_take_act(arena, arena->batch_tokens, conv->hidden);
}

typedef struct conv_job {
  const short_conv_block *conv;
  const model_pass *pass;
  const conv_buffers *buffers;
  atomic_uint nonfinite;  // rows
} conv_job;

// Computes out[t] = b[t] * x[t].
static void gate_inputs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const conv_job *job = context;
  const uint32_t hidden = job->conv->hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const float *b = job->buffers->rows + (size_t)t * job->buffers->stride, *x = b + 2 * hidden;
    float *out = job->buffers->out + (size_t)t * job->buffers->out_stride;
    for (uint32_t i = 0; i < hidden; i++) out[i] = b[i] * x[i];
  }
}

// Computes out[t] = c[t] * conv[t].
static void gate_outputs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  conv_job *job = context;
  const uint32_t hidden = job->conv->hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const float *c = job->buffers->rows + (size_t)t * job->buffers->stride + hidden;
    float *out = job->buffers->out + (size_t)t * job->buffers->out_stride, sum = 0;
    for (uint32_t i = 0; i < hidden; i++) sum += out[i] *= c[i];
    if (!math_is_finite_f32(sum)) atomic_fetch_add(&job->nonfinite, 1);
  }
}

// Computes rows [tokens, 3 * hidden].
static void project(const short_conv_block *conv, model_pass *pass, const conv_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = pass_product(pass, pass->normed, pass->hidden_stride, conv->hidden);
  product_add(&product, &conv->in_proj, NULL, buffers->rows, buffers->stride);
  product_run(&product);
  measure_product(pass->ops, OP_QKV, &product);
  arena_release(&pass->arena, begin);
}

static void add_output(const short_conv_block *conv, model_pass *pass,
                       const conv_buffers *buffers) {
  const pass_output output = {&conv->out_proj, NULL, NULL, 1, OP_ATTN_OUTPUT};
  pass_add_output(pass, &output, buffers->out, buffers->out_stride);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const short_conv_block *conv = (const short_conv_block *)block;
  const conv_buffers buffers = take_buffers(conv, &pass->arena);
  conv_job job = {.conv = conv, .pass = pass, .buffers = &buffers};
  const model_convolution convolution = {.pass = pass,
                                         .state_offset_bytes = conv->state_offset_bytes,
                                         .channels = conv->hidden,
                                         .taps = conv->taps,
                                         .filter = conv->filter,
                                         .rows = buffers.out,
                                         .stride = buffers.out_stride};
  atomic_init(&job.nonfinite, 0);
  pass_norm(pass, pass->hidden, conv->norm, NULL);
  project(conv, pass, &buffers);
  thread_pool_for(pass->threads, pass->count, gate_inputs, &job);
  convolution_run(&convolution);
  thread_pool_for(pass->threads, pass->count, gate_outputs, &job);
  measure_rows(pass->ops, OP_CONV, pass->count, (4ull + 2 * conv->taps) * conv->hidden);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad != 0) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                     "%u rows of the convolution of layer %u are not finite", bad, pass->layer);
  }
  if (pass_keep_wanted(pass, buffers.out, buffers.out_stride, conv->hidden)) {
    add_output(conv, pass, &buffers);
  }
  return WICK_OK;
}

model_block *short_conv_make(model_plan *plan, uint32_t taps) {
  static const model_block_ops OPS = {"short convolution", bind, reserve, run};
  short_conv_block *conv = plan_block(plan, &OPS, sizeof *conv);
  if (conv == NULL) return NULL;
  conv->hidden = plan->model->config.hidden;
  conv->taps = taps;
  conv->state_offset_bytes = plan_state(plan, (uint64_t)(taps - 1) * conv->hidden * sizeof(float));
  return &conv->block;
}

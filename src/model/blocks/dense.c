// model/blocks/dense.c — see dense.h.
#include "model/blocks/dense.h"

#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"

typedef struct dense_block {
  model_block block;
  uint32_t hidden, ffn;
  const char *norm_name;
  float *norm;             // [hidden]
  kernel_matrix gate, up;  // [ffn, hidden]
  float *gate_bias, *up_bias;
  kernel_matrix down;  // [hidden, ffn]
  float *down_bias;
} dense_block;

static void bind(model_block *block, model_binder *binder) {
  dense_block *dense = (dense_block *)block;
  const uint32_t hidden = dense->hidden, ffn = dense->ffn;
  bind_vector(binder, dense->norm_name, hidden, BINDING_REQUIRED, &dense->norm);
  bind_matrix(binder, "ffn_gate.weight", ffn, hidden, BINDING_REQUIRED, &dense->gate);
  bind_matrix(binder, "ffn_up.weight", ffn, hidden, BINDING_REQUIRED, &dense->up);
  bind_vector(binder, "ffn_gate.bias", ffn, BINDING_OPTIONAL, &dense->gate_bias);
  bind_vector(binder, "ffn_up.bias", ffn, BINDING_OPTIONAL, &dense->up_bias);
  bind_matrix(binder, "ffn_down.weight", hidden, ffn, BINDING_REQUIRED, &dense->down);
  bind_vector(binder, "ffn_down.bias", hidden, BINDING_OPTIONAL, &dense->down_bias);
}

typedef struct dense_buffers {
  uint32_t stride;   // floats
  float *gate, *up;  // [batch_tokens, ffn]
} dense_buffers;

static dense_buffers take_buffers(const dense_block *dense, scratch_arena *arena) {
  dense_buffers buffers = {.stride = arena_line_floats(dense->ffn)};
  const uint64_t floats = (uint64_t)arena->batch_tokens * buffers.stride;
  buffers.gate = arena_take_floats(arena, floats);
  buffers.up = arena_take_floats(arena, floats);
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const dense_block *dense = (const dense_block *)block;
  const uint64_t begin = arena_mark(arena);
  take_buffers(dense, arena);
  const uint64_t products = arena_mark(arena);
  arena_take_act(arena, arena->batch_tokens, dense->hidden);
  arena_release(arena, products);
  arena_take_act(arena, arena->batch_tokens, dense->ffn);
  arena_release(arena, begin);
}

typedef struct gate_job {
  const model_pass *pass;
  const dense_buffers *buffers;
  uint32_t ffn;
} gate_job;

static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const gate_job *job = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->buffers->stride;
    job->pass->kernels->silu_mul(job->buffers->gate + at, job->buffers->up + at, job->ffn);
  }
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const dense_block *dense = (const dense_block *)block;
  (void)error;
  const uint64_t begin = arena_mark(&pass->arena);
  const dense_buffers buffers = take_buffers(dense, &pass->arena);
  const uint64_t products = arena_mark(&pass->arena);
  pass_norm(pass, dense->norm);
  // gate, up [tokens, ffn]
  model_product up = pass_product(pass, pass->normed, pass->hidden_stride, dense->hidden);
  product_add(&up, &dense->gate, dense->gate_bias, buffers.gate, buffers.stride);
  product_add(&up, &dense->up, dense->up_bias, buffers.up, buffers.stride);
  product_run(&up);
  measure_product(pass->ops, OP_GATE_UP, &up);
  arena_release(&pass->arena, products);
  // gate[t] = silu(gate[t]) * up[t]
  gate_job job = {pass, &buffers, dense->ffn};
  thread_pool_for(pass->threads, pass->count, gate_tokens, &job);
  measure_rows(pass->ops, OP_SILU, pass->count, 3ull * dense->ffn);
  // hidden += gate Wdown [tokens, hidden]
  model_product down = pass_product(pass, buffers.gate, buffers.stride, dense->ffn);
  product_add_residual(&down, &dense->down, dense->down_bias, pass->normed, pass->hidden,
                       pass->hidden_stride);
  product_run(&down);
  measure_product(pass->ops, OP_DOWN, &down);
  arena_release(&pass->arena, begin);
  return WICK_OK;
}

model_block *dense_make(model_plan *plan, const char *norm, uint32_t ffn) {
  static const model_block_ops OPS = {"dense", bind, reserve, run};
  dense_block *dense = plan_block(plan, &OPS, sizeof *dense);
  if (dense == NULL) return NULL;
  dense->hidden = plan->model->config.hidden;
  dense->ffn = ffn;
  dense->norm_name = norm;
  if (plan->model->config.ffn == 0) plan->model->config.ffn = ffn;
  return &dense->block;
}

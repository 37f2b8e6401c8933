// model/blocks/dense.c — see dense.h.
#include "model/blocks/dense.h"

#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"
#include "tensor/tensor.h"

typedef struct dense_block {
  model_block block;
  layer_dims dims;
  const char *norm_name;
  bool may_fuse_gate;
  ffn_weights weights;
} dense_block;

static void bind(model_block *block, model_binder *binder) {
  dense_block *dense = (dense_block *)block;
  ffn_weights *weights = &dense->weights;
  const uint32_t hidden = dense->dims.hidden, ffn = dense->dims.ffn;
  weights->has_gate = !dense->may_fuse_gate || binder_has(binder, "ffn_gate.weight");
  const uint32_t up = layer_up_rows(&dense->dims, weights->has_gate);
  bind_vector(binder, dense->norm_name, hidden, BINDING_REQUIRED, &weights->norm);
  if (weights->has_gate) {
    bind_matrix(binder, "ffn_gate.weight", ffn, hidden, BINDING_REQUIRED, &weights->gate);
    bind_vector(binder, "ffn_gate.bias", ffn, BINDING_OPTIONAL, &weights->gate_bias);
  }
  bind_matrix(binder, "ffn_up.weight", up, hidden, BINDING_REQUIRED, &weights->up);
  bind_vector(binder, "ffn_up.bias", up, BINDING_OPTIONAL, &weights->up_bias);
  bind_matrix(binder, "ffn_down.weight", hidden, ffn, BINDING_REQUIRED, &weights->down);
  bind_vector(binder, "ffn_down.bias", hidden, BINDING_OPTIONAL, &weights->down_bias);
}

typedef struct dense_buffers {
  uint32_t stride;   // floats
  float *gate, *up;  // [batch_tokens, ffn]; of one product where the gate is fused
} dense_buffers;

static dense_buffers take_buffers(const dense_block *dense, scratch_arena *arena) {
  const uint32_t ffn = dense->dims.ffn;
  const bool is_fused = !dense->weights.has_gate;
  dense_buffers buffers = {.stride = arena_line_floats(is_fused ? 2 * ffn : ffn)};
  const uint64_t floats = (uint64_t)arena->batch_tokens * buffers.stride;
  buffers.gate = arena_take_floats(arena, floats);
  if (!is_fused) {
    buffers.up = arena_take_floats(arena, floats);
  } else if (buffers.gate != NULL) {
    buffers.up = buffers.gate + ffn;
  }
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const dense_block *dense = (const dense_block *)block;
  const uint64_t begin = arena_mark(arena);
  take_buffers(dense, arena);
  const uint64_t products = arena_mark(arena);
  arena_take_act(arena, arena->batch_tokens, dense->dims.hidden);
  arena_release(arena, products);
  arena_take_act(arena, arena->batch_tokens, dense->dims.ffn);
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
  const ffn_weights *weights = &dense->weights;
  const uint32_t ffn = dense->dims.ffn;
  (void)error;
  const uint64_t begin = arena_mark(&pass->arena);
  const dense_buffers buffers = take_buffers(dense, &pass->arena);
  const uint64_t products = arena_mark(&pass->arena);
  pass_norm(pass, weights->norm);
  // gate, up [tokens, ffn]
  model_product up = pass_product(pass, pass->normed, pass->hidden_stride, dense->dims.hidden);
  if (weights->has_gate) {
    product_add(&up, &weights->gate, weights->gate_bias, buffers.gate, buffers.stride);
    product_add(&up, &weights->up, weights->up_bias, buffers.up, buffers.stride);
  } else {
    product_add(&up, &weights->up, weights->up_bias, buffers.gate, buffers.stride);
  }
  product_run(&up);
  measure_product(pass->ops, OP_GATE_UP, &up);
  arena_release(&pass->arena, products);
  // gate[t] = silu(gate[t]) * up[t]
  gate_job job = {pass, &buffers, ffn};
  thread_pool_for(pass->threads, pass->count, gate_tokens, &job);
  measure_rows(pass->ops, OP_SILU, pass->count, 3ull * ffn);
  // hidden += gate Wdown [tokens, hidden]
  model_product down = pass_product(pass, buffers.gate, buffers.stride, ffn);
  product_add_residual(&down, &weights->down, weights->down_bias, pass->normed, pass->hidden,
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
  dense->dims = (layer_dims){.hidden = plan->model->config.hidden, .ffn = ffn, .is_gated = true};
  dense->norm_name = norm;
  if (plan->model->config.ffn == 0) plan->model->config.ffn = ffn;
  return &dense->block;
}

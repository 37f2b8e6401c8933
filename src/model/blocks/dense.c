// model/blocks/dense.c — see dense.h.
#include "model/blocks/dense.h"

#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"
#include "tensor/tensor.h"

typedef struct dense_block {
  model_block block;
  dense_settings is;
  layer_dims dims;
  ffn_weights weights;
  float *sub_norm, *sub_norm_bias;  // [ffn] or NULL
  float *sum_norm, *sum_norm_bias;  // [hidden] or NULL
} dense_block;

static void bind(model_block *block, model_binder *binder) {
  dense_block *dense = (dense_block *)block;
  const dense_settings *is = &dense->is;
  ffn_weights *weights = &dense->weights;
  const uint32_t hidden = dense->dims.hidden, ffn = is->ffn;
  const bool is_fused = is->may_fuse_gate && !binder_has(binder, "ffn_gate.weight");
  weights->has_gate = !is->is_plain && !is_fused;
  const uint32_t up = layer_up_rows(&dense->dims, weights->has_gate);
  bind_norm(binder, is->norm, hidden, &weights->norm, &weights->norm_bias);
  if (weights->has_gate) {
    bind_matrix(binder, "ffn_gate.weight", ffn, hidden, BINDING_REQUIRED, &weights->gate);
    bind_vector(binder, "ffn_gate.bias", ffn, BINDING_OPTIONAL, &weights->gate_bias);
  }
  bind_matrix(binder, "ffn_up.weight", up, hidden, BINDING_REQUIRED, &weights->up);
  bind_vector(binder, "ffn_up.bias", up, BINDING_OPTIONAL, &weights->up_bias);
  bind_norm(binder, is->sub_norm, ffn, &dense->sub_norm, &dense->sub_norm_bias);
  bind_matrix(binder, "ffn_down.weight", hidden, ffn, BINDING_REQUIRED, &weights->down);
  bind_vector(binder, "ffn_down.bias", hidden, BINDING_OPTIONAL, &weights->down_bias);
  bind_norm(binder, is->sum_norm, hidden, &dense->sum_norm, &dense->sum_norm_bias);
  if (is->post_norm == NULL) return;
  bind_vector(binder, is->post_norm, hidden, BINDING_REQUIRED, &weights->post_norm);
}

typedef struct dense_buffers {
  uint32_t stride;   // floats
  float *gate, *up;  // [batch_tokens, ffn]; one product if the gate is fused. Without a gate,
                     // `gate` is the product of ffn_up, and `up` is NULL.
} dense_buffers;

static dense_buffers take_buffers(const dense_block *dense, scratch_arena *arena) {
  const bool has_gate = dense->weights.has_gate;
  dense_buffers buffers = {.stride = arena_line_floats(layer_up_rows(&dense->dims, has_gate))};
  const uint64_t floats = (uint64_t)arena->batch_tokens * buffers.stride;
  buffers.gate = arena_take_floats(arena, floats);
  if (has_gate) {
    buffers.up = arena_take_floats(arena, floats);
  } else if (!dense->is.is_plain && buffers.gate != NULL) {
    buffers.up = buffers.gate + dense->is.ffn;
  }
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const dense_block *dense = (const dense_block *)block;
  take_buffers(dense, arena);
  arena_reserve_act(arena, arena->batch_tokens, dense->dims.hidden);
  arena_take_act(arena, arena->batch_tokens, dense->is.ffn);
}

typedef struct gate_job {
  const dense_block *dense;
  const model_pass *pass;
  const dense_buffers *buffers;
} gate_job;

// Computes gate[n] = act(gate) * up, or act(gate) if up is NULL.
static void activate(const kernel_table *kernels, const dense_settings *is, float *gate,
                     const float *up) {
  const uint32_t n = is->ffn;
  if (is->activation == DENSE_GELU) {
    kernels->gelu_mul(gate, up, n);
  } else if (is->activation == DENSE_GELU_ERF) {
    kernels->gelu_erf_mul(gate, up, n);
  } else if (is->activation == DENSE_RELU) {
    kernels->relu_mul(gate, up, n);
  } else if (is->activation == DENSE_RELU_SQUARE || is->activation == DENSE_XIELU) {
    if (is->activation == DENSE_XIELU) {
      kernels->xielu(gate, &is->xielu, n);
    } else {
      kernels->relu_square(gate, n);
    }
    if (up != NULL) kernels->multiply(gate, up, n);
  } else if (up != NULL) {
    kernels->silu_mul(gate, up, n);
  } else {
    kernels->silu(gate, n);
  }
}

// Subtracts the cutoff. The deviation is the sample standard deviation (n - 1). If one value is
// NaN, all values become NaN.
static void subtract_cutoff(float *x, uint32_t n, float sparsity) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < n; i++) sum += x[i];
  const double mean = sum / n;
  for (uint32_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  const float cutoff = (float)(mean + sparsity * __builtin_sqrt(squares / (n - 1)));
  for (uint32_t i = 0; i < n; i++) x[i] = x[i] <= cutoff ? 0 : x[i] - cutoff;
}

static void activate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const gate_job *job = context;
  const dense_settings *is = &job->dense->is;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->buffers->stride;
    const float *up = job->buffers->up == NULL ? NULL : job->buffers->up + at;
    float *gate = job->buffers->gate + at;
    if (is->sparsity != 0) subtract_cutoff(gate, is->ffn, is->sparsity);
    activate(job->pass->kernels, is, gate, up);
    if (job->dense->sub_norm != NULL) {
      norm_row(job->pass, gate, job->dense->sub_norm, job->dense->sub_norm_bias, is->ffn, gate);
    }
  }
}

// Returns the normalised input of the block: [tokens, hidden].
static const float *norm_input(const dense_block *dense, model_pass *pass) {
  const float *rows = dense->is.is_aside ? pass->aside : pass->hidden;
  if (dense->weights.norm == NULL) return rows;
  pass_norm(pass, rows, dense->weights.norm, dense->weights.norm_bias);
  return pass->normed;
}

// Computes gate, up [tokens, ffn].
static void project(const dense_block *dense, model_pass *pass, const dense_buffers *buffers) {
  const ffn_weights *weights = &dense->weights;
  const float *input = norm_input(dense, pass);
  model_product up = pass_product(pass, input, pass->hidden_stride, dense->dims.hidden);
  if (weights->has_gate) {
    product_add(&up, &weights->gate, weights->gate_bias, buffers->gate, buffers->stride);
    product_add(&up, &weights->up, weights->up_bias, buffers->up, buffers->stride);
  } else {
    product_add(&up, &weights->up, weights->up_bias, buffers->gate, buffers->stride);
  }
  product_run(&up);
  measure_product(pass->ops, OP_GATE_UP, &up);
}

// Computes hidden += gate Wdown   [tokens, hidden].
static void add_output(const dense_block *dense, model_pass *pass, const dense_buffers *buffers) {
  const ffn_weights *weights = &dense->weights;
  const pass_output output = {&weights->down, weights->down_bias, weights->post_norm,
                              dense->is.residual_scale, OP_DOWN};
  pass_add_output(pass, &output, buffers->gate, buffers->stride);
  pass_norm_sums(pass, false, dense->sum_norm, dense->sum_norm_bias);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const dense_block *dense = (const dense_block *)block;
  (void)error;
  const dense_buffers buffers = take_buffers(dense, &pass->arena);
  const uint64_t products = arena_mark(&pass->arena);
  project(dense, pass, &buffers);
  arena_release(&pass->arena, products);
  gate_job job = {dense, pass, &buffers};
  thread_pool_for(pass->threads, pass->count, activate_tokens, &job);
  measure_rows(pass->ops, OP_SILU, pass->count, 3ull * dense->is.ffn);
  add_output(dense, pass, &buffers);
  return WICK_OK;
}

// ---- Planning ----

dense_settings dense_read(model_plan *plan) {
  return (dense_settings){.norm = "ffn_norm.weight", .ffn = plan_ffn(plan), .residual_scale = 1};
}

model_block *dense_make(model_plan *plan, const dense_settings *settings) {
  static const model_block_ops OPS = {"dense", bind, reserve, run};
  dense_block *dense = plan_block(plan, &OPS, sizeof *dense);
  if (dense == NULL) return NULL;
  dense->is = *settings;
  dense->dims = (layer_dims){
      .hidden = plan->model->config.hidden, .ffn = settings->ffn, .is_gated = !settings->is_plain};
  if (plan->model->config.ffn == 0) plan->model->config.ffn = settings->ffn;
  return &dense->block;
}

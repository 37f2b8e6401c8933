// model/blocks/layer_inputs.c — see layer_inputs.h.
#include "model/blocks/layer_inputs.h"

#include <string.h>

#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"
#include "model/tables.h"

// ---- Inputs of all layers ----

typedef struct inputs_block {
  model_block block;
  uint32_t dim, all;         // floats per token: for one layer, for all
  weight_tensor table;       // [vocab, all]
  weight_tensor projection;  // [all, hidden]
  float *norm, *norm_bias;   // [dim]
} inputs_block;

static void bind_inputs(model_block *block, model_binder *binder) {
  inputs_block *inputs = (inputs_block *)block;
  const model_config *config = &binder->model->config;
  const int32_t layer = binder->layer;
  binder->layer = MODEL_LAYER_NONE;
  bind_lookup(binder, "per_layer_token_embd.weight", config->vocab, inputs->all, &inputs->table);
  bind_matrix(binder, "per_layer_model_proj.weight", inputs->all, config->hidden, BINDING_REQUIRED,
              &inputs->projection);
  bind_norm(binder, "per_layer_proj_norm.weight", inputs->dim, &inputs->norm, &inputs->norm_bias);
  binder->layer = layer;
}

static float *take_rows(const inputs_block *inputs, scratch_arena *arena) {
  return arena_take_floats(arena, (uint64_t)arena->threads * arena_line_floats(inputs->all));
}

static void reserve_inputs(const model_block *block, scratch_arena *arena) {
  const inputs_block *inputs = (const inputs_block *)block;
  if (inputs->table.outside != NULL) tables_reserve(&inputs->table, arena);
  arena_reserve_act(arena, arena->batch_tokens, inputs->projection.dims[0]);
  take_rows(inputs, arena);
}

typedef struct inputs_job {
  const inputs_block *inputs;
  const model_pass *pass;
  float *rows;          // [threads, all]
  kernel_matrix table;  // of all tokens, or of the pass's tokens
} inputs_job;

static void finish_inputs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const inputs_job *job = context;
  const inputs_block *inputs = job->inputs;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t dim = inputs->dim, all = inputs->all;
  float *row = job->rows + (size_t)thread * arena_line_floats(all);
  for (uint32_t t = first; t < last; t++) {
    float *to = job->pass->layer_inputs + (size_t)t * all;
    kernels->types[job->table.type].row_dequant(&job->table,
                                                tables_row(job->pass, &inputs->table, t), row);
    kernels->scale(row, __builtin_sqrtf((float)dim), all);
    kernels->scale(to, 1 / __builtin_sqrtf((float)job->pass->model->config.hidden), all);
    for (uint32_t i = 0; i < all; i += dim) {
      norm_row(job->pass, to + i, inputs->norm, inputs->norm_bias, dim, to + i);
    }
    kernels->add(to, row, all);
    kernels->scale(to, 1 / __builtin_sqrtf(2), all);
  }
}

static wick_status run_inputs(const model_block *block, model_pass *pass, wick_error *error) {
  const inputs_block *inputs = (const inputs_block *)block;
  inputs_job job = {.inputs = inputs, .pass = pass};
  const wick_status status = tables_rows(pass, &inputs->table, &job.table, error);
  if (status != WICK_OK) return status;
  pass_multiply(pass, OP_EMBED, &inputs->projection, NULL, pass->hidden, pass->hidden_stride,
                pass->layer_inputs, inputs->all);
  job.rows = take_rows(inputs, &pass->arena);
  thread_pool_for(pass->threads, pass->count, finish_inputs, &job);
  measure_rows(pass->ops, OP_EMBED, pass->count, 2ull * inputs->all);
  return WICK_OK;
}

// ---- The end of a layer ----

typedef struct end_block {
  model_block block;
  uint32_t hidden, dim;    // dim 0: only scales
  weight_tensor gate, up;  // [dim, hidden], [hidden, dim]
  float *post_norm;        // [hidden]
  float *scale;            // [1] or NULL
  bool has_streams;
  float *input_scale;  // [hidden], with streams
} end_block;

static void bind_end(model_block *block, model_binder *binder) {
  end_block *end = (end_block *)block;
  bind_vector(binder, "layer_output_scale.weight", 1, BINDING_OPTIONAL, &end->scale);
  if (end->dim == 0) return;
  bind_matrix(binder, "inp_gate.weight", end->dim, end->hidden, BINDING_REQUIRED, &end->gate);
  bind_matrix(binder, "proj.weight", end->hidden, end->dim, BINDING_REQUIRED, &end->up);
  bind_vector(binder, "post_norm.weight", end->hidden, BINDING_REQUIRED, &end->post_norm);
  if (!end->has_streams) return;
  bind_vector(binder, "altup_correct_scale.weight", end->hidden, BINDING_REQUIRED,
              &end->input_scale);
}

static float *take_gates(const end_block *end, scratch_arena *arena) {
  return arena_take_floats(arena, (uint64_t)arena->batch_tokens * arena_line_floats(end->dim));
}

static void reserve_end(const model_block *block, scratch_arena *arena) {
  const end_block *end = (const end_block *)block;
  if (end->dim == 0) return;
  take_gates(end, arena);
  arena_take_act(arena, arena->batch_tokens, end->hidden > end->dim ? end->hidden : end->dim);
}

typedef struct end_job {
  const end_block *end;
  const model_pass *pass;
  float *gates;  // [tokens, dim]
} end_job;

// Computes gate = gelu(gate) * inputs. In the last layer, only rows that need logits remain.
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const end_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t dim = job->end->dim, layers = pass->model->config.layers;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t input = pass->layer + 1 == layers ? pass->wanted[t] : t;
    pass->kernels->gelu_mul(job->gates + (size_t)t * arena_line_floats(dim),
                            pass->layer_inputs + (input * layers + pass->layer) * dim, dim);
  }
}

// Computes normed = hidden * input_scale.
static void scale_inputs(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const end_job *job = context;
  const uint32_t hidden = job->end->hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    memcpy(job->pass->normed + at, job->pass->hidden + at, hidden * sizeof(float));
    job->pass->kernels->multiply(job->pass->normed + at, job->end->input_scale, hidden);
  }
}

// Computes streams += norm(normed), except for the first stream.
static void add_to_streams(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const end_job *job = context;
  const model_pass *pass = job->pass;
  const uint32_t hidden = job->end->hidden, streams = pass->model->streams;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = pass->normed + (size_t)t * pass->hidden_stride;
    norm_row(pass, row, job->end->post_norm, NULL, hidden, row);
    for (size_t i = 1; i < streams; i++) {
      pass->kernels->add(pass->streams + (t * (size_t)streams + i) * pass->hidden_stride, row,
                         hidden);
    }
  }
}

static void scale_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const end_job *job = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    job->pass->kernels->scale(job->pass->hidden + (size_t)t * job->pass->hidden_stride,
                              *job->end->scale, job->end->hidden);
  }
}

static wick_status run_end(const model_block *block, model_pass *pass, wick_error *error) {
  const end_block *end = (const end_block *)block;
  const uint32_t stride = arena_line_floats(end->dim);
  end_job job = {end, pass, NULL};
  (void)error;
  if (end->dim != 0) {
    const pass_output output = {&end->up, NULL, end->post_norm, 1, OP_DOWN};
    if (end->has_streams) thread_pool_for(pass->threads, pass->count, scale_inputs, &job);
    job.gates = take_gates(end, &pass->arena);
    pass_multiply(pass, OP_GATE_UP, &end->gate, NULL,
                  end->has_streams ? pass->normed : pass->hidden, pass->hidden_stride, job.gates,
                  stride);
    thread_pool_for(pass->threads, pass->count, gate_tokens, &job);
    if (end->has_streams) {
      pass_multiply(pass, OP_DOWN, &end->up, NULL, job.gates, stride, pass->normed,
                    pass->hidden_stride);
      thread_pool_for(pass->threads, pass->count, add_to_streams, &job);
    } else {
      pass_add_output(pass, &output, job.gates, stride);
    }
  }
  if (end->scale != NULL) thread_pool_for(pass->threads, pass->count, scale_tokens, &job);
  return WICK_OK;
}

// ---- Planning ----

uint32_t layer_inputs_read(model_plan *plan) {
  return keys_count_or_none(plan->keys, "embedding_length_per_layer_input", MODEL_HIDDEN_MAX);
}

model_block *layer_inputs_make(model_plan *plan, uint32_t dim) {
  static const model_block_ops OPS = {"per-layer embeddings", bind_inputs, reserve_inputs,
                                      run_inputs};
  inputs_block *inputs = plan_block(plan, &OPS, sizeof *inputs);
  if (inputs == NULL) return NULL;
  inputs->dim = plan->model->layer_inputs_dim = dim;
  inputs->all = dim * plan->model->config.layers;
  return &inputs->block;
}

model_block *layer_end_make(model_plan *plan, uint32_t dim) {
  static const model_block_ops OPS = {"layer end", bind_end, reserve_end, run_end};
  end_block *end = plan_block(plan, &OPS, sizeof *end);
  if (end == NULL) return NULL;
  end->hidden = plan->model->config.hidden;
  end->dim = dim;
  end->has_streams = plan->model->streams != 0;
  return &end->block;
}

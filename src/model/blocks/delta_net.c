// model/blocks/delta_net.c — see delta_net.h.
#include "model/blocks/delta_net.h"

#include <stdatomic.h>
#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/convolution.h"
#include "model/measure.h"
#include "model/segments.h"

typedef struct delta_net_block {
  model_block block;
  delta_net_settings is;
  uint32_t hidden, key_dim, value_dim;  // *_dim: heads * head_dim
  uint32_t channels;                    // of the convolution: q, k, v
  uint64_t conv_offset_bytes, state_offset_bytes;
  float *norm;          // [hidden]
  weight_tensor qkv;    // [channels, hidden]; with the gate: [channels + value_dim, hidden]
  weight_tensor gate;   // [value_dim, hidden]; or with qkv
  weight_tensor beta;   // [value_heads, hidden]; with alpha: [2 * value_heads, hidden]
  weight_tensor alpha;  // [value_heads, hidden]; or with beta
  float *filter;        // [taps, channels]
  float *dt_bias;       // [value_heads]
  float *a;             // [value_heads], negative
  float *head_norm;     // [head_dim]
  weight_tensor out;    // [hidden, value_dim]
} delta_net_block;

static void bind_projections(delta_net_block *net, model_binder *binder) {
  const uint32_t hidden = net->hidden, heads = net->is.value_heads;
  const bool is_grouped = net->is.is_grouped;
  if (is_grouped && binder_has(binder, "ssm_in.weight")) {
    bind_matrix(binder, "ssm_in.weight", net->channels + net->value_dim, hidden, BINDING_REQUIRED,
                &net->qkv);
  } else {
    bind_matrix(binder, "attn_qkv.weight", net->channels, hidden, BINDING_REQUIRED, &net->qkv);
    bind_matrix(binder, "attn_gate.weight", net->value_dim, hidden, BINDING_REQUIRED, &net->gate);
  }
  if (is_grouped) {
    bind_matrix(binder, "ssm_ba.weight", 2 * heads, hidden, BINDING_REQUIRED, &net->beta);
  } else {
    bind_matrix(binder, "ssm_beta.weight", heads, hidden, BINDING_REQUIRED, &net->beta);
    bind_matrix(binder, "ssm_alpha.weight", heads, hidden, BINDING_REQUIRED, &net->alpha);
  }
}

static void bind(model_block *block, model_binder *binder) {
  delta_net_block *net = (delta_net_block *)block;
  const uint32_t hidden = net->hidden, heads = net->is.value_heads;
  bind_vector(binder, "attn_norm.weight", hidden, BINDING_REQUIRED, &net->norm);
  bind_projections(net, binder);
  bind_turned(binder, "ssm_conv1d.weight", net->channels, net->is.taps, BINDING_REQUIRED,
              &net->filter);
  bind_vector(binder, "ssm_dt.bias", heads, BINDING_REQUIRED, &net->dt_bias);
  bind_vector(binder, "ssm_a", heads, BINDING_REQUIRED, &net->a);
  bind_vector(binder, "ssm_norm.weight", net->is.head_dim, BINDING_REQUIRED, &net->head_norm);
  bind_matrix(binder, "ssm_out.weight", hidden, net->value_dim, BINDING_REQUIRED, &net->out);
}

// ---- Scratch ----

typedef struct delta_buffers {
  uint32_t stride, value_stride, head_stride;  // floats
  float *qkv;                                  // [batch_tokens, channels]
  float *gate;          // [batch_tokens, value_dim]; later the input of the projection
  float *read;          // [batch_tokens, value_dim]: S^T q
  float *beta, *decay;  // [batch_tokens, value_heads]
  uint32_t joined_stride, pair_stride;
  float *joined;  // [batch_tokens, channels + value_dim]: stored by key head, or NULL
  float *pairs;   // [batch_tokens, 2 * value_heads]: beta and alpha by key head, or NULL
} delta_buffers;

static bool is_joined(const delta_net_block *net) { return !tensor_is_present(&net->gate); }

static delta_buffers take_buffers(const delta_net_block *net, scratch_arena *arena) {
  const uint64_t tokens = arena->batch_tokens;
  delta_buffers buffers = {.stride = arena_line_floats(net->channels),
                           .value_stride = arena_line_floats(net->value_dim),
                           .head_stride = arena_line_floats(net->is.value_heads)};
  buffers.qkv = arena_take_floats(arena, tokens * buffers.stride);
  buffers.gate = arena_take_floats(arena, tokens * buffers.value_stride);
  buffers.read = arena_take_floats(arena, tokens * buffers.value_stride);
  buffers.beta = arena_take_floats(arena, tokens * buffers.head_stride);
  buffers.decay = arena_take_floats(arena, tokens * buffers.head_stride);
  buffers.joined_stride = arena_line_floats(net->channels + net->value_dim);
  buffers.pair_stride = arena_line_floats(2 * net->is.value_heads);
  if (is_joined(net)) buffers.joined = arena_take_floats(arena, tokens * buffers.joined_stride);
  if (net->is.is_grouped) buffers.pairs = arena_take_floats(arena, tokens * buffers.pair_stride);
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const delta_net_block *net = (const delta_net_block *)block;
  take_buffers(net, arena);
  arena_reserve_act(arena, arena->batch_tokens, net->hidden);
  arena_take_act(arena, arena->batch_tokens, net->value_dim);
}

// ---- Running ----

typedef struct delta_job {
  const delta_net_block *net;
  const model_pass *pass;
  const delta_buffers *buffers;
  atomic_uint nonfinite;  // rows
} delta_job;

static void project(const delta_net_block *net, model_pass *pass, const delta_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = pass_product(pass, pass->normed, pass->hidden_stride, net->hidden);
  if (is_joined(net)) {
    product_add(&product, &net->qkv, NULL, buffers->joined, buffers->joined_stride);
  } else {
    product_add(&product, &net->qkv, NULL, buffers->qkv, buffers->stride);
    product_add(&product, &net->gate, NULL, buffers->gate, buffers->value_stride);
  }
  if (net->is.is_grouped) {
    product_add(&product, &net->beta, NULL, buffers->pairs, buffers->pair_stride);
  } else {
    product_add(&product, &net->beta, NULL, buffers->beta, buffers->head_stride);
    product_add(&product, &net->alpha, NULL, buffers->decay, buffers->head_stride);
  }
  product_run(&product);
  measure_product(pass->ops, OP_QKV, &product);
  arena_release(&pass->arena, begin);
}

// Copies `count` values from *from to `to`, and advances *from past them.
static void take_values(const float **from, float *to, uint32_t count) {
  memcpy(to, *from, count * sizeof *to);
  *from += count;
}

// Sorts values that are stored by key head into separate q, k, v and gate, and beta and alpha.
static void sort_heads(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const delta_job *job = context;
  const delta_net_block *net = job->net;
  const delta_buffers *buffers = job->buffers;
  const uint32_t dim = net->is.head_dim, heads = net->is.value_heads / net->is.key_heads;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const float *pairs = buffers->pairs + (size_t)t * buffers->pair_stride;
    float *beta = buffers->beta + (size_t)t * buffers->head_stride;
    float *alpha = buffers->decay + (size_t)t * buffers->head_stride;
    for (uint32_t h = 0; h < net->is.value_heads; h += heads) {
      take_values(&pairs, beta + h, heads);
      take_values(&pairs, alpha + h, heads);
    }
    if (!is_joined(net)) continue;
    const float *joined = buffers->joined + (size_t)t * buffers->joined_stride;
    float *q = buffers->qkv + (size_t)t * buffers->stride, *v = q + 2 * net->key_dim;
    float *gate = buffers->gate + (size_t)t * buffers->value_stride;
    for (uint32_t h = 0; h < net->is.key_heads; h++) {
      take_values(&joined, q + h * dim, dim);
      take_values(&joined, q + net->key_dim + h * dim, dim);
      take_values(&joined, v + h * heads * dim, heads * dim);
      take_values(&joined, gate + h * heads * dim, heads * dim);
    }
  }
}

static double softplus(double x) {
  return x > 0 ? x + math_log(1 + math_exp(-x)) : math_log(1 + math_exp(x));
}

// Computes beta = sigmoid(beta) and decay = e^(a softplus(alpha + dt)).
static void make_gates(const delta_net_block *net, float *beta, float *decay) {
  for (uint32_t h = 0; h < net->is.value_heads; h++) {
    const double time = softplus((double)decay[h] + (double)net->dt_bias[h]);
    beta[h] = (float)(1 / (1 + math_exp(-(double)beta[h])));
    decay[h] = (float)math_exp((double)net->a[h] * time);
  }
}

// Computes q, k, v = silu(conv). Normalises q and k of each head to length 1, and scales q by 1 /
// sqrt(head_dim).
static void prepare_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const delta_job *job = context;
  const delta_net_block *net = job->net;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t dim = net->is.head_dim;
  const float epsilon = job->pass->model->config.norm_epsilon;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = job->buffers->qkv + (size_t)t * job->buffers->stride;
    kernels->silu(row, net->channels);
    for (uint32_t h = 0; h < 2 * net->is.key_heads; h++) {
      kernels->l2_norm(row + h * dim, dim, epsilon, row + h * dim);
    }
    kernels->scale(row, 1.0f / __builtin_sqrtf((float)dim), net->key_dim);
    const size_t at = (size_t)t * job->buffers->head_stride;
    make_gates(net, job->buffers->beta + at, job->buffers->decay + at);
  }
}

static void read_head(const delta_job *job, const state_segment *segment, uint32_t head) {
  const delta_net_block *net = job->net;
  const delta_buffers *buffers = job->buffers;
  const uint32_t dim = net->is.head_dim;
  const float *row = buffers->qkv + (size_t)segment->first * buffers->stride;
  const uint32_t key_heads = net->is.key_heads;
  const uint32_t key_head =
      net->is.is_grouped ? head / (net->is.value_heads / key_heads) : head % key_heads;
  const float *q = row + key_head * dim;
  const size_t gate = (size_t)segment->first * buffers->head_stride + head;
  const size_t state = (size_t)head * dim * dim;
  const kernel_delta run = {
      .tokens = segment->count,
      .key_dim = dim,
      .value_dim = dim,
      .q = q,
      .k = q + net->key_dim,
      .v = row + 2 * net->key_dim + head * dim,
      .qk_stride = buffers->stride,
      .v_stride = buffers->stride,
      .decay = buffers->decay + gate,
      .beta = buffers->beta + gate,
      .gate_stride = buffers->head_stride,
      .state_in = segment->from + state,
      .state_out = segment->to + state,
      .y = buffers->read + (size_t)segment->first * buffers->value_stride + head * dim,
      .y_stride = buffers->value_stride};
  job->pass->kernels->delta(&run);
}

static void read_heads(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const delta_job *job = context;
  segment_walk walk = segments_begin(job->pass, job->net->state_offset_bytes);
  state_segment segment;
  (void)thread;
  while (segments_next(&walk, &segment)) {
    for (uint32_t head = first; head < last; head++) read_head(job, &segment, head);
  }
}

// Computes gate[t] = silu(gate[t]) * norm(read[t]), with a norm per head.
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  delta_job *job = context;
  const delta_net_block *net = job->net;
  const uint32_t dim = net->is.head_dim;
  const float epsilon = job->pass->model->config.norm_epsilon;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *read = job->buffers->read + (size_t)t * job->buffers->value_stride;
    float *gate = job->buffers->gate + (size_t)t * job->buffers->value_stride, sum = 0;
    for (uint32_t h = 0; h < net->is.value_heads; h++) {
      job->pass->kernels->rms_norm(read + h * dim, net->head_norm, dim, epsilon, read + h * dim);
    }
    job->pass->kernels->silu_mul(gate, read, net->value_dim);
    for (uint32_t i = 0; i < net->value_dim; i++) sum += gate[i];
    if (!math_is_finite_f32(sum)) atomic_fetch_add(&job->nonfinite, 1);
  }
}

static void add_output(const delta_net_block *net, model_pass *pass, const delta_buffers *buffers) {
  const pass_output output = {&net->out, NULL, NULL, 1, OP_ATTN_OUTPUT};
  pass_add_output(pass, &output, buffers->gate, buffers->value_stride);
}

static void measure_state(const delta_net_block *net, model_pass *pass) {
  const uint64_t values = 2ull * net->value_dim * net->is.head_dim;
  measure_rows(pass->ops, OP_DELTA, pass->count, values);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const delta_net_block *net = (const delta_net_block *)block;
  const delta_buffers buffers = take_buffers(net, &pass->arena);
  delta_job job = {.net = net, .pass = pass, .buffers = &buffers};
  const model_convolution convolution = {.pass = pass,
                                         .state_offset_bytes = net->conv_offset_bytes,
                                         .channels = net->channels,
                                         .taps = net->is.taps,
                                         .filter = net->filter,
                                         .rows = buffers.qkv,
                                         .stride = buffers.stride};
  atomic_init(&job.nonfinite, 0);
  pass_norm(pass, pass->hidden, net->norm, NULL);
  project(net, pass, &buffers);
  if (net->is.is_grouped) thread_pool_for(pass->threads, pass->count, sort_heads, &job);
  convolution_run(&convolution);
  thread_pool_for(pass->threads, pass->count, prepare_tokens, &job);
  measure_rows(pass->ops, OP_CONV, pass->count, (2ull + 2 * net->is.taps) * net->channels);
  thread_pool_for(pass->threads, net->is.value_heads, read_heads, &job);
  thread_pool_for(pass->threads, pass->count, gate_tokens, &job);
  measure_state(net, pass);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad != 0) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                     "%u rows of the delta net of layer %u are not finite", bad, pass->layer);
  }
  if (pass_keep_wanted(pass, buffers.gate, buffers.value_stride, net->value_dim)) {
    add_output(net, pass, &buffers);
  }
  return WICK_OK;
}

// ---- Planning ----

delta_net_settings delta_net_read(model_plan *plan) {
  model_keys *keys = plan->keys;
  delta_net_settings is = {0};
  is.head_dim = keys_size(keys, "ssm.state_size", MODEL_HEAD_DIM_MAX);
  is.key_heads = keys_size(keys, "ssm.group_count", MODEL_HEADS_MAX);
  is.value_heads = keys_size(keys, "ssm.time_step_rank", MODEL_HEADS_MAX);
  is.taps = keys_count(keys, "ssm.conv_kernel", 2, KERNEL_CONV_WIDTH_MAX, 0);
  if (keys->status == WICK_OK && is.value_heads % is.key_heads != 0) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "ssm.time_step_rank",
              "%s.ssm.time_step_rank %u is not a multiple of ssm.group_count %u",
              keys->architecture, is.value_heads, is.key_heads);
  }
  return is;
}

model_block *delta_net_make(model_plan *plan, const delta_net_settings *settings) {
  static const model_block_ops OPS = {"delta net", bind, reserve, run};
  delta_net_block *net = plan_block(plan, &OPS, sizeof *net);
  if (net == NULL) return NULL;
  const uint32_t dim = settings->head_dim;
  net->is = *settings;
  net->hidden = plan->model->config.hidden;
  net->key_dim = settings->key_heads * dim;
  net->value_dim = settings->value_heads * dim;
  net->channels = 2 * net->key_dim + net->value_dim;
  net->conv_offset_bytes =
      plan_state(plan, (uint64_t)(settings->taps - 1) * net->channels * sizeof(float));
  net->state_offset_bytes = plan_state(plan, (uint64_t)net->value_dim * dim * sizeof(float));
  return &net->block;
}

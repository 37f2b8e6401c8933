// model/blocks/ssm.c — see ssm.h.
#include "model/blocks/ssm.h"

#include <stdatomic.h>
#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/convolution.h"
#include "model/measure.h"
#include "model/segments.h"

// The offsets of values in the rows of a product, in floats from the start of a row.
typedef struct ssm_places {
  uint32_t x, z;      // in the rows of ssm_in
  uint32_t b, c;      // in Mamba 2 in the same rows, otherwise in those of ssm_x
  uint32_t dt;        // in the same rows as b and c
  uint32_t in, low;   // widths of these rows; low: 0 in Mamba 2
  uint32_t channels;  // of the convolution, starting at x
} ssm_places;

typedef struct ssm_block {
  model_block block;
  ssm_settings is;
  ssm_places at;
  uint32_t hidden, head_dim;
  uint64_t conv_offset_bytes, state_offset_bytes;
  float *norm;                       // [hidden]; NULL if another block stored the rows
  weight_tensor in;                  // [at.in, hidden]
  float *filter, *filter_bias;       // [taps, channels]; [channels] or NULL
  weight_tensor low, dt;             // [at.low, inner]; [heads, rank]; not in Mamba 2
  float *dt_norm, *b_norm, *c_norm;  // [rank], [states], [states] or NULL
  float *dt_bias;                    // [heads]
  float *a, *d;       // negative: [inner, states] in Mamba, otherwise [heads]; [heads]
  float *group_norm;  // [inner], by groups, or NULL
  weight_tensor out;  // [hidden, inner]
  float *post_norm;   // [hidden] or NULL
} ssm_block;

// ---- Tensors ----

static void bind_low(ssm_block *ssm, model_binder *binder) {
  const ssm_settings *is = &ssm->is;
  const bool is_plamo = is->form == SSM_PLAMO2;
  bind_matrix(binder, "ssm_x.weight", ssm->at.low, is->inner, BINDING_REQUIRED, &ssm->low);
  bind_matrix(binder, "ssm_dt.weight", is->heads, is->rank, BINDING_REQUIRED, &ssm->dt);
  if (is->norms != SSM_WEIGHTED_NORMS) return;
  bind_vector(binder, is_plamo ? "ssm_dt_norm" : "ssm_dt_norm.weight", is->rank, BINDING_REQUIRED,
              &ssm->dt_norm);
  bind_vector(binder, is_plamo ? "ssm_b_norm" : "ssm_b_norm.weight", is->states, BINDING_REQUIRED,
              &ssm->b_norm);
  bind_vector(binder, is_plamo ? "ssm_c_norm" : "ssm_c_norm.weight", is->states, BINDING_REQUIRED,
              &ssm->c_norm);
}

static void bind(model_block *block, model_binder *binder) {
  ssm_block *ssm = (ssm_block *)block;
  const ssm_settings *is = &ssm->is;
  const uint32_t channels = ssm->at.channels;
  if (!is->is_aside) {
    bind_vector(binder, "attn_norm.weight", ssm->hidden, BINDING_REQUIRED, &ssm->norm);
  }
  bind_matrix(binder, "ssm_in.weight", ssm->at.in, ssm->hidden, BINDING_REQUIRED, &ssm->in);
  bind_turned(binder, "ssm_conv1d.weight", channels, is->taps, BINDING_REQUIRED, &ssm->filter);
  bind_vector(binder, "ssm_conv1d.bias", channels, BINDING_OPTIONAL, &ssm->filter_bias);
  bind_vector(binder, "ssm_dt.bias", is->heads, BINDING_REQUIRED, &ssm->dt_bias);
  if (is->form == SSM_MAMBA2) {
    bind_table(binder, "ssm_a", is->heads, 1, BINDING_REQUIRED, &ssm->a);
    bind_table(binder, "ssm_d", is->heads, 1, BINDING_REQUIRED, &ssm->d);
    bind_table(binder, "ssm_norm.weight", is->groups, is->inner / is->groups,
               is->may_lack_norm ? BINDING_OPTIONAL : BINDING_REQUIRED, &ssm->group_norm);
  } else {
    const bool is_mamba = is->form == SSM_MAMBA;
    bind_table(binder, "ssm_a", is_mamba ? is->inner : 1, is_mamba ? is->states : is->heads,
               BINDING_REQUIRED, &ssm->a);
    bind_vector(binder, "ssm_d", is->heads, BINDING_REQUIRED, &ssm->d);
    bind_low(ssm, binder);
  }
  bind_matrix(binder, "ssm_out.weight", ssm->hidden, is->inner, BINDING_REQUIRED, &ssm->out);
  if (is->post_norm == NULL) return;
  bind_vector(binder, is->post_norm, ssm->hidden, BINDING_REQUIRED, &ssm->post_norm);
}

// ---- Scratch ----

typedef struct ssm_buffers {
  uint32_t stride, low_stride, rank_stride, head_stride, inner_stride;  // floats
  float *rows;                                                          // [batch_tokens, at.in]
  float *low;                                                           // [batch_tokens, at.low]
  float *rank;        // [batch_tokens, rank]: dt before its projection
  float *dt, *decay;  // [batch_tokens, heads]; decay: not in Mamba
  float *read;        // [batch_tokens, inner]: y; later the input of the projection
} ssm_buffers;

static ssm_buffers take_buffers(const ssm_block *ssm, scratch_arena *arena) {
  const uint64_t tokens = arena->batch_tokens;
  ssm_buffers buffers = {.stride = arena_line_floats(ssm->at.in),
                         .low_stride = arena_line_floats(ssm->at.low),
                         .rank_stride = arena_line_floats(ssm->is.rank),
                         .head_stride = arena_line_floats(ssm->is.heads),
                         .inner_stride = arena_line_floats(ssm->is.inner)};
  buffers.rows = arena_take_floats(arena, tokens * buffers.stride);
  buffers.low = arena_take_floats(arena, tokens * buffers.low_stride);
  buffers.rank = arena_take_floats(arena, tokens * buffers.rank_stride);
  buffers.dt = arena_take_floats(arena, tokens * buffers.head_stride);
  if (ssm->is.form != SSM_MAMBA) {
    buffers.decay = arena_take_floats(arena, tokens * buffers.head_stride);
  }
  buffers.read = arena_take_floats(arena, tokens * buffers.inner_stride);
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const ssm_block *ssm = (const ssm_block *)block;
  const uint32_t widths[] = {ssm->hidden, ssm->is.inner, ssm->is.rank};
  take_buffers(ssm, arena);
  for (uint32_t i = 0; i < 3; i++) arena_reserve_act(arena, arena->batch_tokens, widths[i]);
}

// ---- Running ----

typedef struct ssm_job {
  const ssm_block *ssm;
  const model_pass *pass;
  ssm_buffers buffers;
  atomic_uint nonfinite;  // rows
} ssm_job;

// Moves all of x to the front: PLaMo 2's rows have z and x head by head.
static void sort_heads(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const ssm_job *job = context;
  const uint32_t dim = job->ssm->head_dim, inner = job->ssm->is.inner;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = job->buffers.rows + (size_t)t * job->buffers.stride;
    float *gates = job->buffers.read + (size_t)t * job->buffers.inner_stride;
    for (uint32_t at = 0; at < inner; at += dim) {
      memcpy(gates + at, row + 2 * at, dim * sizeof *row);
      memmove(row + at, row + 2 * at + dim, dim * sizeof *row);
    }
    memcpy(row + inner, gates, inner * sizeof *row);
  }
}

static void convolve(const ssm_block *ssm, model_pass *pass, const ssm_buffers *buffers) {
  const model_convolution convolution = {.pass = pass,
                                         .state_offset_bytes = ssm->conv_offset_bytes,
                                         .channels = ssm->at.channels,
                                         .taps = ssm->is.taps,
                                         .filter = ssm->filter,
                                         .bias = ssm->filter_bias,
                                         .rows = buffers->rows + ssm->at.x,
                                         .stride = buffers->stride};
  convolution_run(&convolution);
}

// Runs the steps after the convolution; in Mamba 2, dt is read from the rows.
static void activate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const ssm_job *job = context;
  const ssm_block *ssm = job->ssm;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *row = job->buffers.rows + (size_t)t * job->buffers.stride;
    job->pass->kernels->silu(row + ssm->at.x, ssm->at.channels);
    if (ssm->is.form != SSM_MAMBA2) continue;
    float *dt = job->buffers.dt + (size_t)t * job->buffers.head_stride;
    memcpy(dt, row + ssm->at.dt, ssm->is.heads * sizeof *dt);
    job->pass->kernels->add(dt, ssm->dt_bias, ssm->is.heads);
  }
}

static void norm_low(const ssm_job *job, const float *x, const float *weight, uint32_t n,
                     float *out) {
  if (job->ssm->is.norms == SSM_NO_NORMS) {
    if (out != x) memcpy(out, x, n * sizeof *x);
  } else {
    job->pass->kernels->rms_norm(x, weight, n, job->pass->model->config.norm_epsilon, out);
  }
}

static void split_low(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const ssm_job *job = context;
  const ssm_block *ssm = job->ssm;
  const uint32_t states = ssm->is.states;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *low = job->buffers.low + (size_t)t * job->buffers.low_stride;
    norm_low(job, low + ssm->at.dt, ssm->dt_norm, ssm->is.rank,
             job->buffers.rank + (size_t)t * job->buffers.rank_stride);
    norm_low(job, low + ssm->at.b, ssm->b_norm, states, low + ssm->at.b);
    norm_low(job, low + ssm->at.c, ssm->c_norm, states, low + ssm->at.c);
  }
}

// Computes b, c, dt = dt_proj(norms(x_proj(x))).
static void project_low(ssm_job *job, model_pass *pass) {
  const ssm_block *ssm = job->ssm;
  const ssm_buffers *buffers = &job->buffers;
  pass_multiply(pass, OP_QKV, &ssm->low, NULL, buffers->rows, buffers->stride, buffers->low,
                buffers->low_stride);
  thread_pool_for(pass->threads, pass->count, split_low, job);
  pass_multiply(pass, OP_QKV, &ssm->dt, ssm->dt_bias, buffers->rank, buffers->rank_stride,
                buffers->dt, buffers->head_stride);
}

// Computes dt = softplus(dt) and decay = e^(dt a).
static void make_steps(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const ssm_job *job = context;
  const ssm_block *ssm = job->ssm;
  const uint32_t heads = ssm->is.heads;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->buffers.head_stride;
    float *dt = job->buffers.dt + at;
    job->pass->kernels->softplus(dt, heads);
    for (uint32_t h = 0; ssm->is.form != SSM_MAMBA && h < heads; h++) {
      job->buffers.decay[at + h] = (float)math_exp((double)dt[h] * (double)ssm->a[h]);
    }
  }
}

// The number of channels that a thread processes together for all tokens, while their state is in
// the cache.
enum { SCAN_CHANNELS = 16 };

static void scan_channels(const ssm_job *job, const state_segment *segment, uint32_t unit) {
  const ssm_block *ssm = job->ssm;
  const ssm_buffers *buffers = &job->buffers;
  const float *low = buffers->low + (size_t)segment->first * buffers->low_stride;
  const uint32_t first = unit * SCAN_CHANNELS, end = first + SCAN_CHANNELS;
  const kernel_scan run = {.tokens = segment->count,
                           .channels = ssm->is.inner,
                           .states = ssm->is.states,
                           .x = buffers->rows + (size_t)segment->first * buffers->stride,
                           .dt = buffers->dt + (size_t)segment->first * buffers->head_stride,
                           .x_stride = buffers->stride,
                           .dt_stride = buffers->head_stride,
                           .b = low + ssm->at.b,
                           .c = low + ssm->at.c,
                           .bc_stride = buffers->low_stride,
                           .a = ssm->a,
                           .d = ssm->d,
                           .state_in = segment->from,
                           .state_out = segment->to,
                           .y = buffers->read + (size_t)segment->first * buffers->inner_stride,
                           .y_stride = buffers->inner_stride};
  job->pass->kernels->scan(&run, first, end < ssm->is.inner ? end : ssm->is.inner);
}

static void scan_head(const ssm_job *job, const state_segment *segment, uint32_t head) {
  const ssm_block *ssm = job->ssm;
  const ssm_buffers *buffers = &job->buffers;
  const bool is_mamba2 = ssm->is.form == SSM_MAMBA2;
  const uint32_t dim = ssm->head_dim, states = ssm->is.states, stride = buffers->stride;
  const uint32_t bc_stride = is_mamba2 ? stride : buffers->low_stride;
  const float *rows = buffers->rows + (size_t)segment->first * stride;
  const float *bc = is_mamba2 ? rows : buffers->low + (size_t)segment->first * bc_stride;
  const size_t gate = (size_t)segment->first * buffers->head_stride + head;
  const size_t state = (size_t)head * states * dim;
  const uint32_t group = head / (ssm->is.heads / ssm->is.groups);
  const kernel_ssd run = {
      .tokens = segment->count,
      .states = states,
      .head_dim = dim,
      .x = rows + ssm->at.x + head * dim,
      .x_stride = stride,
      .b = bc + ssm->at.b + group * states,
      .c = bc + ssm->at.c + group * states,
      .bc_stride = bc_stride,
      .decay = buffers->decay + gate,
      .dt = buffers->dt + gate,
      .gate_stride = buffers->head_stride,
      .d = ssm->d[head],
      .state_in = segment->from + state,
      .state_out = segment->to + state,
      .y = buffers->read + (size_t)segment->first * buffers->inner_stride + head * dim,
      .y_stride = buffers->inner_stride};
  job->pass->kernels->ssd(&run);
}

// Scans units of SCAN_CHANNELS channels in Mamba, otherwise heads; each unit for all tokens in
// order.
static void scan_units(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const ssm_job *job = context;
  segment_walk walk = segments_begin(job->pass, job->ssm->state_offset_bytes);
  state_segment segment;
  (void)thread;
  while (segments_next(&walk, &segment)) {
    for (uint32_t unit = first; unit < last; unit++) {
      if (job->ssm->is.form == SSM_MAMBA) {
        scan_channels(job, &segment, unit);
      } else {
        scan_head(job, &segment, unit);
      }
    }
  }
}

// Computes read[t] = norm(read[t] * silu(z[t])), with a norm per group.
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  ssm_job *job = context;
  const ssm_block *ssm = job->ssm;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t inner = ssm->is.inner, width = inner / ssm->is.groups;
  const float epsilon = job->pass->model->config.norm_epsilon;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *z = job->buffers.rows + (size_t)t * job->buffers.stride + ssm->at.z;
    float *read = job->buffers.read + (size_t)t * job->buffers.inner_stride, sum = 0;
    kernels->silu_mul(z, read, inner);
    if (ssm->group_norm == NULL) memcpy(read, z, inner * sizeof *z);
    for (uint32_t at = 0; ssm->group_norm != NULL && at < inner; at += width) {
      kernels->rms_norm(z + at, ssm->group_norm + at, width, epsilon, read + at);
    }
    for (uint32_t i = 0; i < inner; i++) sum += read[i];
    if (!math_is_finite_f32(sum)) atomic_fetch_add(&job->nonfinite, 1);
  }
}

// Writes the scan's result to `read`.
static void mix_tokens(ssm_job *job, model_pass *pass) {
  const ssm_block *ssm = job->ssm;
  const ssm_settings *is = &ssm->is;
  const ssm_buffers *buffers = &job->buffers;
  const float *input = is->is_aside ? pass->aside : pass->normed;
  const uint32_t units = is->form == SSM_MAMBA ? ceil_div_u32(is->inner, SCAN_CHANNELS) : is->heads;
  if (!is->is_aside) pass_norm(pass, pass->hidden, ssm->norm, NULL);
  pass_multiply(pass, OP_QKV, &ssm->in, NULL, input, pass->hidden_stride, buffers->rows,
                buffers->stride);
  if (is->form == SSM_PLAMO2) thread_pool_for(pass->threads, pass->count, sort_heads, job);
  convolve(ssm, pass, buffers);
  thread_pool_for(pass->threads, pass->count, activate_tokens, job);
  measure_rows(pass->ops, OP_CONV, pass->count, (2ull + 2 * is->taps) * ssm->at.channels);
  if (is->form != SSM_MAMBA2) project_low(job, pass);
  thread_pool_for(pass->threads, pass->count, make_steps, job);
  thread_pool_for(pass->threads, units, scan_units, job);
  thread_pool_for(pass->threads, pass->count, gate_tokens, job);
  measure_rows(pass->ops, OP_SCAN, pass->count, 2ull * is->inner * is->states);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const ssm_block *ssm = (const ssm_block *)block;
  ssm_job job = {.ssm = ssm, .pass = pass, .buffers = take_buffers(ssm, &pass->arena)};
  atomic_init(&job.nonfinite, 0);
  mix_tokens(&job, pass);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad != 0) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                     "%u rows of the scan of layer %u are not finite", bad, pass->layer);
  }
  if (pass_keep_wanted(pass, job.buffers.read, job.buffers.inner_stride, ssm->is.inner)) {
    const pass_output output = {&ssm->out, NULL, ssm->post_norm, ssm->is.residual_scale,
                                OP_ATTN_OUTPUT};
    pass_add_output(pass, &output, job.buffers.read, job.buffers.inner_stride);
  }
  return WICK_OK;
}

// ---- Planning ----

static void check_multiple(model_keys *keys, const char *name, uint32_t value, const char *of,
                           uint32_t parts) {
  if (keys->status != WICK_OK || value % parts == 0) return;
  KEYS_FAIL(keys, WICK_E_FORMAT, name, "%s.%s %u is not a multiple of %s %u", keys->architecture,
            name, value, of, parts);
}

ssm_settings ssm_read(model_plan *plan, ssm_form form) {
  enum { RANK_LEAST = 64, RANK_PART = 16 };  // PLaMo 2's rank, which is not in its files
  model_keys *keys = plan->keys;
  const uint32_t hidden = plan->model->config.hidden;
  ssm_settings is = {.form = form, .groups = 1, .residual_scale = 1};
  is.taps = keys_count(keys, "ssm.conv_kernel", 2, KERNEL_CONV_WIDTH_MAX, 0);
  is.inner = keys_size(keys, "ssm.inner_size", MODEL_FFN_MAX);
  is.states = keys_size(keys, "ssm.state_size", MODEL_HEAD_DIM_MAX);
  is.heads = keys_count(keys, "ssm.time_step_rank", 1,
                        form == SSM_MAMBA ? MODEL_HIDDEN_MAX : MODEL_HEADS_MAX, 0);
  if (form == SSM_MAMBA) {
    is.rank = is.heads;
    is.heads = is.inner;
    return is;
  }
  if (form == SSM_PLAMO2) {
    is.rank = hidden / RANK_PART > RANK_LEAST ? hidden / RANK_PART : RANK_LEAST;
  } else {
    is.groups = keys_size(keys, "ssm.group_count", MODEL_HEADS_MAX);
  }
  check_multiple(keys, "ssm.inner_size", is.inner, "ssm.time_step_rank", is.heads);
  check_multiple(keys, "ssm.time_step_rank", is.heads, "ssm.group_count", is.groups);
  return is;
}

static ssm_places places_of(const ssm_settings *is) {
  const uint32_t inner = is->inner, shared = is->groups * is->states;
  ssm_places at = {.z = inner, .in = 2 * inner, .channels = inner};
  if (is->form == SSM_MAMBA2) {
    at = (ssm_places){.x = inner, .b = 2 * inner, .c = 2 * inner + shared};
    at.dt = at.c + shared;
    at.in = at.dt + is->heads;
    at.channels = inner + 2 * shared;
    return at;
  }
  at.low = is->rank + 2 * shared;
  if (is->form == SSM_PLAMO2) {
    at.dt = 2 * shared;
  } else {
    at.b = is->rank;
  }
  at.c = at.b + shared;
  return at;
}

model_block *ssm_make(model_plan *plan, const ssm_settings *settings) {
  static const model_block_ops OPS = {"state space", bind, reserve, run};
  ssm_block *ssm = plan_block(plan, &OPS, sizeof *ssm);
  if (ssm == NULL) return NULL;
  ssm->is = *settings;
  ssm->at = places_of(settings);
  ssm->hidden = plan->model->config.hidden;
  ssm->head_dim = settings->inner / settings->heads;
  ssm->conv_offset_bytes =
      plan_state(plan, (uint64_t)(settings->taps - 1) * ssm->at.channels * sizeof(float));
  ssm->state_offset_bytes =
      plan_state(plan, (uint64_t)settings->inner * settings->states * sizeof(float));
  return &ssm->block;
}

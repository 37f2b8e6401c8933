// model/blocks/rwkv.c — see rwkv.h.
#include "model/blocks/rwkv.h"

#include <stdatomic.h>
#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/measure.h"
#include "model/segments.h"

// ---- The preceding row ----

// Sets before[t] to the normalised row before row t. The last row of each sequence is written to
// its state. WICK_E_NONFINITE: a state would not be finite.
static wick_status shift_rows(model_pass *pass, uint64_t state_offset_bytes, float *before,
                              wick_error *error) {
  const uint32_t hidden = pass->model->config.hidden;
  const size_t stride = pass->hidden_stride, bytes = hidden * sizeof(float);
  segment_walk walk = segments_begin(pass, state_offset_bytes);
  state_segment segment;
  while (segments_next(&walk, &segment)) {
    const uint32_t last = segment.first + segment.count - 1;
    float sum = 0;
    memcpy(before + segment.first * stride, segment.from, bytes);
    for (uint32_t t = segment.first; t < last; t++) {
      memcpy(before + (t + 1) * stride, pass->normed + t * stride, bytes);
    }
    memcpy(segment.to, pass->normed + last * stride, bytes);
    for (uint32_t i = 0; i < hidden; i++) sum += segment.to[i] * 0;
    if (!math_is_finite_f32(sum)) {
      return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                       "the input of the mixes of layer %u is not finite", pass->layer);
    }
  }
  return WICK_OK;
}

typedef struct mix_job {
  const model_pass *pass;
  const float *before, *weights;  // [hidden]
  float *out;
} mix_job;

// Computes out = x + weights * (before - x).
static void mix_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const mix_job *job = context;
  const uint32_t hidden = job->pass->model->config.hidden;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    const float *x = job->pass->normed + at, *before = job->before + at;
    float *out = job->out + at;
    for (uint32_t i = 0; i < hidden; i++) out[i] = x[i] + job->weights[i] * (before[i] - x[i]);
  }
}

static void mix_rows(model_pass *pass, const float *before, const float *weights, float *out) {
  mix_job job = {pass, before, weights, out};
  thread_pool_for(pass->threads, pass->count, mix_tokens, &job);
}

// ---- Time mix ----

enum { MIX_R, MIX_W, MIX_K, MIX_V, MIX_A, MIX_G, MIX_COUNT };

// Computes up(activation(down(x))) + bias.
typedef struct low_rank {
  weight_tensor down, up;  // [rank, hidden], [hidden, rank]
  float *bias;             // [hidden] or NULL
} low_rank;

typedef enum low_rank_activation {
  LOW_RANK_LINEAR,
  LOW_RANK_TANH,
  LOW_RANK_SIGMOID
} low_rank_activation;

typedef struct time_mix_block {
  model_block block;
  rwkv_settings is;
  uint32_t hidden, layer;
  uint64_t row_offset_bytes, state_offset_bytes;
  float *norm, *norm_bias;                    // [hidden]
  float *mixes;                               // [MIX_COUNT, hidden]
  weight_tensor receptance, key, value, out;  // [hidden, hidden]
  low_rank decay, rate, residual, gate;       // layer 0 has no residual
  float *key_scale, *key_rate, *bonus;        // [hidden]: k_k, k_a, r_k
  float *out_norm, *out_norm_bias;            // [hidden]
} time_mix_block;

// Binds "time_mix_w0", "time_mix_w1" and "time_mix_w2": the bias and the two matrices of letter w.
static void bind_low_rank(model_binder *binder, char letter, uint32_t rank, uint32_t hidden,
                          bool has_bias, low_rank *low) {
  enum { LETTER = sizeof "time_mix_" - 1, DIGIT };
  char name[] = "time_mix_??.weight";
  name[LETTER] = letter;
  name[DIGIT] = '0';
  if (has_bias) bind_vector(binder, name, hidden, BINDING_REQUIRED, &low->bias);
  name[DIGIT] = '1';
  bind_matrix(binder, name, rank, hidden, BINDING_REQUIRED, &low->down);
  name[DIGIT] = '2';
  bind_matrix(binder, name, hidden, rank, BINDING_REQUIRED, &low->up);
}

static void bind_time_mix(model_block *block, model_binder *binder) {
  time_mix_block *mix = (time_mix_block *)block;
  const rwkv_settings *is = &mix->is;
  const uint32_t n = mix->hidden;
  bind_norm(binder, "attn_norm.weight", n, &mix->norm, &mix->norm_bias);
  bind_table(binder, "time_mix_lerp_fused.weight", MIX_COUNT, n, BINDING_REQUIRED, &mix->mixes);
  bind_low_rank(binder, 'w', is->decay_rank, n, true, &mix->decay);
  bind_low_rank(binder, 'a', is->rate_rank, n, true, &mix->rate);
  bind_low_rank(binder, 'g', is->gate_rank, n, false, &mix->gate);
  if (mix->layer != 0) bind_low_rank(binder, 'v', is->value_rank, n, true, &mix->residual);
  bind_vector(binder, "time_mix_k_k.weight", n, BINDING_REQUIRED, &mix->key_scale);
  bind_vector(binder, "time_mix_k_a.weight", n, BINDING_REQUIRED, &mix->key_rate);
  bind_vector(binder, "time_mix_r_k.weight", n, BINDING_REQUIRED, &mix->bonus);
  bind_matrix(binder, "time_mix_receptance.weight", n, n, BINDING_REQUIRED, &mix->receptance);
  bind_matrix(binder, "time_mix_key.weight", n, n, BINDING_REQUIRED, &mix->key);
  bind_matrix(binder, "time_mix_value.weight", n, n, BINDING_REQUIRED, &mix->value);
  bind_vector(binder, "time_mix_ln.weight", n, BINDING_REQUIRED, &mix->out_norm);
  bind_vector(binder, "time_mix_ln.bias", n, BINDING_REQUIRED, &mix->out_norm_bias);
  bind_matrix(binder, "time_mix_output.weight", n, n, BINDING_REQUIRED, &mix->out);
}

typedef struct time_buffers {
  float *before, *mixed;  // [batch_tokens, hidden]
  float *low;             // [batch_tokens, the largest rank]
  float *of[MIX_COUNT];   // [batch_tokens, hidden]: r, w, k, v, a, g
  float *share, *b;  // [batch_tokens, hidden]: the share of the first layer's values; the factor of
                     // S^T a in the update
  uint32_t low_stride;
} time_buffers;

static uint32_t rank_most(const rwkv_settings *is) {
  uint32_t most = is->decay_rank;
  if (is->rate_rank > most) most = is->rate_rank;
  if (is->value_rank > most) most = is->value_rank;
  return is->gate_rank > most ? is->gate_rank : most;
}

static time_buffers take_time_buffers(const time_mix_block *mix, scratch_arena *arena) {
  const uint64_t floats = (uint64_t)arena->batch_tokens * arena_line_floats(mix->hidden);
  time_buffers buffers = {.low_stride = arena_line_floats(rank_most(&mix->is))};
  buffers.before = arena_take_floats(arena, floats);
  buffers.mixed = arena_take_floats(arena, floats);
  buffers.share = arena_take_floats(arena, floats);
  buffers.b = arena_take_floats(arena, floats);
  for (int i = 0; i < MIX_COUNT; i++) buffers.of[i] = arena_take_floats(arena, floats);
  buffers.low = arena_take_floats(arena, (uint64_t)arena->batch_tokens * buffers.low_stride);
  return buffers;
}

static void reserve_time_mix(const model_block *block, scratch_arena *arena) {
  const time_mix_block *mix = (const time_mix_block *)block;
  const uint32_t rank = rank_most(&mix->is);
  take_time_buffers(mix, arena);
  arena_take_act(arena, arena->batch_tokens, mix->hidden > rank ? mix->hidden : rank);
}

typedef struct time_job {
  const time_mix_block *mix;
  const model_pass *pass;
  time_buffers buffers;
  atomic_uint nonfinite;  // rows
} time_job;

static void activate_low_rank(low_rank_activation activation, float *row, uint32_t rank) {
  for (uint32_t i = 0; i < rank && activation != LOW_RANK_LINEAR; i++) {
    const double x = (double)row[i];
    row[i] = activation == LOW_RANK_TANH ? (float)(1 - 2 / (1 + math_exp(2 * x)))
                                         : (float)(1 / (1 + math_exp(-x)));
  }
}

// Computes y = up(activation(down(mixed))) + bias.
static void run_low_rank(const time_job *job, model_pass *pass, const low_rank *low,
                         low_rank_activation activation, float *y) {
  const time_buffers *buffers = &job->buffers;
  pass_multiply(pass, OP_QKV, &low->down, NULL, buffers->mixed, pass->hidden_stride, buffers->low,
                buffers->low_stride);
  for (uint32_t t = 0; t < pass->count; t++) {
    activate_low_rank(activation, buffers->low + (size_t)t * buffers->low_stride,
                      low->down.dims[1]);
  }
  pass_multiply(pass, OP_QKV, &low->up, low->bias, buffers->low, buffers->low_stride, y,
                pass->hidden_stride);
}

static void project(const time_job *job, model_pass *pass) {
  const time_mix_block *mix = job->mix;
  const time_buffers *buffers = &job->buffers;
  const weight_tensor *whole[MIX_COUNT] = {
      [MIX_R] = &mix->receptance, [MIX_K] = &mix->key, [MIX_V] = &mix->value};
  for (int i = 0; i < MIX_COUNT; i++) {
    float *y = buffers->of[i];
    mix_rows(pass, buffers->before, mix->mixes + (size_t)i * mix->hidden, buffers->mixed);
    if (whole[i] != NULL) {
      pass_multiply(pass, OP_QKV, whole[i], NULL, buffers->mixed, pass->hidden_stride, y,
                    pass->hidden_stride);
    }
    if (i == MIX_W) run_low_rank(job, pass, &mix->decay, LOW_RANK_TANH, y);
    if (i == MIX_A) run_low_rank(job, pass, &mix->rate, LOW_RANK_LINEAR, y);
    if (i == MIX_G) run_low_rank(job, pass, &mix->gate, LOW_RANK_SIGMOID, y);
    if (i == MIX_V && mix->layer != 0) {
      run_low_rank(job, pass, &mix->residual, LOW_RANK_LINEAR, buffers->share);
    }
  }
}

// Computes v += (v of the first layer - v) * sigmoid(share).
static void share_values(const time_job *job, size_t at) {
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = job->mix->hidden;
  float *v = job->buffers.of[MIX_V] + at, *mixed = job->buffers.mixed + at;
  const float *first = job->pass->aside + at;
  for (uint32_t i = 0; i < n; i++) mixed[i] = first[i] - v[i];
  kernels->sigmoid_mul(mixed, job->buffers.share + at, n);
  kernels->add(v, mixed, n);
}

// Computes w = e^(-sigmoid(w) / sqrt(e)); kk = k * k_k, normalised to length 1 in each head; a =
// sigmoid(a); k = k (1 + (a - 1) k_a). In place: of[MIX_A] becomes -kk, b becomes kk a.
static void prepare_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const time_job *job = context;
  const time_mix_block *mix = job->mix;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = mix->hidden, dim = mix->is.head_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    float *w = job->buffers.of[MIX_W] + at, *k = job->buffers.of[MIX_K] + at;
    float *a = job->buffers.of[MIX_A] + at, *b = job->buffers.b + at;
    if (mix->layer != 0) share_values(job, at);
    for (uint32_t i = 0; i < n; i++) {
      w[i] = (float)math_exp(-0.606531 / (1 + math_exp(-(double)w[i])));
      b[i] = k[i] * mix->key_scale[i];
    }
    for (uint32_t h = 0; h < n; h += dim) kernels->l2_norm(b + h, dim, 1e-12f, b + h);
    for (uint32_t i = 0; i < n; i++) {
      const float rate = (float)(1 / (1 + math_exp(-(double)a[i])));
      k[i] += (rate - 1) * mix->key_rate[i] * k[i];
      a[i] = -b[i];
      b[i] *= rate;
    }
  }
}

static void run_heads(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const time_job *job = context;
  const time_buffers *buffers = &job->buffers;
  const uint32_t dim = job->mix->is.head_dim;
  segment_walk walk = segments_begin(job->pass, job->mix->state_offset_bytes);
  state_segment segment;
  (void)thread;
  while (segments_next(&walk, &segment)) {
    for (uint32_t head = first; head < last; head++) {
      const size_t at = (size_t)segment.first * job->pass->hidden_stride + head * dim;
      const size_t state = (size_t)head * dim * dim;
      const kernel_wkv run = {.tokens = segment.count,
                              .dim = dim,
                              .r = buffers->of[MIX_R] + at,
                              .w = buffers->of[MIX_W] + at,
                              .k = buffers->of[MIX_K] + at,
                              .v = buffers->of[MIX_V] + at,
                              .a = buffers->of[MIX_A] + at,
                              .b = buffers->b + at,
                              .state_in = segment.from + state,
                              .state_out = segment.to + state,
                              .y = buffers->mixed + at,
                              .stride = job->pass->hidden_stride};
      job->pass->kernels->wkv(&run);
    }
  }
}

// Computes y = (norm(y) per head + (k . (r * r_k)) v) * g.
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  time_job *job = context;
  const time_mix_block *mix = job->mix;
  const time_buffers *buffers = &job->buffers;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = mix->hidden, dim = mix->is.head_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    float *y = buffers->mixed + at, total = 0;
    const float *g = buffers->of[MIX_G] + at;
    for (uint32_t h = 0; h < n; h += dim) {
      const float *r = buffers->of[MIX_R] + at + h, *k = buffers->of[MIX_K] + at + h;
      const float *v = buffers->of[MIX_V] + at + h, *bonus = mix->bonus + h;
      float sum = 0;
      for (uint32_t i = 0; i < dim; i++) sum += k[i] * r[i] * bonus[i];
      kernels->layer_norm(y + h, mix->out_norm + h, mix->out_norm_bias + h, dim, 64e-5f, y + h);
      for (uint32_t i = 0; i < dim; i++) total += y[h + i] = (y[h + i] + sum * v[i]) * g[h + i];
    }
    if (!math_is_finite_f32(total)) atomic_fetch_add(&job->nonfinite, 1);
  }
}

static wick_status mix_time(time_job *job, model_pass *pass, wick_error *error) {
  const time_mix_block *mix = job->mix;
  pass_norm(pass, pass->hidden, mix->norm, mix->norm_bias);
  const wick_status status = shift_rows(pass, mix->row_offset_bytes, job->buffers.before, error);
  if (status != WICK_OK) return status;
  project(job, pass);
  if (mix->layer == 0) pass_set_aside(pass, job->buffers.of[MIX_V]);
  thread_pool_for(pass->threads, pass->count, prepare_tokens, job);
  thread_pool_for(pass->threads, mix->hidden / mix->is.head_dim, run_heads, job);
  thread_pool_for(pass->threads, pass->count, gate_tokens, job);
  measure_rows(pass->ops, OP_DELTA, pass->count, 2ull * mix->hidden * mix->is.head_dim);
  const unsigned bad = atomic_load(&job->nonfinite);
  if (bad == 0) return WICK_OK;
  return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                   "%u rows of the time mix of layer %u are not finite", bad, pass->layer);
}

static wick_status run_time_mix(const model_block *block, model_pass *pass, wick_error *error) {
  const time_mix_block *mix = (const time_mix_block *)block;
  time_job job = {.mix = mix, .pass = pass};
  job.buffers = take_time_buffers(mix, &pass->arena);
  atomic_init(&job.nonfinite, 0);
  const wick_status status = mix_time(&job, pass, error);
  if (status == WICK_OK) {
    const pass_output output = {&mix->out, NULL, NULL, 1, OP_ATTN_OUTPUT};
    pass_add_output(pass, &output, job.buffers.mixed, pass->hidden_stride);
  }
  return status;
}

// ---- Channel mix ----

typedef struct channel_mix_block {
  model_block block;
  uint32_t hidden, ffn;
  uint64_t row_offset_bytes;
  float *norm, *norm_bias;   // [hidden]
  float *mixes;              // [hidden]
  weight_tensor key, value;  // [ffn, hidden], [hidden, ffn]
} channel_mix_block;

static void bind_channel_mix(model_block *block, model_binder *binder) {
  channel_mix_block *mix = (channel_mix_block *)block;
  const uint32_t n = mix->hidden;
  bind_norm(binder, "attn_norm_2.weight", n, &mix->norm, &mix->norm_bias);
  bind_vector(binder, "channel_mix_lerp_k.weight", n, BINDING_REQUIRED, &mix->mixes);
  bind_matrix(binder, "channel_mix_key.weight", mix->ffn, n, BINDING_REQUIRED, &mix->key);
  bind_matrix(binder, "channel_mix_value.weight", n, mix->ffn, BINDING_REQUIRED, &mix->value);
}

typedef struct channel_buffers {
  float *before, *mixed;  // [batch_tokens, hidden]
  float *keys;            // [batch_tokens, ffn]
  uint32_t stride;        // of keys
} channel_buffers;

static channel_buffers take_channel_buffers(const channel_mix_block *mix, scratch_arena *arena) {
  const uint64_t floats = (uint64_t)arena->batch_tokens * arena_line_floats(mix->hidden);
  channel_buffers buffers = {.stride = arena_line_floats(mix->ffn)};
  buffers.before = arena_take_floats(arena, floats);
  buffers.mixed = arena_take_floats(arena, floats);
  buffers.keys = arena_take_floats(arena, (uint64_t)arena->batch_tokens * buffers.stride);
  return buffers;
}

static void reserve_channel_mix(const model_block *block, scratch_arena *arena) {
  const channel_mix_block *mix = (const channel_mix_block *)block;
  take_channel_buffers(mix, arena);
  arena_take_act(arena, arena->batch_tokens, mix->hidden > mix->ffn ? mix->hidden : mix->ffn);
}

// Computes hidden += value(relu(key(mixed))^2).
static void add_channels(const channel_mix_block *mix, model_pass *pass,
                         const channel_buffers *buffers) {
  const pass_output output = {&mix->value, NULL, NULL, 1, OP_DOWN};
  pass_multiply(pass, OP_GATE_UP, &mix->key, NULL, buffers->mixed, pass->hidden_stride,
                buffers->keys, buffers->stride);
  for (uint32_t t = 0; t < pass->count; t++) {
    pass->kernels->relu_square(buffers->keys + (size_t)t * buffers->stride, mix->ffn);
  }
  pass_add_output(pass, &output, buffers->keys, buffers->stride);
}

static wick_status run_channel_mix(const model_block *block, model_pass *pass, wick_error *error) {
  const channel_mix_block *mix = (const channel_mix_block *)block;
  const channel_buffers buffers = take_channel_buffers(mix, &pass->arena);
  pass_norm(pass, pass->hidden, mix->norm, mix->norm_bias);
  const wick_status status = shift_rows(pass, mix->row_offset_bytes, buffers.before, error);
  if (status != WICK_OK) return status;
  mix_rows(pass, buffers.before, mix->mixes, buffers.mixed);
  if (pass_keep_wanted(pass, buffers.mixed, pass->hidden_stride, mix->hidden)) {
    add_channels(mix, pass, &buffers);
  }
  return WICK_OK;
}

// ---- Planning ----

rwkv_settings rwkv_read(model_plan *plan) {
  model_keys *keys = plan->keys;
  const uint32_t hidden = plan->model->config.hidden, most = MODEL_HIDDEN_MAX;
  rwkv_settings is = {.ffn = plan_ffn(plan)};
  is.head_dim = keys_size(keys, "wkv.head_size", MODEL_HEAD_DIM_MAX);
  is.decay_rank = keys_size(keys, "attention.decay_lora_rank", most);
  is.rate_rank = keys_size(keys, "attention.iclr_lora_rank", most);
  is.value_rank = keys_size(keys, "attention.value_residual_mix_lora_rank", most);
  is.gate_rank = keys_size(keys, "attention.gate_lora_rank", most);
  keys_count(keys, "token_shift_count", 2, 2, 2);
  if (keys->status == WICK_OK && hidden % is.head_dim != 0) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "wkv.head_size",
              "%s.embedding_length %u is not a multiple of wkv.head_size %u", keys->architecture,
              hidden, is.head_dim);
  }
  return is;
}

model_block *rwkv_make_time_mix(model_plan *plan, const rwkv_settings *settings, uint32_t layer) {
  static const model_block_ops OPS = {"time mix", bind_time_mix, reserve_time_mix, run_time_mix};
  time_mix_block *mix = plan_block(plan, &OPS, sizeof *mix);
  if (mix == NULL) return NULL;
  mix->is = *settings;
  mix->hidden = plan->model->config.hidden;
  mix->layer = layer;
  mix->row_offset_bytes = plan_state(plan, mix->hidden * sizeof(float));
  mix->state_offset_bytes =
      plan_state(plan, (uint64_t)mix->hidden * settings->head_dim * sizeof(float));
  plan->model->keeps_inputs = true;
  return &mix->block;
}

model_block *rwkv_make_channel_mix(model_plan *plan, const rwkv_settings *settings) {
  static const model_block_ops OPS = {"channel mix", bind_channel_mix, reserve_channel_mix,
                                      run_channel_mix};
  channel_mix_block *mix = plan_block(plan, &OPS, sizeof *mix);
  if (mix == NULL) return NULL;
  mix->hidden = plan->model->config.hidden;
  mix->ffn = settings->ffn;
  mix->row_offset_bytes = plan_state(plan, mix->hidden * sizeof(float));
  return &mix->block;
}

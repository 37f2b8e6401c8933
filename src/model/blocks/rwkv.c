// model/blocks/rwkv.c — see rwkv.h.
#include "model/blocks/rwkv.h"

#include <stdatomic.h>
#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/measure.h"
#include "model/segments.h"

// ---- The row before ----

// before[t]: the normalised row before row t; the last row of each sequence goes to its state.
static void shift_rows(model_pass *pass, uint64_t state_offset_bytes, float *before) {
  const size_t stride = pass->hidden_stride, bytes = pass->model->config.hidden * sizeof(float);
  segment_walk walk = segments_begin(pass, state_offset_bytes);
  state_segment segment;
  while (segments_next(&walk, &segment)) {
    const uint32_t last = segment.first + segment.count - 1;
    memcpy(before + segment.first * stride, segment.from, bytes);
    for (uint32_t t = segment.first; t < last; t++) {
      memcpy(before + (t + 1) * stride, pass->normed + t * stride, bytes);
    }
    memcpy(segment.to, pass->normed + last * stride, bytes);
  }
}

typedef struct mix_job {
  const model_pass *pass;
  const float *before, *weights;  // [hidden]
  float *out;
} mix_job;

// out = x + weights * (before - x)
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

typedef struct low_rank {
  weight_tensor down, up;  // [rank, hidden], [hidden, rank]
  float *bias;             // [hidden] or NULL
} low_rank;

typedef struct time_mix_block {
  model_block block;
  rwkv_settings is;
  uint32_t hidden, layer;
  uint64_t row_offset_bytes, state_offset_bytes;
  float *norm, *norm_bias;                    // [hidden]
  float *mixes;                               // [MIX_COUNT, hidden]
  weight_tensor receptance, key, value, out;  // [hidden, hidden]
  low_rank decay, rate, residual, gate;       // residual: not in layer 0
  float *key_scale, *key_rate, *bonus;        // [hidden]: k_k, k_a, r_k
  float *out_norm, *out_norm_bias;            // [hidden]
} time_mix_block;

static void bind_low_rank(model_binder *binder, char letter, uint32_t rank, uint32_t hidden,
                          bool has_bias, low_rank *low) {
  char name[] = "time_mix_?0.weight";
  char *at = strchr(name, '?');
  at[0] = letter;
  if (has_bias) bind_vector(binder, name, hidden, BINDING_REQUIRED, &low->bias);
  at[1] = '1';
  bind_matrix(binder, name, rank, hidden, BINDING_REQUIRED, &low->down);
  at[1] = '2';
  bind_matrix(binder, name, hidden, rank, BINDING_REQUIRED, &low->up);
}

static void bind_time_mix(model_block *block, model_binder *binder) {
  time_mix_block *mix = (time_mix_block *)block;
  const rwkv_settings *is = &mix->is;
  const uint32_t n = mix->hidden;
  bind_norm(binder, "attn_norm.weight", n, BINDING_REQUIRED, &mix->norm, &mix->norm_bias);
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
  bind_norm(binder, "time_mix_ln.weight", n, BINDING_REQUIRED, &mix->out_norm, &mix->out_norm_bias);
  bind_matrix(binder, "time_mix_output.weight", n, n, BINDING_REQUIRED, &mix->out);
}

typedef struct time_buffers {
  float *before, *mixed;  // [batch_tokens, hidden]
  float *low;             // [batch_tokens, the largest rank]
  float *of[MIX_COUNT];   // [batch_tokens, hidden]: r, w, k, v, a, g
  float *share, *b;       // the same: of the first layer's values; of S^T a in the update
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
  const uint64_t begin = arena_mark(arena);
  take_time_buffers(mix, arena);
  arena_take_act(arena, arena->batch_tokens, mix->hidden > rank ? mix->hidden : rank);
  arena_release(arena, begin);
}

typedef struct time_job {
  const time_mix_block *mix;
  const model_pass *pass;
  time_buffers buffers;
  atomic_uint nonfinite;  // rows
} time_job;

// y = up(act(down(x))) + bias. The activation is tanh for 'w', the sigmoid for 'g', none else.
static void run_low_rank(time_job *job, model_pass *pass, const low_rank *low, char letter,
                         float *y) {
  const time_buffers *buffers = &job->buffers;
  const uint32_t rank = low->down.dims[1];
  pass_multiply(pass, OP_QKV, &low->down, NULL, buffers->mixed, pass->hidden_stride, buffers->low,
                buffers->low_stride);
  for (uint32_t t = 0; t < pass->count; t++) {
    float *row = buffers->low + (size_t)t * buffers->low_stride;
    for (uint32_t i = 0; i < rank && letter != 'a'; i++) {
      const double x = (double)row[i];
      if (letter == 'w') row[i] = (float)(1 - 2 / (1 + math_exp(2 * x)));
      if (letter == 'g') row[i] = (float)(1 / (1 + math_exp(-x)));
    }
  }
  pass_multiply(pass, OP_QKV, &low->up, low->bias, buffers->low, buffers->low_stride, y,
                pass->hidden_stride);
}

static void project(time_job *job, model_pass *pass) {
  const time_mix_block *mix_block = job->mix;
  const time_buffers *buffers = &job->buffers;
  const weight_tensor *whole[MIX_COUNT] = {
      [MIX_R] = &mix_block->receptance, [MIX_K] = &mix_block->key, [MIX_V] = &mix_block->value};
  for (int i = 0; i < MIX_COUNT; i++) {
    mix_rows(pass, buffers->before, mix_block->mixes + (size_t)i * mix_block->hidden,
             buffers->mixed);
    if (whole[i] != NULL) {
      pass_multiply(pass, OP_QKV, whole[i], NULL, buffers->mixed, pass->hidden_stride,
                    buffers->of[i], pass->hidden_stride);
    }
    if (i == MIX_W) run_low_rank(job, pass, &mix_block->decay, 'w', buffers->of[i]);
    if (i == MIX_A) run_low_rank(job, pass, &mix_block->rate, 'a', buffers->of[i]);
    if (i == MIX_G) run_low_rank(job, pass, &mix_block->gate, 'g', buffers->of[i]);
    if (i == MIX_V && mix_block->layer != 0) {
      run_low_rank(job, pass, &mix_block->residual, 'a', buffers->share);
    }
  }
}

// v += (v of the first layer - v) * sigmoid(share)
static void share_values(const time_job *job, size_t at) {
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = job->mix->hidden;
  float *v = job->buffers.of[MIX_V] + at, *mixed = job->buffers.mixed + at;
  const float *first = job->pass->aside + at;
  for (uint32_t i = 0; i < n; i++) mixed[i] = first[i] - v[i];
  kernels->sigmoid_mul(mixed, job->buffers.share + at, n);
  kernels->add(v, mixed, n);
}

// w = e^(-sigmoid(w) / sqrt(e)); kk = k * k_k to length 1 in each head; a = sigmoid(a);
// k = k (1 + (a - 1) k_a). In place: of[MIX_A] becomes -kk, b becomes kk a.
static void prepare_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const time_job *job = context;
  const time_mix_block *mix_block = job->mix;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = mix_block->hidden, dim = mix_block->is.head_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    float *w = job->buffers.of[MIX_W] + at, *k = job->buffers.of[MIX_K] + at;
    float *a = job->buffers.of[MIX_A] + at, *b = job->buffers.b + at;
    if (mix_block->layer != 0) share_values(job, at);
    for (uint32_t i = 0; i < n; i++) {
      w[i] = (float)math_exp(-0.606531 / (1 + math_exp(-(double)w[i])));
      b[i] = k[i] * mix_block->key_scale[i];
    }
    for (uint32_t h = 0; h < n; h += dim) kernels->l2_norm(b + h, dim, 1e-12f, b + h);
    for (uint32_t i = 0; i < n; i++) {
      const float rate = (float)(1 / (1 + math_exp(-(double)a[i])));
      k[i] += (rate - 1) * mix_block->key_rate[i] * k[i];
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

// y = (norm(y) head by head + (k . (r * r_k)) v) * g
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  time_job *job = context;
  const time_mix_block *mix_block = job->mix;
  const time_buffers *buffers = &job->buffers;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t n = mix_block->hidden, dim = mix_block->is.head_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * job->pass->hidden_stride;
    float *y = buffers->mixed + at, total = 0;
    const float *g = buffers->of[MIX_G] + at;
    for (uint32_t h = 0; h < n; h += dim) {
      const float *r = buffers->of[MIX_R] + at + h, *k = buffers->of[MIX_K] + at + h;
      const float *v = buffers->of[MIX_V] + at + h, *bonus = mix_block->bonus + h;
      float sum = 0;
      for (uint32_t i = 0; i < dim; i++) sum += k[i] * r[i] * bonus[i];
      kernels->layer_norm(y + h, mix_block->out_norm + h, mix_block->out_norm_bias + h, dim, 64e-5f,
                          y + h);
      for (uint32_t i = 0; i < dim; i++) total += y[h + i] = (y[h + i] + sum * v[i]) * g[h + i];
    }
    if (!math_is_finite_f32(total)) atomic_fetch_add(&job->nonfinite, 1);
  }
}

static wick_status run_time_mix(const model_block *block, model_pass *pass, wick_error *error) {
  const time_mix_block *mix_block = (const time_mix_block *)block;
  const uint64_t begin = arena_mark(&pass->arena);
  time_job job = {.mix = mix_block, .pass = pass};
  job.buffers = take_time_buffers(mix_block, &pass->arena);
  atomic_init(&job.nonfinite, 0);
  pass_norm(pass, pass->hidden, mix_block->norm, mix_block->norm_bias);
  shift_rows(pass, mix_block->row_offset_bytes, job.buffers.before);
  project(&job, pass);
  if (mix_block->layer == 0) pass_set_aside(pass, job.buffers.of[MIX_V]);
  thread_pool_for(pass->threads, pass->count, prepare_tokens, &job);
  thread_pool_for(pass->threads, mix_block->hidden / mix_block->is.head_dim, run_heads, &job);
  thread_pool_for(pass->threads, pass->count, gate_tokens, &job);
  measure_rows(pass->ops, OP_DELTA, pass->count, 2ull * mix_block->hidden * mix_block->is.head_dim);
  const unsigned bad = atomic_load(&job.nonfinite);
  wick_status status = WICK_OK;
  if (bad != 0) {
    status = fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                       "%u rows of the time mix of layer %u are not finite", bad, pass->layer);
  } else {
    const pass_output output = {&mix_block->out, NULL, NULL, 1, OP_ATTN_OUTPUT};
    pass_add_output(pass, &output, job.buffers.mixed, pass->hidden_stride);
  }
  arena_release(&pass->arena, begin);
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
  bind_norm(binder, "attn_norm_2.weight", n, BINDING_REQUIRED, &mix->norm, &mix->norm_bias);
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
  const uint64_t begin = arena_mark(arena);
  take_channel_buffers(mix, arena);
  arena_take_act(arena, arena->batch_tokens, mix->hidden > mix->ffn ? mix->hidden : mix->ffn);
  arena_release(arena, begin);
}

static wick_status run_channel_mix(const model_block *block, model_pass *pass, wick_error *error) {
  const channel_mix_block *mix_block = (const channel_mix_block *)block;
  const uint64_t begin = arena_mark(&pass->arena);
  const channel_buffers buffers = take_channel_buffers(mix_block, &pass->arena);
  (void)error;
  pass_norm(pass, pass->hidden, mix_block->norm, mix_block->norm_bias);
  shift_rows(pass, mix_block->row_offset_bytes, buffers.before);
  mix_rows(pass, buffers.before, mix_block->mixes, buffers.mixed);
  if (pass_keep_wanted(pass, buffers.mixed, pass->hidden_stride, mix_block->hidden)) {
    const pass_output output = {&mix_block->value, NULL, NULL, 1, OP_DOWN};
    pass_multiply(pass, OP_GATE_UP, &mix_block->key, NULL, buffers.mixed, pass->hidden_stride,
                  buffers.keys, buffers.stride);
    for (uint32_t t = 0; t < pass->count; t++) {
      pass->kernels->relu_square(buffers.keys + (size_t)t * buffers.stride, mix_block->ffn);
    }
    pass_add_output(pass, &output, buffers.keys, buffers.stride);
  }
  arena_release(&pass->arena, begin);
  return WICK_OK;
}

// ---- Planning ----

rwkv_settings rwkv_read(model_plan *plan) {
  model_keys *keys = plan->keys;
  const uint32_t hidden = plan->model->config.hidden, most = MODEL_HIDDEN_MAX;
  rwkv_settings is = {.ffn = plan_ffn(plan)};
  is.head_dim = keys_count(keys, "wkv.head_size", 1, MODEL_HEAD_DIM_MAX, 0);
  is.decay_rank = keys_count(keys, "attention.decay_lora_rank", 1, most, 0);
  is.rate_rank = keys_count(keys, "attention.iclr_lora_rank", 1, most, 0);
  is.value_rank = keys_count(keys, "attention.value_residual_mix_lora_rank", 1, most, 0);
  is.gate_rank = keys_count(keys, "attention.gate_lora_rank", 1, most, 0);
  if (keys->status == WICK_OK && hidden % is.head_dim != 0) {
    keys->status = fail_with(keys->error, WICK_E_FORMAT, keys_offset(keys, "wkv.head_size"),
                             "%s.embedding_length %u is no multiple of wkv.head_size %u",
                             keys->architecture, hidden, is.head_dim);
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

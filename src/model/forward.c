// model/forward.c — the decoder of the llama family (Touvron et al. 2023): RMS norm, attention with
// rotary positions and grouped heads, SwiGLU. One call per op; shapes in comments.
#include "model/forward.h"

#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "model/attention.h"
#include "model/measure.h"
#include "model/product.h"
#include "platform/platform.h"
#include "thread/choice.h"

struct wick_forward {
  const wick_model *model;
  wick_kv_pool *kv;
  thread_pool *threads;
  const wick_kernels *kernels;
  model_scratch scratch;
  double *frequencies;  // [rope_dims / 2], radians a position
  model_input *inputs;  // [batch_tokens]
  uint32_t *wanted;     // [batch_tokens] inputs that want logits
  uint32_t count, wanted_count;
  uint32_t layer;    // to run next
  wick_ops *ops;     // NULL: nothing is recorded
  bool is_choosing;  // how many threads to use
  thread_choice choice;
};

uint64_t forward_plan_bytes(const wick_model_config *config, const wick_kernels *kernels,
                            uint32_t batch_tokens, uint32_t threads) {
  model_scratch scratch;
  scratch_plan(config, kernels, batch_tokens, threads, &scratch, NULL);
  return scratch.size_bytes;
}

// theta_i = base^(-2i / dims), divided by the file's factors and the linear scale.
static void fill_frequencies(wick_forward *forward) {
  const wick_model *model = forward->model;
  const uint32_t pairs = model->config.rope_dims / 2;
  for (uint32_t i = 0; i < pairs; i++) {
    const double exponent = -2.0 * (double)i / (double)model->config.rope_dims;
    double frequency = math_pow(model->config.rope_theta, exponent) / model->config.rope_scale;
    if (model->rope_factors != NULL) frequency /= (double)model->rope_factors[i];
    forward->frequencies[i] = frequency;
  }
}

wick_status forward_create(const wick_model *model, wick_kv_pool *kv, thread_pool *threads,
                           uint32_t threads_max, uint32_t batch_tokens, wick_forward **out,
                           wick_error *error) {
  wick_memory *memory = model->memory;
  wick_forward *forward = memory_alloc_zeroed(memory, sizeof *forward);
  if (forward == NULL) return memory_fail(memory, error, "the forward pass", sizeof *forward);
  forward->model = model;
  forward->kv = kv;
  forward->threads = threads;
  forward->kernels = model->kernels;
  const uint64_t bytes =
      forward_plan_bytes(&model->config, model->kernels, batch_tokens, threads_max);
  void *block = bytes > SIZE_MAX ? NULL : memory_alloc(memory, (size_t)bytes);
  scratch_plan(&model->config, model->kernels, batch_tokens, threads_max, &forward->scratch, block);
  forward->frequencies = memory_alloc(memory, model->config.rope_dims / 2 * sizeof(double));
  forward->inputs = memory_alloc(memory, batch_tokens * sizeof(model_input));
  forward->wanted = memory_alloc(memory, batch_tokens * sizeof(uint32_t));
  if (block == NULL || forward->frequencies == NULL || forward->inputs == NULL ||
      forward->wanted == NULL) {
    forward_destroy(forward);
    return memory_fail(memory, error, "the scratch of the forward pass", bytes);
  }
  *out = forward;
  return WICK_OK;
}

void forward_destroy(wick_forward *forward) {
  if (forward == NULL) return;
  wick_memory *memory = forward->model->memory;
  memory_free(memory, forward->scratch.block);
  memory_free(memory, forward->frequencies);
  memory_free(memory, forward->inputs);
  memory_free(memory, forward->wanted);
  memory_free(memory, forward);
}

void forward_measure(wick_forward *forward, wick_ops *ops) { forward->ops = ops; }

// ---- Jobs over the tokens of the batch ----

static void embed_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  wick_forward *forward = context;
  const kernel_matrix *embedding = &forward->model->embedding;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const model_input *input = &forward->inputs[t];
    forward->kernels->types[embedding->type].row_dequant(
        embedding, (uint32_t)input->token,
        forward->scratch.hidden + (size_t)t * forward->scratch.hidden_stride);
    rope_table(forward->frequencies, forward->model->config.rope_dims, input->position,
               forward->scratch.cos_sin + (size_t)t * forward->model->config.rope_dims);
  }
}

typedef struct norm_job {
  const wick_forward *forward;
  const float *weight;
} norm_job;

// normed[t] = rms_norm(hidden[t])   [tokens, hidden]
static void norm_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const norm_job *job = context;
  const model_scratch *s = &job->forward->scratch;
  const wick_model_config *config = &job->forward->model->config;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * s->hidden_stride;
    job->forward->kernels->rms_norm(s->hidden + at, job->weight, config->hidden,
                                    config->norm_epsilon, s->normed + at);
  }
}

static void norm(wick_forward *forward, const float *weight) {
  norm_job job = {forward, weight};
  thread_pool_for(forward->threads, forward->count, norm_tokens, &job);
  measure_rows(forward->ops, WICK_OP_NORM, forward->count, 2ull * forward->model->config.hidden);
}

// gate[t] = silu(gate[t]) * up[t]   [tokens, ffn]
static void gate_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const wick_forward *forward = context;
  const model_scratch *s = &forward->scratch;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const size_t at = (size_t)t * s->ffn_stride;
    forward->kernels->silu_mul(s->gate + at, s->up + at, forward->model->config.ffn);
  }
}

static model_product product_of(const wick_forward *forward, const float *x, uint32_t x_stride,
                                uint32_t cols) {
  return (model_product){.kernels = forward->kernels,
                         .threads = forward->threads,
                         .x = x,
                         .x_stride = x_stride,
                         .cols = cols,
                         .tokens = forward->count,
                         .act = forward->scratch.act};
}

// ---- The pass ----

void forward_begin(wick_forward *forward, const model_input *inputs, uint32_t count) {
  memcpy(forward->inputs, inputs, count * sizeof *inputs);
  forward->count = count;
  forward->layer = 0;
  forward->wanted_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i].wants_logits) forward->wanted[forward->wanted_count++] = i;
  }
  wick_ops_begin(forward->ops,
                 forward->wanted_count == count ? WICK_PASS_DECODE : WICK_PASS_PREFILL);
  // The file's factors arrive with the weights, so this waits until the first pass.
  fill_frequencies(forward);
  thread_pool_for(forward->threads, count, embed_tokens, forward);
  measure_rows(forward->ops, WICK_OP_EMBED, count, forward->model->config.hidden);
}

uint32_t forward_next_layer(const wick_forward *forward) { return forward->layer; }

// In the last layer only the rows whose logits are wanted go on after attention.
static void keep_wanted(wick_forward *forward) {
  model_scratch *s = &forward->scratch;
  for (uint32_t i = 0; i < forward->wanted_count; i++) {
    const size_t from = forward->wanted[i], to = i;
    if (from == to) continue;
    memcpy(s->hidden + to * s->hidden_stride, s->hidden + from * s->hidden_stride,
           forward->model->config.hidden * sizeof(float));
    memcpy(s->attention + to * s->q_stride, s->attention + from * s->q_stride,
           wick_q_dim(&forward->model->config) * sizeof(float));
  }
  forward->count = forward->wanted_count;
}

static wick_status attend(wick_forward *forward, const model_layer *layer, wick_error *error) {
  model_scratch *s = &forward->scratch;
  const wick_model_config *config = &forward->model->config;
  norm(forward, layer->attn_norm);
  // q [tokens, heads, head_dim]; k, v [tokens, kv_heads, head_dim]
  model_product qkv = product_of(forward, s->normed, s->hidden_stride, config->hidden);
  product_add(&qkv, &layer->q, layer->q_bias, s->q, s->q_stride);
  product_add(&qkv, &layer->k, layer->k_bias, s->k, s->kv_stride);
  product_add(&qkv, &layer->v, layer->v_bias, s->v, s->kv_stride);
  product_run(&qkv);
  measure_product(forward->ops, WICK_OP_QKV, &qkv);
  model_attention attention = {.model = forward->model,
                               .kv = forward->kv,
                               .scratch = s,
                               .frequencies = forward->frequencies,
                               .inputs = forward->inputs,
                               .count = forward->count,
                               .layer = forward->layer};
  const wick_status status = attention_store(&attention, forward->threads, error);
  if (status != WICK_OK) return status;
  measure_store(forward->ops, &attention);
  attention_run(&attention, forward->threads);
  measure_attention(forward->ops, &attention);
  return WICK_OK;
}

static void feed_forward(wick_forward *forward, const model_layer *layer) {
  model_scratch *s = &forward->scratch;
  const wick_model_config *config = &forward->model->config;
  norm(forward, layer->ffn_norm);
  model_product up = product_of(forward, s->normed, s->hidden_stride, config->hidden);
  product_add(&up, &layer->gate, layer->gate_bias, s->gate, s->ffn_stride);
  product_add(&up, &layer->up, layer->up_bias, s->up, s->ffn_stride);
  product_run(&up);
  measure_product(forward->ops, WICK_OP_GATE_UP, &up);
  thread_pool_for(forward->threads, forward->count, gate_tokens, forward);
  measure_rows(forward->ops, WICK_OP_SILU, forward->count, 3ull * config->ffn);
  model_product down = product_of(forward, s->gate, s->ffn_stride, config->ffn);
  product_add_residual(&down, &layer->down, layer->down_bias, s->normed, s->hidden,
                       s->hidden_stride);
  product_run(&down);
  measure_product(forward->ops, WICK_OP_DOWN, &down);
}

static wick_status run_layer(wick_forward *forward, wick_error *error) {
  model_scratch *s = &forward->scratch;
  const model_layer *layer = &forward->model->layers[forward->layer];
  const wick_status status = attend(forward, layer, error);
  if (status != WICK_OK) return status;
  forward->layer++;
  if (forward->layer == forward->model->config.layers) keep_wanted(forward);
  if (forward->count == 0) return WICK_OK;
  // hidden += attention Wo   [tokens, hidden]
  model_product output =
      product_of(forward, s->attention, s->q_stride, wick_q_dim(&forward->model->config));
  product_add_residual(&output, &layer->attn_output, layer->attn_output_bias, s->normed, s->hidden,
                       s->hidden_stride);
  product_run(&output);
  measure_product(forward->ops, WICK_OP_ATTN_OUTPUT, &output);
  feed_forward(forward, layer);
  return WICK_OK;
}

// Layers of a pass are alike but the last, in which only some rows go on.
wick_status forward_layer(wick_forward *forward, wick_error *error) {
  if (!forward->is_choosing) return run_layer(forward, error);
  const bool is_last = forward->layer + 1 == forward->model->config.layers;
  const uint32_t threads = thread_pool_threads(forward->threads), tokens = forward->count;
  thread_pool_limit(forward->threads, thread_choice_next(&forward->choice, threads, tokens));
  const uint64_t start_us = platform_now_us();
  const wick_status status = run_layer(forward, error);
  if (!is_last) thread_choice_took(&forward->choice, platform_now_us() - start_us);
  thread_pool_limit(forward->threads, thread_choice_now(&forward->choice, threads, 1));
  return status;
}

void forward_choose_threads(wick_forward *forward) { forward->is_choosing = true; }

uint32_t forward_threads(const wick_forward *forward, uint32_t tokens) {
  return thread_choice_now(&forward->choice, thread_pool_threads(forward->threads), tokens);
}

uint32_t forward_logits_count(const wick_forward *forward) { return forward->wanted_count; }

uint32_t forward_logits_compute(wick_forward *forward, uint32_t first) {
  model_scratch *s = &forward->scratch;
  const wick_model *model = forward->model;
  uint32_t rows = forward->wanted_count - first;
  if (rows > SCRATCH_LOGITS_ROWS) rows = SCRATCH_LOGITS_ROWS;
  const size_t at = (size_t)first * s->hidden_stride;
  for (uint32_t i = 0; i < rows; i++) {
    const size_t row = at + (size_t)i * s->hidden_stride;
    forward->kernels->rms_norm(s->hidden + row, model->output_norm, model->config.hidden,
                               model->config.norm_epsilon, s->normed + row);
  }
  measure_rows(forward->ops, WICK_OP_NORM, rows, 2ull * model->config.hidden);
  model_product logits =
      product_of(forward, s->normed + at, s->hidden_stride, model->config.hidden);
  logits.tokens = rows;
  product_add(&logits, &model->output, model->output_bias, s->logits, s->vocab_stride);
  product_run(&logits);
  measure_product(forward->ops, WICK_OP_LOGITS, &logits);
  return rows;
}

const float *forward_logits(const wick_forward *forward, uint32_t row) {
  return forward->scratch.logits + (size_t)row * forward->scratch.vocab_stride;
}

uint32_t forward_logits_input(const wick_forward *forward, uint32_t index) {
  return forward->wanted[index];
}

// model/blocks/attention.c — see attention.h.
#include "model/blocks/attention.h"

#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/blocks/padded_heads.h"
#include "model/measure.h"
#include "model/paged_attention.h"
#include "model/pass.h"
#include "model/whole_attention.h"
#include "tensor/tensor.h"

typedef struct attention_block {
  model_block block;
  attention_settings is;
  uint32_t hidden;
  model_pages pages;
  attention_weights weights;         // with a gate, queries have twice the rows
  float *q_norm_bias, *k_norm_bias;  // of weights.q_norm and k_norm; may be NULL
  float *sub_norm, *sub_norm_bias;
  float *sum_norm, *sum_norm_bias, *again_norm, *again_norm_bias;  // [hidden] or NULL
  float *sinks;                                                    // [heads] or NULL
  qkv_rows rows;                                                   // of the projections
  float slopes[];                                                  // [heads] for ALiBi, or empty
} attention_block;

// ---- Tensors ----

static uint32_t q_dim(const attention_block *attention) {
  return attention->is.heads * attention->is.head_dim;
}

// Returns the number of heads that attn_q has rows for.
static uint32_t projected_heads(const attention_settings *is) {
  return is->is_gated ? 2 * is->heads : is->heads;
}

static void bind_projections(attention_block *attention, model_binder *binder) {
  const uint32_t hidden = attention->hidden, dim = attention->is.head_dim;
  const uint32_t q = projected_heads(&attention->is) * dim, kv = attention->is.kv_heads * dim;
  attention_weights *weights = &attention->weights;
  qkv_projection *qkv = &weights->qkv;
  qkv->is_fused = attention->is.keys_of == NULL && binder_has(binder, "attn_qkv.weight");
  if (qkv->is_fused) {
    bind_matrix(binder, "attn_qkv.weight", q + 2 * kv, hidden, BINDING_REQUIRED, &qkv->fused);
    bind_vector(binder, "attn_qkv.bias", q + 2 * kv, BINDING_OPTIONAL, &weights->fused_bias);
  } else {
    bind_matrix(binder, "attn_q.weight", q, hidden, BINDING_REQUIRED, &qkv->q);
    bind_vector(binder, "attn_q.bias", q, BINDING_OPTIONAL, &weights->q_bias);
    attention->rows = (qkv_rows){.q = q};
    if (attention->is.keys_of != NULL) return;
    bind_matrix(binder, "attn_k.weight", kv, hidden, BINDING_REQUIRED, &qkv->k);
    bind_matrix(binder, "attn_v.weight", kv, hidden,
                attention->is.norms_values ? BINDING_OPTIONAL : BINDING_REQUIRED, &qkv->v);
    bind_vector(binder, "attn_k.bias", kv, BINDING_OPTIONAL, &weights->k_bias);
    bind_vector(binder, "attn_v.bias", kv, BINDING_OPTIONAL, &weights->v_bias);
    attention->rows.k = attention->rows.v = kv;
  }
  if (binder->status != WICK_OK || !qkv->is_fused) return;
  binder->status = qkv_split(qkv, projected_heads(&attention->is), attention->is.kv_heads, dim,
                             &attention->rows, binder->error);
}

static void bind_qk_norms(attention_block *attention, model_binder *binder) {
  const attention_settings *is = &attention->is;
  attention_weights *weights = &attention->weights;
  const uint32_t q = is->heads, kv = is->kv_heads, dim = is->head_dim;
  if (is->qk_norms == ATTENTION_NO_NORMS) return;
  if (is->qk_norms == ATTENTION_NORMS_OF_HEADS) {
    bind_table(binder, "attn_q_norm.weight", q, dim, BINDING_OPTIONAL, &weights->q_norm);
    bind_table(binder, "attn_k_norm.weight", kv, dim, BINDING_OPTIONAL, &weights->k_norm);
    return;
  }
  const bool is_row = is->qk_norms == ATTENTION_ROW_NORMS;
  const uint32_t q_count = is_row ? q * dim : dim, k_count = is_row ? kv * dim : dim;
  bind_norm(binder, "attn_q_norm.weight", q_count, &weights->q_norm, &attention->q_norm_bias);
  if (is->keys_of != NULL) return;
  bind_norm(binder, "attn_k_norm.weight", k_count, &weights->k_norm, &attention->k_norm_bias);
}

static void bind(model_block *block, model_binder *binder) {
  attention_block *attention = (attention_block *)block;
  const attention_settings *is = &attention->is;
  attention_weights *weights = &attention->weights;
  const uint32_t hidden = attention->hidden;
  bind_norm(binder, is->norm, hidden, &weights->norm, &weights->norm_bias);
  bind_projections(attention, binder);
  bind_qk_norms(attention, binder);
  if (is->has_sinks) {
    bind_vector(binder, "attn_sinks.weight", is->heads, BINDING_REQUIRED, &attention->sinks);
  }
  bind_norm(binder, is->sub_norm, q_dim(attention), &attention->sub_norm,
            &attention->sub_norm_bias);
  bind_matrix(binder, "attn_output.weight", hidden, q_dim(attention), BINDING_REQUIRED,
              &weights->output);
  bind_vector(binder, "attn_output.bias", hidden, BINDING_OPTIONAL, &weights->output_bias);
  bind_norm(binder, is->sum_norm, hidden, &attention->sum_norm, &attention->sum_norm_bias);
  bind_norm(binder, is->again_norm, hidden, &attention->again_norm, &attention->again_norm_bias);
  if (is->post_norm == NULL) return;
  bind_vector(binder, is->post_norm, hidden, BINDING_REQUIRED, &weights->post_norm);
}

// ---- Scratch ----

typedef struct attention_buffers {
  uint32_t rows_stride, q_stride, kv_stride, out_stride;  // floats
  float *rows;   // [batch_tokens, rows.q], or with k and v after q in each row: the projections
  float *q;      // [batch_tokens, heads, head_dim], `rows` itself without a gate
  float *gate;   // [batch_tokens, heads, head_dim], with a gate
  float *k, *v;  // [batch_tokens, kv_heads, head_dim]
  float *out;    // [batch_tokens, heads, head_dim]
} attention_buffers;

static void take_fused(const attention_block *attention, scratch_arena *arena,
                       attention_buffers *buffers) {
  const uint32_t width = (uint32_t)qkv_out_rows(&attention->weights.qkv);
  buffers->rows_stride = buffers->q_stride = buffers->kv_stride = arena_line_floats(width);
  buffers->rows = arena_take_floats(arena, (uint64_t)arena->batch_tokens * buffers->rows_stride);
  if (buffers->rows == NULL) return;
  buffers->q = buffers->rows;
  buffers->k = buffers->rows + attention->rows.q;
  buffers->v = buffers->k + attention->rows.k;
}

static attention_buffers take_buffers(const attention_block *attention, scratch_arena *arena) {
  const uint64_t tokens = arena->batch_tokens;
  attention_buffers buffers = {.out_stride = arena_line_floats(q_dim(attention))};
  if (attention->weights.qkv.is_fused) {
    take_fused(attention, arena, &buffers);
  } else {
    buffers.rows_stride = buffers.q_stride = arena_line_floats(attention->rows.q);
    buffers.kv_stride = arena_line_floats(attention->rows.k);
    buffers.q = buffers.rows = arena_take_floats(arena, tokens * buffers.rows_stride);
    buffers.k = arena_take_floats(arena, tokens * buffers.kv_stride);
    buffers.v = arena_take_floats(arena, tokens * buffers.kv_stride);
  }
  if (attention->is.is_gated) {
    buffers.q_stride = buffers.out_stride;
    buffers.q = arena_take_floats(arena, tokens * buffers.q_stride);
    buffers.gate = arena_take_floats(arena, tokens * buffers.q_stride);
  }
  buffers.out = arena_take_floats(arena, tokens * buffers.out_stride);
  return buffers;
}

static bool is_padded(const attention_block *attention) {
  return padded_dim(attention->is.head_dim) != attention->is.head_dim;
}

// Takes buffers for the heads of `buffers` in the form that attention's kernels need. Returns
// `buffers` unchanged if it already has that form.
static attention_buffers take_padded(const attention_block *attention, scratch_arena *arena,
                                     const attention_buffers *buffers) {
  if (!is_padded(attention)) return *buffers;
  const uint32_t dim = padded_dim(attention->is.head_dim);
  const uint64_t tokens = arena->batch_tokens;
  attention_buffers padded = {.q_stride = arena_line_floats(attention->is.heads * dim),
                              .kv_stride = arena_line_floats(attention->is.kv_heads * dim)};
  padded.out_stride = padded.q_stride;
  padded.q = arena_take_floats(arena, tokens * padded.q_stride);
  padded.k = arena_take_floats(arena, tokens * padded.kv_stride);
  padded.v = arena_take_floats(arena, tokens * padded.kv_stride);
  padded.out = arena_take_floats(arena, tokens * padded.out_stride);
  return padded;
}

static uint8_t *take_pages(const attention_block *attention, scratch_arena *arena) {
  return arena_take_bytes(
      arena, whole_attention_bytes(arena->kernels, attention->is.kv_heads,
                                   padded_dim(attention->is.head_dim), arena->batch_tokens));
}

static uint32_t thread_floats(const attention_block *attention, const scratch_arena *arena) {
  const attention_settings *is = &attention->is;
  const uint32_t dim = padded_dim(is->head_dim);
  if (is->is_whole) return whole_attention_thread_floats(is->heads, is->kv_heads, dim);
  return attention_thread_floats(is->heads, is->kv_heads, dim, arena->batch_tokens, is->alibi != 0);
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const attention_block *attention = (const attention_block *)block;
  const attention_buffers buffers = take_buffers(attention, arena);
  arena_reserve_act(arena, arena->batch_tokens, attention->hidden);
  const uint64_t parts = arena_mark(arena);
  take_padded(attention, arena, &buffers);
  if (attention->is.is_whole) take_pages(attention, arena);
  arena_take_floats(arena, (uint64_t)arena->threads * thread_floats(attention, arena));
  arena_release(arena, parts);
  arena_take_act(arena, arena->batch_tokens, q_dim(attention));
}

// ---- Running ----

// Computes q [tokens, heads, head_dim] and k, v [tokens, kv_heads, head_dim].
static void project(const attention_block *attention, model_pass *pass,
                    const attention_buffers *buffers) {
  const attention_weights *weights = &attention->weights;
  const uint64_t begin = arena_mark(&pass->arena);
  const float *input = attention->is.is_aside  ? pass->aside
                       : weights->norm == NULL ? pass->hidden
                                               : pass->normed;
  model_product qkv = pass_product(pass, input, pass->hidden_stride, attention->hidden);
  if (weights->qkv.is_fused) {
    product_add(&qkv, &weights->qkv.fused, weights->fused_bias, buffers->rows,
                buffers->rows_stride);
  } else {
    product_add(&qkv, &weights->qkv.q, weights->q_bias, buffers->rows, buffers->rows_stride);
    if (attention->is.keys_of == NULL) {
      product_add(&qkv, &weights->qkv.k, weights->k_bias, buffers->k, buffers->kv_stride);
    }
    if (tensor_is_present(&weights->qkv.v)) {
      product_add(&qkv, &weights->qkv.v, weights->v_bias, buffers->v, buffers->kv_stride);
    }
  }
  product_run(&qkv);
  measure_product(pass->ops, OP_QKV, &qkv);
  arena_release(&pass->arena, begin);
}

typedef struct head_job {
  const attention_block *attention;
  const model_pass *pass;
  const attention_buffers *buffers;
} head_job;

// Normalises the queries or the keys of a token.
static void norm_heads(const head_job *job, float *row, const float *weight, const float *bias,
                       uint32_t heads) {
  const uint32_t dim = job->attention->is.head_dim;
  const attention_qk_norms norms = job->attention->is.qk_norms;
  if (norms == ATTENTION_ROW_NORMS) {
    norm_row(job->pass, row, weight, bias, heads * dim, row);
    return;
  }
  for (uint32_t h = 0; h < heads; h++, row += dim) {
    if (norms == ATTENTION_NORMS_AFTER) {  // a rotation preserves the length, so the weights are
                                           // applied after it
      job->pass->kernels->rms_norm(row, NULL, dim, job->pass->model->config.norm_epsilon, row);
    } else {
      norm_row(job->pass, row, weight, bias, dim, row);
      if (norms == ATTENTION_NORMS_OF_HEADS) weight += dim;
    }
  }
}

static void take_gate(const head_job *job, uint32_t t, float *q) {
  const uint32_t heads = job->attention->is.heads, dim = job->attention->is.head_dim;
  const attention_buffers *buffers = job->buffers;
  const float *pair = buffers->rows + (size_t)t * buffers->rows_stride;
  float *gate = buffers->gate + (size_t)t * buffers->q_stride;
  for (uint32_t h = 0; h < heads; h++, pair += 2 * dim) {
    memcpy(q + h * dim, pair, dim * sizeof(float));
    memcpy(gate + h * dim, pair + dim, dim * sizeof(float));
  }
}

static void norm_values(const head_job *job, const float *k, float *v) {
  const attention_settings *is = &job->attention->is;
  if (!tensor_is_present(&job->attention->weights.qkv.v)) {
    memcpy(v, k, (size_t)is->kv_heads * is->head_dim * sizeof(float));
  }
  for (uint32_t h = 0; h < is->kv_heads; h++, v += is->head_dim) {
    job->pass->kernels->rms_norm(v, NULL, is->head_dim, job->pass->model->config.norm_epsilon, v);
  }
}

static float temperature_of(const attention_settings *is, uint32_t position) {
  const uint32_t times = position / is->temperature_tokens;
  return (float)(1 + (double)is->temperature * math_log(1.0 + times));
}

// Prepares queries, keys and values before the rotation: separates gates, clamps values, normalises
// heads, and scales queries by their position.
static void prepare_heads(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const head_job *job = context;
  const attention_block *attention = job->attention;
  const attention_settings *is = &attention->is;
  const kernel_table *kernels = job->pass->kernels;
  const uint32_t q_count = is->heads * is->head_dim, kv_count = is->kv_heads * is->head_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *q = job->buffers->q + (size_t)t * job->buffers->q_stride;
    float *k = job->buffers->k + (size_t)t * job->buffers->kv_stride;
    if (is->is_gated) take_gate(job, t, q);
    if (is->clamp != 0) {
      kernels->clamp(q, is->clamp, q_count);
      kernels->clamp(k, is->clamp, kv_count);
      kernels->clamp(job->buffers->v + (size_t)t * job->buffers->kv_stride, is->clamp, kv_count);
    }
    if (attention->weights.q_norm != NULL) {
      norm_heads(job, q, attention->weights.q_norm, attention->q_norm_bias, is->heads);
    }
    if (is->norms_values && is->keys_of == NULL) {
      norm_values(job, k, job->buffers->v + (size_t)t * job->buffers->kv_stride);
    }
    if (attention->weights.k_norm != NULL) {
      norm_heads(job, k, attention->weights.k_norm, attention->k_norm_bias, is->kv_heads);
    }
    if (is->temperature != 0) {
      kernels->scale(q, temperature_of(is, job->pass->inputs[t].position), q_count);
    }
  }
}

static bool needs_preparing(const attention_block *attention) {
  const attention_settings *is = &attention->is;
  return is->is_gated || is->clamp != 0 || is->temperature != 0 ||
         attention->weights.q_norm != NULL;
}

// Applies the gate and the norm between attention and output projection.
static void finish_output(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const head_job *job = context;
  const attention_block *attention = job->attention;
  const uint32_t count = q_dim(attention);
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *out = job->buffers->out + (size_t)t * job->buffers->out_stride;
    if (attention->is.is_gated) {
      const float *gate = job->buffers->gate + (size_t)t * job->buffers->q_stride;
      job->pass->kernels->sigmoid_mul(out, gate, count);
    }
    if (attention->sub_norm != NULL) {
      norm_row(job->pass, out, attention->sub_norm, attention->sub_norm_bias, count, out);
    }
  }
}

// Runs attention over the pages of a sequence.
static wick_status attend_pages(const attention_block *attention, model_pass *pass,
                                paged_attention *run, wick_error *error) {
  run->pool = store_group(pass->store, attention->pages.group);
  run->open = pass->open[attention->pages.group];
  if (attention->is.keys_of == NULL) {
    const wick_status status = attention_store(run, pass->threads, pass->layer, error);
    if (status != WICK_OK) return status;
    measure_store(pass->ops, run);
  }
  attention_run(run, pass->threads);
  measure_attention(pass->ops, run);
  return WICK_OK;
}

// Runs attention over whole sequences.
static wick_status attend_texts(const attention_block *attention, model_pass *pass,
                                const paged_attention *run, wick_error *error) {
  uint8_t *pages = take_pages(attention, &pass->arena);
  const wick_status status = whole_attention_run(run, pages, pass->threads, pass->layer, error);
  measure_rows(pass->ops, OP_ATTENTION, pass->count, 4ull * q_dim(attention));
  return status;
}

static wick_status attend_heads(const attention_block *attention, model_pass *pass,
                                const attention_buffers *buffers, wick_error *error) {
  const attention_settings *is = &attention->is;
  const uint64_t begin = arena_mark(&pass->arena);
  const bool is_after = is->qk_norms == ATTENTION_NORMS_AFTER;
  const uint32_t per_thread = thread_floats(attention, &pass->arena);
  const model_rope *rope = is->rope == ATTENTION_ROPE_NONE ? NULL : &pass->model->ropes[is->rope];
  paged_attention run = {.kernels = pass->kernels,
                         .layer = attention->pages.layer,
                         .sees_media = is->sees_media,
                         .window = is->window,
                         .heads = is->heads,
                         .kv_heads = is->kv_heads,
                         .head_dim = padded_dim(is->head_dim),
                         .scale = is->scale,
                         .cap = is->score_cap,
                         .sinks = attention->sinks,
                         .slopes = is->alibi == 0 ? NULL : attention->slopes,
                         .q_weight = is_after ? attention->weights.q_norm : NULL,
                         .k_weight = is_after ? attention->weights.k_norm : NULL,
                         .rope = rope,
                         .cos_sin = rope == NULL ? NULL : pass->cos_sin[is->rope],
                         .inputs = pass->inputs,
                         .count = pass->count,
                         .batch_tokens = pass->arena.batch_tokens,
                         .q = buffers->q,
                         .k = buffers->k,
                         .v = buffers->v,
                         .out = buffers->out,
                         .q_stride = buffers->q_stride,
                         .kv_stride = buffers->kv_stride,
                         .out_stride = buffers->out_stride,
                         .per_thread_stride = per_thread};
  run.per_thread = arena_take_floats(&pass->arena, (uint64_t)pass->arena.threads * per_thread);
  const wick_status status = is->is_whole ? attend_texts(attention, pass, &run, error)
                                          : attend_pages(attention, pass, &run, error);
  arena_release(&pass->arena, begin);
  return status;
}

// Copies queries, keys and values of tokens to `padded`, adding zeros after their heads.
static void pad_rows(const attention_block *attention, const attention_buffers *buffers,
                     const attention_buffers *padded, uint32_t tokens) {
  const attention_settings *is = &attention->is;
  for (size_t t = 0; t < tokens; t++) {
    heads_pad(buffers->q + t * buffers->q_stride, is->heads, is->head_dim,
              padded->q + t * padded->q_stride);
    if (is->keys_of != NULL) continue;
    heads_pad(buffers->k + t * buffers->kv_stride, is->kv_heads, is->head_dim,
              padded->k + t * padded->kv_stride);
    heads_pad(buffers->v + t * buffers->kv_stride, is->kv_heads, is->head_dim,
              padded->v + t * padded->kv_stride);
  }
}

// Computes out [tokens, heads, head_dim].
static wick_status attend(const attention_block *attention, model_pass *pass,
                          const attention_buffers *buffers, wick_error *error) {
  const attention_settings *is = &attention->is;
  if (!is_padded(attention)) return attend_heads(attention, pass, buffers, error);
  const uint64_t begin = arena_mark(&pass->arena);
  const attention_buffers padded = take_padded(attention, &pass->arena, buffers);
  pad_rows(attention, buffers, &padded, pass->count);
  const wick_status status = attend_heads(attention, pass, &padded, error);
  for (size_t t = 0; t < pass->count && status == WICK_OK; t++) {
    heads_unpad(padded.out + t * padded.out_stride, is->heads, is->head_dim,
                buffers->out + t * buffers->out_stride);
  }
  arena_release(&pass->arena, begin);
  return status;
}

// Computes hidden += out Wo   [tokens, hidden].
static void add_output(const attention_block *attention, model_pass *pass,
                       const attention_buffers *buffers) {
  const attention_weights *weights = &attention->weights;
  const pass_output output = {&weights->output, weights->output_bias, weights->post_norm,
                              attention->is.residual_scale, OP_ATTN_OUTPUT};
  pass_add_output(pass, &output, buffers->out, buffers->out_stride);
  pass_norm_sums(pass, false, attention->sum_norm, attention->sum_norm_bias);
  pass_norm_sums(pass, true, attention->again_norm, attention->again_norm_bias);
}

static void norm_input(const attention_block *attention, model_pass *pass) {
  const attention_weights *weights = &attention->weights;
  if (attention->is.aside == ATTENTION_ASIDE_INPUT || attention->is.again_norm != NULL) {
    pass_set_aside(pass, pass->hidden);
  }
  if (weights->norm != NULL) pass_norm(pass, pass->hidden, weights->norm, weights->norm_bias);
  if (attention->is.aside == ATTENTION_ASIDE_NORMED) pass_set_aside(pass, pass->normed);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const attention_block *attention = (const attention_block *)block;
  const attention_buffers buffers = take_buffers(attention, &pass->arena);
  head_job job = {attention, pass, &buffers};
  norm_input(attention, pass);
  project(attention, pass, &buffers);
  if (needs_preparing(attention)) thread_pool_for(pass->threads, pass->count, prepare_heads, &job);
  const wick_status status = attend(attention, pass, &buffers, error);
  if (status != WICK_OK) return status;
  if (attention->is.is_gated || attention->sub_norm != NULL) {
    thread_pool_for(pass->threads, pass->count, finish_output, &job);
  }
  if (attention->is.is_first ||
      pass_keep_wanted(pass, buffers.out, buffers.out_stride, q_dim(attention))) {
    add_output(attention, pass, &buffers);
  }
  return WICK_OK;
}

// ---- Planning ----

static void check_heads(model_keys *keys, const attention_settings *is, uint32_t value_dim) {
  if (keys->status != WICK_OK) return;
  if (is->heads % is->kv_heads != 0) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "attention.head_count_kv",
              "%s.attention.head_count %u is not a multiple of head_count_kv %u",
              keys->architecture, is->heads, is->kv_heads);
  } else if (value_dim != is->head_dim) {
    KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.key_length",
              "heads of %u keys and %u values are not supported: they must be equal", is->head_dim,
              value_dim);
  }
}

attention_settings attention_read_layer(model_plan *plan, uint32_t layer) {
  model_keys *keys = plan->keys;
  const model_config *config = &plan->model->config;
  attention_settings is = {
      .norm = "attn_norm.weight", .rope = ATTENTION_ROPE_NONE, .residual_scale = 1};
  is.is_whole = !keys_flag(keys, "attention.causal", true);
  is.heads = keys_size(keys, "attention.head_count", MODEL_HEADS_MAX);
  is.kv_heads = keys_count_of_layer(keys, "attention.head_count_kv", layer, config->layers,
                                    MODEL_HEADS_MAX, is.heads);
  if (keys->status != WICK_OK) return is;
  if (is.kv_heads == 0) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "attention.head_count_kv",
              "'%s.attention.head_count_kv' is 0, which is not between 1 and %d",
              keys->architecture, (int)MODEL_HEADS_MAX);
    return is;
  }
  const uint32_t even = config->hidden / is.heads;
  is.head_dim =
      keys_count(keys, "attention.key_length", 1, MODEL_HEAD_DIM_MAX, even == 0 ? 1 : even);
  check_heads(keys, &is,
              keys_count(keys, "attention.value_length", 1, MODEL_HEAD_DIM_MAX, is.head_dim));
  return is;
}

attention_settings attention_read(model_plan *plan) { return attention_read_layer(plan, 0); }

attention_settings attention_read_rotated(model_plan *plan, bool is_interleaved) {
  attention_settings is = attention_read(plan);
  is.rope = plan_rope(plan, is.head_dim, is_interleaved);
  return is;
}

void attention_read_window_heads(model_plan *plan, attention_settings *settings) {
  model_keys *keys = plan->keys;
  settings->head_dim = keys_size(keys, "attention.key_length_swa", MODEL_HEAD_DIM_MAX);
  check_heads(keys, settings, keys_size(keys, "attention.value_length_swa", MODEL_HEAD_DIM_MAX));
}

// Rejects settings that only causal attention supports.
static void refuse_in_encoder(model_keys *keys, const attention_settings *is) {
  if (!is->has_sinks && !is->norms_values && is->qk_norms != ATTENTION_NORMS_AFTER) return;
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.causal",
            "'%s.attention.causal' is false, which this architecture does not support",
            keys->architecture);
}

// Rejects head sizes that are not a multiple of 4: weights of norms after the rotation are read
// with the width that heads have in pages.
static void refuse_odd_heads(model_keys *keys, uint32_t head_dim) {
  if (keys->status != WICK_OK) return;
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.key_length",
            "heads of %u keys are not supported: this architecture requires a multiple of 4",
            head_dim);
}

static void note_heads(model_config *config, const attention_settings *is) {
  if (config->heads != 0) return;
  config->heads = is->heads;
  config->kv_heads = is->kv_heads;
  config->head_dim = is->head_dim;
}

// Fills in the slopes. They fall geometrically: 2^(-alibi / n), 2^(-2 alibi / n) ... for the first
// n heads, where n is the greatest power of 2 that fits; the slopes of the other heads are between
// these.
static void make_slopes(float alibi, uint32_t heads, float *slopes) {
  uint32_t whole = 1;
  while (whole <= heads / 2) whole *= 2;
  for (uint32_t h = 0; h < heads; h++) {
    const double steps = h < whole ? h + 1.0 : (2.0 * (h - whole) + 1) / 2;
    slopes[h] = (float)math_pow(2, -(double)alibi / whole * steps);
  }
}

model_block *attention_make(model_plan *plan, const attention_settings *settings) {
  static const model_block_ops OPS = {"attention", bind, reserve, run};
  const uint32_t slopes = settings->alibi == 0 ? 0 : settings->heads;
  attention_block *attention = plan_block(plan, &OPS, sizeof *attention + slopes * sizeof(float));
  if (attention == NULL) return NULL;
  attention->is = *settings;
  if (attention->is.scale == 0) {
    attention->is.scale = 1.0f / __builtin_sqrtf((float)settings->head_dim);
  }
  if (slopes != 0) make_slopes(settings->alibi, slopes, attention->slopes);
  if (is_padded(attention) && settings->qk_norms == ATTENTION_NORMS_AFTER) {
    refuse_odd_heads(plan->keys, settings->head_dim);
  }
  if (settings->aside != ATTENTION_FIRST || settings->again_norm != NULL) {
    plan->model->keeps_inputs = true;
  }
  attention->hidden = plan->model->config.hidden;
  if (settings->is_whole) {
    plan->model->is_encoder = true;
    refuse_in_encoder(plan->keys, settings);
  } else if (settings->keys_of != NULL) {
    attention->pages = ((const attention_block *)settings->keys_of)->pages;
  } else {
    attention->pages =
        plan_pages(plan, settings->kv_heads, padded_dim(settings->head_dim), settings->window);
  }
  if (settings->sees_media) plan->model->media_sees_all = true;
  note_heads(&plan->model->config, settings);
  return &attention->block;
}

// model/blocks/latent_attention.c — see latent_attention.h.
#include "model/blocks/latent_attention.h"

#include <string.h>

#include "base/checked.h"
#include "model/binder.h"
#include "model/measure.h"
#include "model/paged_attention.h"
#include "model/pass.h"

typedef struct latent_block {
  model_block block;
  latent_settings is;
  uint32_t hidden;
  uint32_t plain_dim;           // of a key, before its rotated part
  uint32_t kv_heads, head_dim;  // of the pages
  model_pages pages;
  float *norm, *norm_bias;                // [hidden]
  float *q_norm, *q_norm_bias;            // [q_rank]
  float *latent_norm, *latent_norm_bias;  // [kv_rank]
  weight_tensor q_a, q;                   // [q_rank, hidden], [heads * key_dim, q_rank or hidden]
  weight_tensor kv_a;                     // [kv_rank + rotated_dim, hidden]
  weight_tensor kv_b;                     // [heads * (plain_dim + value_dim), kv_rank], or
  weight_tensor k_b, v_b;  // [heads][kv_rank, plain_dim], [heads][value_dim, kv_rank]
  weight_tensor out;       // [hidden, heads * value_dim]
} latent_block;

// ---- Tensors ----

static void bind_queries(latent_block *latent, model_binder *binder) {
  const uint32_t rows = latent->is.heads * latent->is.key_dim, rank = latent->is.q_rank;
  if (rank == 0) {
    bind_matrix(binder, "attn_q.weight", rows, latent->hidden, BINDING_REQUIRED, &latent->q);
    return;
  }
  bind_matrix(binder, "attn_q_a.weight", rank, latent->hidden, BINDING_REQUIRED, &latent->q_a);
  bind_norm(binder, "attn_q_a_norm.weight", rank, &latent->q_norm, &latent->q_norm_bias);
  bind_matrix(binder, "attn_q_b.weight", rows, rank, BINDING_REQUIRED, &latent->q);
}

static void bind(model_block *block, model_binder *binder) {
  latent_block *latent = (latent_block *)block;
  const latent_settings *is = &latent->is;
  const uint32_t rank = is->kv_rank, plain = latent->plain_dim;
  bind_norm(binder, "attn_norm.weight", latent->hidden, &latent->norm, &latent->norm_bias);
  bind_queries(latent, binder);
  bind_matrix(binder, "attn_kv_a_mqa.weight", rank + is->rotated_dim, latent->hidden,
              BINDING_REQUIRED, &latent->kv_a);
  bind_norm(binder, "attn_kv_a_norm.weight", rank, &latent->latent_norm, &latent->latent_norm_bias);
  if (is->is_absorbed) {
    bind_stack(binder, "attn_k_b.weight", is->heads, rank, plain, BINDING_REQUIRED, &latent->k_b);
    bind_stack(binder, "attn_v_b.weight", is->heads, is->value_dim, rank, BINDING_REQUIRED,
               &latent->v_b);
  } else {
    bind_matrix(binder, "attn_kv_b.weight", is->heads * (plain + is->value_dim), rank,
                BINDING_REQUIRED, &latent->kv_b);
  }
  bind_matrix(binder, "attn_output.weight", latent->hidden, is->heads * is->value_dim,
              BINDING_REQUIRED, &latent->out);
}

// ---- Scratch ----

// A matrix of floats whose rows are padded to whole cache lines.
typedef struct latent_rows {
  float *at;
  uint32_t stride;  // floats
} latent_rows;

typedef struct latent_buffers {
  latent_rows low;              // [batch_tokens, q_rank], if projected with low rank
  latent_rows queries;          // [batch_tokens, heads, key_dim]
  latent_rows latents;          // [batch_tokens, kv_rank + rotated_dim]
  latent_rows both;             // [batch_tokens, heads, plain_dim + value_dim], or absorbed:
  latent_rows narrow, wide;     // [heads, batch_tokens, plain_dim or value_dim], [.., kv_rank]
  product_target *targets;      // [heads]
  latent_rows q, k, v, result;  // [batch_tokens, heads or kv_heads, head_dim]
  latent_rows values;           // [batch_tokens, heads, value_dim]
} latent_buffers;

static latent_rows take_rows(scratch_arena *arena, uint64_t rows, uint32_t cols) {
  const uint32_t stride = arena_line_floats(cols);
  return (latent_rows){arena_take_floats(arena, rows * stride), stride};
}

static inline float *row_of(latent_rows rows, size_t index) {
  return rows.at + index * rows.stride;
}

static latent_buffers take_buffers(const latent_block *latent, scratch_arena *arena) {
  const latent_settings *is = &latent->is;
  const uint32_t heads = is->heads, plain = latent->plain_dim, value = is->value_dim;
  const uint64_t tokens = arena->batch_tokens;
  latent_buffers buffers = {.low = {NULL, 0}};
  if (is->q_rank != 0) buffers.low = take_rows(arena, tokens, is->q_rank);
  buffers.queries = take_rows(arena, tokens, heads * is->key_dim);
  buffers.latents = take_rows(arena, tokens, is->kv_rank + is->rotated_dim);
  if (is->is_absorbed) {
    buffers.narrow = take_rows(arena, tokens * heads, plain > value ? plain : value);
    buffers.wide = take_rows(arena, tokens * heads, is->kv_rank);
    buffers.targets = arena_take_bytes(arena, heads * sizeof(product_target));
  } else {
    buffers.both = take_rows(arena, tokens, heads * (plain + value));
  }
  buffers.q = take_rows(arena, tokens, heads * latent->head_dim);
  buffers.k = take_rows(arena, tokens, latent->kv_heads * latent->head_dim);
  buffers.v = take_rows(arena, tokens, latent->kv_heads * latent->head_dim);
  buffers.result = take_rows(arena, tokens, heads * latent->head_dim);
  buffers.values = take_rows(arena, tokens, heads * value);
  return buffers;
}

static uint32_t thread_floats(const latent_block *latent, const scratch_arena *arena) {
  return attention_thread_floats(latent->is.heads, latent->kv_heads, latent->head_dim,
                                 arena->batch_tokens, false);
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const latent_block *latent = (const latent_block *)block;
  const latent_settings *is = &latent->is;
  const uint64_t tokens = arena->batch_tokens;
  take_buffers(latent, arena);
  arena_reserve_act(arena, tokens, latent->hidden);
  arena_reserve_act(arena, tokens, is->q_rank);
  if (is->is_absorbed) {
    arena_reserve_act(arena, tokens * is->heads, latent->plain_dim);
    arena_reserve_act(arena, tokens * is->heads, is->kv_rank);
  } else {
    arena_reserve_act(arena, tokens, is->kv_rank);
  }
  const uint64_t buffers = arena_mark(arena);
  arena_take_floats(arena, (uint64_t)arena->threads * thread_floats(latent, arena));
  arena_release(arena, buffers);
  arena_reserve_act(arena, tokens, is->heads * is->value_dim);
}

// ---- Running ----

typedef struct latent_job {
  const latent_block *latent;
  const model_pass *pass;
  const latent_buffers *buffers;
} latent_job;

static void norm_low(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const latent_job *job = context;
  const latent_block *latent = job->latent;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    float *c = row_of(job->buffers->latents, t);
    norm_row(job->pass, c, latent->latent_norm, latent->latent_norm_bias, latent->is.kv_rank, c);
    if (latent->is.q_rank == 0) continue;
    float *low = row_of(job->buffers->low, t);
    norm_row(job->pass, low, latent->q_norm, latent->q_norm_bias, latent->is.q_rank, low);
  }
}

// Computes queries and latents: c is normalised, but nothing is rotated yet.
static void project(latent_job *job, model_pass *pass) {
  const latent_block *latent = job->latent;
  const latent_buffers *buffers = job->buffers;
  const uint64_t begin = arena_mark(&pass->arena);
  const bool is_low = latent->is.q_rank != 0;
  const latent_rows queries = is_low ? buffers->low : buffers->queries;
  model_product product = pass_product(pass, pass->normed, pass->hidden_stride, latent->hidden);
  product_add(&product, is_low ? &latent->q_a : &latent->q, NULL, queries.at, queries.stride);
  product_add(&product, &latent->kv_a, NULL, buffers->latents.at, buffers->latents.stride);
  product_run(&product);
  measure_product(pass->ops, OP_QKV, &product);
  arena_release(&pass->arena, begin);
  thread_pool_for(pass->threads, pass->count, norm_low, job);
  if (is_low) {
    pass_multiply(pass, OP_QKV, &latent->q, NULL, buffers->low.at, buffers->low.stride,
                  buffers->queries.at, buffers->queries.stride);
  }
  if (!latent->is.is_absorbed) {
    pass_multiply(pass, OP_QKV, &latent->kv_b, NULL, buffers->latents.at, buffers->latents.stride,
                  buffers->both.at, buffers->both.stride);
  }
}

// Computes y[h, t] = x[h, t] W[h]^T; rows of a head are adjacent.
static void multiply_heads(const latent_job *job, model_pass *pass, op_kind op,
                           const weight_tensor *stack, latent_rows x, latent_rows y) {
  const uint32_t heads = job->latent->is.heads, rows = heads * pass->count;
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = {
      .kernels = pass->kernels,
      .threads = pass->threads,
      .x = x.at,
      .x_stride = x.stride,
      .cols = stack->dims[0],
      .tokens = rows,
      .act =
          arena_take_act(&pass->arena, (uint64_t)heads * pass->arena.batch_tokens, stack->dims[0]),
      .many = job->buffers->targets};
  for (uint32_t h = 0; h < heads; h++) {
    const uint32_t first = h * pass->count;
    product_add_rows(&product, stack, h, NULL, first, pass->count, row_of(y, first), y.stride);
  }
  product_run(&product);
  measure_product(pass->ops, op, &product);
  arena_release(&pass->arena, begin);
}

// Copies `floats` values of each head of each token. If a dim is 0, the rows of a head are
// contiguous; otherwise the heads of a token's row are `dim` floats apart.
typedef struct copy_job {
  latent_rows from, to;
  uint32_t from_dim, to_dim, floats;
  uint32_t heads, tokens;
} copy_job;

static float *head_at(const copy_job *job, latent_rows rows, uint32_t dim, uint32_t t, uint32_t h) {
  return dim == 0 ? row_of(rows, (size_t)h * job->tokens + t) : row_of(rows, t) + (size_t)h * dim;
}

static void copy_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const copy_job *job = context;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    for (uint32_t h = 0; h < job->heads; h++) {
      memcpy(head_at(job, job->to, job->to_dim, t, h), head_at(job, job->from, job->from_dim, t, h),
             job->floats * sizeof(float));
    }
  }
}

static void copy_heads(const model_pass *pass, copy_job job) {
  job.tokens = pass->count;
  thread_pool_for(pass->threads, pass->count, copy_tokens, &job);
}

// Computes to = [a, b, 0 ...]   [head_dim].
static void join(const latent_block *latent, float *to, const float *a, uint32_t a_count,
                 const float *b, uint32_t b_count) {
  const uint32_t used = a_count + b_count;
  memcpy(to, a, a_count * sizeof(float));
  if (b_count != 0) memcpy(to + a_count, b, b_count * sizeof(float));
  memset(to + used, 0, (latent->head_dim - used) * sizeof(float));
}

// Arranges queries, keys and values for the pages, which have the rotated part first.
static void arrange_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const latent_job *job = context;
  const latent_block *latent = job->latent;
  const latent_buffers *buffers = job->buffers;
  const latent_settings *is = &latent->is;
  const uint32_t plain = latent->plain_dim, dim = latent->head_dim, turned = is->rotated_dim;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    const float *c = row_of(buffers->latents, t), *rotated = c + is->kv_rank;
    float *q = row_of(buffers->q, t), *k = row_of(buffers->k, t), *v = row_of(buffers->v, t);
    for (uint32_t h = 0; h < is->heads; h++) {
      const float *query = row_of(buffers->queries, t) + (size_t)h * is->key_dim;
      const float *rest = query;
      if (is->is_absorbed) rest = row_of(buffers->wide, (size_t)h * job->pass->count + t);
      join(latent, q + (size_t)h * dim, query + plain, turned, rest,
           is->is_absorbed ? is->kv_rank : plain);
    }
    if (is->is_absorbed) {
      join(latent, k, rotated, turned, c, is->kv_rank);
      join(latent, v, c, is->kv_rank, NULL, 0);
      continue;
    }
    const float *both = row_of(buffers->both, t);
    for (uint32_t h = 0; h < is->heads; h++, both += plain + is->value_dim) {
      join(latent, k + (size_t)h * dim, rotated, turned, both, plain);
      join(latent, v + (size_t)h * dim, both + plain, is->value_dim, NULL, 0);
    }
  }
}

static wick_status attend(const latent_job *job, model_pass *pass, wick_error *error) {
  const latent_block *latent = job->latent;
  const latent_buffers *buffers = job->buffers;
  const uint64_t begin = arena_mark(&pass->arena);
  const uint32_t per_thread = thread_floats(latent, &pass->arena);
  paged_attention run = {.kernels = pass->kernels,
                         .pool = store_group(pass->store, latent->pages.group),
                         .open = pass->open[latent->pages.group],
                         .layer = latent->pages.layer,
                         .heads = latent->is.heads,
                         .kv_heads = latent->kv_heads,
                         .head_dim = latent->head_dim,
                         .scale = latent->is.scale,
                         .rope = &pass->model->ropes[latent->is.rope],
                         .cos_sin = pass->cos_sin[latent->is.rope],
                         .inputs = pass->inputs,
                         .count = pass->count,
                         .batch_tokens = pass->arena.batch_tokens,
                         .q = buffers->q.at,
                         .k = buffers->k.at,
                         .v = buffers->v.at,
                         .out = buffers->result.at,
                         .q_stride = buffers->q.stride,
                         .kv_stride = buffers->k.stride,
                         .out_stride = buffers->result.stride,
                         .per_thread_stride = per_thread};
  run.per_thread = arena_take_floats(&pass->arena, (uint64_t)pass->arena.threads * per_thread);
  const wick_status status = attention_store(&run, pass->threads, pass->layer, error);
  if (status == WICK_OK) {
    measure_store(pass->ops, &run);
    attention_run(&run, pass->threads);
    measure_attention(pass->ops, &run);
  }
  arena_release(&pass->arena, begin);
  return status;
}

// Computes hidden += out(values).
static void add_values(const latent_job *job, model_pass *pass) {
  const latent_block *latent = job->latent;
  const latent_settings *is = &latent->is;
  const latent_buffers *buffers = job->buffers;
  const uint32_t dim = latent->head_dim, value = is->value_dim;
  copy_job values = {buffers->result, buffers->values, dim, value, value, is->heads, 0};
  if (is->is_absorbed) {
    copy_heads(pass, (copy_job){buffers->result, buffers->wide, dim, 0, is->kv_rank, is->heads, 0});
    multiply_heads(job, pass, OP_ATTN_OUTPUT, &latent->v_b, buffers->wide, buffers->narrow);
    values.from = buffers->narrow;
    values.from_dim = 0;
  }
  copy_heads(pass, values);
  if (!pass_keep_wanted(pass, buffers->values.at, buffers->values.stride, is->heads * value))
    return;
  const pass_output output = {&latent->out, NULL, NULL, is->residual_scale, OP_ATTN_OUTPUT};
  pass_add_output(pass, &output, buffers->values.at, buffers->values.stride);
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const latent_block *latent = (const latent_block *)block;
  const latent_settings *is = &latent->is;
  const latent_buffers buffers = take_buffers(latent, &pass->arena);
  latent_job job = {latent, pass, &buffers};
  pass_norm(pass, pass->hidden, latent->norm, latent->norm_bias);
  project(&job, pass);
  if (is->is_absorbed) {
    copy_heads(pass, (copy_job){buffers.queries, buffers.narrow, is->key_dim, 0, latent->plain_dim,
                                is->heads, 0});
    multiply_heads(&job, pass, OP_QKV, &latent->k_b, buffers.narrow, buffers.wide);
  }
  thread_pool_for(pass->threads, pass->count, arrange_tokens, &job);
  const wick_status status = attend(&job, pass, error);
  if (status == WICK_OK) add_values(&job, pass);
  return status;
}

// ---- Planning ----

// Returns the head dim in pages: the kernels require multiples of 4.
static uint32_t page_dim(const latent_settings *is) {
  uint32_t dim = is->key_dim > is->value_dim ? is->key_dim : is->value_dim;
  if (is->is_absorbed) dim = is->kv_rank + is->rotated_dim;
  return (dim + 3) / 4 * 4;
}

static void check_sizes(model_keys *keys, const latent_settings *is) {
  if (keys->status != WICK_OK) return;
  if (is->rotated_dim >= is->key_dim) {
    KEYS_FAIL(keys, WICK_E_FORMAT, "rope.dimension_count",
              "%s.rope.dimension_count %u must be less than the keys' %u", keys->architecture,
              is->rotated_dim, is->key_dim);
  } else if (page_dim(is) > MODEL_HEAD_DIM_MAX) {
    KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "attention.kv_lora_rank",
              "latent attention with keys of %u values is not supported, limit is %d", page_dim(is),
              (int)MODEL_HEAD_DIM_MAX);
  }
}

latent_settings latent_read(model_plan *plan, bool is_interleaved) {
  model_keys *keys = plan->keys;
  const char *key = "attention.key_length_mla", *value = "attention.value_length_mla";
  latent_settings is = {.residual_scale = 1};
  is.is_absorbed = keys_offset(keys, key) != WICK_NO_OFFSET;
  if (!is.is_absorbed) {
    key = "attention.key_length";
    value = "attention.value_length";
  }
  is.heads = keys_size(keys, "attention.head_count", MODEL_HEADS_MAX);
  is.q_rank = keys_count_or_none(keys, "attention.q_lora_rank", MODEL_HIDDEN_MAX);
  is.kv_rank = keys_size(keys, "attention.kv_lora_rank", MODEL_HIDDEN_MAX);
  is.key_dim = keys_size(keys, key, MODEL_HEAD_DIM_MAX);
  is.value_dim = keys_size(keys, value, MODEL_HEAD_DIM_MAX);
  is.rotated_dim = keys_count(keys, "rope.dimension_count", 2, MODEL_HEAD_DIM_MAX, 0);
  check_sizes(keys, &is);
  is.rope = plan_rope(plan, is.key_dim, is_interleaved);
  is.scale = 1.0f / __builtin_sqrtf((float)is.key_dim);
  return is;
}

model_block *latent_make(model_plan *plan, const latent_settings *settings) {
  static const model_block_ops OPS = {"latent attention", bind, reserve, run};
  latent_block *latent = plan_block(plan, &OPS, sizeof *latent);
  if (latent == NULL) return NULL;
  model_config *config = &plan->model->config;
  latent->is = *settings;
  latent->hidden = config->hidden;
  latent->plain_dim = settings->key_dim - settings->rotated_dim;
  latent->kv_heads = settings->is_absorbed ? 1 : settings->heads;
  latent->head_dim = page_dim(settings);
  latent->pages = plan_pages(plan, latent->kv_heads, latent->head_dim, 0);
  config->heads = settings->heads;
  config->kv_heads = latent->kv_heads;
  config->head_dim = latent->head_dim;
  return &latent->block;
}

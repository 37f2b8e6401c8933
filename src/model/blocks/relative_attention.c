// model/blocks/relative_attention.c — see relative_attention.h. Each row is computed independently,
// in the order of positions in its sequence, so the result does not depend on the other sequences
// of the pass.
#include "model/blocks/relative_attention.h"

#include <stdatomic.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/measure.h"
#include "model/pass.h"

// Keys at this distance or more are in the last bucket.
enum { DISTANCE_MAX = 128 };

typedef struct relative_block relative_block;
struct relative_block {
  model_block block;
  uint32_t hidden, heads, head_dim, buckets;
  const relative_block *first;  // block whose table this one reads
  float *table;                 // [buckets, heads], in the first block
  float *norm, *norm_bias;
  weight_tensor q, k, v, output;
  uint16_t bucket_of[DISTANCE_MAX + 1];  // for a key at that distance before the token; for a later
                                         // key, half of the number of buckets is added
};

// ---- Tensors ----

static uint32_t width(const relative_block *is) { return is->heads * is->head_dim; }

static void bind(model_block *block, model_binder *binder) {
  relative_block *is = (relative_block *)block;
  const uint32_t hidden = is->hidden, all = width(is);
  bind_norm(binder, "attn_norm.weight", hidden, &is->norm, &is->norm_bias);
  bind_matrix(binder, "attn_q.weight", all, hidden, BINDING_REQUIRED, &is->q);
  bind_matrix(binder, "attn_k.weight", all, hidden, BINDING_REQUIRED, &is->k);
  bind_matrix(binder, "attn_v.weight", all, hidden, BINDING_REQUIRED, &is->v);
  bind_matrix(binder, "attn_o.weight", hidden, all, BINDING_REQUIRED, &is->output);
  if (is->first != is) return;
  bind_table(binder, "attn_rel_b.weight", is->buckets, is->heads, BINDING_REQUIRED, &is->table);
}

// ---- Scratch ----

typedef struct relative_buffers {
  uint32_t stride;         // floats
  float *q, *k, *v, *out;  // [batch_tokens, heads, head_dim]
  float *scores;           // [threads, batch_tokens]
} relative_buffers;

static relative_buffers take_buffers(const relative_block *is, scratch_arena *arena) {
  relative_buffers buffers = {.stride = arena_line_floats(width(is))};
  const uint64_t floats = (uint64_t)arena->batch_tokens * buffers.stride;
  buffers.q = arena_take_floats(arena, floats);
  buffers.k = arena_take_floats(arena, floats);
  buffers.v = arena_take_floats(arena, floats);
  buffers.out = arena_take_floats(arena, floats);
  buffers.scores =
      arena_take_floats(arena, (uint64_t)arena->threads * arena_line_floats(arena->batch_tokens));
  return buffers;
}

static void reserve(const model_block *block, scratch_arena *arena) {
  const relative_block *is = (const relative_block *)block;
  take_buffers(is, arena);
  arena_reserve_act(arena, arena->batch_tokens, is->hidden);
  arena_take_act(arena, arena->batch_tokens, width(is));
}

// ---- Running ----

typedef struct relative_job {
  const relative_block *is;
  const model_pass *pass;
  const relative_buffers *buffers;
  atomic_uint nonfinite;
} relative_job;

static void project(const relative_block *is, model_pass *pass, const relative_buffers *buffers) {
  const uint64_t begin = arena_mark(&pass->arena);
  pass_norm(pass, pass->hidden, is->norm, is->norm_bias);
  model_product qkv = pass_product(pass, pass->normed, pass->hidden_stride, is->hidden);
  product_add(&qkv, &is->q, NULL, buffers->q, buffers->stride);
  product_add(&qkv, &is->k, NULL, buffers->k, buffers->stride);
  product_add(&qkv, &is->v, NULL, buffers->v, buffers->stride);
  product_run(&qkv);
  measure_product(pass->ops, OP_QKV, &qkv);
  arena_release(&pass->arena, begin);
}

static void check_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  relative_job *job = context;
  const size_t stride = job->buffers->stride;
  uint32_t bad = 0;
  (void)thread;
  for (uint32_t t = first; t < last; t++) {
    for (uint32_t i = 0; i < width(job->is); i++) {
      bad += !math_is_finite_f32(job->buffers->k[t * stride + i]);
      bad += !math_is_finite_f32(job->buffers->v[t * stride + i]);
    }
  }
  if (bad != 0) atomic_fetch_add(&job->nonfinite, bad);
}

static float bias_of(const relative_block *is, uint32_t head, uint32_t token, uint32_t key) {
  const uint32_t apart = key > token ? key - token : token - key;
  const uint32_t near = is->bucket_of[apart < DISTANCE_MAX ? apart : DISTANCE_MAX];
  const uint32_t bucket = key > token ? near + is->buckets / 2 : near;
  return is->first->table[(size_t)bucket * is->heads + head];
}

// Computes one head of row `row`, whose sequence begins at row `begin` and has `count` tokens.
static void attend_head(const relative_job *job, uint32_t row, uint32_t head, uint32_t begin,
                        uint32_t count, float *scores) {
  const relative_block *is = job->is;
  const uint32_t dim = is->head_dim;
  const size_t stride = job->buffers->stride, at = (size_t)head * dim;
  const float *q = job->buffers->q + row * stride + at;
  float *out = job->buffers->out + row * stride + at;
  float most = 0, sum = 0;
  for (uint32_t p = 0; p < count; p++) {
    const float *k = job->buffers->k + (begin + p) * stride + at;
    float score = 0;
    for (uint32_t i = 0; i < dim; i++) score += q[i] * k[i];
    scores[p] = score + bias_of(is, head, row - begin, p);
    if (p == 0 || scores[p] > most) most = scores[p];
  }
  for (uint32_t i = 0; i < dim; i++) out[i] = 0;
  for (uint32_t p = 0; p < count; p++) {
    const float *v = job->buffers->v + (begin + p) * stride + at;
    const float weight = (float)math_exp((double)scores[p] - most);
    sum += weight;
    for (uint32_t i = 0; i < dim; i++) out[i] += weight * v[i];
  }
  for (uint32_t i = 0; i < dim; i++) out[i] /= sum;
}

static void attend_tokens(void *context, uint32_t first, uint32_t last, uint32_t thread) {
  const relative_job *job = context;
  const model_pass *pass = job->pass;
  float *scores =
      job->buffers->scores + (size_t)thread * arena_line_floats(pass->arena.batch_tokens);
  for (uint32_t t = first; t < last; t++) {
    const uint32_t begin = t - pass->inputs[t].position;
    uint32_t end = t + 1;
    while (end < pass->count && pass->inputs[end].sequence == pass->inputs[t].sequence) end++;
    for (uint32_t h = 0; h < job->is->heads; h++) {
      attend_head(job, t, h, begin, end - begin, scores);
    }
  }
}

static wick_status attend(const relative_block *is, model_pass *pass,
                          const relative_buffers *buffers, wick_error *error) {
  relative_job job = {.is = is, .pass = pass, .buffers = buffers};
  atomic_init(&job.nonfinite, 0);
  thread_pool_for(pass->threads, pass->count, check_tokens, &job);
  const unsigned bad = atomic_load(&job.nonfinite);
  if (bad != 0) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET,
                     "%u keys or values of layer %u are not finite", bad, pass->layer);
  }
  thread_pool_for(pass->threads, pass->count, attend_tokens, &job);
  measure_rows(pass->ops, OP_ATTENTION, pass->count, 4ull * width(is));
  return WICK_OK;
}

static wick_status run(const model_block *block, model_pass *pass, wick_error *error) {
  const relative_block *is = (const relative_block *)block;
  const relative_buffers buffers = take_buffers(is, &pass->arena);
  const pass_output output = {&is->output, NULL, NULL, 1, OP_ATTN_OUTPUT};
  project(is, pass, &buffers);
  const wick_status status = attend(is, pass, &buffers, error);
  if (status == WICK_OK && pass_keep_wanted(pass, buffers.out, buffers.stride, width(is))) {
    pass_add_output(pass, &output, buffers.out, buffers.stride);
  }
  return status;
}

// ---- Planning ----

// Fills the buckets. The first half of the buckets of one side have one distance each. The other
// buckets widen up to DISTANCE_MAX.
static void fill_buckets(relative_block *is) {
  const uint32_t side = is->buckets / 2, exact = side / 2;
  for (uint32_t apart = 0; apart <= DISTANCE_MAX; apart++) {
    uint32_t bucket = apart;
    if (apart >= exact) {
      const double share = math_log((double)apart / exact) / math_log((double)DISTANCE_MAX / exact);
      // without the addend, rounding may put powers of two below their bucket
      bucket = exact + (uint32_t)(share * (side - exact) + 1e-7);
    }
    is->bucket_of[apart] = (uint16_t)(bucket < side ? bucket : side - 1);
  }
}

model_block *relative_attention_make(model_plan *plan, const attention_settings *settings,
                                     uint32_t buckets, const model_block *first) {
  static const model_block_ops OPS = {"attention", bind, reserve, run};
  model_config *config = &plan->model->config;
  relative_block *is = plan_block(plan, &OPS, sizeof *is);
  if (is == NULL) return NULL;
  is->hidden = config->hidden;
  is->heads = config->heads = config->kv_heads = settings->heads;
  is->head_dim = config->head_dim = settings->head_dim;
  is->buckets = buckets;
  is->first = first == NULL ? is : (const relative_block *)first;
  fill_buckets(is);
  plan->model->is_encoder = true;
  return &is->block;
}

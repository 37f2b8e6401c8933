// Attention over the pages of sequences compared with its definition in double precision: contexts
// of several chunks, windows, tokens dropped from the middle, ALiBi, sinks, head weights. For any
// number of threads, and for single tokens or a batch, the results are bit-identical, and each
// thread stays within its scratch. (If keys are encoded per page, kv_logits_test.c tests single
// tokens.)
#include "model/paged_attention.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "platform/platform.h"
#include "random.h"

enum {
  TEXTS = 3,
  TOKENS_MAX = 2200,
  LAYERS = 2,
  LAYER = 1,
  THREADS_MAX = 4,
  GUARD = 4096,
  DIM_MAX = 32
};

// The contents of a sequence, oldest token first: rows as they arrived, before rotation.
typedef struct text {
  kv_seq_id id;
  uint32_t count;
  float *k, *v;  // [TOKENS_MAX][kv_heads * head_dim]
} text;

typedef struct rig {
  memory_gate memory;
  paged_attention a;
  model_rope rope;
  text texts[TEXTS];
  model_input *inputs;
  float *queries;  // [batch_tokens][heads * head_dim], queries of the batch
  float *scratch;  // GUARD floats, the slices of THREADS_MAX threads, GUARD floats
  float *slopes, *sinks, *q_weight, *k_weight;
  uint64_t random;
} rig;

static thread_pool *pools[THREADS_MAX + 1];
static memory_gate pools_memory;

// Returns a pool with this many threads, once all have arrived; without thread support, with one
// thread.
static thread_pool *threads_of(uint32_t count) {
#if !WICK_THREADS
  count = 1;
#endif
  if (pools[count] == NULL) {
    if (pools_memory.host_alloc == NULL) {
      memory_init(&pools_memory, 0, platform_alloc, platform_free);
    }
    CHECK_EQ_INT(thread_pool_create(&pools_memory, NULL, count, &pools[count], NULL), WICK_OK);
    for (uint64_t i = 0; i < 1000000000 && thread_pool_threads(pools[count]) < count; i++) continue;
    CHECK_EQ_UINT(thread_pool_threads(pools[count]), count);
  }
  return pools[count];
}

static void close_threads(void) {
  for (uint32_t i = 0; i <= THREADS_MAX; i++) {
    thread_pool_destroy(pools[i]);
    pools[i] = NULL;
  }
}

static float random_value(rig *r) {
  return (float)((double)random_below(&r->random, 20001) / 10000.0 - 1.0);
}

static float *random_values(rig *r, size_t count) {
  float *values = malloc(count * sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = random_value(r);
  return values;
}

static float *unset_floats(size_t count) {
  float *values = memory_alloc_array(&pools_memory, count, sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = NAN;
  return values;
}

// ---- Test cases ----

typedef struct shape {
  uint32_t kv_heads, group, head_dim, batch_tokens;
  kernel_kv_type k_type, v_type;
  uint32_t rope_dims;  // 0: none
  bool is_interleaved, has_biases, has_sinks, has_factors;
  uint32_t window;
  float cap;
} shape;

static void open_rig(rig *r, const shape *s, uint64_t seed) {
  *r = (rig){.random = seed};
  threads_of(1);
  memory_init(&r->memory, 0, platform_alloc, platform_free);
  paged_attention *a = &r->a;
  *a = (paged_attention){.kernels = kernels_bind(),
                         .layer = LAYER,
                         .heads = s->kv_heads * s->group,
                         .kv_heads = s->kv_heads,
                         .head_dim = s->head_dim,
                         .window = s->window,
                         .scale = 2.0f / sqrtf((float)s->head_dim),
                         .cap = s->cap,
                         .batch_tokens = s->batch_tokens};
  const kv_shape pages = {LAYERS, s->kv_heads, s->head_dim, s->k_type, s->v_type, s->window};
  CHECK_EQ_INT(kv_pool_init(&r->memory, a->kernels, &pages, 0, 1000, &a->pool, NULL), WICK_OK);
  if (s->rope_dims != 0) {
    r->rope = (model_rope){.dims = s->rope_dims,
                           .is_interleaved = s->is_interleaved,
                           .theta = 1000,
                           .scale = 1,
                           .magnitude = 1};
    CHECK_EQ_INT(rope_create(&r->memory, &r->rope, NULL), WICK_OK);
    rope_fill(&r->rope, TOKENS_MAX);
    a->rope = &r->rope;
  }
  if (s->has_biases) a->slopes = r->slopes = random_values(r, a->heads);
  for (uint32_t h = 0; h < a->heads && s->has_biases; h++) r->slopes[h] = 0.01f * r->slopes[h];
  if (s->has_sinks) a->sinks = r->sinks = random_values(r, a->heads);
  if (s->has_factors) {
    a->q_weight = r->q_weight = random_values(r, a->head_dim);
    a->k_weight = r->k_weight = random_values(r, a->head_dim);
  }
  a->q_stride = arena_line_floats(a->heads * a->head_dim) + CACHE_LINE_FLOATS;
  a->out_stride = arena_line_floats(a->heads * a->head_dim) + CACHE_LINE_FLOATS;
  a->kv_stride = arena_line_floats(a->kv_heads * a->head_dim);
  a->q = unset_floats((size_t)a->batch_tokens * a->q_stride);
  a->out = unset_floats((size_t)a->batch_tokens * a->out_stride);
  a->k = unset_floats((size_t)a->batch_tokens * a->kv_stride);
  a->v = unset_floats((size_t)a->batch_tokens * a->kv_stride);
  a->cos_sin = unset_floats((size_t)a->batch_tokens * (s->rope_dims + 1));
  a->per_thread_stride =
      attention_thread_floats(a->heads, a->kv_heads, a->head_dim, a->batch_tokens, s->has_biases);
  const size_t slices = (size_t)THREADS_MAX * a->per_thread_stride;
  r->scratch = unset_floats(slices + 2 * (size_t)GUARD);
  a->per_thread = r->scratch + GUARD;
  if (kv_pool_has_open(a->pool)) {
    a->open = memory_alloc(&pools_memory, (size_t)kv_open_pass_bytes(a->kernels, s->kv_heads,
                                                                     s->head_dim, s->batch_tokens));
  }
  a->inputs = r->inputs = malloc(a->batch_tokens * sizeof *r->inputs);
  r->queries = malloc((size_t)a->batch_tokens * a->heads * a->head_dim * sizeof(float));
  for (uint32_t i = 0; i < TEXTS; i++) {
    text *t = &r->texts[i];
    const size_t floats = (size_t)TOKENS_MAX * a->kv_heads * a->head_dim;
    t->k = malloc(floats * sizeof *t->k);
    t->v = malloc(floats * sizeof *t->v);
    CHECK_EQ_INT(kv_seq_new(a->pool, 0, &t->id, NULL, NULL), WICK_OK);
  }
}

static void close_rig(rig *r) {
  paged_attention *a = &r->a;
  for (uint32_t i = 0; i < TEXTS; i++) {
    free(r->texts[i].k);
    free(r->texts[i].v);
    CHECK_EQ_INT(kv_seq_free(a->pool, r->texts[i].id, NULL), WICK_OK);
  }
  kv_pool_destroy(a->pool);
  if (a->rope != NULL) rope_destroy(&r->memory, &r->rope);
  memory_free(&pools_memory, a->open);
  float *const of_gate[] = {a->q, a->k, a->v, a->out, r->scratch, (float *)(uintptr_t)a->cos_sin};
  for (size_t i = 0; i < sizeof of_gate / sizeof *of_gate; i++) {
    memory_free(&pools_memory, of_gate[i]);
  }
  float *const plain[] = {r->queries, r->slopes, r->sinks, r->q_weight, r->k_weight};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) free(plain[i]);
  free(r->inputs);
  CHECK_EQ_UINT(r->memory.blocks_now, 0);
}

static void check_guards(const rig *r) {
  const float *after = r->a.per_thread + (size_t)THREADS_MAX * r->a.per_thread_stride;
  uint32_t touched = 0;
  for (uint32_t i = 0; i < GUARD; i++) touched += !isnan(r->scratch[i]) + !isnan(after[i]);
  CHECK_EQ_UINT(touched, 0);
}

// ---- Sequences ----

// Adds the given number of tokens to each sequence: stores their rows and adds a query for each.
static void add_inputs(rig *r, const uint32_t *counts) {
  paged_attention *a = &r->a;
  const uint32_t q_row = a->heads * a->head_dim, row = a->kv_heads * a->head_dim;
  a->count = 0;
  for (uint32_t i = 0; i < TEXTS; i++) {
    text *t = &r->texts[i];
    for (uint32_t n = 0; n < counts[i]; n++, a->count++, t->count++) {
      r->inputs[a->count] = (model_input){0, t->count, t->id, false, NULL, 0, 0, NULL};
      float *rows[] = {t->k + (size_t)t->count * row, t->v + (size_t)t->count * row};
      for (uint32_t d = 0; d < row; d++) {
        rows[0][d] = random_value(r);
        rows[1][d] = random_value(r);
      }
      memcpy(a->k + (size_t)a->count * a->kv_stride, rows[0], row * sizeof(float));
      memcpy(a->v + (size_t)a->count * a->kv_stride, rows[1], row * sizeof(float));
      for (uint32_t d = 0; d < q_row; d++) r->queries[a->count * q_row + d] = random_value(r);
      float *cos_sin = (float *)(uintptr_t)a->cos_sin;
      const int64_t position[4] = {t->count, t->count, t->count, 0};
      if (a->rope != NULL) rope_table(a->rope, position, cos_sin + a->count * a->rope->dims);
    }
  }
}

static void store_batch(rig *r, const uint32_t *counts, thread_pool *threads) {
  const uint32_t had[TEXTS] = {r->texts[0].count, r->texts[1].count, r->texts[2].count};
  for (uint32_t i = 0; i < TEXTS; i++) {
    if (counts[i] == 0) continue;
    CHECK_EQ_INT(kv_seq_prepare_write(r->a.pool, r->texts[i].id, had[i], counts[i], NULL, NULL),
                 WICK_OK);
  }
  add_inputs(r, counts);
  CHECK_EQ_INT(attention_store(&r->a, threads, 7, NULL), WICK_OK);
  for (uint32_t i = 0; i < TEXTS; i++) {
    CHECK_EQ_INT(kv_seq_append(r->a.pool, r->texts[i].id, counts[i], NULL), WICK_OK);
  }
  check_guards(r);
}

static void fill_text(rig *r, uint32_t index, uint32_t tokens, thread_pool *threads) {
  while (r->texts[index].count < tokens) {
    const uint32_t left = tokens - r->texts[index].count;
    uint32_t counts[TEXTS] = {0};
    counts[index] = left < r->a.batch_tokens ? left : r->a.batch_tokens;
    store_batch(r, counts, threads);
  }
}

static void drop_tokens(rig *r, uint32_t index, uint32_t first, uint32_t last) {
  text *t = &r->texts[index];
  const size_t row = (size_t)r->a.kv_heads * r->a.head_dim;
  CHECK_EQ_INT(kv_seq_shift(r->a.pool, t->id, first, last, NULL, NULL), WICK_OK);
  const size_t after = (t->count - last) * row * sizeof(float);
  memmove(t->k + first * row, t->k + last * row, after);
  memmove(t->v + first * row, t->v + last * row, after);
  t->count -= last - first;
}

// ---- The reference ----

static void rotate(const rig *r, double *x, uint32_t position) {
  const uint32_t dims = r->a.rope == NULL ? 0 : r->a.rope->dims;
  for (uint32_t i = 0; i < dims / 2; i++) {
    const double angle = position * pow(1000, -2.0 * i / dims);
    double *const p = &x[r->a.rope->is_interleaved ? 2 * i : i];
    double *const q = &x[r->a.rope->is_interleaved ? 2 * i + 1 : i + dims / 2];
    const double a = *p, b = *q;
    *p = a * cos(angle) - b * sin(angle);
    *q = a * sin(angle) + b * cos(angle);
  }
}

static void turned_row(const rig *r, const float *from, const float *factors, uint32_t position,
                       double *to) {
  double row[DIM_MAX] = {0};
  for (uint32_t d = 0; d < r->a.head_dim; d++) row[d] = (double)from[d];
  rotate(r, row, position);
  for (uint32_t d = 0; d < r->a.head_dim; d++) {
    to[d] = factors == NULL ? row[d] : row[d] * (double)factors[d];
  }
}

// Returns the keys of a sequence, rotated to the current positions of its tokens (dropping tokens
// keeps the distances between the others).
static double *turned_keys(const rig *r, const text *t) {
  const size_t row = (size_t)r->a.kv_heads * r->a.head_dim;
  double *keys = malloc((t->count + 1) * row * sizeof *keys);
  for (uint32_t i = 0; i < t->count; i++) {
    for (uint32_t kv = 0; kv < r->a.kv_heads; kv++) {
      const size_t at = i * row + (size_t)kv * r->a.head_dim;
      turned_row(r, t->k + at, r->a.k_weight, i, keys + at);
    }
  }
  return keys;
}

static void define_head(const rig *r, const text *t, const double *keys, uint32_t input,
                        uint32_t head, double *out) {
  const paged_attention *a = &r->a;
  const uint32_t position = r->inputs[input].position, dim = a->head_dim;
  const uint32_t kv = head / (a->heads / a->kv_heads);
  double query[DIM_MAX], scores[TOKENS_MAX], sum = 0;
  turned_row(r, r->queries + ((size_t)input * a->heads + head) * dim, a->q_weight, position, query);
  memset(out, 0, dim * sizeof *out);
  for (uint32_t p = 0; p <= position; p++) {
    if (a->window != 0 && position - p >= a->window) continue;
    const size_t at = ((size_t)p * a->kv_heads + kv) * dim;
    double score = 0;
    for (uint32_t d = 0; d < dim; d++) score += query[d] * keys[at + d];
    score *= (double)a->scale;
    if (a->cap != 0.0f) score = (double)a->cap * tanh(score / (double)a->cap);
    if (a->slopes != NULL) score -= (double)a->slopes[head] * (position - p);
    scores[p] = exp(score);
    sum += scores[p];
    for (uint32_t d = 0; d < dim; d++) out[d] += scores[p] * (double)t->v[at + d];
  }
  if (a->sinks != NULL) sum += exp((double)a->sinks[head]);
  for (uint32_t d = 0; d < dim; d++) out[d] /= sum;
}

static void check_defined(const rig *r, double tolerance) {
  const paged_attention *a = &r->a;
  double worst = 0, out[DIM_MAX];
  for (uint32_t i = 0; i < TEXTS; i++) {
    const text *t = &r->texts[i];
    double *keys = turned_keys(r, t);
    for (uint32_t n = 0; n < a->count; n++) {
      if (r->inputs[n].sequence != t->id) continue;
      for (uint32_t h = 0; h < a->heads; h++) {
        define_head(r, t, keys, n, h, out);
        const float *found = a->out + (size_t)n * a->out_stride + (size_t)h * a->head_dim;
        for (uint32_t d = 0; d < a->head_dim; d++) {
          const double error = fabs((double)found[d] - out[d]);
          if (!(error <= worst)) worst = error;  // also counts NaN
        }
      }
    }
    free(keys);
  }
  CHECK_NEAR(worst, 0, tolerance);
}

// ---- Runs ----

// A single thread is given the last slice, which ends before the guard.
static void run_batch(rig *r, thread_pool *threads) {
  paged_attention *a = &r->a;
  float *const slices = a->per_thread;
  if (thread_pool_threads(threads) == 1) a->per_thread += (THREADS_MAX - 1) * a->per_thread_stride;
  const size_t row = (size_t)a->heads * a->head_dim;
  for (size_t i = 0; i < (size_t)a->batch_tokens * a->q_stride; i++) a->q[i] = NAN;
  for (size_t i = 0; i < (size_t)a->batch_tokens * a->out_stride; i++) a->out[i] = NAN;
  for (uint32_t n = 0; n < a->count; n++) {
    memcpy(a->q + (size_t)n * a->q_stride, r->queries + n * row, row * sizeof(float));
  }
  attention_run(a, threads);
  a->per_thread = slices;
  check_guards(r);
  uint32_t touched = 0;
  for (uint32_t n = 0; n < a->batch_tokens; n++) {
    for (size_t i = n < a->count ? row : 0; i < a->out_stride; i++) {
      touched += !isnan(a->out[(size_t)n * a->out_stride + i]);
    }
  }
  CHECK_EQ_UINT(touched, 0);
}

// Repeats the run with other numbers of threads, and for each token separately: the results must be
// bit-identical.
static void check_same_bits(rig *r) {
  paged_attention *a = &r->a;
  const size_t row = (size_t)a->heads * a->head_dim, size_bytes = row * sizeof(float);
  const size_t floats = (size_t)a->batch_tokens * a->out_stride;
  float *first = malloc(floats * sizeof *first);
  memcpy(first, a->out, floats * sizeof *first);
  for (uint32_t threads = 2; threads <= THREADS_MAX; threads++) {
    run_batch(r, threads_of(threads));
    for (uint32_t n = 0; n < a->count; n++) {
      CHECK_EQ_MEM(a->out + n * a->out_stride, first + n * a->out_stride, size_bytes);
    }
  }
  if (kv_pool_has_open(a->pool)) {
    free(first);
    return;
  }
  float *const queries = r->queries, *const cos_sin = (float *)(uintptr_t)a->cos_sin;
  model_input *const inputs = r->inputs;
  const uint32_t count = a->count;
  a->count = 1;
  for (uint32_t n = 0; n < count; n++) {
    r->queries = queries + n * row;
    a->inputs = r->inputs = inputs + n;
    a->cos_sin = cos_sin + (a->rope == NULL ? 0 : (size_t)n * a->rope->dims);
    run_batch(r, threads_of(1 + n % THREADS_MAX));
    CHECK_EQ_MEM(a->out, first + n * a->out_stride, size_bytes);
  }
  r->queries = queries;
  a->inputs = r->inputs = inputs;
  a->cos_sin = cos_sin;
  a->count = count;
  free(first);
}

static double tolerance_of(const shape *s) {
  const kernel_kv_type k = kv_named_type(s->k_type), v = kv_named_type(s->v_type);
  const kernel_kv_type worst = k > v ? k : v;
  return worst == KERNEL_KV_F32   ? 2e-5
         : worst == KERNEL_KV_F16 ? 5e-3
         : worst == KERNEL_KV_Q8  ? 0.05
                                  : 0.5;
}

static uint32_t pick(rig *r, uint32_t below) { return (uint32_t)random_below(&r->random, below); }

static shape random_shape(uint64_t *state) {
  static const int KEYS[] = {KERNEL_KV_F32, KERNEL_KV_F32, KERNEL_KV_F32, KERNEL_KV_F16,
                             KERNEL_KV_Q8,  KERNEL_KV_Q4,  KERNEL_KV_C8,  KERNEL_KV_C4};
  static const int VALUES[] = {KERNEL_KV_F32, KERNEL_KV_F32, KERNEL_KV_F32, KERNEL_KV_F16,
                               KERNEL_KV_Q8,  KERNEL_KV_Q4,  KERNEL_KV_R4};
  shape s = {
      .kv_heads = 1 + (uint32_t)random_below(state, 3),
      .group = 1 + (uint32_t)random_below(state, 3),
      .head_dim = 8u << random_below(state, 3),
      .batch_tokens = random_below(state, 2) == 0 ? 3 + (uint32_t)random_below(state, 8) : 48,
      .k_type = (kernel_kv_type)KEYS[random_below(state, 8)],
      .v_type = (kernel_kv_type)VALUES[random_below(state, 7)],
      .is_interleaved = random_below(state, 2) == 0,
      .has_sinks = random_below(state, 3) == 0,
      .cap = random_below(state, 4) == 0 ? 1.5f : 0};
  s.rope_dims = random_below(state, 4) == 0 ? 0 : s.head_dim >> random_below(state, 2);
  s.has_biases = s.rope_dims == 0 && random_below(state, 2) == 0;
  s.has_factors = random_below(state, 4) == 0;
  static const uint32_t WINDOWS[] = {1, 16, 33, 100, 512, 700};
  if (random_below(state, 2) == 0) s.window = WINDOWS[random_below(state, 6)];
  return s;
}

// Fills sequences of different lengths, one of several chunks; tokens outside the window and
// dropped ones are removed.
static void random_texts(rig *r, thread_pool *threads) {
  fill_text(r, 0, 400 + pick(r, 1200), threads);
  fill_text(r, 1, pick(r, 70), threads);
  for (uint32_t i = 0; i < TEXTS; i++) {
    text *t = &r->texts[i];
    if (r->a.window > 1) {
      CHECK_EQ_INT(kv_seq_window(r->a.pool, t->id, r->a.window - 1, NULL), WICK_OK);
    }
    for (uint32_t n = 0; n < 3 && r->a.window == 0 && t->count > 40; n++) {
      // weights that are applied after the rotation do not rotate
      if (r->a.k_weight != NULL) break;
      const uint32_t first = pick(r, 2) == 0 ? pick(r, t->count - 30) : t->count - 31;
      drop_tokens(r, i, first, first + (pick(r, 2) == 0 ? 1 : 1 + pick(r, 30)));
    }
  }
}

TEST(attention_matches_its_definition_for_any_threads_and_batch) {
  uint64_t state = 5 + soak_seed();
  for (uint32_t n = 0; n < soak_count(480); n++) {
    const shape s = random_shape(&state);
    rig r;
    open_rig(&r, &s, random_u64(&state));
    thread_pool *threads = threads_of(1 + pick(&r, THREADS_MAX));
    random_texts(&r, threads);
    for (uint32_t batch = 0; batch < 3; batch++) {
      uint32_t counts[TEXTS] = {0}, left = s.batch_tokens;
      const uint32_t only = pick(&r, 4);  // a batch of only the long sequence, or of all
      for (uint32_t i = 0; i < TEXTS && (only != 0 || i == 0); i++) {
        counts[i] = pick(&r, left + 1 < 20 ? left + 1 : 20);
        left -= counts[i];
      }
      if (counts[0] == 0 && left != 0) counts[0] = 1;
      store_batch(&r, counts, threads);
      run_batch(&r, threads_of(1));
      check_defined(&r, tolerance_of(&s));
      check_same_bits(&r);
    }
    close_rig(&r);
  }
  close_threads();
}

// ---- Parallel chunks ----

#if WICK_THREADS
// Whether the query rows after the batch were used for the states of chunks.
static bool is_divided(const rig *r) {
  const float *after = r->a.q + (size_t)r->a.count * r->a.q_stride;
  const size_t floats = (size_t)(r->a.batch_tokens - r->a.count) * r->a.q_stride;
  for (size_t i = 0; i < floats; i++) {
    if (!isnan(after[i])) return true;
  }
  return false;
}

// Runs a batch of `count` tokens after `tokens` on two threads. Returns whether the chunks were
// divided.
static bool try_division(const shape *s, uint32_t tokens, uint32_t count, uint32_t others) {
  rig r;
  open_rig(&r, s, 11 + tokens + count);
  fill_text(&r, 0, tokens, threads_of(1));
  const uint32_t counts[TEXTS] = {count, others, 0};
  store_batch(&r, counts, threads_of(1));
  run_batch(&r, threads_of(2));
  const bool result = is_divided(&r);
  check_defined(&r, tolerance_of(s));
  run_batch(&r, threads_of(1));
  CHECK(!is_divided(&r));  // never for one thread
  check_same_bits(&r);
  close_rig(&r);
  return result;
}

TEST(chunks_of_a_long_context_are_divided_among_threads_if_their_states_fit) {
  // a query row has 4 heads of 16 floats and one line of padding; a state has 64 floats, one line
  // of maxima and one line of sums
  shape s = {.kv_heads = 2, .group = 2, .head_dim = 16, .batch_tokens = 40, .rope_dims = 16};
  CHECK(!try_division(&s, 511, 1, 0));
  CHECK(try_division(&s, 512, 1, 0));
  CHECK(try_division(&s, 1100, 1, 0));
  CHECK(try_division(&s, 1023, 2, 0));
  CHECK(try_division(&s, 1100, 8, 0));
  CHECK(!try_division(&s, 1100, 9, 0));  // more than one tile
  CHECK(!try_division(&s, 1100, 1, 1));  // a second sequence
  s.batch_tokens = 5;                    // 4 rows of 80 floats cannot hold 3 states of 96
  CHECK(try_division(&s, 1100, 1, 0));
  CHECK(!try_division(&s, 1600, 1, 0));
  s.batch_tokens = 4;
  CHECK(!try_division(&s, 1100, 1, 0));
  s.batch_tokens = 40;
  s.kv_heads = 3;
  CHECK(try_division(&s, 1100, 1, 0));
  s.kv_heads = 1;
  CHECK(try_division(&s, 1100, 1, 0));
  s.kv_heads = 4;  // two threads already have enough units
  CHECK(!try_division(&s, 1100, 1, 0));
  s.kv_heads = 2;
  s.window = 500;  // two chunks, or one chunk and the start of another
  CHECK(try_division(&s, 1100, 1, 0));
  CHECK(!try_division(&s, 1530, 1, 0));
  close_threads();
}
#endif

TEST(a_threads_scratch_fits_a_whole_tile_and_both_states) {
  // a tile of 16 heads fills every line of its states
  const shape s = {.kv_heads = 1, .group = 2, .head_dim = 16, .batch_tokens = 8, .rope_dims = 16};
  rig r;
  open_rig(&r, &s, 21);
  fill_text(&r, 0, 700, threads_of(1));
  drop_tokens(&r, 0, 600, 601);
  const uint32_t counts[TEXTS] = {8, 0, 0};
  store_batch(&r, counts, threads_of(1));
  run_batch(&r, threads_of(1));
  check_defined(&r, 2e-5);
  check_same_bits(&r);
  close_rig(&r);
  close_threads();
}

// Positions 502 to 517 are in a page that crosses the end of the first chunk and whose rotation
// differs from that of its neighbours.
TEST(queries_are_rotated_back_after_a_page_that_crosses_a_chunk_end) {
  static const uint32_t AFTER[] = {2, 3, 7, 8};
  for (uint32_t n = 0; n < 4; n++) {
    const shape s = {.kv_heads = 1, .group = 2, .head_dim = 16, .batch_tokens = 8, .rope_dims = 16};
    rig r;
    open_rig(&r, &s, 22);
    fill_text(&r, 0, 520, threads_of(1));
    drop_tokens(&r, 0, 490, 500);
    fill_text(&r, 0, 510 + AFTER[n], threads_of(1));
    const uint32_t counts[TEXTS] = {n % 2 == 0 ? 8 : 1, 0, 0};
    store_batch(&r, counts, threads_of(1));
    run_batch(&r, threads_of(1));
    check_defined(&r, 2e-5);
    check_same_bits(&r);
    close_rig(&r);
  }
  close_threads();
}

// ---- Steps ----

// Records the calls of a step's kernel: each call contains the memory to prefetch for the next one.
static struct {
  kernel_attention_step real;
  uint32_t count, most;  // most: largest number of pages per step
  kernel_ahead ahead;
  size_t head_bytes;
  uint32_t wrong;
  uint32_t rotations;
} steps;

static void watch_rope(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot,
                       const float *cos_sin, bool interleaved) {
  steps.rotations++;
  kernels_bind()->rope(x, heads, head_dim, n_rot, cos_sin, interleaved);
}

static void watch_step(const kernel_attention *state, const kernel_page *pages, uint32_t count) {
  if (steps.count != 0) {
    for (uint32_t n = 0; n < count; n++) steps.wrong += steps.ahead.from[n] != pages[n].k;
    steps.wrong += steps.ahead.bytes != steps.head_bytes;
  }
  steps.count++;
  if (count > steps.most) steps.most = count;
  steps.ahead = state->ahead;
  steps.real(state, pages, count);
}

// Runs one token after `tokens` others, of which `dropped` were dropped at `at`, and checks the
// number of steps. Each call prefetches the data of the next one, and queries are only rotated when
// necessary.
static void check_steps(const shape *s, uint32_t tokens, uint32_t at, uint32_t dropped,
                        uint32_t wanted) {
  rig r;
  open_rig(&r, s, 31);
  fill_text(&r, 0, tokens + dropped, threads_of(1));
  if (dropped != 0) drop_tokens(&r, 0, at, at + dropped);
  const uint32_t counts[TEXTS] = {1, 0, 0};
  store_batch(&r, counts, threads_of(1));
  kernel_table watched = *r.a.kernels;
  memset(&steps, 0, sizeof steps);
  steps.real = watched.attention_step[s->k_type][s->v_type];
  steps.head_bytes =
      watched.kv[s->k_type].k_bytes(s->head_dim) + watched.kv[s->v_type].v_bytes(s->head_dim);
  watched.attention_step[s->k_type][s->v_type] = watch_step;
  watched.rope = watch_rope;
  r.a.kernels = &watched;
  run_batch(&r, threads_of(1));
  CHECK_EQ_UINT(steps.rotations, (dropped == 0 ? 1 : 2) * s->kv_heads);
  CHECK_EQ_UINT(steps.count, wanted * s->kv_heads);
  CHECK_EQ_UINT(steps.wrong, 0);
  CHECK_EQ_UINT(steps.ahead.bytes, 0);  // there is no step after the last one
  CHECK(steps.most <= KERNEL_STEP_PAGES);
  check_defined(&r, tolerance_of(s));
  close_rig(&r);
}

TEST(a_step_takes_four_pages_and_prefetches_the_next_ones) {
  shape s = {.kv_heads = 2, .group = 2, .head_dim = 16, .batch_tokens = 16, .rope_dims = 16};
  check_steps(&s, 15, 0, 0, 1);
  check_steps(&s, 63, 0, 0, 1);
  check_steps(&s, 64, 0, 0, 2);
  check_steps(&s, 511, 0, 0, 8);
  check_steps(&s, 1000, 0, 0, 16);
  check_steps(&s, 300, 20, 32, 6);  // tokens after the dropped range are rotated differently
  check_steps(&s, 190, 64, 28, 4);  // five pages begin at 64, 68, 84, 100 and 116
  s.kv_heads = 1;
  s.k_type = KERNEL_KV_Q8;
  check_steps(&s, 129, 0, 0, 3);
  s.window = 64;
  check_steps(&s, 126, 0, 0, 2);  // positions 63 to 126
  check_steps(&s, 127, 0, 0, 1);
  check_steps(&s, 191, 0, 0, 1);
  check_steps(&s, 192, 0, 0, 2);
  close_threads();
}

static atomic_uint step_calls;
static kernel_attention_step counted_step;

static void count_step(const kernel_attention *state, const kernel_page *pages, uint32_t count) {
  atomic_fetch_add(&step_calls, 1);
  counted_step(state, pages, count);
}

TEST(threads_share_the_work_without_repeating_any) {
  static const uint32_t TOKENS[] = {30, 700, 1500}, COUNTS[] = {1, 3, 8, 21};
  for (uint32_t n = 0; n < 24; n++) {
    const shape s = {.kv_heads = n % 2 == 0 ? 3 : 1,
                     .group = 1,
                     .head_dim = 8,
                     .batch_tokens = 32,
                     .rope_dims = 8};
    rig r;
    open_rig(&r, &s, n);
    fill_text(&r, 0, TOKENS[n / 2 % 3], threads_of(1));
    const uint32_t counts[TEXTS] = {COUNTS[n / 6], 0, 0};
    store_batch(&r, counts, threads_of(1));
    kernel_table counting = *r.a.kernels;
    counted_step = counting.attention_step[0][0];
    counting.attention_step[0][0] = count_step;
    r.a.kernels = &counting;
    atomic_store(&step_calls, 0);
    run_batch(&r, threads_of(1));
    const unsigned alone = atomic_load(&step_calls);
    for (uint32_t threads = 2; threads <= THREADS_MAX; threads++) {
      atomic_store(&step_calls, 0);
      run_batch(&r, threads_of(threads));
      CHECK_EQ_UINT(atomic_load(&step_calls), alone);
    }
    close_rig(&r);
  }
  close_threads();
}

// ---- Rejected input ----

TEST(errors_about_non_finite_values_contain_their_count_and_layer) {
  const shape s = {.kv_heads = 2, .group = 1, .head_dim = 8, .batch_tokens = 6, .rope_dims = 8};
  rig r;
  open_rig(&r, &s, 3);
  const uint32_t counts[TEXTS] = {6, 0, 0};
  CHECK_EQ_INT(kv_seq_prepare_write(r.a.pool, r.texts[0].id, 0, 6, NULL, NULL), WICK_OK);
  add_inputs(&r, counts);
  r.a.v[3] = NAN;
  r.a.v[5 * r.a.kv_stride + 15] = INFINITY;
  wick_error error = {0};
  CHECK_EQ_INT(attention_store(&r.a, threads_of(2), 7, &error), WICK_E_NONFINITE);
  CHECK_EQ_STR(error.message,
               "2 keys or values of layer 7 are not finite or too large for the KV type");
  close_rig(&r);
  close_threads();
}

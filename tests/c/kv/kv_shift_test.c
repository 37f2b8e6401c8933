// Dropping a range from the middle: the pages after it keep their keys, and queries are rotated by
// the entry's delta. This is compared with the simplest equivalent: a flat cache whose rows move
// down and whose keys are rotated back by the same number of positions. Attention outputs are
// compared with sums in double precision over the flat rows, and logits with those of a sequence
// whose pages contain the flat rows. KV in F32, tolerance 1e-4.
#include "consistency.h"
#include "kv_rig.h"
#include "model/paged_attention.h"
#include "reference/compaction.h"
#include "reference/flat.h"
#include "reference/pages.h"

enum {
  TOKENS_MAX = 200,  // the model's context is 256
  LAYERS = 2,
  HEADS = 4,
  KV_HEADS = 2,
  DIM = 16,
  ROW = KV_HEADS * DIM,
  QUERIES = 11  // more than attention processes at once
};
static const double TOLERANCE = 1e-4;

typedef struct twins {
  kv_rig paged, plain;  // plain: its sequence has the flat cache's rows
  kv_seq_id shifted, rebuilt;
  kv_flat flat;
  uint64_t random;
  double worst;  // largest difference so far
} twins;

static uint32_t below(twins *t, uint32_t limit) {
  return (uint32_t)random_below(&t->random, limit);
}

static bool open_twins(twins *t, wick_engine *engine) {
  *t = (twins){.random = 5};
  wick_error error;
  if (!rig_open(&t->paged, engine, KERNEL_KV_F32, KERNEL_KV_F32) ||
      !rig_open(&t->plain, engine, KERNEL_KV_F32, KERNEL_KV_F32) ||
      kv_flat_init_model(&t->flat, &engine->memory, LAYERS, KV_HEADS, DIM, TOKENS_MAX, &error) !=
          WICK_OK) {
    return false;
  }
  const model_config *config = &engine->model->config;
  t->shifted = rig_new(&t->paged);
  t->rebuilt = rig_new(&t->plain);
  return CHECK_EQ_UINT(config->layers, LAYERS) && CHECK_EQ_UINT(config->heads, HEADS) &&
         CHECK_EQ_UINT(config->kv_heads, KV_HEADS) && CHECK_EQ_UINT(config->head_dim, DIM) &&
         CHECK_EQ_UINT(engine->model->ropes[0].dims, DIM) &&
         CHECK(engine->model->ropes[0].is_interleaved);
}

static void close_twins(twins *t) {
  rig_free(&t->paged, t->shifted);
  rig_free(&t->plain, t->rebuilt);
  kv_flat_destroy(&t->flat);
  rig_close(&t->paged);
  rig_close(&t->plain);
}

static void compare(twins *t, const float *found, const float *wanted, size_t count) {
  double worst = 0;
  for (size_t i = 0; i < count; i++) {
    double difference = (double)found[i] - (double)wanted[i];
    if (difference < 0) difference = -difference;
    if (!(difference <= worst)) worst = difference;
  }
  if (!(worst <= t->worst)) t->worst = worst;
}

// ---- The flat cache ----

static double frequency(uint32_t pair) {
  return math_pow(10000.0, -2.0 * (double)pair / (double)DIM);
}

// Rotates pairs (2i, 2i + 1) by position * frequency(i).
static void rotate(float *head, int32_t position) {
  for (uint32_t i = 0; i < DIM / 2; i++) {
    double sine, cosine;
    math_sin_cos(position * frequency(i), &sine, &cosine);
    const double x = (double)head[2 * i], y = (double)head[2 * i + 1];
    head[2 * i] = (float)(x * cosine - y * sine);
    head[2 * i + 1] = (float)(x * sine + y * cosine);
  }
}

// Appends the positions after the flat cache's end from the plain sequence.
static void copy_rows(twins *t) {
  const uint32_t count = kv_seq_tokens(t->plain.pool, t->rebuilt);
  for (uint32_t at = kv_flat_count(&t->flat); at < count; at++) {
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
      float k[ROW], v[ROW];
      kv_row_read(t->plain.pool, t->rebuilt, layer, at, k, v, NULL);
      CHECK_EQ_INT(kv_flat_append(&t->flat, layer, k, v, ROW, NULL), WICK_OK);
    }
    CHECK_EQ_INT(kv_flat_advance(&t->flat, NULL), WICK_OK);
  }
}

static void flat_drop(twins *t, uint32_t first, uint32_t last, bool rotates_back) {
  CHECK_EQ_INT(kv_flat_drop(&t->flat, first, last, NULL), WICK_OK);
  for (uint32_t layer = 0; layer < LAYERS && rotates_back; layer++) {
    float *keys;
    size_t values;
    CHECK_EQ_INT(kv_flat_keys_mut(&t->flat, layer, &keys, &values, NULL), WICK_OK);
    for (size_t at = (size_t)first * ROW; at < values; at += DIM) {
      rotate(keys + at, -(int32_t)(last - first));
    }
  }
}

// Makes a new sequence with the flat cache's rows.
static void rebuild(twins *t) {
  rig_free(&t->plain, t->rebuilt);
  t->rebuilt = rig_new(&t->plain);
  const uint32_t count = kv_flat_count(&t->flat);
  kv_pool *pool = t->plain.pool;
  CHECK_EQ_INT(kv_seq_prepare_write(pool, t->rebuilt, 0, count, NULL, NULL), WICK_OK);
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    const float *k, *v;
    size_t values;
    kv_flat_keys(&t->flat, layer, &k, &values, NULL);
    kv_flat_values(&t->flat, layer, &v, &values, NULL);
    for (uint32_t at = 0; at < count; at++) {
      kv_row_write(pool, t->rebuilt, layer, at, k + (size_t)at * ROW, v + (size_t)at * ROW);
    }
  }
  CHECK_EQ_INT(kv_seq_append(pool, t->rebuilt, count, NULL), WICK_OK);
}

// Computes out = softmax(q K^T / sqrt(DIM)) V for one query head whose query is rotated at
// `position`.
static void attend_flat(const twins *t, uint32_t layer, uint32_t head, uint32_t position,
                        const float *q, float *out) {
  const float *k, *v;
  size_t values;
  float query[DIM];
  double weights[TOKENS_MAX], most = -1e30, sum = 0, sums[DIM] = {0};
  const uint32_t kv_head = head / (HEADS / KV_HEADS);
  kv_flat_keys(&t->flat, layer, &k, &values, NULL);
  kv_flat_values(&t->flat, layer, &v, &values, NULL);
  memcpy(query, q, sizeof query);
  rotate(query, (int32_t)position);
  for (uint32_t at = 0; at <= position; at++) {
    const float *key = k + (size_t)at * ROW + (size_t)kv_head * DIM;
    weights[at] = 0;
    for (uint32_t i = 0; i < DIM; i++) weights[at] += (double)query[i] * (double)key[i] / 4;
    if (weights[at] > most) most = weights[at];
  }
  for (uint32_t at = 0; at <= position; at++) {
    const float *value = v + (size_t)at * ROW + (size_t)kv_head * DIM;
    const double weight = math_exp(weights[at] - most);
    sum += weight;
    for (uint32_t i = 0; i < DIM; i++) sums[i] += weight * (double)value[i];
  }
  for (uint32_t i = 0; i < DIM; i++) out[i] = (float)(sums[i] / sum);
}

// ---- Comparisons ----

// Compares random queries at the last stored positions on the pages and on the flat rows.
static void compare_attention(twins *t) {
  enum { PER_THREAD = 4096 };
  const wick_engine *engine = t->paged.engine;
  const loaded_model *model = engine->model;
  const uint32_t count = kv_seq_tokens(t->paged.pool, t->shifted);
  const uint32_t queries = count < QUERIES ? count : QUERIES;
  double frequencies[DIM / 2];
  const model_rope rope = {.magnitude = 1,
                           .dims = DIM,
                           .is_interleaved = true,
                           .theta = 10000,
                           .scale = 1,
                           .frequencies = frequencies};
  model_input inputs[QUERIES];
  static float q[QUERIES][HEADS * DIM], out[QUERIES][HEADS * DIM], cos_sin[QUERIES][DIM];
  _Alignas(64) static float per_thread[PER_THREAD];
  for (uint32_t i = 0; i < DIM / 2; i++) frequencies[i] = frequency(i);
  for (uint32_t i = 0; i < queries; i++) {
    inputs[i] = (model_input){0, count - queries + i, t->shifted, false, NULL, 0, 0, NULL};
    const int64_t position = inputs[i].position;
    rope_table(&rope, (int64_t[4]){position, position, position}, cos_sin[i]);
    for (uint32_t c = 0; c < HEADS * DIM; c++) q[i][c] = 1.5f * fixture_normal(&t->random);
  }
  paged_attention attention = {
      .kernels = model->kernels,
      .pool = t->paged.pool,
      .heads = HEADS,
      .kv_heads = KV_HEADS,
      .head_dim = DIM,
      .scale = 1.0f / __builtin_sqrtf((float)DIM),
      .rope = &rope,
      .cos_sin = cos_sin[0],
      .inputs = inputs,
      .count = queries,
      .batch_tokens = QUERIES,
      .q = q[0],
      .out = out[0],
      .q_stride = HEADS * DIM,
      .out_stride = HEADS * DIM,
      .per_thread = per_thread,
      .per_thread_stride = attention_thread_floats(HEADS, KV_HEADS, DIM, QUERIES, false)};
  REQUIRE(attention.per_thread_stride <= PER_THREAD);
  for (attention.layer = 0; attention.layer < LAYERS; attention.layer++) {
    attention_run(&attention, engine->threads);
    for (uint32_t i = 0; i < queries; i++) {
      for (uint32_t head = 0; head < HEADS; head++) {
        float wanted[DIM];
        attend_flat(t, attention.layer, head, inputs[i].position, q[i] + head * DIM, wanted);
        compare(t, out[i] + head * DIM, wanted, DIM);
      }
    }
  }
}

static void compare_values(twins *t) {
  for (uint32_t layer = 0; layer < LAYERS; layer++) {
    const float *v;
    size_t values;
    kv_flat_values(&t->flat, layer, &v, &values, NULL);
    for (size_t at = 0; at < values; at += ROW) {
      float found_k[ROW], found_v[ROW];
      kv_row_read(t->paged.pool, t->shifted, layer, (uint32_t)(at / ROW), found_k, found_v, NULL);
      compare(t, found_v, v + at, ROW);
    }
  }
}

// Continues both sequences with the same tokens.
static void read_on(twins *t, uint32_t count) {
  static float found[RIG_BATCH * FIXTURE_VOCAB], wanted[RIG_BATCH * FIXTURE_VOCAB];
  int32_t tokens[RIG_BATCH];
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)below(t, 256);
  if (!rig_read(&t->paged, t->shifted, tokens, count, found) ||
      !rig_read(&t->plain, t->rebuilt, tokens, count, wanted)) {
    return;
  }
  compare(t, found, wanted, (size_t)count * FIXTURE_VOCAB);
  copy_rows(t);
}

static void drop(twins *t, uint32_t first, uint32_t last, bool rotates_back) {
  const uint32_t before = kv_seq_tokens(t->paged.pool, t->shifted);
  CHECK_EQ_INT(kv_seq_shift(t->paged.pool, t->shifted, first, last, NULL, NULL), WICK_OK);
  CHECK_EQ_UINT(kv_seq_tokens(t->paged.pool, t->shifted), before - (last - first));
  CHECK_EQ_INT(kv_pool_check(t->paged.pool, NULL), WICK_OK);
  flat_drop(t, first, last, rotates_back);
  rebuild(t);
}

static void check_drop(twins *t, uint32_t first, uint32_t last) {
  drop(t, first, last, true);
  compare_values(t);
  compare_attention(t);
  read_on(t, 1);
  read_on(t, 5);
  compare_attention(t);
  char what[64];
  text_format(what, sizeof what, "tokens %u to %u dropped: within 1e-4", first, last);
  check_true(t->worst <= TOLERANCE, what, __FILE__, __LINE__);
}

// ---- Tests ----

static const uint32_t DROPS[][2] = {
    {16, 32},  // a whole page
    {20, 37},  // parts of two pages
    {5, 9},    // inside one page, which is split
    {0, 3},    // the beginning
    {6, 7},    // one token
    {15, 17},  // across a page boundary
    {1, 34},   // several pages
};
enum { DROPS_COUNT = sizeof DROPS / sizeof DROPS[0] };

TEST(each_single_drop_equals_the_flat_cache) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  for (int i = 0; i < DROPS_COUNT; i++) {
    twins t;
    REQUIRE(open_twins(&t, engine));
    read_on(&t, 70);
    check_drop(&t, DROPS[i][0], DROPS[i][1]);
    close_twins(&t);
  }
  wick_engine_destroy(engine);
}

TEST(consecutive_drops_equal_the_flat_cache) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  twins t;
  REQUIRE(open_twins(&t, engine));
  read_on(&t, 90);
  for (int i = 0; i < DROPS_COUNT; i++) check_drop(&t, DROPS[i][0], DROPS[i][1]);
  // the tail, then all but one token
  check_drop(&t, 30, kv_seq_tokens(t.paged.pool, t.shifted));
  check_drop(&t, 1, kv_seq_tokens(t.paged.pool, t.shifted));
  close_twins(&t);
  wick_engine_destroy(engine);
}

TEST(random_drops_equal_the_flat_cache) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  twins t;
  REQUIRE(open_twins(&t, engine));
  for (int i = 0; i < 60 && t.worst <= TOLERANCE; i++) {
    uint32_t count = kv_seq_tokens(t.paged.pool, t.shifted);
    if (count < 100) {
      read_on(&t, 1 + below(&t, 40));
      count = kv_seq_tokens(t.paged.pool, t.shifted);
    }
    const uint32_t first = below(&t, count), most = count - first < 30 ? count - first : 30;
    // the pages may be shared when tokens are dropped, and are written again later
    const kv_seq_id fork = rig_fork(&t.paged, t.shifted);
    if (i % 3 == 0) rig_free(&t.paged, fork);
    check_drop(&t, first, first + 1 + below(&t, most));
    if (i % 3 != 0) rig_free(&t.paged, fork);
    if (i % 7 == 0) kv_pool_defrag(t.paged.pool, RIG_PAGES);
  }
  close_twins(&t);
  wick_engine_destroy(engine);
}

// Keys that are not rotated back give different logits, so the comparison can fail.
TEST(the_comparison_detects_keys_that_are_not_rotated_back) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  twins t;
  REQUIRE(open_twins(&t, engine));
  read_on(&t, 70);
  CHECK(t.worst == 0);
  drop(&t, 20, 37, false);
  compare_values(&t);
  CHECK(t.worst == 0);
  read_on(&t, 5);
  CHECK(t.worst > 100 * TOLERANCE);
  close_twins(&t);
  wick_engine_destroy(engine);
}

// Dropping tokens in a fork leaves the parent's logits bit-identical.
TEST(a_drop_in_a_fork_does_not_affect_its_parent) {
  wick_engine *engine = rig_load();
  REQUIRE(engine != NULL);
  kv_rig rig;
  REQUIRE(rig_open(&rig, engine, KERNEL_KV_F32, KERNEL_KV_F32));
  static float wanted[70 * FIXTURE_VOCAB], found[70 * FIXTURE_VOCAB];
  int32_t tokens[70];
  uint64_t state = 3;
  for (int i = 0; i < 70; i++) tokens[i] = (int32_t)(random_u64(&state) % 256);
  const kv_seq_id fresh = rig_new(&rig), parent = rig_new(&rig);
  rig_read(&rig, fresh, tokens, 70, wanted);
  rig_read(&rig, parent, tokens, 40, found);
  const kv_seq_id fork = rig_fork(&rig, parent);
  CHECK_EQ_INT(kv_seq_shift(rig.pool, fork, 5, 9, NULL, NULL), WICK_OK);
  CHECK_EQ_INT(kv_seq_shift(rig.pool, fork, 14, 30, NULL, NULL), WICK_OK);
  rig_read(&rig, fork, tokens + 10, 30, found);
  rig_read(&rig, parent, tokens + 40, 30, found + 40 * FIXTURE_VOCAB);
  CHECK_EQ_MEM(found + 40 * FIXTURE_VOCAB, wanted + 40 * FIXTURE_VOCAB,
               30 * FIXTURE_VOCAB * sizeof *found);
  rig_free(&rig, fresh);
  rig_free(&rig, parent);
  rig_free(&rig, fork);
  rig_close(&rig);
  wick_engine_destroy(engine);
}

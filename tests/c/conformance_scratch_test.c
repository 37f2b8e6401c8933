// Conformance cases SC-01 to SC-06 of the seed systems: sizes of scratch buffers, and that decoding
// lives within them.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "check.h"
#include "model/forward.h"
#include "model/scratch_sizes.h"
#include "platform/platform.h"
#include "tensor/tensor.h"

static const wick_scratch_dims QWEN2 = {896, 4864, 14, 2, 64, 151936, false};  // SC-02

static wick_model_config config_of(const wick_scratch_dims *dims) {
  static const model_family FAMILY = {"qwen2", false};
  return (wick_model_config){.family = &FAMILY,
                             .layers = 1,
                             .hidden = dims->hidden,
                             .ffn = dims->ffn,
                             .heads = dims->heads,
                             .kv_heads = dims->kv_heads,
                             .head_dim = dims->head_dim,
                             .rope_dims = dims->head_dim,
                             .vocab = dims->vocab,
                             .context_trained = 4096,
                             .norm_epsilon = 1e-6f,
                             .rope_theta = 1e6,
                             .rope_scale = 1};
}

// ---- Sizes ----

static uint64_t floats_between(const float *from, const float *to) { return (uint64_t)(to - from); }

// The engine's own arena for one token has the same buffers and takes no more than they did.
static void check_arena(const wick_scratch_dims *dims, const wick_scratch *sizes) {
  const wick_model_config config = config_of(dims);
  model_scratch plan, s;
  scratch_plan(&config, kernels_bind(), 1, 1, &plan, NULL);
  CHECK(plan.size_bytes <= sizes->separate_bytes);
  void *block = platform_alloc((size_t)plan.size_bytes);
  REQUIRE(block != NULL);
  scratch_plan(&config, kernels_bind(), 1, 1, &s, block);
  CHECK(floats_between(s.hidden, s.normed) >= sizes->hidden);
  CHECK(floats_between(s.normed, s.q) >= sizes->normed);
  CHECK(floats_between(s.q, s.k) >= sizes->q);
  CHECK(floats_between(s.k, s.v) >= sizes->k);
  CHECK(floats_between(s.v, s.attention) >= sizes->v);
  CHECK(floats_between(s.attention, (float *)(void *)s.act) >= sizes->attention);
  CHECK(floats_between(s.normed, s.gate) >= sizes->normed);
  CHECK(floats_between(s.gate, s.up) >= sizes->gate);
  CHECK(floats_between(s.up, (float *)(void *)s.act) >= sizes->up);
  CHECK(floats_between(s.logits, s.per_thread) >= sizes->logits);
  CHECK(floats_between(s.per_thread, (float *)block + plan.size_bytes / sizeof(float)) >=
        s.per_thread_stride);
  platform_free(block, (size_t)plan.size_bytes);
}

// `bytes` of every buffer for itself; `guessed_bytes` as the original's other layout had it, with a
// feed-forward of 6 * hidden.
static wick_scratch check_sizes(const wick_scratch_dims *dims, uint64_t bytes,
                                uint64_t guessed_bytes) {
  wick_scratch s;
  wick_scratch_plan(dims, &s);
  CHECK_EQ_UINT(s.hidden, dims->hidden);
  CHECK_EQ_UINT(s.normed, dims->hidden);
  CHECK_EQ_UINT(s.projected, dims->hidden);
  CHECK_EQ_UINT(s.down, dims->hidden);
  CHECK_EQ_UINT(s.gate, dims->ffn);
  CHECK_EQ_UINT(s.up, dims->ffn);
  CHECK_EQ_UINT(s.attention, s.q);
  CHECK_EQ_UINT(s.qkv, s.q + s.k + s.v);
  CHECK_EQ_UINT(s.logits, dims->vocab);
  CHECK_EQ_UINT(s.separate_bytes, bytes);
  CHECK_EQ_UINT(wick_scratch_expanded_bytes(dims, 6 * dims->hidden), guessed_bytes);
  CHECK(s.arena_bytes <= s.separate_bytes);
  check_arena(dims, &s);
  return s;
}

static void check_codes(const wick_scratch *s, uint64_t hidden_codes, uint64_t hidden_scales,
                        uint64_t ffn_codes, uint64_t ffn_scales) {
  CHECK_EQ_UINT(s->hidden_codes, hidden_codes);
  CHECK_EQ_UINT(s->hidden_scales, hidden_scales);
  CHECK_EQ_UINT(s->ffn_codes, ffn_codes);
  CHECK_EQ_UINT(s->ffn_scales, ffn_scales);
}

TEST(sc_01_sizes_of_a_small_model) {
  const wick_scratch_dims dims = {64, 128, 4, 4, 16, 100, false};
  const wick_scratch s = check_sizes(&dims, 4760, 5860);
  CHECK_EQ_UINT(s.hidden, 64);
  CHECK_EQ_UINT(s.qkv, 192);
  CHECK_EQ_UINT(s.up, 128);
  CHECK_EQ_UINT(s.logits, 100);
  check_codes(&s, 256, 1, 256, 1);
}

TEST(sc_02_sizes_of_qwen2_5_0_5b) {
  const wick_scratch s = check_sizes(&QWEN2, 679772, 673620);
  CHECK_EQ_UINT(s.q, 896);
  CHECK_EQ_UINT(s.k, 128);
  CHECK_EQ_UINT(s.v, 128);
  CHECK_EQ_UINT(s.qkv, 1152);
  check_codes(&s, 1024, 4, 4864, 19);
}

TEST(sc_03_sizes_of_qwen3_0_6b) {
  const wick_scratch_dims dims = {1024, 3072, 16, 8, 128, 151936, false};
  const wick_scratch s = check_sizes(&dims, 694864, 704384);
  CHECK_EQ_UINT(s.q, 2048);
  CHECK_EQ_UINT(s.k, 1024);
  CHECK_EQ_UINT(s.qkv, 4096);
  check_codes(&s, 2048, 8, 3072, 12);
}

TEST(sc_04_sizes_of_tinyllama) {
  const wick_scratch_dims dims = {2048, 5632, 32, 4, 64, 32000, false};
  const wick_scratch s = check_sizes(&dims, 242296, 277984);
  CHECK_EQ_UINT(s.qkv, 2560);
  check_codes(&s, 2048, 8, 5632, 22);
}

// ---- Decoding ----

enum { STEPS = 1000, GUARD_BYTES = 64, BLOCKS_MAX = 64, LOGITS_EVERY = 250 };

// Blocks of the engine's memory, each with guard words on both sides.
static struct {
  uint8_t *at;
  size_t size_bytes;
} guarded[BLOCKS_MAX];

static void check_guards(void) {
  uint8_t wanted[GUARD_BYTES];
  memset(wanted, 0x5c, sizeof wanted);
  for (int i = 0; i < BLOCKS_MAX; i++) {
    if (guarded[i].at == NULL) continue;
    CHECK_EQ_MEM(guarded[i].at - GUARD_BYTES, wanted, GUARD_BYTES);
    CHECK_EQ_MEM(guarded[i].at + guarded[i].size_bytes, wanted, GUARD_BYTES);
  }
}

static void *guarded_alloc(size_t size_bytes) {
  int i = 0;
  while (i < BLOCKS_MAX && guarded[i].at != NULL) i++;
  uint8_t *base = i < BLOCKS_MAX ? platform_alloc(size_bytes + 2 * GUARD_BYTES) : NULL;
  if (base == NULL) return NULL;
  memset(base, 0x5c, GUARD_BYTES);
  memset(base + GUARD_BYTES + size_bytes, 0x5c, GUARD_BYTES);
  guarded[i].at = base + GUARD_BYTES;
  guarded[i].size_bytes = size_bytes;
  return guarded[i].at;
}

static void guarded_free(void *block, size_t size_bytes) {
  check_guards();
  for (int i = 0; i < BLOCKS_MAX; i++) {
    if (guarded[i].at == block) guarded[i].at = NULL;
  }
  platform_free((uint8_t *)block - GUARD_BYTES, size_bytes + 2 * GUARD_BYTES);
}

// A model of one layer whose weights are random, and what a sequence needs to run through it.
typedef struct decode_case {
  wick_memory memory;
  wick_model model;
  model_layer layer;
  thread_pool *threads;
  wick_kv_pool *kv;
  wick_forward *forward;
  wick_kv_seq_id seq;
  float *blocks[BLOCKS_MAX];  // to be freed
  int block_count;
} decode_case;

static void *take(decode_case *c, uint64_t size_bytes) {
  void *block = memory_alloc_zeroed(&c->memory, (size_t)size_bytes);
  c->blocks[c->block_count++] = block;
  return block;
}

// Q4_0, 64 random rows again and again: in whole groups, so that groups are copied.
static kernel_matrix make_matrix(decode_case *c, uint32_t rows, uint32_t cols) {
  enum { ROWS_MADE = 64, BLOCK_BYTES = 18, BLOCKS = 4864 / 32 };
  const kernel_type_ops *ops = &c->model.kernels->types[WICK_TYPE_Q4_0];
  uint64_t bytes = 0, made_bytes = 0;
  CHECK(ops->matrix_bytes(rows, cols, &bytes) && ops->matrix_bytes(ROWS_MADE, cols, &made_bytes));
  kernel_matrix matrix = {NULL, rows, cols, WICK_TYPE_Q4_0, 0};
  uint8_t *data = take(c, bytes), row[BLOCKS * BLOCK_BYTES];
  const uint16_t scale = f16_of_f32(0.005f);
  matrix.data = data;
  for (uint32_t r = 0; r < ROWS_MADE; r++) {
    for (uint32_t i = 0; i < cols / 32 * BLOCK_BYTES; i++) {
      row[i] = (uint8_t)hash_mix_u64((uint64_t)r * sizeof row + i + rows);
      if (i % BLOCK_BYTES == 1) memcpy(row + i - 1, &scale, sizeof scale);
    }
    matrix.flags |= ops->repack(data, cols, r, 0, cols / 32, row);
  }
  for (uint64_t at = made_bytes; at < bytes; at += made_bytes) {
    memcpy(data + at, data, (size_t)(bytes - at < made_bytes ? bytes - at : made_bytes));
  }
  return matrix;
}

static float *make_norm(decode_case *c, uint32_t count) {
  float *norm = take(c, count * sizeof *norm);
  for (uint32_t i = 0; i < count; i++) norm[i] = 1.0f + (float)(i % 7) * 0.01f;
  return norm;
}

static bool open_decode(decode_case *c) {
  memset(c, 0, sizeof *c);
  memory_init(&c->memory, 0, guarded_alloc, guarded_free);
  c->model = (wick_model){.memory = &c->memory,
                          .kernels = kernels_bind(),
                          .config = config_of(&QWEN2),
                          .layers = &c->layer,
                          .is_tied = true};
  const uint32_t hidden = QWEN2.hidden, ffn = QWEN2.ffn;
  const uint32_t kv = QWEN2.kv_heads * QWEN2.head_dim;
  c->model.embedding = c->model.output = make_matrix(c, QWEN2.vocab, hidden);
  c->model.output_norm = make_norm(c, hidden);
  c->layer = (model_layer){.attn_norm = make_norm(c, hidden),
                           .q = make_matrix(c, hidden, hidden),
                           .k = make_matrix(c, kv, hidden),
                           .v = make_matrix(c, kv, hidden),
                           .attn_output = make_matrix(c, hidden, hidden),
                           .ffn_norm = make_norm(c, hidden),
                           .gate = make_matrix(c, ffn, hidden),
                           .up = make_matrix(c, ffn, hidden),
                           .down = make_matrix(c, hidden, ffn)};
  const wick_kv_shape shape = {1, QWEN2.kv_heads, QWEN2.head_dim, WICK_KV_F32, WICK_KV_F32, 0};
  const uint32_t pages = STEPS / KERNEL_PAGE_TOKENS + 1;
  wick_error error = {0};
  const bool is_open =
      thread_pool_create(&c->memory, 1, &c->threads, &error) == WICK_OK &&
      wick_kv_pool_init(&c->memory, c->model.kernels, &shape, pages, pages, &c->kv, &error) ==
          WICK_OK &&
      wick_kv_seq_new(c->kv, STEPS + 1, &c->seq, NULL, &error) == WICK_OK &&
      forward_create(&c->model, c->kv, c->threads, 1, 1, &c->forward, &error) == WICK_OK;
  return check_true(is_open, error.message, __FILE__, __LINE__);
}

static void close_decode(decode_case *c) {
  forward_destroy(c->forward);
  wick_kv_pool_destroy(c->kv);
  thread_pool_destroy(c->threads);
  for (int i = 0; i < c->block_count; i++) memory_free(&c->memory, c->blocks[i]);
  CHECK_EQ_UINT(c->memory.blocks_now, 0);
}

// Every buffer of the forward pass becomes NaN.
static void poison_scratch(const decode_case *c) {
  const uint64_t bytes = forward_plan_bytes(&c->model.config, c->model.kernels, 1, 1);
  int found = 0;
  for (int i = 0; i < BLOCKS_MAX; i++) {
    // the memory's own header comes first
    if (guarded[i].at == NULL || guarded[i].size_bytes != bytes + WICK_CACHE_LINE_BYTES) continue;
    memset(guarded[i].at + WICK_CACHE_LINE_BYTES, 0xff, (size_t)bytes);
    found++;
  }
  CHECK_EQ_INT(found, 1);
}

// One token at the sequence's end. The logits, where they are wanted: they take nine tenths of it.
static const float *decode(decode_case *c, bool wants_logits) {
  const uint32_t position = wick_kv_seq_tokens(c->kv, c->seq);
  const model_input input = {(int32_t)(position * 7919 % QWEN2.vocab), position, c->seq, true};
  wick_error error = {0};
  CHECK_EQ_INT(wick_kv_seq_prepare_write(c->kv, c->seq, position, 1, NULL, &error), WICK_OK);
  forward_begin(c->forward, &input, 1);
  if (!CHECK_EQ_INT(forward_layer(c->forward, &error), WICK_OK)) CHECK_EQ_STR(error.message, "");
  CHECK_EQ_INT(wick_kv_seq_append(c->kv, c->seq, 1, &error), WICK_OK);
  if (!wants_logits) return NULL;
  CHECK_EQ_UINT(forward_logits_compute(c->forward, 0), 1);
  return forward_logits(c->forward, 0);
}

// The reset of this engine is none: a step on poisoned buffers gives what it gave before.
static void check_again(decode_case *c, uint32_t position, const float *wanted) {
  CHECK_EQ_INT(wick_kv_seq_truncate(c->kv, c->seq, position, NULL), WICK_OK);
  poison_scratch(c);
  CHECK_EQ_MEM(decode(c, true), wanted, QWEN2.vocab * sizeof *wanted);
}

TEST(sc_05_decoding_lives_within_its_scratch) {
  static decode_case c;
  static float first[151936], last[151936];
  REQUIRE(open_decode(&c));
  memcpy(first, decode(&c, true), sizeof first);
  const uint64_t calls = c.memory.calls;
  for (uint32_t step = 1; step <= STEPS; step++) {
    const float *logits = decode(&c, step % LOGITS_EVERY == 0);
    if (step == STEPS) memcpy(last, logits, sizeof last);
  }
  CHECK_EQ_UINT(wick_kv_seq_tokens(c.kv, c.seq), STEPS + 1);
  CHECK_EQ_UINT(c.memory.calls, calls);
  check_guards();
  CHECK(memcmp(first, last, sizeof first) != 0);
  for (uint32_t i = 0; i < QWEN2.vocab; i++) {
    if (!CHECK(math_is_finite_f32(first[i]) && math_is_finite_f32(last[i]))) break;
  }
  check_again(&c, STEPS, last);
  check_again(&c, 0, first);
  CHECK_EQ_UINT(c.memory.calls, calls);
  close_decode(&c);
}

TEST(sc_06_gate_and_up_in_one) {
  wick_scratch_dims dims = {3072, 8192, 32, 32, 96, 32064, true};
  wick_scratch fused, apart;
  wick_scratch_plan(&dims, &fused);
  CHECK_EQ_UINT(fused.up, 16384);
  CHECK_EQ_UINT(fused.q, 3072);
  // as many rows as the tensor has
  const wick_layer_dims layer = {3072, 8192, 32, 32, 96, true};
  CHECK_EQ_UINT(wick_layer_up_rows(&layer, false), fused.up);
  dims.is_gate_fused = false;
  wick_scratch_plan(&dims, &apart);
  CHECK_EQ_UINT(apart.up, 8192);
  CHECK_EQ_UINT(fused.separate_bytes, apart.separate_bytes + 4 * 8192);
  CHECK(fused.arena_bytes <= fused.separate_bytes);
}

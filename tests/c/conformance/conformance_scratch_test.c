// Conformance cases SC-01 to SC-06 of the seed systems: sizes of scratch buffers, and that decoding
// stays within them.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "check.h"
#include "format/gguf_writer.h"
#include "model/family.h"
#include "model/forward.h"
#include "platform/platform.h"
#include "random.h"
#include "reference/scratch_sizes.h"
#include "tensor/tensor.h"

static const scratch_dims QWEN2 = {896, 4864, 14, 2, 64, 151936, false};  // SC-02

// ---- A model of one layer ----

static void write_keys(gguf_writer *w, const scratch_dims *dims) {
  gguf_writer_add_string(w, "general.architecture", "qwen2", 5);
  gguf_writer_add_u32(w, "qwen2.block_count", 1);
  gguf_writer_add_u32(w, "qwen2.context_length", 4096);
  gguf_writer_add_u32(w, "qwen2.embedding_length", dims->hidden);
  gguf_writer_add_u32(w, "qwen2.feed_forward_length", dims->ffn);
  gguf_writer_add_u32(w, "qwen2.attention.head_count", dims->heads);
  gguf_writer_add_u32(w, "qwen2.attention.head_count_kv", dims->kv_heads);
  gguf_writer_add_u32(w, "qwen2.attention.key_length", dims->head_dim);
  gguf_writer_add_u32(w, "qwen2.attention.value_length", dims->head_dim);
  gguf_writer_add_f32(w, "qwen2.attention.layer_norm_rms_epsilon", 1e-6f);
  gguf_writer_add_f32(w, "qwen2.rope.freq_base", 1e6f);
}

// Matrices are Q4_0, or F32 if their rows are not whole blocks.
static void write_tensors(gguf_writer *w, const scratch_dims *dims) {
  const uint64_t hidden = dims->hidden, ffn = dims->ffn, vocab = dims->vocab;
  const uint64_t q = (uint64_t)dims->heads * dims->head_dim;
  const uint64_t kv = (uint64_t)dims->kv_heads * dims->head_dim;
  const struct {
    const char *name;
    uint64_t dims[2];  // cols, rows
  } list[] = {{"token_embd.weight", {hidden, vocab}},    {"output_norm.weight", {hidden, 1}},
              {"blk.0.attn_norm.weight", {hidden, 1}},   {"blk.0.attn_q.weight", {hidden, q}},
              {"blk.0.attn_k.weight", {hidden, kv}},     {"blk.0.attn_v.weight", {hidden, kv}},
              {"blk.0.attn_output.weight", {q, hidden}}, {"blk.0.ffn_norm.weight", {hidden, 1}},
              {"blk.0.ffn_gate.weight", {hidden, ffn}},  {"blk.0.ffn_up.weight", {hidden, ffn}},
              {"blk.0.ffn_down.weight", {ffn, hidden}}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const bool is_plain = list[i].dims[1] == 1 || list[i].dims[0] % 32 != 0;
    gguf_writer_add_tensor(w, list[i].name, is_plain ? GGML_TYPE_F32 : GGML_TYPE_Q4_0, list[i].dims,
                           2);
  }
}

static const gguf_tensor *tensor_at(void *context, uint32_t index) {
  return gguf_tensor_at(context, index);
}

static int32_t find_tensor(void *context, const char *name) {
  const gguf_directory *directory = context;
  for (size_t i = 0; i < gguf_tensor_count(directory); i++) {
    if (gguf_string_equals(gguf_tensor_at(directory, i)->name, name)) return (int32_t)i;
  }
  return -1;
}

typedef struct written_file {
  uint8_t bytes[4096];
  size_t size_bytes;
} written_file;

static bool write_piece(void *context, const void *bytes, size_t size_bytes) {
  written_file *file = context;
  if (size_bytes > sizeof file->bytes - file->size_bytes) return false;
  memcpy(file->bytes + file->size_bytes, bytes, size_bytes);
  file->size_bytes += size_bytes;
  return true;
}

// Makes a directory of one layer with these sizes.
static gguf_directory *make_directory(memory_gate *memory, const scratch_dims *dims) {
  written_file file = {.size_bytes = 0};
  gguf_writer *writer = NULL;
  gguf_directory *directory = NULL;
  wick_error error = {0};
  size_t used = 0;
  gguf_writer_create(memory, write_piece, &file, 32, &writer, &error);
  write_keys(writer, dims);
  write_tensors(writer, dims);
  CHECK_EQ_INT(gguf_writer_write_header(writer, &error), WICK_OK);
  gguf_writer_destroy(writer);
  CHECK_EQ_INT(gguf_directory_create(memory, &directory, &error), WICK_OK);
  if (gguf_directory_feed(directory, file.bytes, file.size_bytes, &used, &error) != WICK_OK ||
      !gguf_directory_is_complete(directory)) {
    check_true(false, error.message, __FILE__, __LINE__);
  }
  return directory;
}

static loaded_model *make_model(memory_gate *memory, const gguf_directory *directory) {
  const model_tensors tensors = {(void *)directory, (uint32_t)gguf_tensor_count(directory),
                                 tensor_at, find_tensor};
  loaded_model *model = NULL;
  wick_error error = {0};
  if (model_create(memory, kernels_bind(), directory, &tensors, false, &model, &error) != WICK_OK) {
    check_true(false, error.message, __FILE__, __LINE__);
  }
  return model;
}

// ---- Sizes ----

// Checks that the engine's arena for one token takes no more than the separate buffers together.
static void check_arena(const scratch_dims *dims, const scratch_plan_sizes *sizes) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_directory *directory = make_directory(&memory, dims);
  loaded_model *model = make_model(&memory, directory);
  REQUIRE(model != NULL);
  CHECK(forward_plan_bytes(model, 1, 1) <= sizes->separate_bytes);
  const uint64_t stream = sizes->hidden + sizes->normed + sizes->logits;
  const uint64_t attention = sizes->q + sizes->k + sizes->v + sizes->attention;
  CHECK(forward_plan_bytes(model, 1, 1) >= 4 * (stream + attention));
  CHECK(forward_plan_bytes(model, 1, 1) >= 4 * (stream + sizes->gate + sizes->up));
  model_destroy(model);
  gguf_directory_destroy(directory);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// Checks the sizes: `bytes` of all buffers, and `guessed_bytes` for the original's other layout,
// which assumes a feed-forward size of 6 * hidden.
static scratch_plan_sizes check_sizes(const scratch_dims *dims, uint64_t bytes,
                                      uint64_t guessed_bytes) {
  scratch_plan_sizes s;
  scratch_plan(dims, &s);
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
  CHECK_EQ_UINT(scratch_expanded_bytes(dims, 6 * dims->hidden), guessed_bytes);
  CHECK(s.arena_bytes <= s.separate_bytes);
  check_arena(dims, &s);
  return s;
}

static void check_codes(const scratch_plan_sizes *s, uint64_t hidden_codes, uint64_t hidden_scales,
                        uint64_t ffn_codes, uint64_t ffn_scales) {
  CHECK_EQ_UINT(s->hidden_codes, hidden_codes);
  CHECK_EQ_UINT(s->hidden_scales, hidden_scales);
  CHECK_EQ_UINT(s->ffn_codes, ffn_codes);
  CHECK_EQ_UINT(s->ffn_scales, ffn_scales);
}

TEST(sc_01_sizes_of_a_small_model) {
  const scratch_dims dims = {64, 128, 4, 4, 16, 100, false};
  const scratch_plan_sizes s = check_sizes(&dims, 4760, 5860);
  CHECK_EQ_UINT(s.hidden, 64);
  CHECK_EQ_UINT(s.qkv, 192);
  CHECK_EQ_UINT(s.up, 128);
  CHECK_EQ_UINT(s.logits, 100);
  check_codes(&s, 256, 1, 256, 1);
}

TEST(sc_02_sizes_of_qwen2_5_0_5b) {
  const scratch_plan_sizes s = check_sizes(&QWEN2, 679772, 673620);
  CHECK_EQ_UINT(s.q, 896);
  CHECK_EQ_UINT(s.k, 128);
  CHECK_EQ_UINT(s.v, 128);
  CHECK_EQ_UINT(s.qkv, 1152);
  check_codes(&s, 1024, 4, 4864, 19);
}

TEST(sc_03_sizes_of_qwen3_0_6b) {
  const scratch_dims dims = {1024, 3072, 16, 8, 128, 151936, false};
  const scratch_plan_sizes s = check_sizes(&dims, 694864, 704384);
  CHECK_EQ_UINT(s.q, 2048);
  CHECK_EQ_UINT(s.k, 1024);
  CHECK_EQ_UINT(s.qkv, 4096);
  check_codes(&s, 2048, 8, 3072, 12);
}

TEST(sc_04_sizes_of_tinyllama) {
  const scratch_dims dims = {2048, 5632, 32, 4, 64, 32000, false};
  const scratch_plan_sizes s = check_sizes(&dims, 242296, 277984);
  CHECK_EQ_UINT(s.qkv, 2560);
  check_codes(&s, 2048, 8, 5632, 22);
}

// ---- Decoding ----

enum { STEPS = 1000, GUARD_BYTES = 64, BLOCKS_MAX = 64, LOGITS_EVERY = 250 };

// Blocks of the engine's memory with guard words on both sides.
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

// A model of one layer with random weights, and what a sequence needs to run through it.
typedef struct decode_case {
  memory_gate memory;
  loaded_model *model;
  thread_pool *threads;
  seq_store *store;
  kv_pool *kv;  // owned by the store
  forward_pass *forward;
  kv_seq_id seq;
} decode_case;

enum { ROW_BYTES = 4 * 4864, ROWS_MADE = 64 };  // the longest row consists of floats

// Makes row `row` of a tensor: Q4_0 codes with one scale (64 random rows, repeated), or floats.
static void fill_row(const gguf_tensor *tensor, uint32_t row, uint8_t out[ROW_BYTES]) {
  enum { BLOCK_BYTES = 18 };
  const uint16_t scale = f16_of_f32(0.005f);
  for (uint32_t i = 0; tensor->type == GGML_TYPE_F32 && i < tensor->dims[0]; i++) {
    const float value = 1.0f + (float)(i % 7) * 0.01f;
    memcpy(out + 4 * i, &value, sizeof value);
  }
  for (uint32_t i = 0; tensor->type == GGML_TYPE_Q4_0 && i < tensor->dims[0] / 32; i++) {
    const uint64_t seed = (uint64_t)(row % ROWS_MADE) * ROW_BYTES + i + tensor->dims[1];
    uint64_t codes[2] = {hash_mix_u64(2 * seed), hash_mix_u64(2 * seed + 1)};
    memcpy(out + (size_t)i * BLOCK_BYTES, &scale, sizeof scale);
    memcpy(out + (size_t)i * BLOCK_BYTES + 2, codes, sizeof codes);
  }
}

static void fill_weights(loaded_model *model, const gguf_directory *directory) {
  uint8_t row_bytes[ROW_BYTES];
  for (uint32_t i = 0; i < gguf_tensor_count(directory); i++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, i);
    const uint32_t values = tensor->type == GGML_TYPE_F32 ? 1 : 32;
    for (uint32_t row = 0; row < tensor->dims[1]; row++) {
      fill_row(tensor, row, row_bytes);
      const uint32_t blocks = (uint32_t)tensor->dims[0] / values;
      CHECK_EQ_INT(model_place(model, i, tensor->type, row, 0, blocks, row_bytes, NULL), WICK_OK);
    }
    model_tensor_done(model, i);
  }
  CHECK(model_is_ready(model));
}

static bool open_decode(decode_case *c) {
  memset(c, 0, sizeof *c);
  memory_init(&c->memory, 0, guarded_alloc, guarded_free);
  memory_gate own;
  memory_init(&own, 0, platform_alloc, platform_free);
  gguf_directory *directory = make_directory(&own, &QWEN2);
  c->model = make_model(&c->memory, directory);
  wick_error error = {0};
  if (c->model == NULL || model_allocate_weights(c->model, &error) != WICK_OK) return false;
  fill_weights(c->model, directory);
  gguf_directory_destroy(directory);
  const kv_shape shape = {1, QWEN2.kv_heads, QWEN2.head_dim, KERNEL_KV_F32, KERNEL_KV_F32, 0};
  const store_config config = {
      .groups = {shape}, .group_count = 1, .pages_max = STEPS / KERNEL_PAGE_TOKENS + 1};
  bool is_open = thread_pool_create(&c->memory, NULL, 1, &c->threads, &error) == WICK_OK &&
                 store_create(&c->memory, c->model->kernels, &config, &c->store, &error) == WICK_OK;
  if (is_open) c->kv = store_pages(c->store);
  is_open = is_open && kv_seq_new(c->kv, STEPS + 1, &c->seq, NULL, &error) == WICK_OK &&
            forward_create(c->model, c->store, c->threads, 1, 1, &c->forward, &error) == WICK_OK;
  return check_true(is_open, error.message, __FILE__, __LINE__);
}

static void close_decode(decode_case *c) {
  forward_destroy(c->forward);
  store_destroy(c->store);
  thread_pool_destroy(c->threads);
  model_destroy(c->model);
  CHECK_EQ_UINT(c->memory.blocks_now, 0);
}

// Does not use memset: the address sanitizer would report that it also writes the gaps between
// buffers.
__attribute__((no_sanitize("address"))) static void fill_ones(volatile uint64_t *at,
                                                              uint64_t size_bytes) {
  for (uint64_t i = 0; i < size_bytes / sizeof *at; i++) at[i] = UINT64_MAX;
}

// Fills every buffer of the forward pass with NaN.
static void poison_scratch(const decode_case *c) {
  const uint64_t bytes = forward_plan_bytes(c->model, 1, 1);
  int found = 0;
  for (int i = 0; i < BLOCKS_MAX; i++) {
    // the block starts with the memory gate's header
    if (guarded[i].at == NULL || guarded[i].size_bytes != bytes + CACHE_LINE_BYTES) continue;
    fill_ones((volatile uint64_t *)(void *)(guarded[i].at + CACHE_LINE_BYTES), bytes);
    found++;
  }
  CHECK_EQ_INT(found, 1);
}

// Runs one token at the sequence's end. Computes logits only if requested: they take nine tenths of
// the time.
static const float *decode(decode_case *c, bool wants_logits) {
  const uint32_t position = kv_seq_tokens(c->kv, c->seq);
  const model_input input = {
      (int32_t)(position * 7919 % QWEN2.vocab), position, c->seq, true, NULL, 0, 0, NULL};
  wick_error error = {0};
  CHECK_EQ_INT(kv_seq_prepare_write(c->kv, c->seq, position, 1, NULL, &error), WICK_OK);
  forward_begin(c->forward, &input, 1);
  if (!CHECK_EQ_INT(forward_layer(c->forward, &error), WICK_OK)) CHECK_EQ_STR(error.message, "");
  CHECK_EQ_INT(kv_seq_append(c->kv, c->seq, 1, &error), WICK_OK);
  if (!wants_logits) return NULL;
  CHECK_EQ_UINT(forward_logits_compute(c->forward, 0), 1);
  return forward_logits(c->forward, 0);
}

// This engine's reset does nothing: a step on poisoned buffers gives the same result.
static void check_again(decode_case *c, uint32_t position, const float *wanted) {
  CHECK_EQ_INT(kv_seq_truncate(c->kv, c->seq, position, NULL), WICK_OK);
  poison_scratch(c);
  CHECK_EQ_MEM(decode(c, true), wanted, QWEN2.vocab * sizeof *wanted);
}

TEST(sc_05_decoding_stays_within_its_scratch) {
  static decode_case c;
  static float first[151936], last[151936];
  REQUIRE(open_decode(&c));
  memcpy(first, decode(&c, true), sizeof first);
  const uint64_t calls = c.memory.calls;
  const uint32_t steps = STEPS / level_step(4);
  for (uint32_t step = 1; step <= steps; step++) {
    const float *logits = decode(&c, step % LOGITS_EVERY == 0);
    if (step == steps) memcpy(last, logits, sizeof last);
  }
  CHECK_EQ_UINT(kv_seq_tokens(c.kv, c.seq), steps + 1);
  CHECK_EQ_UINT(c.memory.calls, calls);
  check_guards();
  CHECK(memcmp(first, last, sizeof first) != 0);
  for (uint32_t i = 0; i < QWEN2.vocab; i++) {
    if (!CHECK(math_is_finite_f32(first[i]) && math_is_finite_f32(last[i]))) break;
  }
  check_again(&c, steps, last);
  check_again(&c, 0, first);
  CHECK_EQ_UINT(c.memory.calls, calls);
  close_decode(&c);
}

TEST(sc_06_fused_gate_and_up) {
  scratch_dims dims = {3072, 8192, 32, 32, 96, 32064, true};
  scratch_plan_sizes fused, apart;
  scratch_plan(&dims, &fused);
  CHECK_EQ_UINT(fused.up, 16384);
  CHECK_EQ_UINT(fused.q, 3072);
  // as many rows as the tensor has
  const layer_dims layer = {3072, 8192, 32, 32, 96, true};
  CHECK_EQ_UINT(layer_up_rows(&layer, false), fused.up);
  dims.is_gate_fused = false;
  scratch_plan(&dims, &apart);
  CHECK_EQ_UINT(apart.up, 8192);
  CHECK_EQ_UINT(fused.separate_bytes, apart.separate_bytes + 4 * 8192);
  CHECK(fused.arena_bytes <= fused.separate_bytes);
}

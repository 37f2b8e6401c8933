// The engine's main invariant: the logits of a token are bit-identical for every batch size, every
// way of splitting the prompt or the file, and every number of threads.
#include "api/insides.h"
#include "fixture_model.h"
#include "model/paged_attention.h"

// The long prompt spans three attention chunks and ends in a batch small enough to be split.
enum { PROMPT_TOKENS = 70, PROMPT_LONG_TOKENS = 1030 };
_Static_assert(PROMPT_LONG_TOKENS > 2 * ATTENTION_CHUNK_TOKENS, "three chunks");

typedef struct logits_record {
  float *rows;  // [prompt_tokens, FIXTURE_VOCAB]
  uint32_t count;
} logits_record;

static void record_logits(void *context, uint32_t position, const float *logits, uint32_t vocab) {
  logits_record *record = context;
  memcpy(record->rows + (size_t)position * vocab, logits, vocab * sizeof(float));
  record->count++;
}

static void fill_prompt(int32_t *tokens, uint32_t count) {
  uint64_t state = 7;
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)(random_u64(&state) % 256);
}

typedef struct run_setup {
  uint32_t batch_tokens, threads;
  size_t piece_bytes;
  wick_kv_type kv;
  const char *kernels;
  uint32_t prompt_tokens;
} run_setup;

typedef struct token_list {
  int32_t *tokens;
  uint32_t tokens_max, count;
} token_list;

static void take_token(void *context, const wick_event *event, const uint8_t *after) {
  token_list *to = context;
  if (event->kind == WICK_EVENT_TOKEN && to->count < to->tokens_max) {
    to->tokens[to->count++] = event->token;
  }
  if (event->kind == WICK_EVENT_DONE && event->finish == WICK_FINISH_ERROR) {
    wick_error reported = {0};
    memcpy(reported.message, after, event->text_bytes);
    CHECK_EQ_STR(reported.message, "");
  }
}

// Records the logits of every position, and the token ids of a greedy continuation.
static bool run_logits(const fixture_file *file, const run_setup *setup, float *rows,
                       int32_t *continuation, uint32_t continuation_count) {
  wick_config config;
  wick_config_default(&config);
  config.batch_tokens = setup->batch_tokens;
  config.threads = check_threads(setup->threads);
  config.k_type = config.v_type = setup->kv;
  const kernel_table *kernels =
      setup->kernels == NULL ? kernels_bind() : kernels_by_name(setup->kernels);
  if (kernels == NULL) return false;
  const engine_hooks hooks = {.kernels = kernels};
  wick_engine *engine;
  wick_error error = {0};
  if (!CHECK_EQ_INT(engine_create(&config, &hooks, &engine, &error), WICK_OK)) return false;
  if (!CHECK_EQ_INT(fixture_load(engine, file, setup->piece_bytes, &error), WICK_OK)) {
    CHECK_EQ_STR(error.message, "");
    wick_engine_destroy(engine);
    return false;
  }
  int32_t tokens[PROMPT_LONG_TOKENS];
  fill_prompt(tokens, setup->prompt_tokens);
  logits_record record = {rows, 0};
  wick_request request = fixture_request(tokens, setup->prompt_tokens, continuation_count);
  request.on_logits = record_logits;
  request.on_logits_context = &record;
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  token_list generated = {continuation, continuation_count, 0};
  fixture_run(engine, take_token, &generated);
  if (!CHECK_EQ_UINT(generated.count, continuation_count))
    CHECK_EQ_STR(setup->kernels, "that failed");
  CHECK_EQ_UINT(record.count, setup->prompt_tokens);
  wick_engine_destroy(engine);
  return true;
}

enum { ROWS = PROMPT_LONG_TOKENS * FIXTURE_VOCAB, CONTINUATION = 20 };

// Runs `wanted` and each other setup and kernel; the results must be identical.
static void check_same(const fixture_file *file, const run_setup *wanted, const run_setup *others,
                       size_t count) {
  static float a[ROWS], b[ROWS];
  int32_t text_a[CONTINUATION], text_b[CONTINUATION];
  memset(a, 0, sizeof a);
  if (!run_logits(file, wanted, a, text_a, CONTINUATION)) return;
  for (size_t i = 0; i < count; i++) {
    memset(b, 1, sizeof b);
    if (!run_logits(file, &others[i], b, text_b, CONTINUATION)) return;
    CHECK_EQ_MEM(a, b, (size_t)wanted->prompt_tokens * FIXTURE_VOCAB * sizeof *a);
    CHECK_EQ_MEM(text_a, text_b, sizeof text_a);
  }
}

static const char *const KERNELS[] = {"scalar",       "simd128",   "sse2",          "neon",
                                      "avx2",         "avxvnni",   "relaxed-pairs", "relaxed-quads",
                                      "simd128-long", "sse2-long", "neon-long"};
enum { KERNELS_COUNT = sizeof KERNELS / sizeof KERNELS[0] };

static void check_law(const fixture_shape *shape, const fixture_experts *experts) {
  fixture_file file = fixture_make_experts(shape, experts);
  for (int k = 0; k < KERNELS_COUNT; k++) {
    if (kernels_by_name(KERNELS[k]) == NULL) continue;
    for (wick_kv_type type = 0; type < WICK_KV_TYPE_COUNT; type++) {
      if ((uint32_t)(k + (int)type) % level_step(6) != 0) continue;
      const size_t piece_bytes = k == 0 && type == 0 ? 1 : level_step(61);
      const run_setup whole = {128, 1, 0, type, KERNELS[k], PROMPT_TOKENS};
      const run_setup others[] = {{1, 1, 0, type, KERNELS[k], PROMPT_TOKENS},
                                  {7, 1, piece_bytes, type, KERNELS[k], PROMPT_TOKENS},
                                  {33, 3, 977, type, KERNELS[k], PROMPT_TOKENS}};
      check_same(&file, &whole, others, 3);
    }
  }
  free(file.bytes);
}

TEST(logits_do_not_depend_on_batch_chunks_or_threads_f32) { check_law(&FIXTURE_DEFAULT, NULL); }

TEST(logits_do_not_depend_on_batch_chunks_or_threads_f16) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = GGML_TYPE_F16;
  shape.has_biases = true;
  check_law(&shape, NULL);
}

TEST(logits_do_not_depend_on_batch_chunks_or_threads_q8_0) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = GGML_TYPE_Q8_0;
  check_law(&shape, NULL);
}

// The width of the experts is not a multiple of the number of rows in a group.
TEST(logits_of_experts_do_not_depend_on_batch_chunks_or_threads_f32) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.ffn = 44;
  check_law(&shape, &(fixture_experts){"llama", 5, 2, 0, false, NULL});
}

TEST(logits_of_experts_do_not_depend_on_batch_chunks_or_threads_q8_0) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = GGML_TYPE_Q8_0;
  check_law(&shape, &(fixture_experts){"qwen2moe", 12, 3, 64, false, NULL});
}

// The chunks run one after the other or concurrently in threads.
TEST(logits_of_a_long_context_do_not_depend_on_batch_or_threads) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = GGML_TYPE_Q8_0;
  shape.context = 2 * PROMPT_LONG_TOKENS;
  fixture_file file = fixture_make(&shape);
  for (int k = 0; k < KERNELS_COUNT; k++) {
    if (kernels_by_name(KERNELS[k]) == NULL || (uint32_t)k % level_step(8) != 0) continue;
    const run_setup whole = {128, 1, 0, WICK_KV_F16, KERNELS[k], PROMPT_LONG_TOKENS};
    run_setup others[] = {whole, whole};
    others[0].batch_tokens = 7;
    others[1].threads = 3;
    others[1].batch_tokens = 32;
    check_same(&file, &whole, others, 2);
  }
  free(file.bytes);
}

// The same model with a different number of KV heads gives different logits, so the comparison can
// fail.
TEST(the_comparison_detects_a_difference) {
  fixture_shape shape = FIXTURE_DEFAULT;
  fixture_file file = fixture_make(&shape);
  static float a[ROWS], b[ROWS];
  int32_t text[CONTINUATION];
  const run_setup exact = {128, 1, 0, WICK_KV_F32, "scalar", PROMPT_TOKENS};
  const run_setup rounded = {128, 1, 0, WICK_KV_F16, "scalar", PROMPT_TOKENS};
  REQUIRE(run_logits(&file, &exact, a, text, CONTINUATION));
  REQUIRE(run_logits(&file, &rounded, b, text, CONTINUATION));
  CHECK(memcmp(a, b, sizeof a) != 0);
  double worst = 0;
  for (int i = 0; i < ROWS; i++) {
    const double difference = (double)a[i] - (double)b[i];
    if (difference > worst) worst = difference;
    if (-difference > worst) worst = -difference;
  }
  CHECK(worst < 0.05);  // half precision in the pages changes the logits only slightly
  free(file.bytes);
}

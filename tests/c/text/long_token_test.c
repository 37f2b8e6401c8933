// Tokens of up to a megabyte: whatever the size of a token's text, each request ends once, in as
// many steps as with short tokens, and all text is returned.
#include <stdio.h>

#include "fixture_model.h"
#include "model_builder.h"

enum { REQUESTS = 3, TOKENS_OUT = 4, STEPS_MAX = 400 };

typedef struct long_run {
  uint32_t dones, aborted;
  uint64_t text_bytes, tokens;
} long_run;

static void take_one(void *context, const wick_event *event, const uint8_t *after) {
  long_run *run = context;
  (void)after;
  run->text_bytes += event->text_bytes;
  run->tokens += event->kind == WICK_EVENT_TOKEN;
  run->dones += event->kind == WICK_EVENT_DONE;
  run->aborted += event->finish == WICK_FINISH_ABORT;
  CHECK(event->finish != WICK_FINISH_ERROR);
  if (event->kind == WICK_EVENT_TOKEN) CHECK_EQ_UINT(event->top_count, WICK_LOGPROBS_MAX);
}

static wick_engine *open_with_token(built_vocabulary vocabulary, size_t index, const char *text,
                                    size_t size_bytes) {
  static model_builder model;
  const built_choice choice = {vocabulary, BUILT_LLAMA, GGML_TYPE_F32, 1, 64};
  builder_init(&model, &choice);
  value_set_item(builder_find(&model, "tokenizer.ggml.tokens"), index, text, size_bytes);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  const wick_status status = fixture_load(engine, &file, 0, &error);
  if (!CHECK_EQ_INT(status, WICK_OK)) printf("#   %s\n", error.message);
  free(built.bytes);
  return engine;
}

// Runs requests with completions that generate only the long token; one of them is cancelled.
static void check_token(built_vocabulary vocabulary, char letter, size_t size_bytes) {
  const size_t index = BUILT_WORDS_FIRST + 3;
  char *text = malloc(size_bytes);
  REQUIRE(text != NULL);
  memset(text, letter, size_bytes);
  wick_engine *engine = open_with_token(vocabulary, index, text, size_bytes);
  const int32_t prompt[] = {1, 20}, id = (int32_t)index;
  const int32_t forced[TOKENS_OUT] = {id, id, id, id};
  wick_request request = fixture_request(prompt, 2, TOKENS_OUT);
  request.forced = forced;
  request.forced_count = TOKENS_OUT;
  request.completions = 3;
  request.sampling.logprobs = WICK_LOGPROBS_MAX;
  uint32_t first = 0, steps = 0;
  for (int i = 0; i < REQUESTS; i++) {
    CHECK_EQ_INT(wick_request_submit(engine, &request, &first, NULL), WICK_OK);
  }
  long_run run = {0};
  for (; steps < STEPS_MAX; steps++) {
    if (steps == 1) CHECK_EQ_INT(wick_request_cancel(engine, first), WICK_OK);
    if (wick_step(engine, 0) == WICK_STEP_IDLE) break;
    fixture_take_all(engine, take_one, &run);
  }
  printf("#   %zu bytes: %u steps\n", size_bytes, steps);
  CHECK(steps < STEPS_MAX);
  CHECK_EQ_UINT(run.dones, 3 * REQUESTS);
  CHECK_EQ_UINT(run.aborted, 1);
  CHECK(run.tokens >= (3 * REQUESTS - 1) * TOKENS_OUT);
  // a byte that is not a character becomes U+FFFD, which has three bytes
  CHECK_EQ_UINT(run.text_bytes, run.tokens * size_bytes * (letter < 0 ? 3 : 1));
  wick_engine_destroy(engine);
  free(text);
}

TEST(requests_with_spm_tokens_of_any_length_end) {
  const size_t sizes[] = {1, 1000, 1190, 1300, 5000, 100000};
  for (size_t i = 0; i < 6; i++) check_token(BUILT_SPM, 'x', sizes[i]);
}

TEST(requests_with_bpe_tokens_of_any_length_end) {
  const size_t sizes[] = {1190, 100000};
  for (size_t i = 0; i < 2; i++) check_token(BUILT_BPE, 'x', sizes[i]);
}

TEST(requests_with_invalid_utf8_tokens_end) {
  check_token(BUILT_SPM, (char)0xff, 1190);
  check_token(BUILT_SPM, (char)0xff, 100000);
}

TEST(requests_with_a_token_of_a_megabyte_end) { check_token(BUILT_SPM, 'x', 1 << 20); }

// Prompts that end within a token: which tokens are removed, and that the answer equals that of the
// shorter prompt if its output is constrained to begin with the removed text.
#include <stdio.h>

#include "fixture_model.h"
#include "model_builder.h"
#include "schedule/healing.h"

enum { OUT_TOKENS = 24, TEXT_BYTES_MAX = 512 };

typedef struct outcome {
  int32_t tokens[OUT_TOKENS];
  uint32_t count, done;
  wick_finish finish;
  char text[TEXT_BYTES_MAX];
  size_t text_bytes;
} outcome;

static void take_event(void *context, const wick_event *event, const uint8_t *after) {
  outcome *result = context;
  if (event->kind == WICK_EVENT_PREFILL) return;
  if (CHECK(result->text_bytes + event->text_bytes <= TEXT_BYTES_MAX)) {
    memcpy(result->text + result->text_bytes, after + event->top_count * 8, event->text_bytes);
    result->text_bytes += event->text_bytes;
  }
  if (event->kind == WICK_EVENT_TOKEN && CHECK(result->count < OUT_TOKENS)) {
    result->tokens[result->count++] = event->token;
  }
  if (event->kind != WICK_EVENT_DONE) return;
  result->done++;
  result->finish = (wick_finish)event->finish;
}

static wick_engine *open_file(const fixture_file *file) {
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  wick_error error = {0};
  if (CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK)) {
    CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  }
  return engine;
}

static wick_engine *open_engine(void) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_engine *engine = open_file(&file);
  free(file.bytes);
  return engine;
}

static wick_request request_of(const char *text) {
  wick_request wanted;
  wick_request_default(&wanted);
  wanted.text = text;
  wanted.text_bytes = strlen(text);
  wanted.max_tokens = OUT_TOKENS;
  wanted.no_speculation = true;
  wanted.healing = true;
  return wanted;
}

static outcome run(wick_engine *engine, const wick_request *wanted) {
  outcome result = {0};
  uint32_t id;
  wick_error error = {0};
  if (!CHECK_EQ_INT(wick_request_submit(engine, wanted, &id, &error), WICK_OK)) {
    printf("# %s\n", error.message);
    return result;
  }
  fixture_run(engine, take_event, &result);
  CHECK_EQ_UINT(result.done, 1);
  return result;
}

// Runs with a grammar that starts with the removed text, which must give the same output as
// healing.
static outcome run_bound(wick_engine *engine, const char *text, size_t end_bytes) {
  const size_t kept = strlen(text) - end_bytes;
  const wick_grammar grammar = {.kind = WICK_GRAMMAR_CHOICE,
                                .text = "[\"\"]",
                                .text_bytes = 4,
                                .marker = text + kept,
                                .marker_bytes = end_bytes};
  wick_request wanted = request_of(text);
  wanted.text_bytes = kept;
  wanted.healing = false;
  wanted.grammar = &grammar;
  return run(engine, &wanted);
}

TEST(healing_equals_a_grammar_that_starts_with_the_removed_text) {
  static const struct {
    const char *text;
    size_t end_bytes;  // every token in this vocabulary is one byte
  } CASES[] = {{"the fox", 1}, {"caf\xc3\xa9", 2}, {"a \xf0\x9f\xa6\x8a", 4}, {"ab ", 1}};
  wick_engine *engine = open_engine();
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    const wick_request wanted = request_of(CASES[i].text);
    const outcome healed = run(engine, &wanted);
    const outcome bound = run_bound(engine, CASES[i].text, CASES[i].end_bytes);
    CHECK_EQ_UINT(healed.count, bound.count);
    CHECK_EQ_MEM(healed.tokens, bound.tokens, bound.count * sizeof *bound.tokens);
    CHECK_EQ_UINT(healed.text_bytes, bound.text_bytes - CASES[i].end_bytes);
    CHECK_EQ_MEM(healed.text, bound.text + CASES[i].end_bytes, healed.text_bytes);
  }
  wick_engine_destroy(engine);
}

// " ", " t" and " the" are tokens. Models are trained on whole words, so after " " the model might
// continue with a different word; therefore only " the" or longer tokens may replace " the".
TEST(a_token_is_not_replaced_by_shorter_ones) {
  static model_builder model;
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, 64};
  builder_init(&model, &choice);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_engine *engine = open_file(&file);
  int32_t tokens[16];
  size_t count = 0;
  wick_error error = {0};
  REQUIRE(wick_tokenize(engine, "a the", 5, 0, tokens, 16, &count, &error) == WICK_OK);
  REQUIRE(count >= 2 && count <= 16);
  wick_request wanted = request_of("a the");
  wanted.sampling.temperature = 1;
  for (uint64_t seed = 0; seed < 20; seed++) {
    wanted.sampling.seed = seed;
    const outcome healed = run(engine, &wanted);
    if (CHECK(healed.count > 0)) CHECK_EQ_INT(healed.tokens[0], tokens[count - 1]);
  }
  wick_engine_destroy(engine);
  free(built.bytes);
}

// A partial token at the end of the prompt becomes a whole one, and only the rest is new text.
TEST(only_the_rest_of_a_longer_token_is_returned) {
  static model_builder model;
  const built_choice choice = {BUILT_SPM, BUILT_LLAMA, GGML_TYPE_F32, 2, 64};
  builder_init(&model, &choice);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_engine *engine = open_file(&file);
  wick_error error = {0};
  int32_t whole[16];
  size_t count = 0;
  REQUIRE(wick_tokenize(engine, "a the", 5, 0, whole, 16, &count, &error) == WICK_OK);
  const int32_t token = whole[count - 1];  // " the"
  wick_request wanted = request_of("a t");
  wanted.sampling.temperature = 1;
  wanted.max_tokens = 1;
  uint32_t longer = 0;
  const wick_bias bias = {token, 100};
  wanted.sampling.bias = &bias;
  wanted.sampling.bias_count = 1;
  for (uint64_t seed = 0; seed < 5; seed++) {
    wanted.sampling.seed = seed;
    const outcome healed = run(engine, &wanted);
    if (healed.count != 1 || healed.tokens[0] != token) continue;
    longer++;
    CHECK_EQ_UINT(healed.text_bytes, 2);
    CHECK_EQ_MEM(healed.text, "he", 2);
  }
  CHECK_EQ_UINT(longer, 5);
  wick_engine_destroy(engine);
  free(built.bytes);
}

// Part of a character in the prompt is not new text.
TEST(an_answer_that_ends_within_the_healed_text_is_empty) {
  static const char *const TEXTS[] = {"caf\xc3\xa9", "a \xf0\x9f\xa6\x8a"};
  wick_engine *engine = open_engine();
  for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
    for (uint32_t most = 1; most < 2 * i + 2; most++) {
      wick_request wanted = request_of(TEXTS[i]);
      wanted.max_tokens = most;
      const outcome healed = run(engine, &wanted);
      CHECK_EQ_UINT(healed.count, most);
      CHECK_EQ_INT(healed.finish, WICK_FINISH_LENGTH);
      CHECK_EQ_UINT(healed.text_bytes, 0);
    }
  }
  wick_engine_destroy(engine);
}

TEST(each_completion_is_healed) {
  wick_engine *engine = open_engine();
  wick_request wanted = request_of("the fox");
  wanted.sampling.temperature = 1;
  wanted.completions = 2;
  outcome both[2] = {0};
  uint32_t id;
  wick_error error = {0};
  REQUIRE(wick_request_submit(engine, &wanted, &id, &error) == WICK_OK);
  for (wick_step_result result = WICK_STEP_PROGRESS; result == WICK_STEP_PROGRESS;) {
    result = wick_step(engine, 0);
    size_t size;
    const uint8_t *at = wick_events_take(engine, &size), *end = at + size;
    while (at < end) {
      const wick_event *event = (const wick_event *)(const void *)at;
      take_event(&both[event->request - id], event, at + sizeof *event);
      at += event->size_bytes;
    }
  }
  wanted.completions = 1;
  for (uint32_t i = 0; i < 2; i++) {
    wanted.sampling.seed = i;
    const outcome alone = run(engine, &wanted);
    CHECK_EQ_UINT(both[i].count, alone.count);
    CHECK_EQ_MEM(both[i].tokens, alone.tokens, alone.count * sizeof *alone.tokens);
    CHECK_EQ_MEM(both[i].text, alone.text, alone.text_bytes);
  }
  wick_engine_destroy(engine);
}

TEST(options_incompatible_with_healing_are_rejected) {
  wick_engine *engine = open_engine();
  const wick_grammar grammar = {.kind = WICK_GRAMMAR_REGEX, .text = "a", .text_bytes = 1};
  const int32_t ids[] = {1, 2};
  for (int i = 0; i < 4; i++) {
    static const char *const TOLD[] = {"no grammar", "no forced tokens", "a string prompt",
                                       "an answer"};
    wick_request wanted = request_of("the fox");
    wick_error error = {0};
    uint32_t id;
    if (i == 0) wanted.grammar = &grammar;
    if (i == 1) wanted.forced = ids;
    if (i == 1) wanted.forced_count = 2;
    if (i == 2) wanted.tokens = ids;
    if (i == 2) wanted.token_count = 2;
    if (i == 3) wanted.prefill_only = true;
    CHECK_EQ_INT(wick_request_submit(engine, &wanted, &id, &error), WICK_E_ARG);
    CHECK(strstr(error.message, TOLD[i]) != NULL);
  }
  // a prompt with a single token stays unchanged
  const wick_request single = request_of("a");
  wick_request plain = single;
  plain.healing = false;
  const outcome first = run(engine, &single), second = run(engine, &plain);
  CHECK_EQ_UINT(first.count, second.count);
  CHECK_EQ_MEM(first.text, second.text, second.text_bytes);
  wick_engine_destroy(engine);
}

// What goes wrong ends in a status, gives everything back, and leaves the engine working.
#include "fixture_model.h"

typedef struct outcome {
  uint32_t finish, status, tokens_out;
  uint64_t calls_first_token, calls_end;
  char text[2048];
  size_t text_bytes;
} outcome;

static void take_events(wick_engine *engine, outcome *result) {
  size_t bytes;
  const uint8_t *at = wick_events_take(engine, &bytes);
  for (size_t used = 0; used < bytes;) {
    wick_event event;
    memcpy(&event, at + used, sizeof event);
    if (event.kind == WICK_EVENT_TOKEN && result->calls_first_token == 0) {
      result->calls_first_token = engine->memory.calls;
    }
    if (event.kind != WICK_EVENT_PREFILL &&
        result->text_bytes + event.text_bytes < sizeof result->text) {
      memcpy(result->text + result->text_bytes, at + used + sizeof event + 8 * event.top_count,
             event.text_bytes);
      result->text_bytes += event.text_bytes;
    }
    if (event.kind == WICK_EVENT_DONE) {
      result->finish = event.finish;
      result->status = event.status;
      result->tokens_out = event.tokens_out;
    }
    used += event.size_bytes;
  }
  result->calls_end = engine->memory.calls;
}

static wick_status ask(wick_engine *engine, const char *text, uint32_t max_tokens, outcome *result,
                       wick_error *error) {
  memset(result, 0, sizeof *result);
  wick_request request;
  wick_request_default(&request);
  request.text = text;
  request.text_bytes = strlen(text);
  request.max_tokens = max_tokens;
  request.ignore_end = true;
  uint32_t id;
  const wick_status status = wick_request_submit(engine, &request, &id, error);
  if (status != WICK_OK) return status;
  while (wick_step(engine, 0) != WICK_STEP_IDLE) take_events(engine, result);
  take_events(engine, result);
  return WICK_OK;
}

static wick_engine *open_engine(const fixture_file *file, uint64_t fail_at_call,
                                wick_status *status, wick_error *error) {
  wick_config config;
  wick_config_default(&config);
  const engine_hooks hooks = {.fail_at_call = fail_at_call};
  wick_engine *engine = NULL;
  *status = engine_create(&config, &hooks, &engine, error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 5000, error);
  return engine;
}

TEST(every_failing_allocation_is_told_and_leaks_nothing) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  uint32_t failures = 0;
  for (uint64_t k = 1; k < 2000; k++) {
    wick_status status;
    wick_error error = {0};
    outcome result = {0};
    wick_engine *engine = open_engine(&file, k, &status, &error);
    if (status == WICK_OK) status = ask(engine, "the inner", 4, &result, &error);
    const bool has_failed = status != WICK_OK || result.finish == WICK_FINISH_ERROR;
    if (status != WICK_OK) {
      CHECK_EQ_INT(status, WICK_E_NOMEM);
      CHECK_EQ_INT(error.status, WICK_E_NOMEM);
      CHECK(strncmp(error.message, "out of memory: ", 15) == 0);
    } else if (has_failed) {
      CHECK_EQ_INT((int)result.status, WICK_E_NOMEM);
      CHECK(strncmp(result.text, "out of memory: ", 15) == 0);
    }
    failures += has_failed;
    wick_engine_destroy(engine);
    if (!has_failed) {
      CHECK(k > 20);
      break;
    }
  }
  CHECK(failures > 20);
  free(file.bytes);
}

TEST(decoding_allocates_nothing) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, 0, &status, &error);
  REQUIRE(status == WICK_OK);
  outcome result;
  CHECK_EQ_INT(ask(engine, "the inner", 150, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 150);
  CHECK_EQ_UINT(result.calls_end, result.calls_first_token);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(peak_memory_is_within_the_plan) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, 0, &status, &error);
  REQUIRE(status == WICK_OK);
  wick_plan plan;
  CHECK_EQ_INT(wick_memory_plan(engine, &plan, &error), WICK_OK);
  outcome result;
  CHECK_EQ_INT(ask(engine, "the inner", 0, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_LENGTH);
  // The plan leaves out what does not grow with the model: lists, the loader, a request.
  CHECK(engine->memory.bytes_peak <= plan.total_bytes + 64 * 1024);
  CHECK(engine->memory.bytes_peak >= plan.total_bytes * 9 / 10);
  wick_engine_destroy(engine);
  free(file.bytes);
}

static void check_poisoned(float poison, ggml_type type) {
  fixture_shape shape = FIXTURE_DEFAULT;
  shape.type = type;
  shape.poison = poison;
  fixture_file file = fixture_make(&shape);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, 0, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);  // weights that are not finite load
  for (int i = 0; i < 2; i++) {   // and end every generation in words
    outcome result;
    CHECK_EQ_INT(ask(engine, "the inner", 10, &result, &error), WICK_OK);
    CHECK_EQ_UINT(result.finish, WICK_FINISH_ERROR);
    CHECK_EQ_UINT(result.status, WICK_E_NONFINITE);
    CHECK(result.text_bytes > 10);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(weights_that_are_not_finite_end_in_a_typed_error) {
  check_poisoned(f32_of_bits(0x7fc00000u), GGML_TYPE_F32);
  check_poisoned(f32_of_bits(0x7f800000u), GGML_TYPE_F32);
  check_poisoned(f32_of_bits(0x7fc00000u), GGML_TYPE_F16);
  check_poisoned(f32_of_bits(0x7f800000u), GGML_TYPE_Q8_0);
}

TEST(prompts_out_of_bounds_are_refused_with_both_numbers) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, 0, &status, &error);
  REQUIRE(status == WICK_OK);
  char text[600];
  memset(text, 'a', sizeof text);
  wick_request request;
  wick_request_default(&request);
  request.text = text;
  request.text_bytes = 300;
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_FULL);
  CHECK(strstr(error.message, "300") != NULL && strstr(error.message, "256") != NULL);
  request.text_bytes = 0;
  request.tokenize_flags = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_ARG);
  const int32_t wild[] = {5, 9999};
  request.tokens = wild;
  request.token_count = 2;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_ARG);
  CHECK(strstr(error.message, "9999") != NULL);
  outcome result;
  text[256] = '\0';  // exactly the context: one token can still come
  CHECK_EQ_INT(ask(engine, text, 0, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 1);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_LENGTH);
  CHECK_EQ_INT(ask(engine, "still works", 3, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 3);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(cancelling_ends_a_request_before_its_next_step) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error;
  wick_engine *engine = open_engine(&file, 0, &status, &error);
  REQUIRE(status == WICK_OK);
  wick_request request;
  wick_request_default(&request);
  request.text = "the inner";
  request.text_bytes = 9;
  request.ignore_end = true;
  uint32_t first, second;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &first, &error), WICK_OK);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &second, &error), WICK_OK);
  for (int i = 0; i < 30; i++) wick_step(engine, 0);
  outcome result = {0};
  take_events(engine, &result);
  CHECK_EQ_INT(wick_request_cancel(engine, first), WICK_OK);
  CHECK_EQ_INT(wick_step(engine, 0), WICK_STEP_PROGRESS);
  take_events(engine, &result);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_ABORT);
  CHECK_EQ_INT(wick_request_cancel(engine, first), WICK_E_ARG);
  CHECK_EQ_INT(wick_request_cancel(engine, second), WICK_OK);
  while (wick_step(engine, 0) != WICK_STEP_IDLE) take_events(engine, &result);
  CHECK_EQ_INT(ask(engine, "the inner", 3, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 3);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_truncated_file_fails_what_waits_for_it) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine;
  wick_error error = {0};
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  const size_t half = file.size_bytes / 2;
  CHECK_EQ_INT(wick_load_feed(engine, 0, 0, file.bytes, half, &error), WICK_OK);
  wick_request request;
  wick_request_default(&request);
  request.text = "the inner";
  request.text_bytes = 9;
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  while (wick_step(engine, 0) == WICK_STEP_PROGRESS) {
  }
  CHECK_EQ_INT(wick_step(engine, 0), WICK_STEP_WAIT_BYTES);
  CHECK_EQ_INT(wick_load_end(engine, 0, half, &error), WICK_E_TRUNCATED);
  CHECK(strstr(error.message, "blk.") != NULL);
  outcome result = {0};
  while (wick_step(engine, 0) == WICK_STEP_PROGRESS) take_events(engine, &result);
  take_events(engine, &result);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_ERROR);
  CHECK_EQ_UINT(result.status, WICK_E_TRUNCATED);
  CHECK_EQ_INT(wick_load_feed(engine, 0, half, file.bytes, 1, &error), WICK_E_TRUNCATED);
  wick_engine_destroy(engine);
  free(file.bytes);
}

// Layers run as soon as their weights are there, and the answer is that of a whole load.
TEST(prefill_begins_while_layers_arrive) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_status status;
  wick_error error;
  wick_engine *whole = open_engine(&file, 0, &status, &error);
  REQUIRE(status == WICK_OK);
  outcome wanted, found = {0};
  ask(whole, "the inner thing", 20, &wanted, &error);
  wick_engine_destroy(whole);
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine;
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  size_t at = 0;
  while (engine_directory(engine) == NULL) {
    CHECK_EQ_INT(wick_load_feed(engine, 0, at, file.bytes + at, 500, &error), WICK_OK);
    at += 500;
  }
  wick_request request;
  wick_request_default(&request);
  request.text = "the inner thing";
  request.text_bytes = 15;
  request.max_tokens = 20;
  request.ignore_end = true;
  uint32_t id, early_steps = 0;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  while (at < file.size_bytes) {
    size_t take = file.size_bytes - at < 9000 ? file.size_bytes - at : 9000;
    CHECK_EQ_INT(wick_load_feed(engine, 0, at, file.bytes + at, take, &error), WICK_OK);
    at += take;
    while (wick_step(engine, 0) == WICK_STEP_PROGRESS) early_steps += at < file.size_bytes;
  }
  while (wick_step(engine, 0) != WICK_STEP_IDLE) take_events(engine, &found);
  take_events(engine, &found);
  CHECK(early_steps >= 3);
  CHECK_EQ_UINT(found.text_bytes, wanted.text_bytes);
  CHECK_EQ_MEM(found.text, wanted.text, wanted.text_bytes);
  wick_engine_destroy(engine);
  free(file.bytes);
}

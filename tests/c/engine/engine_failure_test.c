// Every failure returns a status, frees all memory, and leaves the engine usable.
#include <stdio.h>

#include "consistency.h"
#include "fixture_model.h"
#include "random.h"
#include "shared_files.h"

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

TEST(every_allocation_failure_is_reported_and_leaks_nothing) {
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

// Memory may run out while a prompt takes cached pages of several groups; the prompt is then
// computed instead.
static void check_failing_again(const fixture_file *file) {
  char text[120];
  for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * 7 % 26);
  text[sizeof text - 1] = '\0';
  uint32_t failures = 0;
  for (uint64_t k = 0; k < 2000; k++) {
    wick_status status;
    wick_error error = {0};
    outcome first, again = {0};
    wick_engine *engine = open_engine(file, 0, &status, &error);
    REQUIRE(status == WICK_OK);
    CHECK_EQ_INT(ask(engine, text, 6, &first, &error), WICK_OK);
    engine->memory.fail_at_call = k == 0 ? 0 : engine->memory.calls + k;
    const uint64_t last = engine->memory.fail_at_call;
    status = ask(engine, text, 6, &again, &error);
    const bool has_failed = status != WICK_OK || again.finish == WICK_FINISH_ERROR;
    failures += has_failed;
    if (!has_failed) CHECK_EQ_STR(again.text, first.text);
    const bool is_over = k != 0 && engine->memory.calls < last;
    CHECK_EQ_INT(store_check(engine->store, &error), WICK_OK);
    wick_engine_destroy(engine);
    if (is_over) break;
  }
  CHECK(failures > 5);
}

TEST(a_failed_allocation_for_cached_pages_leaves_the_output_unchanged) {
  static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_GEMMA3, &FIXTURE_LFM2, &FIXTURE_QWEN35};
  for (size_t i = 0; i < sizeof HYBRIDS / sizeof *HYBRIDS; i++) {
    fixture_file file = fixture_make_hybrid(&FIXTURE_ODD, HYBRIDS[i]);
    check_failing_again(&file);
    free(file.bytes);
  }
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

// ---- Steps that only decode several requests ----

enum {
  DECODE_REQUESTS = 4,
  DECODE_PROMPT = 110,
  DECODE_OUT = 90,
  DECODE_IDS = 3 * DECODE_REQUESTS
};

typedef struct decode_setup {
  uint32_t requests, completions, batch_tokens, prompt_tokens;
  bool is_same, speculates;
} decode_setup;

typedef struct decode_run {
  uint32_t ids[DECODE_IDS], out[DECODE_IDS], count, ended;
} decode_run;

static void take_decoded(void *context, const wick_event *event, const uint8_t *payload) {
  decode_run *run = context;
  (void)payload;
  for (uint32_t i = 0; i < run->count; i++) {
    if (run->ids[i] != event->request) continue;
    run->out[i] += event->kind == WICK_EVENT_TOKEN;
    run->ended += event->kind == WICK_EVENT_DONE;
  }
}

// Returns false if the model does not accept such requests, like an encoder or a model with a
// shorter context.
static bool submit_decoding(wick_engine *engine, const decode_setup *setup, decode_run *run) {
  wick_model_info info;
  if (!CHECK(wick_model_get_info(engine, &info, NULL) == WICK_OK)) return false;
  for (uint32_t q = 0; q < setup->requests; q++) {
    int32_t tokens[DECODE_PROMPT];
    const uint32_t other = setup->is_same ? 0 : q;
    for (uint32_t i = 0; i < DECODE_PROMPT; i++) {
      tokens[i] = (int32_t)((i * 7 + other * 13) % (info.vocab - 3) + 3);
    }
    wick_request wanted =
        fixture_request(tokens, setup->prompt_tokens + 5 * (size_t)other, DECODE_OUT);
    uint32_t id;
    wanted.always_speculates = setup->speculates;
    wanted.sampling.temperature = 1;
    wanted.sampling.seed = q;
    wanted.completions = setup->completions;
    if (wick_request_submit(engine, &wanted, &id, NULL) != WICK_OK) return false;
    for (uint32_t i = 0; i < setup->completions; i++) run->ids[run->count++] = id + i;
  }
  return true;
}

// Whether every request has two tokens, and none starts, ends or is preempted in the step.
static bool only_decodes(const decode_run *run, const wick_stats *before, const wick_stats *after) {
  for (uint32_t i = 0; i < run->count; i++) {
    if (run->out[i] < 2) return false;
  }
  return before->waiting == 0 && after->waiting == 0 && after->preempted == 0 &&
         before->running == after->running;
}

// Checks that steps that only decode do not allocate. Returns their number.
static uint32_t check_decoding(const fixture_file *file, const char *name,
                               const decode_setup *setup) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  config.context_tokens = 256;
  config.batch_tokens = setup->batch_tokens;
  config.threads = 1;
  uint32_t steps = 0, allocating = 0;
  if (!CHECK_EQ_INT(wick_engine_create(&config, &engine, NULL), WICK_OK)) return 0;
  if (fixture_load(engine, file, 0, NULL) == WICK_OK && engine->scheduler != NULL) {
    decode_run run = {.count = 0};
    const bool runs = submit_decoding(engine, setup, &run);
    for (uint32_t i = 0; runs && i < 100000 && run.ended < run.count; i++) {
      const wick_stats before = scheduler_get_stats(engine->scheduler);
      const uint64_t calls = engine->memory.calls;
      wick_step_units(engine, 1);
      const wick_stats after = scheduler_get_stats(engine->scheduler);
      const bool counts = only_decodes(&run, &before, &after);
      steps += counts;
      allocating += counts && engine->memory.calls != calls;
      fixture_take_all(engine, take_decoded, &run);
    }
    CHECK(!runs || run.ended == run.count);
  }
  // pages of a window that several sequences share may be replaced later than planned
  const bool shares_window = (setup->is_same || setup->completions > 1) && engine->store != NULL &&
                             store_has_window(engine->store);
  if (!CHECK(allocating <= (shares_window ? 3u : 0u))) {
    printf(
        "#   %u steps allocate; %s: %u requests x %u, batch %u, prompt %u, same %d, speculates "
        "%d\n",
        allocating, name, setup->requests, setup->completions, setup->batch_tokens,
        setup->prompt_tokens, setup->is_same, setup->speculates);
  }
  wick_engine_destroy(engine);
  return steps;
}

static uint32_t check_decodings(const fixture_file *file, const char *name) {
  static const decode_setup SETUPS[] = {
      {1, 1, 16, 54, false, false}, {1, 3, 4, 8, false, false},   {1, 3, 64, 54, false, true},
      {2, 1, 16, 31, false, true},  {3, 1, 64, 77, false, false}, {3, 1, 16, 54, true, false},
      {4, 1, 4, 8, true, true},     {4, 3, 64, 31, false, false}, {4, 3, 16, 77, true, true},
      {1, 3, 4, 100, false, true},
  };
  uint32_t steps = 0;
  for (size_t i = 0; i < sizeof SETUPS / sizeof *SETUPS; i += level_step(2)) {
    steps += check_decoding(file, name, &SETUPS[i]);
  }
  return steps * level_step(2);
}

TEST(decoding_concurrent_requests_allocates_nothing) {
  static const fixture_hybrid *const HYBRIDS[] = {&FIXTURE_LFM2,   &FIXTURE_QWEN35,
                                                  &FIXTURE_JAMBA,  &FIXTURE_GRANITE,
                                                  &FIXTURE_GEMMA3, &FIXTURE_GEMMA3N};
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  CHECK(check_decodings(&file, "llama") > 1000);
  free(file.bytes);
  for (size_t i = 0; i < sizeof HYBRIDS / sizeof *HYBRIDS; i += level_step(3)) {
    file = fixture_make_hybrid(&FIXTURE_ODD, HYBRIDS[i]);
    CHECK(check_decodings(&file, HYBRIDS[i]->architecture) > 1000);
    free(file.bytes);
  }
}

static bool check_shared_decoding(const memory_file *file, const char *name, uint32_t number) {
  static const decode_setup SETUPS[] = {
      {4, 3, 16, 54, false, false}, {3, 1, 64, 77, true, true}, {1, 3, 4, 100, false, true}};
  const fixture_file whole = {file->bytes, file->size_bytes, file->size_bytes};
  if (number % level_step(5) != 0) return true;
  // use a setup with speculation for models with prediction layers
  const uint32_t setup = strstr(name, "mtp") != NULL ? 2 : number % 3;
  return check_decoding(&whole, name, &SETUPS[setup]) > 100;
}

TEST(decoding_concurrent_requests_allocates_nothing_in_any_architecture) {
  if (check_shared("") == NULL) SKIP("no shared folder");
  CHECK(shared_check("vectors/reference/models", check_shared_decoding) > 40);
  CHECK(shared_check("vectors/reference-more/models", check_shared_decoding) > 20);
}

// A reply cut by max_tokens inside a character omits its bytes; a reply that the model ends
// contains them.
TEST(a_reply_cut_inside_a_character_ends_before_that_character) {
  static const int32_t FORCED[] = {'a', 0xc3, FIXTURE_END};
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  for (uint32_t most = 2; most <= 3; most++) {
    wick_status status;
    wick_error error = {0};
    outcome result = {0};
    wick_engine *engine = open_engine(&file, 0, &status, &error);
    REQUIRE(status == WICK_OK);
    wick_request request = fixture_request(FORCED, 1, most);
    request.ignore_end = false;
    request.forced = FORCED;
    request.forced_count = 3;
    uint32_t id;
    CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
    while (wick_step(engine, 0) != WICK_STEP_IDLE) take_events(engine, &result);
    take_events(engine, &result);
    CHECK_EQ_UINT(result.finish, most == 2 ? WICK_FINISH_LENGTH : WICK_FINISH_STOP);
    CHECK_EQ_STR(result.text, most == 2 ? "a" : "a\ufffd");
    wick_engine_destroy(engine);
  }
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
  // The plan omits what does not grow with the model: lists, the loader, a request.
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
  CHECK_EQ_INT(status, WICK_OK);  // models with non-finite weights can be loaded
  for (int i = 0; i < 2; i++) {   // every generation fails with a message
    outcome result;
    CHECK_EQ_INT(ask(engine, "the inner", 10, &result, &error), WICK_OK);
    CHECK_EQ_UINT(result.finish, WICK_FINISH_ERROR);
    CHECK_EQ_UINT(result.status, WICK_E_NONFINITE);
    CHECK(result.text_bytes > 10);
  }
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(non_finite_weights_fail_with_a_typed_error) {
  check_poisoned(f32_of_bits(0x7fc00000u), GGML_TYPE_F32);
  check_poisoned(f32_of_bits(0x7f800000u), GGML_TYPE_F32);
  check_poisoned(f32_of_bits(0x7fc00000u), GGML_TYPE_F16);
  check_poisoned(f32_of_bits(0x7f800000u), GGML_TYPE_Q8_0);
}

TEST(prompts_out_of_bounds_are_rejected_with_length_and_limit) {
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
  text[256] = '\0';  // exactly the context size: one more token can be generated
  CHECK_EQ_INT(ask(engine, text, 0, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 1);
  CHECK_EQ_UINT(result.finish, WICK_FINISH_LENGTH);
  CHECK_EQ_INT(ask(engine, "still works", 3, &result, &error), WICK_OK);
  CHECK_EQ_UINT(result.tokens_out, 3);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_cancelled_request_ends_before_its_next_step) {
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

TEST(a_truncated_file_fails_the_requests_that_wait_for_it) {
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

// Layers run as soon as their weights have arrived, and the answer is the same as after a complete
// load.
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

// Files that once broke the engine: each request must end exactly once and within a bounded number
// of steps.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "fixture_model.h"

enum { STEPS_MAX = 4000, REQUESTS = 3 };

typedef struct hostile_run {
  uint32_t dones, finish;
  uint64_t text_bytes;
} hostile_run;

static void take_one(void *context, const wick_event *event, const uint8_t *after) {
  hostile_run *run = context;
  (void)after;
  if (event->finish != WICK_FINISH_ERROR) run->text_bytes += event->text_bytes;
  if (event->kind != WICK_EVENT_DONE) return;
  run->dones++;
  run->finish = event->finish;
}

static wick_engine *open_hostile(const char *name, wick_status *status, wick_error *error) {
  char relative[96];
  text_format(relative, sizeof relative, "vectors/hostile/%s", name);
  const char *path = check_shared(relative);
  if (path == NULL) return NULL;
  fixture_file file = {0};
  file.bytes = check_read_file(path, &file.size_bytes);
  if (file.bytes == NULL) return NULL;
  wick_config config;
  wick_config_default(&config);
  wick_engine *engine = NULL;
  *status = wick_engine_create(&config, &engine, error);
  if (*status == WICK_OK) *status = fixture_load(engine, &file, 7000, error);
  free(file.bytes);
  return engine;
}

// Runs several requests together and cancels the last one half-way. Returns the number of steps.
static uint32_t run_requests(wick_engine *engine, hostile_run *run) {
  wick_request request;
  wick_request_default(&request);
  request.text = "Hello aaaa world";
  request.text_bytes = 16;
  request.max_tokens = 8;
  request.ignore_end = true;
  request.sampling.logprobs = WICK_LOGPROBS_MAX;
  wick_error error;
  uint32_t steps = 0, last = 0;
  for (int i = 0; i < REQUESTS; i++) {
    CHECK_EQ_INT(wick_request_submit(engine, &request, &last, &error), WICK_OK);
  }
  for (; steps < STEPS_MAX; steps++) {
    if (steps == 10) wick_request_cancel(engine, last);
    const wick_step_result result = wick_step(engine, 0);
    fixture_take_all(engine, take_one, run);
    if (result == WICK_STEP_IDLE) break;
  }
  return steps;
}

static void check_hostile(const char *name, bool fails_in_words) {
  if (check_shared("vectors/hostile") == NULL) SKIP("no shared folder");
  wick_status status = WICK_OK;
  wick_error error = {0};
  wick_engine *engine = open_hostile(name, &status, &error);
  REQUIRE(engine != NULL);
  if (CHECK_EQ_INT(status, WICK_OK)) {
    for (uint32_t round = 1; round <= 2; round++) {
      hostile_run run = {0};
      const uint32_t steps = run_requests(engine, &run);
      printf("#   %s: %u steps\n", name, steps);
      CHECK(steps < STEPS_MAX);
      CHECK_EQ_UINT(run.dones, REQUESTS);
      CHECK(fails_in_words || run.text_bytes > 0);
    }
  }
  wick_engine_destroy(engine);
}

TEST(requests_end_with_an_empty_merge_list) { check_hostile("empty-merges.gguf", false); }
TEST(requests_end_with_a_token_of_1190_bytes) { check_hostile("token-of-1190-bytes.gguf", false); }
TEST(requests_end_with_a_frequency_base_of_1e_minus_45) {
  check_hostile("freq-base-1e-45.gguf", true);
}
TEST(requests_end_with_nested_special_tokens) { check_hostile("nested-specials.gguf", false); }

// Functions of include/wick.h in every state of an engine: without a model, with one, with and
// without metrics, and while a request runs. This file includes no headers from src/.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wick.h"

static const char MODEL[] = "examples/models/wick-2.6m-q8_0.gguf";
enum { NEW_TOKENS = 12, STEPS_MAX = 10000 };

typedef struct paper {
  char text[1 << 16];
  size_t used_bytes;
} paper;

static void write_paper(void *context, const char *bytes, size_t size_bytes) {
  paper *to = context;
  if (!CHECK(to->used_bytes + size_bytes < sizeof to->text)) return;
  memcpy(to->text + to->used_bytes, bytes, size_bytes);
  to->used_bytes += size_bytes;
  to->text[to->used_bytes] = '\0';
}

static wick_engine *make_engine(bool metrics) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_error error;
  wick_config_default(&config);
  config.metrics = metrics;
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  return engine;
}

static void load(wick_engine *engine) {
  size_t size_bytes;
  uint8_t *bytes = check_read_file(check_repository(MODEL), &size_bytes);
  wick_error error;
  CHECK_EQ_INT(wick_load_bytes(engine, bytes, size_bytes, &error), WICK_OK);
  free(bytes);
}

static uint32_t submit(wick_engine *engine) {
  wick_request request;
  wick_error error;
  uint32_t id = 0;
  wick_request_default(&request);
  request.text = "Once upon a time";
  request.text_bytes = strlen(request.text);
  request.max_tokens = NEW_TOKENS;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  return id;
}

// Returns how many tokens arrived.
static uint32_t take(wick_engine *engine, paper *text) {
  size_t size_bytes;
  uint32_t tokens = 0;
  const uint8_t *events = wick_events_take(engine, &size_bytes);
  const wick_event *event = NULL;
  while ((event = wick_event_next(events, size_bytes, event)) != NULL) {
    tokens += event->kind == WICK_EVENT_TOKEN;
    write_paper(text, wick_event_text(event), event->text_bytes);
  }
  return tokens;
}

// Runs until `wanted` tokens have arrived or nothing can continue. Returns the number of tokens.
static uint32_t run(wick_engine *engine, uint32_t wanted, paper *text) {
  uint32_t tokens = 0;
  for (int steps = 0; steps < STEPS_MAX && tokens < wanted; steps++) {
    const wick_step_result result = wick_step_units(engine, 1);
    tokens += take(engine, text);
    if (result == WICK_STEP_IDLE) break;
  }
  return tokens;
}

TEST(a_paused_request_generates_nothing_until_it_is_resumed) {
  static paper whole, parts;
  wick_stats stats;
  wick_engine *engine = make_engine(false);
  REQUIRE(engine != NULL);
  CHECK_EQ_INT(wick_request_pause(engine, 1, true), WICK_E_ARG);
  load(engine);
  CHECK_EQ_INT(wick_request_pause(engine, 1, true), WICK_E_ARG);
  submit(engine);
  CHECK_EQ_UINT(run(engine, 1000, &whole), NEW_TOKENS);

  const uint32_t id = submit(engine);
  CHECK_EQ_UINT(run(engine, 5, &parts), 5);
  CHECK_EQ_INT(wick_request_pause(engine, id + 1, true), WICK_E_ARG);
  CHECK_EQ_INT(wick_request_pause(engine, id, true), WICK_OK);
  CHECK(run(engine, 1000, &parts) <= 1);  // the pass in progress may still produce a token
  CHECK_EQ_UINT(run(engine, 1000, &parts), 0);
  wick_stats_get(engine, &stats);
  CHECK_EQ_UINT(stats.paused, 1);
  CHECK_EQ_INT(wick_request_pause(engine, id, false), WICK_OK);
  CHECK(run(engine, 1000, &parts) >= NEW_TOKENS - 6);
  CHECK_EQ_STR(parts.text, whole.text);
  wick_stats_get(engine, &stats);
  CHECK_EQ_UINT(stats.paused, 0);
  CHECK_EQ_INT(wick_request_pause(engine, id, false), WICK_E_ARG);
  wick_engine_destroy(engine);
}

static uint64_t count_ops(const wick_engine *engine) {
  wick_op_metrics metrics;
  uint64_t count = 0;
  for (uint32_t i = 0; wick_metrics_get(engine, i, &metrics); i++) count += metrics.count;
  return count;
}

TEST(metrics_restart_from_zero_after_a_reset) {
  static paper text, before, after, exported;
  wick_engine *engine = make_engine(true);
  REQUIRE(engine != NULL);
  load(engine);
  submit(engine);
  run(engine, 1000, &text);
  wick_metrics_json(engine, write_paper, &before);
  wick_metrics_prometheus(engine, write_paper, &exported);
  CHECK(strncmp(exported.text, "# HELP wick_", 12) == 0 ||
        strncmp(exported.text, "# TYPE wick_", 12) == 0);
  CHECK(count_ops(engine) > 0);
  wick_metrics_reset(engine);
  CHECK_EQ_UINT(count_ops(engine), 0);
  wick_metrics_json(engine, write_paper, &after);
  CHECK(after.used_bytes < before.used_bytes);
  submit(engine);
  run(engine, 1000, &text);
  CHECK(count_ops(engine) > 0);
  wick_engine_destroy(engine);
}

TEST(an_engine_without_metrics_exports_nothing) {
  static paper text, json, exported;
  wick_engine *engine = make_engine(false);
  REQUIRE(engine != NULL);
  load(engine);
  submit(engine);
  run(engine, 1000, &text);
  wick_metrics_reset(engine);
  wick_metrics_json(engine, write_paper, &json);
  wick_metrics_prometheus(engine, write_paper, &exported);
  CHECK_EQ_UINT(json.used_bytes, 0);
  CHECK_EQ_UINT(exported.used_bytes, 0);
  CHECK_EQ_UINT(count_ops(engine), 0);
  wick_engine_destroy(engine);
}

TEST(an_engine_reports_its_configuration) {
  static const char *const NAMES[] = {"f16", "f32", "q8", "q4", "?"};
  wick_config config;
  wick_model_info info;
  wick_engine *engine = NULL;
  wick_error error;
  wick_config_default(&config);
  config.context_tokens = 300;
  config.batch_tokens = 33;
  config.threads = 1;
  REQUIRE(wick_engine_create(&config, &engine, &error) == WICK_OK);
  CHECK_EQ_UINT(wick_engine_config(engine)->context_tokens, 300);
  CHECK_EQ_UINT(wick_engine_config(engine)->batch_tokens, 33);
  CHECK_EQ_UINT(wick_engine_threads(engine), 1);
  CHECK_EQ_UINT(wick_engine_threads_used(engine, 8), 1);
  CHECK_EQ_UINT(wick_tokenizer_vocab(engine), 0);
  CHECK_EQ_INT(wick_tokenizer_status(engine, &error), WICK_E_NODATA);
  CHECK_EQ_STR(error.message, "the model's tokenizer has not arrived yet");
  load(engine);
  CHECK_EQ_UINT(wick_engine_threads_used(engine, 8), 1);
  CHECK_EQ_INT(wick_tokenizer_status(engine, &error), WICK_OK);
  REQUIRE(wick_model_get_info(engine, &info, &error) == WICK_OK);
  CHECK_EQ_UINT(wick_tokenizer_vocab(engine), info.vocab);
  wick_engine_destroy(engine);
  for (int type = 0; type < 5; type++) {
    CHECK_EQ_STR(wick_kv_type_name((wick_kv_type)type), NAMES[type]);
  }
}

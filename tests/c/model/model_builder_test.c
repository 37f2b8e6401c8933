// The models that the fuzzer starts from are valid: each family gives finite logits with each
// vocabulary and type.
#include <stdio.h>

#include "base/text.h"
#include "fixture_model.h"
#include "model_builder.h"

static void take_end(void *context, const wick_event *event, const uint8_t *after) {
  uint32_t *tokens = context;
  (void)after;
  *tokens += event->kind == WICK_EVENT_TOKEN;
  if (event->kind != WICK_EVENT_DONE) return;
  CHECK_EQ_INT(event->finish, WICK_FINISH_LENGTH);
  // the end of the prompt gives the first token
  CHECK(event->ttft_ms > 0 && event->ttft_ms <= event->queue_ms + event->prefill_ms + 1);
}

typedef struct metrics_text {
  char text[16384];
  size_t bytes;
} metrics_text;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  metrics_text *to = context;
  REQUIRE(CHECK(to->bytes + size_bytes < sizeof to->text));
  memcpy(to->text + to->bytes, bytes, size_bytes);
  to->bytes += size_bytes;
  to->text[to->bytes] = '\0';
}

// Checks that each mixer has its own op, counted once per layer and pass.
static void check_mixers(const wick_engine *engine, const built_choice *choice) {
  static metrics_text metrics_text;
  metrics_text.bytes = 0;
  wick_metrics_json(engine, keep_text, &metrics_text);
  const uint32_t recurrent = (choice->layers + 1) / 2;
  const built_family family = choice->family;
  const bool has_scans = family == BUILT_JAMBA || family == BUILT_GRANITEHYBRID;
  const bool has_deltas = family == BUILT_QWEN35;
  char delta[64], conv[64], scan[64];
  text_format(delta, sizeof delta, "\"delta\":{\"count\":%u,", has_deltas ? recurrent : 0);
  text_format(conv, sizeof conv, "\"conv\":{\"count\":%u,",
              has_scans || has_deltas || family == BUILT_LFM2 ? recurrent : 0);
  text_format(scan, sizeof scan, "\"scan\":{\"count\":%u,", has_scans ? recurrent : 0);
  // the prompt is one prefill pass
  CHECK(strstr(metrics_text.text, delta) != NULL);
  CHECK(strstr(metrics_text.text, conv) != NULL);
  CHECK(strstr(metrics_text.text, scan) != NULL);
}

static void check_answers(const built_choice *choice) {
  static model_builder model;
  builder_init(&model, choice);
  const memory_file built = builder_write(&model);
  builder_free(&model);
  const fixture_file file = {built.bytes, built.size_bytes, built.size_bytes};
  wick_config config;
  wick_config_default(&config);
  config.metrics = true;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  const wick_status status = fixture_load(engine, &file, 0, &error);
  if (!CHECK_EQ_INT(status, WICK_OK)) printf("#   %s\n", error.message);
  const int32_t prompt[] = {1, 20, 30, 40};
  const wick_request request = fixture_request(prompt, 4, 6);
  uint32_t id, tokens = 0;
  REQUIRE(wick_request_submit(engine, &request, &id, &error) == WICK_OK);
  fixture_run(engine, take_end, &tokens);
  CHECK_EQ_UINT(tokens, 6);
  check_mixers(engine, choice);
  wick_engine_destroy(engine);
  free(built.bytes);
}

TEST(each_family_generates_tokens) {
  static const ggml_type TYPES[] = {GGML_TYPE_F32, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K};
  for (int family = 0; family < BUILT_FAMILIES; family++) {
    for (uint32_t i = 0; i < 3; i++) {
      for (uint32_t layers = 1; layers <= 3; layers++) {
        const built_choice choice = {(built_vocabulary)i, (built_family)family, TYPES[i], layers,
                                     64};
        check_answers(&choice);
      }
    }
  }
}

// Per-op metrics: times from a manual clock, the counts of a pass of known shape, results that are
// the same with and without metrics, and the exported formats.
#include <stdio.h>

#include "base/text.h"
#include "fixture_model.h"

static uint64_t clock_us;
static uint64_t read_clock(void) { return clock_us; }

static op_records ops;

static char text[65536];
static size_t text_bytes;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  if (text_bytes + size_bytes >= sizeof text) return;
  memcpy(text + text_bytes, bytes, size_bytes);
  text_bytes += size_bytes;
  text[text_bytes] = '\0';
}

TEST(the_time_of_each_op_starts_at_the_end_of_the_previous_op) {
  clock_us = 1000;
  ops_init(&ops, LANE_RELAXED, read_clock, 5);
  ops_begin(&ops, PASS_DECODE);
  clock_us += 30;
  ops_lap(&ops, OP_QKV, 6000, 900);
  clock_us += 70;
  ops_lap(&ops, OP_DOWN, 0, 0);
  clock_us += 5000;  // time that is not measured
  ops_resume(&ops);
  clock_us += 10;
  ops_lap(&ops, OP_QKV, 6000, 900);
  const op_record *qkv = &ops.records[PASS_DECODE][OP_QKV];
  CHECK_EQ_UINT(qkv->latency.latency_count, 2);
  CHECK_EQ_UINT(qkv->latency.latency_us_sum, 40);
  CHECK_EQ_UINT(qkv->bytes, 12000);
  CHECK_EQ_UINT(qkv->macs, 1800);
  CHECK_EQ_UINT(ops.records[PASS_DECODE][OP_DOWN].latency.latency_us_sum, 70);
  CHECK_EQ_UINT(ops.records[PASS_PREFILL][OP_QKV].latency.latency_count, 0);
  ops_reset(&ops);
  CHECK_EQ_UINT(qkv->latency.latency_count + qkv->bytes + qkv->macs, 0);
}

static uint32_t clock_readings;
static uint64_t count_reading(void) { return ++clock_readings; }

// Without a recorder, the clock is not read and no other recorder changes.
TEST(without_a_recorder_nothing_is_measured) {
  clock_readings = 0;
  ops_init(&ops, LANE_SIMD128, count_reading, 1);
  ops_begin(&ops, PASS_DECODE);
  const uint32_t readings = clock_readings;
  CHECK(readings > 0);
  const op_records before = ops;
  ops_begin(NULL, PASS_PREFILL);
  ops_resume(NULL);
  ops_lap(NULL, OP_QKV, 1, 1);
  CHECK_EQ_UINT(clock_readings, readings);
  CHECK_EQ_MEM(&ops, &before, sizeof ops);
}

TEST(rates_and_lanes_are_exported) {
  clock_us = 0;
  ops_init(&ops, LANE_SIMD128, read_clock, 100);
  ops_begin(&ops, PASS_DECODE);
  clock_us = 400;
  ops_lap(&ops, OP_LOGITS, 10000000, 4000000);
  text_bytes = 0;
  json_writer json;
  json_begin(&json, keep_text, NULL);
  ops_json(&ops, &json, NULL);
  CHECK(strstr(text, "\"kernels\":\"simd128\"") != NULL);
  CHECK(strstr(text, "\"logits\":{\"count\":1,\"timed\":1,\"time_us\":400,") != NULL);
  CHECK(strstr(text, "\"gb_per_s\":25,\"gmac_per_s\":10,\"share\":1") != NULL);
  CHECK(strstr(text, "\"gb_per_s\":null") != NULL);  // ops that took no time
  CHECK(strstr(text, "\"simd128\":{\"dispatches\":1,\"latency_us_mean\":400") != NULL);
  text_bytes = 0;
  ops_prometheus(&ops, keep_text, NULL);
  CHECK(strstr(text, "wick_op_bytes_total{pass=\"decode\",op=\"logits\"} 10000000\n") != NULL);
  CHECK(strstr(text, "wick_op_latency_us_bucket{pass=\"decode\",op=\"logits\",le=\"100\"} 0\n"));
  CHECK(strstr(text, "wick_op_latency_us_bucket{pass=\"decode\",op=\"logits\",le=\"500\"} 1\n"));
  CHECK(strstr(text, "wick_dispatches_total{lane=\"simd128\"} 1\n") != NULL);
}

// Checks every figure of an op, and its share of the whole pass, for the first and the last op.
TEST(every_figure_of_an_op_is_exported_under_its_name) {
  clock_us = 0;
  ops_init(&ops, LANE_SCALAR, read_clock, 100);
  ops_begin(&ops, PASS_PREFILL);
  clock_us = 100;
  ops_lap(&ops, (op_kind)0, 2000, 3000);
  clock_us = 400;
  ops_lap(&ops, (op_kind)(OP_COUNT - 1), 7000, 9000);
  text_bytes = 0;
  json_writer json;
  json_begin(&json, keep_text, NULL);
  ops_json(&ops, &json, NULL);
  char wanted[400];
  snprintf(wanted, sizeof wanted, "\"passes\":{\"prefill\":{\"%s\":{%s%s", op_name((op_kind)0),
           "\"count\":1,\"timed\":1,\"time_us\":100,\"latency_us\":{\"mean\":100,\"min\":100,"
           "\"max\":100,\"stddev\":0,\"p50\":100,\"p95\":100,\"p99\":100},",
           "\"bytes\":2000,\"macs\":3000,\"gb_per_s\":0.02,\"gmac_per_s\":0.03,\"share\":0.25}");
  if (!CHECK(strstr(text, wanted) != NULL)) printf("# %s\n# %.600s\n", wanted, text);
  snprintf(wanted, sizeof wanted, "\"%s\":{\"count\":1,\"timed\":1,\"time_us\":300,",
           op_name((op_kind)(OP_COUNT - 1)));
  CHECK(strstr(text, wanted) != NULL);
  CHECK(strstr(text, "\"bytes\":7000,\"macs\":9000,") != NULL);
  CHECK(strstr(text, "\"share\":0.75}") != NULL);
}

// ---- in an engine ----

enum { PROMPT = 40, ANSWER = 6 };

typedef struct outcome {
  int32_t *tokens;  // [ANSWER]
  uint32_t count;
} outcome;

static void take_token(void *context, const wick_event *event, const uint8_t *after) {
  (void)after;
  outcome *to = context;
  if (event->kind == WICK_EVENT_TOKEN && to->count < ANSWER) to->tokens[to->count++] = event->token;
}

// Runs a prompt and its answer; returns the engine for inspection.
static wick_engine *run_engine(const fixture_file *file, bool metrics, int32_t answer[ANSWER]) {
  wick_config config;
  wick_config_default(&config);
  config.metrics = metrics;
  config.batch_tokens = 16;
  wick_engine *engine = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(wick_engine_create(&config, &engine, &error), WICK_OK);
  CHECK_EQ_INT(fixture_load(engine, file, 0, &error), WICK_OK);
  int32_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; i++) prompt[i] = i * 5 % 256;
  const wick_request request = fixture_request(prompt, PROMPT, ANSWER);
  uint32_t id;
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  outcome outcome = {answer, 0};
  fixture_run(engine, take_token, &outcome);
  CHECK_EQ_UINT(outcome.count, ANSWER);
  return engine;
}

TEST(an_engine_counts_its_ops_and_gives_the_same_output) {
  const fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  int32_t with[ANSWER] = {0}, without[ANSWER] = {0};
  wick_engine *plain = run_engine(&file, false, without);
  wick_engine *measured = run_engine(&file, true, with);
  CHECK(plain->ops == NULL);
  REQUIRE(measured->ops != NULL);
  CHECK_EQ_MEM(with, without, sizeof with);

  wick_model_info info;
  REQUIRE(wick_model_get_info(measured, &info, NULL) == WICK_OK);
  const op_record *prefill = measured->ops->records[PASS_PREFILL];
  const op_record *decode = measured->ops->records[PASS_DECODE];
  // 40 tokens in batches of 16; the prefill gives the answer's first token
  CHECK_EQ_UINT(prefill[OP_QKV].latency.dispatches, 3 * info.layers);
  CHECK_EQ_UINT(decode[OP_QKV].latency.dispatches, (ANSWER - 1) * info.layers);
  CHECK_EQ_UINT(prefill[OP_SAMPLE].latency.dispatches, 1);
  CHECK_EQ_UINT(decode[OP_SAMPLE].latency.dispatches, ANSWER - 1);
  CHECK_EQ_UINT(decode[OP_QKV].latency.latency_count, 2 * info.layers);  // passes 1 and 5
  CHECK_EQ_UINT(decode[OP_GATE_UP].timed_macs * 5, decode[OP_GATE_UP].macs * 2);
  const uint64_t gate_up = 2ull * info.hidden * info.ffn;
  CHECK_EQ_UINT(decode[OP_GATE_UP].macs, gate_up * info.layers * (ANSWER - 1));
  CHECK_EQ_UINT(decode[OP_GATE_UP].bytes, 4 * gate_up * info.layers * (ANSWER - 1));
  // the last layer only processes the one token whose logits are needed
  CHECK_EQ_UINT(prefill[OP_GATE_UP].macs, gate_up * ((info.layers - 1) * PROMPT + 1));
  const uint64_t positions = PROMPT * (PROMPT + 1) / 2;
  CHECK_EQ_UINT(prefill[OP_ATTENTION].macs,
                2ull * positions * info.heads * info.head_dim * info.layers);
  // F16: two bytes for each element of a key and a value
  CHECK_EQ_UINT(prefill[OP_ATTENTION].bytes,
                4ull * positions * info.kv_heads * info.head_dim * info.layers);
  CHECK_EQ_UINT(prefill[OP_KV_STORE].bytes,
                4ull * PROMPT * info.kv_heads * info.head_dim * info.layers);
  CHECK_EQ_UINT(decode[OP_SAMPLE].bytes, 4ull * info.vocab * (ANSWER - 1));
  wick_engine_destroy(plain);
  wick_engine_destroy(measured);
  free(file.bytes);
}

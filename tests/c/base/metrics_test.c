// Dispatch metrics: merging, histogram bounds, and the exported text. The specified cases are in
// conformance_metrics_test.c.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "metrics/dispatch.h"
#include "reference/dispatch_record.h"

static dispatch_metrics metrics;

static void record_all(op_lane lane, const uint64_t *latencies_us, size_t count) {
  for (size_t i = 0; i < count; i++) dispatch_record(&metrics, lane, latencies_us[i]);
}

TEST(percentiles_are_accurate_to_a_bucket) {
  for (uint64_t us = 0; us < 200000000; us += 1 + us / 200) {
    dispatch_init(&metrics, 0, 5);
    // The outer values are far away, so the result comes from the bucket, not from the minimum or
    // maximum.
    record_all(LANE_SCALAR, (const uint64_t[]){0, us, us, us, 300000000}, 5);
    const double found = dispatch_latency_us_p50(&metrics, LANE_SCALAR);
    if (us < 1u << 26) {
      if (!CHECK(fabs(found - (double)us) <= (double)us * 0.0625)) printf("#   %u\n", (unsigned)us);
    } else {
      CHECK_NEAR(found, 300000000, 0);
    }
  }
}

TEST(percentiles_use_the_nearest_rank) {
  dispatch_init(&metrics, 0, 5);
  record_all(LANE_SCALAR, (const uint64_t[]){1, 2, 3, 4}, 4);
  const uint32_t permilles[] = {0, 1, 250, 251, 500, 750, 751, 1000};
  const double wanted[] = {1, 1, 1, 2, 2, 3, 4, 4};
  for (int i = 0; i < 8; i++) {
    CHECK_NEAR(dispatch_latency_us_percentile(&metrics, LANE_SCALAR, permilles[i]), wanted[i], 0);
  }
}

TEST(the_longest_possible_latency_is_recorded) {
  dispatch_init(&metrics, 0, 5);
  for (int i = 0; i < 3; i++) dispatch_record(&metrics, LANE_SCALAR, UINT64_MAX);
  CHECK_EQ_UINT(metrics.lanes[0].latency_us_sum, UINT64_MAX);
  CHECK_EQ_UINT(dispatch_latency_us_max(&metrics, LANE_SCALAR), UINT64_MAX);
  CHECK(dispatch_latency_us_p50(&metrics, LANE_SCALAR) > 1.8e19);
}

TEST(merged_threads_equal_a_single_counter) {
  static dispatch_metrics parts[3];
  dispatch_init(&metrics, 1000, 5);
  for (int i = 0; i < 3; i++) dispatch_init(&parts[i], 1000 - (uint64_t)i, 5);
  for (uint64_t i = 0; i < 3000; i++) {
    const uint64_t us = hash_mix_u64(i) >> (30 + i % 30);
    const op_lane lane = (op_lane)(i % 4);
    dispatch_record(&metrics, lane, us);
    dispatch_record(&parts[i % 3 == 0 ? 0 : 2], lane, us);  // parts[1] stays empty
  }
  dispatch_tally(&metrics, LANE_WEBGPU);
  dispatch_tally(&parts[1], LANE_WEBGPU);
  dispatch_merge(&parts[1], &parts[2]);
  dispatch_merge(&parts[1], &parts[0]);
  CHECK_EQ_UINT(parts[1].start_us, 998);
  for (int i = 0; i < LANE_COUNT; i++) {
    const latency_histogram *one = &metrics.lanes[i];
    const latency_histogram *sum = &parts[1].lanes[i];
    CHECK_EQ_UINT(sum->dispatches, one->dispatches);
    CHECK_EQ_UINT(sum->latency_count, one->latency_count);
    CHECK_EQ_UINT(sum->latency_us_sum, one->latency_us_sum);
    CHECK_EQ_UINT(sum->latency_us_min, one->latency_us_min);
    CHECK_EQ_UINT(sum->latency_us_max, one->latency_us_max);
    CHECK_EQ_MEM(sum->buckets, one->buckets, sizeof one->buckets);
    CHECK_EQ_MEM(sum->edges, one->edges, sizeof one->edges);
    CHECK_NEAR(sum->mean_us / one->mean_us, 1, 1e-12);
    CHECK_NEAR(sum->squares_us2 / one->squares_us2, 1, 1e-12);
  }
}

TEST(aliases_can_be_read_but_not_recorded) {
  dispatch_init(&metrics, 0, 5);
  dispatch_record(&metrics, LANE_SCALAR, 1);
  dispatch_record(&metrics, LANE_SIMD128, 3);
  dispatch_record(&metrics, LANE_RELAXED, 5);
  dispatch_record(&metrics, LANE_WEBGPU, 700);
  dispatch_record(&metrics, LANE_CPU, 9);
  dispatch_record(&metrics, (op_lane)77, 9);
  dispatch_tally(&metrics, LANE_GPU);
  dispatch_record(NULL, LANE_SCALAR, 1);
  dispatch_tally(NULL, LANE_SCALAR);
  CHECK_EQ_UINT(dispatch_count(&metrics, LANE_CPU), 3);
  CHECK_EQ_UINT(dispatch_count(&metrics, LANE_GPU), 1);
  CHECK_EQ_UINT(dispatch_total(&metrics), 4);
  CHECK_NEAR(dispatch_latency_us_mean(&metrics, LANE_CPU), 3, 1e-12);
  CHECK_NEAR(dispatch_latency_us_p50(&metrics, LANE_CPU), 3, 0);
  CHECK_EQ_UINT(dispatch_latency_us_min(&metrics, LANE_CPU), 1);
  CHECK_EQ_UINT(dispatch_latency_us_max(&metrics, LANE_CPU), 5);
  CHECK_NEAR(dispatch_latency_us_variance(&metrics, LANE_CPU), 4, 1e-12);
}

TEST(uptime_starts_at_the_reset) {
  dispatch_init(&metrics, 5000000, 5);
  for (int i = 0; i < 30; i++) dispatch_tally(&metrics, LANE_SCALAR);
  CHECK_NEAR(dispatch_elapsed_s(&metrics, 7000000), 2, 0);
  CHECK_NEAR(dispatch_throughput_rps(&metrics, 7000000), 15, 1e-12);
  CHECK_NEAR(dispatch_throughput_rps(&metrics, 5000999), 0, 0);
  CHECK_NEAR(dispatch_elapsed_s(&metrics, 4000000), 0, 0);
  dispatch_reset(&metrics, 7000000);
  CHECK_NEAR(dispatch_elapsed_s(&metrics, 7500000), 0.5, 0);
  CHECK_EQ_UINT(dispatch_total(&metrics), 0);
}

// ---- export ----

static char text[8192];
static size_t text_bytes;

static void keep_text(void *context, const char *bytes, size_t size_bytes) {
  (void)context;
  if (!CHECK(text_bytes + size_bytes < sizeof text)) return;
  memcpy(text + text_bytes, bytes, size_bytes);
  text_bytes += size_bytes;
  text[text_bytes] = '\0';
}

static void export_json(uint64_t now_us) {
  json_writer json;
  text_bytes = 0;
  json_begin(&json, keep_text, NULL);
  dispatch_json(&metrics, now_us, &json, NULL);
}

static void export_prometheus(uint64_t now_us) {
  const text_sink sink = {keep_text, NULL};
  text_bytes = 0;
  dispatch_prometheus(&metrics, now_us, &sink);
}

TEST(json_contains_every_lane_and_alias) {
  dispatch_init(&metrics, 0, 5);
  record_all(LANE_RELAXED, (const uint64_t[]){100, 200, 6000}, 3);
  dispatch_record(&metrics, LANE_WEBGPU, 2000000);
  export_json(2000000);
  const char *const parts[] = {
      "{\"elapsed_s\":2,\"timer_grain_us\":5,\"dispatches\":4,\"gpu_ratio\":0.25,"
      "\"throughput_rps\":2,\"speedup_ratio\":0.00105,\"lanes\":{\"scalar\":{\"dispatches\":0,",
      "\"relaxed\":{\"dispatches\":3,\"latency_us_mean\":2100,\"latency_us_min\":100,"
      "\"latency_us_max\":6000,\"latency_us_stddev\":3377.86915",
      "\"latency_count\":3,\"latency_us_sum\":6300,\"latency_us_le\":{\"100\":1,\"500\":2,"
      "\"1000\":2,\"5000\":2,\"10000\":3,\"50000\":3,\"100000\":3,\"500000\":3,\"1000000\":3,"
      "\"+Inf\":3}}",
      "\"webgpu\":{\"dispatches\":1,",
      "\"500000\":0,\"1000000\":0,\"+Inf\":1}}},\"cpu\":{\"dispatches\":3,",
      ",\"gpu\":{\"dispatches\":1,"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!CHECK(strstr(text, parts[i]) != NULL)) printf("#   no %s in %s\n", parts[i], text);
  }
  // Brackets match, and nothing follows the last one.
  int depth = 0;
  for (size_t i = 0; text[i] != 0; i++) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    CHECK(depth > 0 || text[i + 1] == 0);
  }
  CHECK_EQ_INT(depth, 0);
}

TEST(prometheus_counts_up_to_inclusive_edges) {
  dispatch_init(&metrics, 0, 100);
  record_all(LANE_SIMD128, (const uint64_t[]){1, 100, 101, 1000000, 1000001}, 5);
  dispatch_tally(&metrics, LANE_SIMD128);
  export_prometheus(1500000);
  const char *const lines[] = {
      "wick_uptime_seconds 1.5\n",
      "wick_timer_grain_us 100\n",
      "# TYPE wick_dispatches_total counter\n",
      "wick_dispatches_total{lane=\"simd128\"} 6\n",
      "# TYPE wick_dispatch_latency_us histogram\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"100\"} 2\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"500\"} 3\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"500000\"} 3\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"1000000\"} 4\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"+Inf\"} 5\n",
      "wick_dispatch_latency_us_sum{lane=\"simd128\"} 2000203\n",
      "wick_dispatch_latency_us_count{lane=\"simd128\"} 5\n",
      "wick_dispatch_latency_us_count{lane=\"webgpu\"} 0\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    if (!CHECK(strstr(text, lines[i]) != NULL)) printf("#   no %s", lines[i]);
  }
  CHECK(text[strlen(text) - 1] == '\n');
}

TEST(no_line_of_the_longest_export_is_cut) {
  dispatch_init(&metrics, 0, UINT32_MAX);
  for (int lane = 0; lane < LANE_COUNT; lane++) {
    for (int i = 0; i < 3; i++) dispatch_record(&metrics, (op_lane)lane, UINT64_MAX - 7);
    metrics.lanes[lane].dispatches = UINT64_MAX / 4;
    for (int i = 0; i < DISPATCH_EDGES; i++) {
      metrics.lanes[lane].edges[i] = i == 0 ? UINT64_MAX - 100 : 1;
    }
  }
  export_prometheus(UINT64_MAX);
  const char *const lines[] = {
      "wick_uptime_seconds 1.84467e13\n", "wick_timer_grain_us 4294967295\n",
      "wick_dispatches_total{lane=\"webgpu\"} 4611686018427387903\n",
      "wick_dispatch_latency_us_bucket{lane=\"simd128\",le=\"1000000\"} 18446744073709551523\n",
      "wick_dispatch_latency_us_sum{lane=\"relaxed\"} 18446744073709551615\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    if (!CHECK(strstr(text, lines[i]) != NULL)) printf("#   no %s", lines[i]);
  }
  export_json(UINT64_MAX);
  CHECK(strstr(text, "\"latency_us_sum\":18446744073709551615,") != NULL);
}

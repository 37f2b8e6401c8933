// Conformance cases DM-01 to DM-04: dispatch metrics. Some results differ from the original's:
// nearest rank, sample variance, inclusive edges.
#include <math.h>
#include <string.h>

#include "check.h"
#include "metrics/dispatch.h"
#include "reference/dispatch_record.h"

static dispatch_metrics metrics;

static void record_all(op_lane lane, const uint64_t *latencies_us, size_t count) {
  for (size_t i = 0; i < count; i++) dispatch_record(&metrics, lane, latencies_us[i]);
}

static bool is_near_pct(double found, double wanted, double pct) {
  return fabs(found - wanted) <= wanted * pct / 100;
}

TEST(dm_01_percentiles_and_buckets) {
  dispatch_init(&metrics, 0, 5);
  for (int i = 0; i < 100; i++) dispatch_record(&metrics, LANE_SCALAR, 50);
  CHECK_NEAR(dispatch_latency_us_p50(&metrics, LANE_SCALAR), 50, 0);
  CHECK_NEAR(dispatch_latency_us_p95(&metrics, LANE_SCALAR), 50, 0);
  CHECK_NEAR(dispatch_latency_us_p99(&metrics, LANE_SCALAR), 50, 0);
  dispatch_reset(&metrics, 0);
  record_all(LANE_SIMD128, (const uint64_t[]){50, 200, 700, 2000, 8000}, 5);
  CHECK(is_near_pct(dispatch_latency_us_p50(&metrics, LANE_SIMD128), 700, 7));
  CHECK(is_near_pct(dispatch_latency_us_p95(&metrics, LANE_SIMD128), 8000, 7));
  CHECK(is_near_pct(dispatch_latency_us_p99(&metrics, LANE_SIMD128), 8000, 7));
  // Each latency is counted at the first of the edges 100, 500, 1000, 5000 and 10000 that holds it.
  const uint64_t *edges = metrics.lanes[LANE_SIMD128].edges;
  for (int i = 0; i < 5; i++) CHECK_EQ_UINT(edges[i], 1);
}

TEST(dm_02_mean_and_spread) {
  dispatch_init(&metrics, 0, 5);
  record_all(LANE_RELAXED, (const uint64_t[]){100, 200}, 2);
  CHECK_NEAR(dispatch_latency_us_mean(&metrics, LANE_RELAXED), 150, 0);
  CHECK_EQ_UINT(dispatch_latency_us_min(&metrics, LANE_RELAXED), 100);
  CHECK_EQ_UINT(dispatch_latency_us_max(&metrics, LANE_RELAXED), 200);
  CHECK_NEAR(dispatch_latency_us_variance(&metrics, LANE_RELAXED), 5000, 1e-9);
  CHECK_NEAR(dispatch_latency_us_stddev(&metrics, LANE_RELAXED), 70.71, 0.001);
  CHECK_NEAR(dispatch_latency_cv_pct(&metrics, LANE_RELAXED), 47.14, 0.001);
  dispatch_reset(&metrics, 0);
  dispatch_record(&metrics, LANE_RELAXED, 300);
  CHECK_NEAR(dispatch_latency_us_variance(&metrics, LANE_RELAXED), 0, 0);
  CHECK_NEAR(dispatch_latency_us_stddev(&metrics, LANE_RELAXED), 0, 0);
}

static void find_first_edge(void *context, const char *line, size_t size_bytes) {
  static const char wanted[] = "wick_dispatch_latency_us_bucket{lane=\"webgpu\",le=\"100\"} 1\n";
  bool *is_found = context;
  if (size_bytes == sizeof wanted - 1 && memcmp(line, wanted, size_bytes) == 0) *is_found = true;
}

TEST(dm_03_ratios_and_empty_metrics) {
  dispatch_init(&metrics, 0, 5);
  CHECK_EQ_UINT(dispatch_total(&metrics), 0);
  CHECK_NEAR(dispatch_gpu_ratio(&metrics), 0, 0);
  CHECK_NEAR(dispatch_speedup_ratio(&metrics, LANE_CPU, LANE_GPU), 0, 0);
  for (int lane = 0; lane <= LANE_GPU; lane++) {
    CHECK_EQ_UINT(dispatch_count(&metrics, (op_lane)lane), 0);
    CHECK_NEAR(dispatch_latency_us_mean(&metrics, (op_lane)lane), 0, 0);
    CHECK_EQ_UINT(dispatch_latency_us_min(&metrics, (op_lane)lane), 0);
    CHECK_EQ_UINT(dispatch_latency_us_max(&metrics, (op_lane)lane), 0);
    CHECK_NEAR(dispatch_latency_us_variance(&metrics, (op_lane)lane), 0, 0);
    CHECK_NEAR(dispatch_latency_cv_pct(&metrics, (op_lane)lane), 0, 0);
    CHECK_NEAR(dispatch_latency_us_p99(&metrics, (op_lane)lane), 0, 0);
  }
  dispatch_record(&metrics, LANE_SCALAR, 1000);
  dispatch_record(&metrics, LANE_WEBGPU, 100);
  CHECK_NEAR(dispatch_speedup_ratio(&metrics, LANE_CPU, LANE_GPU), 10, 1e-12);
  CHECK_NEAR(dispatch_gpu_ratio(&metrics), 0.5, 0);
  // A latency of exactly 100 us counts as le=100, as the exported label says.
  CHECK_EQ_UINT(metrics.lanes[LANE_WEBGPU].edges[0], 1);
  bool is_exported = false;
  dispatch_prometheus(&metrics, 0, &(text_sink){find_first_edge, &is_exported});
  CHECK(is_exported);
  dispatch_record(&metrics, LANE_WEBGPU, 101);
  CHECK_EQ_UINT(metrics.lanes[LANE_WEBGPU].edges[0], 1);
  CHECK_EQ_UINT(metrics.lanes[LANE_WEBGPU].edges[1], 1);
}

TEST(dm_04_long_tails_and_close_values) {
  dispatch_init(&metrics, 0, 5);
  for (int i = 0; i < 10; i++) dispatch_record(&metrics, LANE_SIMD128, 1000000);
  CHECK(is_near_pct(dispatch_latency_us_p50(&metrics, LANE_SIMD128), 1e6, 7));
  // Other latencies are recorded too, so that the result comes from the buckets, not the extremes.
  record_all(LANE_SIMD128, (const uint64_t[]){1, 60000000}, 2);
  CHECK(is_near_pct(dispatch_latency_us_p50(&metrics, LANE_SIMD128), 1e6, 7));
  dispatch_reset(&metrics, 0);
  for (int i = 0; i < 2; i++) dispatch_record(&metrics, LANE_SIMD128, 100000003);
  CHECK_NEAR(dispatch_latency_us_variance(&metrics, LANE_SIMD128), 0, 0);
  CHECK_NEAR(dispatch_latency_us_stddev(&metrics, LANE_SIMD128), 0, 0);
}

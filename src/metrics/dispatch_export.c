// metrics/dispatch_export.c — the counters as JSON and as Prometheus text.
#include <stdarg.h>

#include "base/text.h"
#include "metrics/dispatch.h"

static const char *const LANE_NAMES[] = {"scalar", "simd128", "relaxed", "webgpu", "cpu", "gpu"};
static const char *const EDGE_NAMES[DISPATCH_EDGES] = {
    "100", "500", "1000", "5000", "10000", "50000", "100000", "500000", "1000000", "+Inf"};

const char *lane_name(op_lane lane) { return LANE_NAMES[lane]; }

typedef unsigned long long ull;

// Returns how many values are at most the edge; "+Inf" counts all values.
static ull cumulative(const uint64_t *edges, int edge) {
  ull sum = 0;
  for (int i = 0; i <= edge; i++) sum += edges[i];
  return sum;
}

// ---- JSON ----

static void put_json_lane(json_writer *json, const dispatch_metrics *dispatch, op_lane lane) {
  json_open(json, LANE_NAMES[lane], '{');
  json_u64(json, "dispatches", dispatch_count(dispatch, lane));
  json_f64(json, "latency_us_mean", dispatch_latency_us_mean(dispatch, lane));
  json_u64(json, "latency_us_min", dispatch_latency_us_min(dispatch, lane));
  json_u64(json, "latency_us_max", dispatch_latency_us_max(dispatch, lane));
  json_f64(json, "latency_us_stddev", dispatch_latency_us_stddev(dispatch, lane));
  json_f64(json, "latency_cv_pct", dispatch_latency_cv_pct(dispatch, lane));
  json_f64(json, "latency_us_p50", dispatch_latency_us_p50(dispatch, lane));
  json_f64(json, "latency_us_p95", dispatch_latency_us_p95(dispatch, lane));
  json_f64(json, "latency_us_p99", dispatch_latency_us_p99(dispatch, lane));
  if (lane < LANE_COUNT) {
    const latency_histogram *latency = &dispatch->lanes[lane];
    json_u64(json, "latency_count", latency->latency_count);
    json_u64(json, "latency_us_sum", latency->latency_us_sum);
    json_open(json, "latency_us_le", '{');
    for (int edge = 0; edge < DISPATCH_EDGES; edge++) {
      json_u64(json, EDGE_NAMES[edge], cumulative(latency->edges, edge));
    }
    json_close(json, '{');
  }
  json_close(json, '{');
}

void dispatch_json(const dispatch_metrics *dispatch, uint64_t now_us, json_writer *json,
                   const char *key) {
  json_open(json, key, '{');
  json_f64(json, "elapsed_s", dispatch_elapsed_s(dispatch, now_us));
  json_u64(json, "timer_grain_us", dispatch->timer_grain_us);
  json_u64(json, "dispatches", dispatch_total(dispatch));
  json_f64(json, "gpu_ratio", dispatch_gpu_ratio(dispatch));
  json_f64(json, "throughput_rps", dispatch_throughput_rps(dispatch, now_us));
  json_f64(json, "speedup_ratio", dispatch_speedup_ratio(dispatch, LANE_CPU, LANE_GPU));
  json_open(json, "lanes", '{');
  for (int lane = 0; lane < LANE_COUNT; lane++) {
    put_json_lane(json, dispatch, (op_lane)lane);
  }
  json_close(json, '{');
  put_json_lane(json, dispatch, LANE_CPU);
  put_json_lane(json, dispatch, LANE_GPU);
  json_close(json, '{');
}

// ---- Prometheus ----

void metrics_put(const text_sink *to, const char *format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  const size_t used_bytes = text_format_list(line, sizeof line, format, arguments);
  va_end(arguments);
  to->sink(to->context, line, used_bytes);
}

void metrics_put_histogram(const text_sink *to, const char *metric, const char *labels,
                           const latency_histogram *latency) {
  for (int edge = 0; edge < DISPATCH_EDGES; edge++) {
    metrics_put(to, "%s_bucket{%s,le=\"%s\"} %llu\n", metric, labels, EDGE_NAMES[edge],
                cumulative(latency->edges, edge));
  }
  metrics_put(to, "%s_sum{%s} %llu\n", metric, labels, (ull)latency->latency_us_sum);
  metrics_put(to, "%s_count{%s} %llu\n", metric, labels, (ull)latency->latency_count);
}

void dispatch_prometheus(const dispatch_metrics *dispatch, uint64_t now_us, const text_sink *to) {
  metrics_put(to,
              "# HELP wick_uptime_seconds Time since the metrics were reset.\n"
              "# TYPE wick_uptime_seconds gauge\nwick_uptime_seconds %g\n",
              dispatch_elapsed_s(dispatch, now_us));
  metrics_put(to,
              "# HELP wick_timer_grain_us Clock resolution.\n"
              "# TYPE wick_timer_grain_us gauge\nwick_timer_grain_us %u\n",
              dispatch->timer_grain_us);
  metrics_put(to,
              "# HELP wick_dispatches_total Kernel dispatches.\n"
              "# TYPE wick_dispatches_total counter\n");
  for (int lane = 0; lane < LANE_COUNT; lane++) {
    metrics_put(to, "wick_dispatches_total{lane=\"%s\"} %llu\n", LANE_NAMES[lane],
                (ull)dispatch->lanes[lane].dispatches);
  }
  metrics_put(to,
              "# HELP wick_dispatch_latency_us Time per dispatch.\n"
              "# TYPE wick_dispatch_latency_us histogram\n");
  for (int lane = 0; lane < LANE_COUNT; lane++) {
    char labels[32];
    text_format(labels, sizeof labels, "lane=\"%s\"", LANE_NAMES[lane]);
    metrics_put_histogram(to, "wick_dispatch_latency_us", labels, &dispatch->lanes[lane]);
  }
}

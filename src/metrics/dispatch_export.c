// metrics/dispatch_export.c — the counters as JSON and as Prometheus text.
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "metrics/dispatch.h"

static const char *const LANE_NAMES[] = {"scalar", "simd128", "relaxed", "webgpu", "cpu", "gpu"};
static const char *const EDGE_NAMES[WICK_DISPATCH_EDGES] = {
    "100", "500", "1000", "5000", "10000", "50000", "100000", "500000", "1000000", "+Inf"};

const char *wick_lane_name(wick_lane lane) { return LANE_NAMES[lane]; }
const char *wick_dispatch_edge_name(int edge) { return EDGE_NAMES[edge]; }

typedef struct writer {
  char *out;
  size_t size_bytes, used_bytes;
  bool is_full;
} writer;

typedef unsigned long long ull;

// "+Inf" counts them all; the others what is at most the edge.
static ull cumulative(const uint64_t *edges, int edge) {
  ull sum = 0;
  for (int i = 0; i <= edge; i++) sum += edges[i];
  return sum;
}

// ---- JSON ----

static void put_bytes(void *context, const char *bytes, size_t size_bytes) {
  writer *to = context;
  if (to->is_full || size_bytes >= to->size_bytes - to->used_bytes) {
    to->is_full = true;
    return;
  }
  memcpy(to->out + to->used_bytes, bytes, size_bytes);
  to->used_bytes += size_bytes;
  to->out[to->used_bytes] = '\0';
}

static void put_json_lane(json_writer *json, const wick_dispatch *dispatch, wick_lane lane) {
  json_open(json, LANE_NAMES[lane], '{');
  json_u64(json, "dispatches", wick_dispatch_count(dispatch, lane));
  json_f64(json, "latency_us_mean", wick_dispatch_latency_us_mean(dispatch, lane));
  json_u64(json, "latency_us_min", wick_dispatch_latency_us_min(dispatch, lane));
  json_u64(json, "latency_us_max", wick_dispatch_latency_us_max(dispatch, lane));
  json_f64(json, "latency_us_stddev", wick_dispatch_latency_us_stddev(dispatch, lane));
  json_f64(json, "latency_cv_pct", wick_dispatch_latency_cv_pct(dispatch, lane));
  json_f64(json, "latency_us_p50", wick_dispatch_latency_us_p50(dispatch, lane));
  json_f64(json, "latency_us_p95", wick_dispatch_latency_us_p95(dispatch, lane));
  json_f64(json, "latency_us_p99", wick_dispatch_latency_us_p99(dispatch, lane));
  if (lane < WICK_LANE_COUNT) {
    const wick_latency *latency = &dispatch->lanes[lane];
    json_u64(json, "latency_count", latency->latency_count);
    json_u64(json, "latency_us_sum", latency->latency_us_sum);
    json_open(json, "latency_us_le", '{');
    for (int edge = 0; edge < WICK_DISPATCH_EDGES; edge++) {
      json_u64(json, EDGE_NAMES[edge], cumulative(latency->edges, edge));
    }
    json_close(json, '{');
  }
  json_close(json, '{');
}

void wick_dispatch_json(const wick_dispatch *dispatch, uint64_t now_us, json_writer *json,
                        const char *key) {
  json_open(json, key, '{');
  json_f64(json, "elapsed_s", wick_dispatch_elapsed_s(dispatch, now_us));
  json_u64(json, "timer_grain_us", dispatch->timer_grain_us);
  json_u64(json, "dispatches", wick_dispatch_total(dispatch));
  json_f64(json, "gpu_ratio", wick_dispatch_gpu_ratio(dispatch));
  json_f64(json, "throughput_rps", wick_dispatch_throughput_rps(dispatch, now_us));
  json_f64(json, "speedup_ratio",
           wick_dispatch_speedup_ratio(dispatch, WICK_LANE_CPU, WICK_LANE_GPU));
  json_open(json, "lanes", '{');
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) {
    put_json_lane(json, dispatch, (wick_lane)lane);
  }
  json_close(json, '{');
  put_json_lane(json, dispatch, WICK_LANE_CPU);
  put_json_lane(json, dispatch, WICK_LANE_GPU);
  json_close(json, '{');
}

static void put_json(writer *to, const wick_dispatch *dispatch, uint64_t now_us) {
  json_writer json;
  json_begin(&json, put_bytes, to);
  wick_dispatch_json(dispatch, now_us, &json, NULL);
}

// ---- Prometheus ----

__attribute__((format(printf, 2, 3))) static void put(writer *to, const char *format, ...) {
  if (to->is_full) return;
  const size_t room_bytes = to->size_bytes - to->used_bytes;
  va_list arguments;
  va_start(arguments, format);
  const size_t written = text_format_list(to->out + to->used_bytes, room_bytes, format, arguments);
  va_end(arguments);
  to->used_bytes += written;
  to->is_full = written + 1 >= room_bytes;  // perhaps cut
}

static void put_prometheus(writer *to, const wick_dispatch *dispatch, uint64_t now_us) {
  put(to,
      "# HELP wick_uptime_seconds Time since the metrics were reset.\n"
      "# TYPE wick_uptime_seconds gauge\nwick_uptime_seconds %g\n",
      wick_dispatch_elapsed_s(dispatch, now_us));
  put(to,
      "# HELP wick_timer_grain_us How fine the clock is.\n"
      "# TYPE wick_timer_grain_us gauge\nwick_timer_grain_us %u\n",
      dispatch->timer_grain_us);
  put(to,
      "# HELP wick_dispatches_total Kernel dispatches.\n"
      "# TYPE wick_dispatches_total counter\n");
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) {
    put(to, "wick_dispatches_total{lane=\"%s\"} %llu\n", LANE_NAMES[lane],
        (ull)dispatch->lanes[lane].dispatches);
  }
  put(to,
      "# HELP wick_dispatch_latency_us Time that a dispatch took.\n"
      "# TYPE wick_dispatch_latency_us histogram\n");
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) {
    const wick_latency *latency = &dispatch->lanes[lane];
    for (int edge = 0; edge < WICK_DISPATCH_EDGES; edge++) {
      put(to, "wick_dispatch_latency_us_bucket{lane=\"%s\",le=\"%s\"} %llu\n", LANE_NAMES[lane],
          EDGE_NAMES[edge], cumulative(latency->edges, edge));
    }
    put(to, "wick_dispatch_latency_us_sum{lane=\"%s\"} %llu\n", LANE_NAMES[lane],
        (ull)latency->latency_us_sum);
    put(to, "wick_dispatch_latency_us_count{lane=\"%s\"} %llu\n", LANE_NAMES[lane],
        (ull)latency->latency_count);
  }
}

wick_status wick_dispatch_export(const wick_dispatch *dispatch, uint64_t now_us,
                                 wick_dispatch_format format, char *out, size_t size_bytes,
                                 size_t *used_bytes) {
  if (size_bytes == 0) return WICK_E_FULL;
  writer to = {out, size_bytes, 0, false};
  if (format == WICK_DISPATCH_JSON) {
    put_json(&to, dispatch, now_us);
  } else if (format == WICK_DISPATCH_PROMETHEUS) {
    put_prometheus(&to, dispatch, now_us);
  } else {
    return WICK_E_ARG;
  }
  if (to.is_full) {
    out[0] = '\0';
    return WICK_E_FULL;
  }
  *used_bytes = to.used_bytes;
  return WICK_OK;
}

// metrics/dispatch_export.c — the counters as JSON and as Prometheus text.
#include <stdarg.h>
#include <stdbool.h>

#include "base/text.h"
#include "metrics/dispatch.h"

static const char *const LANE_NAMES[] = {"scalar", "simd128", "relaxed", "webgpu", "cpu", "gpu"};
static const char *const EDGE_NAMES[WICK_DISPATCH_EDGES] = {
    "100", "500", "1000", "5000", "10000", "50000", "100000", "500000", "1000000", "+Inf"};

typedef struct writer {
  char *out;
  size_t size_bytes, used_bytes;
  bool is_full;
} writer;

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

typedef unsigned long long ull;

// "+Inf" counts them all; the others what is at most the edge.
static ull cumulative(const uint64_t *edges, int edge) {
  ull sum = 0;
  for (int i = 0; i <= edge; i++) sum += edges[i];
  return sum;
}

static void put_json_lane(writer *to, const wick_dispatch *dispatch, wick_lane lane) {
  put(to, "\"%s\":{\"dispatches\":%llu,\"latency_us_mean\":%g,", LANE_NAMES[lane],
      (ull)wick_dispatch_count(dispatch, lane), wick_dispatch_latency_us_mean(dispatch, lane));
  put(to, "\"latency_us_min\":%llu,\"latency_us_max\":%llu,\"latency_us_stddev\":%g,",
      (ull)wick_dispatch_latency_us_min(dispatch, lane),
      (ull)wick_dispatch_latency_us_max(dispatch, lane),
      wick_dispatch_latency_us_stddev(dispatch, lane));
  put(to, "\"latency_cv_pct\":%g,\"latency_us_p50\":%g,\"latency_us_p95\":%g,\"latency_us_p99\":%g",
      wick_dispatch_latency_cv_pct(dispatch, lane), wick_dispatch_latency_us_p50(dispatch, lane),
      wick_dispatch_latency_us_p95(dispatch, lane), wick_dispatch_latency_us_p99(dispatch, lane));
  if (lane < WICK_LANE_COUNT) {
    const wick_latency *latency = &dispatch->lanes[lane];
    put(to, ",\"latency_count\":%llu,\"latency_us_sum\":%llu,\"latency_us_le\":{",
        (ull)latency->latency_count, (ull)latency->latency_us_sum);
    for (int edge = 0; edge < WICK_DISPATCH_EDGES; edge++) {
      put(to, "%s\"%s\":%llu", edge == 0 ? "" : ",", EDGE_NAMES[edge],
          cumulative(latency->edges, edge));
    }
    put(to, "}");
  }
  put(to, "}");
}

static void put_json(writer *to, const wick_dispatch *dispatch, uint64_t now_us) {
  put(to, "{\"elapsed_s\":%g,\"timer_grain_us\":%u,\"dispatches\":%llu,\"gpu_ratio\":%g,",
      wick_dispatch_elapsed_s(dispatch, now_us), dispatch->timer_grain_us,
      (ull)wick_dispatch_total(dispatch), wick_dispatch_gpu_ratio(dispatch));
  put(to, "\"throughput_rps\":%g,\"speedup_ratio\":%g,\"lanes\":{",
      wick_dispatch_throughput_rps(dispatch, now_us),
      wick_dispatch_speedup_ratio(dispatch, WICK_LANE_CPU, WICK_LANE_GPU));
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) {
    put_json_lane(to, dispatch, (wick_lane)lane);
    put(to, lane + 1 < WICK_LANE_COUNT ? "," : "},");
  }
  put_json_lane(to, dispatch, WICK_LANE_CPU);
  put(to, ",");
  put_json_lane(to, dispatch, WICK_LANE_GPU);
  put(to, "}");
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

// metrics/dispatch.h — counts and times of each kind of kernel. The counters have no locks: each
// thread records into its own dispatch_metrics, and readers merge them. The functions are pure; the
// caller passes the time (platform_now_us). If the first argument of a recording function is NULL,
// metrics are off.
#ifndef WICK_METRICS_DISPATCH_H
#define WICK_METRICS_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

typedef enum op_lane {
  LANE_SCALAR = 0,
  LANE_SIMD128 = 1,
  LANE_RELAXED = 2,
  LANE_WEBGPU = 3,
  LANE_COUNT = 4,
  // Aliases, for reading only: the first three lanes together, and webgpu.
  LANE_CPU = 4,
  LANE_GPU = 5
} op_lane;

enum {
  // Log-linear buckets: one per microsecond for 0 to 7 us, then 8 per octave (at most 12.5% wide)
  // up to 2^26 us = 67 s, and one for longer latencies.
  DISPATCH_BUCKETS = 8 + 23 * 8 + 1,
  // Exported counts: at most 100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000 us, +Inf.
  DISPATCH_EDGES = 10
};

typedef struct latency_histogram {
  uint64_t dispatches;  // timed or not
  uint64_t latency_count;
  uint64_t latency_us_sum;  // stops at 2^64 - 1
  uint64_t latency_us_min;  // 2^64 - 1 when latency_count is 0
  uint64_t latency_us_max;
  double mean_us;      // Welford 1962
  double squares_us2;  // sum of squared distances from the mean
  uint64_t buckets[DISPATCH_BUCKETS];
  uint64_t edges[DISPATCH_EDGES];  // not cumulative
} latency_histogram;

// ---- One histogram ----

void latency_clear(latency_histogram *latency);
// Adds a latency without counting a dispatch.
void latency_record(latency_histogram *latency, uint64_t latency_us);
void latency_merge(latency_histogram *into, const latency_histogram *from);
double latency_stddev(const latency_histogram *latency);  // sample standard deviation, in us
// Returns a percentile by nearest rank, like dispatch_latency_us_percentile.
double latency_percentile(const latency_histogram *latency, uint32_t permille);

// ---- Lanes ----

typedef struct dispatch_metrics {
  latency_histogram lanes[LANE_COUNT];
  uint64_t start_us;
  uint32_t timer_grain_us;  // resolution of the host's clock: 5 in an isolated page, otherwise 100
} dispatch_metrics;

void dispatch_init(dispatch_metrics *dispatch, uint64_t now_us, uint32_t timer_grain_us);
// Sets all counters to zero and starts the clock.
void dispatch_reset(dispatch_metrics *dispatch, uint64_t now_us);

// ---- Reading: lanes or aliases; 0 if nothing was recorded ----

uint64_t dispatch_count(const dispatch_metrics *dispatch, op_lane lane);
uint64_t dispatch_total(const dispatch_metrics *dispatch);
double dispatch_gpu_ratio(const dispatch_metrics *dispatch);
double dispatch_latency_us_mean(const dispatch_metrics *dispatch, op_lane lane);
uint64_t dispatch_latency_us_min(const dispatch_metrics *dispatch, op_lane lane);
uint64_t dispatch_latency_us_max(const dispatch_metrics *dispatch, op_lane lane);
// Returns the sample standard deviation (n - 1), or 0 for fewer than two values.
double dispatch_latency_us_stddev(const dispatch_metrics *dispatch, op_lane lane);
double dispatch_latency_cv_pct(const dispatch_metrics *dispatch, op_lane lane);
// Returns a percentile by nearest rank, from the buckets: within 6.25% of a value that occurred,
// or the maximum above 67 s. permille is 0..1000.
double dispatch_latency_us_percentile(const dispatch_metrics *dispatch, op_lane lane,
                                      uint32_t permille);
double dispatch_latency_us_p50(const dispatch_metrics *dispatch, op_lane lane);
double dispatch_latency_us_p95(const dispatch_metrics *dispatch, op_lane lane);
double dispatch_latency_us_p99(const dispatch_metrics *dispatch, op_lane lane);
// Returns the mean of `slow` divided by the mean of `fast`.
double dispatch_speedup_ratio(const dispatch_metrics *dispatch, op_lane slow, op_lane fast);
double dispatch_elapsed_s(const dispatch_metrics *dispatch, uint64_t now_us);
// Returns the dispatches per second since the start, or 0 in the first millisecond.
double dispatch_throughput_rps(const dispatch_metrics *dispatch, uint64_t now_us);

// ---- Export ----

// Writes the counters as member `key` of the open object (NULL: an array item, or the outermost
// value).
void dispatch_json(const dispatch_metrics *dispatch, uint64_t now_us, json_writer *json,
                   const char *key);
const char *lane_name(op_lane lane);

typedef struct text_sink {
  json_sink sink;
  void *context;
} text_sink;

// Writes up to 255 bytes of formatted text (base/text.h).
void metrics_put(const text_sink *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Writes cumulative buckets with inclusive edges, the sum and the count. labels: `lane="scalar"`.
void metrics_put_histogram(const text_sink *to, const char *metric, const char *labels,
                           const latency_histogram *latency);
// Writes the Prometheus text format 0.0.4.
void dispatch_prometheus(const dispatch_metrics *dispatch, uint64_t now_us, const text_sink *to);

#endif

// metrics/dispatch.h — how often and how fast each kind of kernel ran. The counters
// have no locks: each thread records into its own wick_dispatch, and readers merge them. The
// functions are pure; the caller passes the time (platform_now_us). NULL as the first argument of a
// recording function means that metrics are off.
#ifndef WICK_METRICS_DISPATCH_H
#define WICK_METRICS_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

typedef enum wick_lane {
  WICK_LANE_SCALAR = 0,
  WICK_LANE_SIMD128 = 1,
  WICK_LANE_RELAXED = 2,
  WICK_LANE_WEBGPU = 3,
  WICK_LANE_COUNT = 4,
  // Aliases, for reading only: the first three lanes together, and webgpu.
  WICK_LANE_CPU = 4,
  WICK_LANE_GPU = 5
} wick_lane;

enum {
  // Log-linear buckets: 0..7 us one by one, then 8 an octave (at most 12.5 % wide) up to
  // 2^26 us = 67 s, and one for longer latencies.
  WICK_DISPATCH_BUCKETS = 8 + 23 * 8 + 1,
  // Exported counts: at most 100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000 us, +Inf.
  WICK_DISPATCH_EDGES = 10,
  // Room for every export.
  WICK_DISPATCH_EXPORT_BYTES_MAX = 6144
};

typedef struct wick_latency {
  uint64_t dispatches;  // timed or not
  uint64_t latency_count;
  uint64_t latency_us_sum;  // stops at 2^64 - 1
  uint64_t latency_us_min;  // 2^64 - 1 when latency_count is 0
  uint64_t latency_us_max;
  double mean_us;      // Welford 1962
  double squares_us2;  // sum of squared distances from the mean
  uint64_t buckets[WICK_DISPATCH_BUCKETS];
  uint64_t edges[WICK_DISPATCH_EDGES];  // not cumulative
} wick_latency;

// ---- one histogram by itself ----

void wick_latency_clear(wick_latency *latency);
// Does not count a dispatch.
void wick_latency_record(wick_latency *latency, uint64_t latency_us);
void wick_latency_merge(wick_latency *into, const wick_latency *from);
double wick_latency_stddev(const wick_latency *latency);  // of a sample, in us
// Nearest rank, as wick_dispatch_latency_us_percentile.
double wick_latency_percentile(const wick_latency *latency, uint32_t permille);

// ---- lanes ----

typedef struct wick_dispatch {
  wick_latency lanes[WICK_LANE_COUNT];
  uint64_t start_us;
  uint32_t timer_grain_us;  // how fine the host's clock is: 5 in an isolated page, else 100
} wick_dispatch;

void wick_dispatch_init(wick_dispatch *dispatch, uint64_t now_us, uint32_t timer_grain_us);
// Sets all counters to zero and starts the clock.
void wick_dispatch_reset(wick_dispatch *dispatch, uint64_t now_us);

// A dispatch that took latency_us. O(1). The aliases are not lanes to record in (ignored).
void wick_dispatch_record(wick_dispatch *dispatch, wick_lane lane, uint64_t latency_us);
// A dispatch that was not timed.
void wick_dispatch_tally(wick_dispatch *dispatch, wick_lane lane);
// Adds another thread's counters (variance: Chan, Golub and LeVeque 1979). The earlier start
// stays.
void wick_dispatch_merge(wick_dispatch *into, const wick_dispatch *from);

// ---- reading: lanes or aliases; 0 when there is nothing to tell ----

uint64_t wick_dispatch_count(const wick_dispatch *dispatch, wick_lane lane);
uint64_t wick_dispatch_total(const wick_dispatch *dispatch);
double wick_dispatch_gpu_ratio(const wick_dispatch *dispatch);
double wick_dispatch_latency_us_mean(const wick_dispatch *dispatch, wick_lane lane);
uint64_t wick_dispatch_latency_us_min(const wick_dispatch *dispatch, wick_lane lane);
uint64_t wick_dispatch_latency_us_max(const wick_dispatch *dispatch, wick_lane lane);
// Variance of a sample (n - 1); 0 for fewer than two values.
double wick_dispatch_latency_us_variance(const wick_dispatch *dispatch, wick_lane lane);
double wick_dispatch_latency_us_stddev(const wick_dispatch *dispatch, wick_lane lane);
double wick_dispatch_latency_cv_pct(const wick_dispatch *dispatch, wick_lane lane);
// Percentile by nearest rank, from the buckets: within 6.25 % of a value that occurred; above 67 s
// the maximum. permille is 0..1000.
double wick_dispatch_latency_us_percentile(const wick_dispatch *dispatch, wick_lane lane,
                                           uint32_t permille);
double wick_dispatch_latency_us_p50(const wick_dispatch *dispatch, wick_lane lane);
double wick_dispatch_latency_us_p95(const wick_dispatch *dispatch, wick_lane lane);
double wick_dispatch_latency_us_p99(const wick_dispatch *dispatch, wick_lane lane);
// The mean of `slow` divided by the mean of `fast`.
double wick_dispatch_speedup_ratio(const wick_dispatch *dispatch, wick_lane slow, wick_lane fast);
double wick_dispatch_elapsed_s(const wick_dispatch *dispatch, uint64_t now_us);
// Dispatches a second since the start; 0 in the first millisecond.
double wick_dispatch_throughput_rps(const wick_dispatch *dispatch, uint64_t now_us);

// ---- export ----

typedef enum wick_dispatch_format {
  WICK_DISPATCH_JSON = 0,
  WICK_DISPATCH_PROMETHEUS = 1  // text format 0.0.4, cumulative buckets with inclusive edges
} wick_dispatch_format;

// Writes terminated text; *used_bytes is its length. WICK_E_FULL when it does not fit (the text is
// then empty), WICK_E_ARG for an unknown format.
wick_status wick_dispatch_export(const wick_dispatch *dispatch, uint64_t now_us,
                                 wick_dispatch_format format, char *out, size_t size_bytes,
                                 size_t *used_bytes);

// Writes the same JSON as member `key` of the open object (NULL: an item, or the outermost value).
void wick_dispatch_json(const wick_dispatch *dispatch, uint64_t now_us, json_writer *json,
                        const char *key);
const char *wick_lane_name(wick_lane lane);
const char *wick_dispatch_edge_name(int edge);  // "100" ... "+Inf"

#endif

// metrics/dispatch.c — counters and log-linear latency histograms (like HdrHistogram).
#include "metrics/dispatch.h"

#include <string.h>

enum { LINEAR_BUCKETS = 8, OCTAVE_PARTS_LOG2 = 3, OCTAVES_END = 26 };

static const uint64_t EDGES_US[DISPATCH_EDGES - 1] = {100,   500,    1000,   5000,   10000,
                                                      50000, 100000, 500000, 1000000};

static const double MEAN_US_LEAST = 0.001;  // below this, ratios to a mean are meaningless

// ---- One lane ----

static uint32_t bucket_of(uint64_t latency_us) {
  if (latency_us < LINEAR_BUCKETS) return (uint32_t)latency_us;
  if (latency_us >> OCTAVES_END != 0) return DISPATCH_BUCKETS - 1;
  const uint32_t octave = 63u - (uint32_t)__builtin_clzll(latency_us);
  const uint32_t shift = octave - OCTAVE_PARTS_LOG2;
  return LINEAR_BUCKETS + shift * 8 + (uint32_t)(latency_us >> shift & 7);
}

// Returns the middle of the values in a bucket.
static double bucket_middle_us(uint32_t bucket) {
  if (bucket < LINEAR_BUCKETS) return bucket;
  const uint32_t shift = (bucket - LINEAR_BUCKETS) / 8;
  const uint64_t low = (uint64_t)(8 + bucket % 8) << shift;
  const uint64_t high = low + (1ull << shift) - 1;
  return ((double)low + (double)high) / 2;
}

static uint32_t edge_of(uint64_t latency_us) {
  uint32_t edge = 0;
  while (edge < DISPATCH_EDGES - 1 && latency_us > EDGES_US[edge]) edge++;
  return edge;
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
  return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

void latency_clear(latency_histogram *latency) {
  memset(latency, 0, sizeof *latency);
  latency->latency_us_min = UINT64_MAX;
}

void latency_record(latency_histogram *latency, uint64_t latency_us) {
  latency->latency_count++;
  latency->latency_us_sum = add_saturating(latency->latency_us_sum, latency_us);
  if (latency_us < latency->latency_us_min) latency->latency_us_min = latency_us;
  if (latency_us > latency->latency_us_max) latency->latency_us_max = latency_us;
  const double value = (double)latency_us;
  const double distance = value - latency->mean_us;
  latency->mean_us += distance / (double)latency->latency_count;
  latency->squares_us2 += distance * (value - latency->mean_us);
  latency->buckets[bucket_of(latency_us)]++;
  latency->edges[edge_of(latency_us)]++;
}

void latency_merge(latency_histogram *into, const latency_histogram *from) {
  into->dispatches += from->dispatches;
  if (from->latency_count == 0) return;
  const double a = (double)into->latency_count;
  const double b = (double)from->latency_count;
  const double distance = from->mean_us - into->mean_us;
  into->mean_us += distance * (b / (a + b));
  into->squares_us2 += from->squares_us2 + distance * distance * (a * b / (a + b));
  into->latency_count += from->latency_count;
  into->latency_us_sum = add_saturating(into->latency_us_sum, from->latency_us_sum);
  if (from->latency_us_min < into->latency_us_min) into->latency_us_min = from->latency_us_min;
  if (from->latency_us_max > into->latency_us_max) into->latency_us_max = from->latency_us_max;
  for (int i = 0; i < DISPATCH_BUCKETS; i++) into->buckets[i] += from->buckets[i];
  for (int i = 0; i < DISPATCH_EDGES; i++) into->edges[i] += from->edges[i];
}

static double latency_variance(const latency_histogram *latency) {
  if (latency->latency_count < 2) return 0;
  return latency->squares_us2 / (double)(latency->latency_count - 1);
}

double latency_stddev(const latency_histogram *latency) {
  return __builtin_sqrt(latency_variance(latency));
}

static double latency_cv_pct(const latency_histogram *latency) {
  if (latency->mean_us < MEAN_US_LEAST) return 0;
  return latency_stddev(latency) / latency->mean_us * 100;
}

double latency_percentile(const latency_histogram *latency, uint32_t permille) {
  if (latency->latency_count == 0) return 0;
  const uint64_t rank = (latency->latency_count * permille + 999) / 1000;
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket < DISPATCH_BUCKETS - 1) {
    seen += latency->buckets[bucket];
    if (seen >= rank && seen > 0) break;
    bucket++;
  }
  const double least = (double)latency->latency_us_min;
  const double most = (double)latency->latency_us_max;
  if (bucket == DISPATCH_BUCKETS - 1) return most;
  const double middle = bucket_middle_us(bucket);
  return middle < least ? least : middle > most ? most : middle;
}

// ---- Recording ----

void dispatch_init(dispatch_metrics *dispatch, uint64_t now_us, uint32_t timer_grain_us) {
  dispatch->timer_grain_us = timer_grain_us;
  dispatch_reset(dispatch, now_us);
}

void dispatch_reset(dispatch_metrics *dispatch, uint64_t now_us) {
  for (int lane = 0; lane < LANE_COUNT; lane++) latency_clear(&dispatch->lanes[lane]);
  dispatch->start_us = now_us;
}

// ---- Reading ----

// Returns the lane itself, or for an alias its lanes, merged into *room.
static const latency_histogram *find_lane(const dispatch_metrics *dispatch, op_lane lane,
                                          latency_histogram *room) {
  if (lane == LANE_GPU) return &dispatch->lanes[LANE_WEBGPU];
  if ((unsigned)lane < LANE_COUNT) return &dispatch->lanes[lane];
  latency_clear(room);
  if (lane == LANE_CPU) {
    for (int i = LANE_SCALAR; i <= LANE_RELAXED; i++) {
      latency_merge(room, &dispatch->lanes[i]);
    }
  }
  return room;
}

uint64_t dispatch_count(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  return find_lane(dispatch, lane, &room)->dispatches;
}

uint64_t dispatch_total(const dispatch_metrics *dispatch) {
  uint64_t total = 0;
  for (int lane = 0; lane < LANE_COUNT; lane++) total += dispatch->lanes[lane].dispatches;
  return total;
}

double dispatch_gpu_ratio(const dispatch_metrics *dispatch) {
  const uint64_t total = dispatch_total(dispatch);
  if (total == 0) return 0;
  return (double)dispatch->lanes[LANE_WEBGPU].dispatches / (double)total;
}

double dispatch_latency_us_mean(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  return find_lane(dispatch, lane, &room)->mean_us;
}

uint64_t dispatch_latency_us_min(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  const latency_histogram *latency = find_lane(dispatch, lane, &room);
  return latency->latency_count == 0 ? 0 : latency->latency_us_min;
}

uint64_t dispatch_latency_us_max(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  return find_lane(dispatch, lane, &room)->latency_us_max;
}

double dispatch_latency_us_stddev(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  return latency_stddev(find_lane(dispatch, lane, &room));
}

double dispatch_latency_cv_pct(const dispatch_metrics *dispatch, op_lane lane) {
  latency_histogram room;
  return latency_cv_pct(find_lane(dispatch, lane, &room));
}

double dispatch_latency_us_percentile(const dispatch_metrics *dispatch, op_lane lane,
                                      uint32_t permille) {
  latency_histogram room;
  return latency_percentile(find_lane(dispatch, lane, &room), permille);
}

double dispatch_latency_us_p50(const dispatch_metrics *dispatch, op_lane lane) {
  return dispatch_latency_us_percentile(dispatch, lane, 500);
}

double dispatch_latency_us_p95(const dispatch_metrics *dispatch, op_lane lane) {
  return dispatch_latency_us_percentile(dispatch, lane, 950);
}

double dispatch_latency_us_p99(const dispatch_metrics *dispatch, op_lane lane) {
  return dispatch_latency_us_percentile(dispatch, lane, 990);
}

double dispatch_speedup_ratio(const dispatch_metrics *dispatch, op_lane slow, op_lane fast) {
  const double fast_us = dispatch_latency_us_mean(dispatch, fast);
  if (fast_us < MEAN_US_LEAST) return 0;
  return dispatch_latency_us_mean(dispatch, slow) / fast_us;
}

double dispatch_elapsed_s(const dispatch_metrics *dispatch, uint64_t now_us) {
  return now_us < dispatch->start_us ? 0 : (double)(now_us - dispatch->start_us) / 1e6;
}

double dispatch_throughput_rps(const dispatch_metrics *dispatch, uint64_t now_us) {
  const double elapsed_s = dispatch_elapsed_s(dispatch, now_us);
  return elapsed_s < 1e-3 ? 0 : (double)dispatch_total(dispatch) / elapsed_s;
}

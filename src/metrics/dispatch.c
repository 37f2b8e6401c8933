// metrics/dispatch.c — counters and log-linear histograms (as HdrHistogram's) of latencies.
#include "metrics/dispatch.h"

#include <string.h>

enum { LINEAR_BUCKETS = 8, OCTAVE_PARTS_LOG2 = 3, OCTAVES_END = 26 };

static const uint64_t EDGES_US[WICK_DISPATCH_EDGES - 1] = {100,   500,    1000,   5000,   10000,
                                                           50000, 100000, 500000, 1000000};

static const double MEAN_US_LEAST = 0.001;  // below, ratios to a mean say nothing

// ---- one lane ----

static uint32_t bucket_of(uint64_t latency_us) {
  if (latency_us < LINEAR_BUCKETS) return (uint32_t)latency_us;
  if (latency_us >> OCTAVES_END != 0) return WICK_DISPATCH_BUCKETS - 1;
  const uint32_t octave = 63u - (uint32_t)__builtin_clzll(latency_us);
  const uint32_t shift = octave - OCTAVE_PARTS_LOG2;
  return LINEAR_BUCKETS + shift * 8 + (uint32_t)(latency_us >> shift & 7);
}

// The middle of the values that fall into a bucket.
static double bucket_middle_us(uint32_t bucket) {
  if (bucket < LINEAR_BUCKETS) return bucket;
  const uint32_t shift = (bucket - LINEAR_BUCKETS) / 8;
  const uint64_t low = (uint64_t)(8 + bucket % 8) << shift;
  const uint64_t high = low + (1ull << shift) - 1;
  return ((double)low + (double)high) / 2;
}

static uint32_t edge_of(uint64_t latency_us) {
  uint32_t edge = 0;
  while (edge < WICK_DISPATCH_EDGES - 1 && latency_us > EDGES_US[edge]) edge++;
  return edge;
}

static uint64_t add_saturating(uint64_t a, uint64_t b) {
  return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

void wick_latency_clear(wick_latency *latency) {
  memset(latency, 0, sizeof *latency);
  latency->latency_us_min = UINT64_MAX;
}

void wick_latency_record(wick_latency *latency, uint64_t latency_us) {
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

void wick_latency_merge(wick_latency *into, const wick_latency *from) {
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
  for (int i = 0; i < WICK_DISPATCH_BUCKETS; i++) into->buckets[i] += from->buckets[i];
  for (int i = 0; i < WICK_DISPATCH_EDGES; i++) into->edges[i] += from->edges[i];
}

static double latency_variance(const wick_latency *latency) {
  if (latency->latency_count < 2) return 0;
  return latency->squares_us2 / (double)(latency->latency_count - 1);
}

double wick_latency_stddev(const wick_latency *latency) {
  return __builtin_sqrt(latency_variance(latency));
}

static double latency_cv_pct(const wick_latency *latency) {
  if (latency->mean_us < MEAN_US_LEAST) return 0;
  return wick_latency_stddev(latency) / latency->mean_us * 100;
}

double wick_latency_percentile(const wick_latency *latency, uint32_t permille) {
  if (latency->latency_count == 0) return 0;
  const uint64_t rank = (latency->latency_count * permille + 999) / 1000;
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket < WICK_DISPATCH_BUCKETS - 1) {
    seen += latency->buckets[bucket];
    if (seen >= rank && seen > 0) break;
    bucket++;
  }
  const double least = (double)latency->latency_us_min;
  const double most = (double)latency->latency_us_max;
  if (bucket == WICK_DISPATCH_BUCKETS - 1) return most;
  const double middle = bucket_middle_us(bucket);
  return middle < least ? least : middle > most ? most : middle;
}

// ---- recording ----

void wick_dispatch_init(wick_dispatch *dispatch, uint64_t now_us, uint32_t timer_grain_us) {
  dispatch->timer_grain_us = timer_grain_us;
  wick_dispatch_reset(dispatch, now_us);
}

void wick_dispatch_reset(wick_dispatch *dispatch, uint64_t now_us) {
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) wick_latency_clear(&dispatch->lanes[lane]);
  dispatch->start_us = now_us;
}

void wick_dispatch_tally(wick_dispatch *dispatch, wick_lane lane) {
  if (dispatch == NULL || (unsigned)lane >= WICK_LANE_COUNT) return;
  dispatch->lanes[lane].dispatches++;
}

void wick_dispatch_record(wick_dispatch *dispatch, wick_lane lane, uint64_t latency_us) {
  if (dispatch == NULL || (unsigned)lane >= WICK_LANE_COUNT) return;
  dispatch->lanes[lane].dispatches++;
  wick_latency_record(&dispatch->lanes[lane], latency_us);
}

void wick_dispatch_merge(wick_dispatch *into, const wick_dispatch *from) {
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) {
    wick_latency_merge(&into->lanes[lane], &from->lanes[lane]);
  }
  if (from->start_us < into->start_us) into->start_us = from->start_us;
}

// ---- reading ----

// The lane itself; for an alias its lanes, merged into *room.
static const wick_latency *find_lane(const wick_dispatch *dispatch, wick_lane lane,
                                     wick_latency *room) {
  if (lane == WICK_LANE_GPU) return &dispatch->lanes[WICK_LANE_WEBGPU];
  if ((unsigned)lane < WICK_LANE_COUNT) return &dispatch->lanes[lane];
  wick_latency_clear(room);
  if (lane == WICK_LANE_CPU) {
    for (int i = WICK_LANE_SCALAR; i <= WICK_LANE_RELAXED; i++) {
      wick_latency_merge(room, &dispatch->lanes[i]);
    }
  }
  return room;
}

uint64_t wick_dispatch_count(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return find_lane(dispatch, lane, &room)->dispatches;
}

uint64_t wick_dispatch_total(const wick_dispatch *dispatch) {
  uint64_t total = 0;
  for (int lane = 0; lane < WICK_LANE_COUNT; lane++) total += dispatch->lanes[lane].dispatches;
  return total;
}

double wick_dispatch_gpu_ratio(const wick_dispatch *dispatch) {
  const uint64_t total = wick_dispatch_total(dispatch);
  if (total == 0) return 0;
  return (double)dispatch->lanes[WICK_LANE_WEBGPU].dispatches / (double)total;
}

double wick_dispatch_latency_us_mean(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return find_lane(dispatch, lane, &room)->mean_us;
}

uint64_t wick_dispatch_latency_us_min(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  const wick_latency *latency = find_lane(dispatch, lane, &room);
  return latency->latency_count == 0 ? 0 : latency->latency_us_min;
}

uint64_t wick_dispatch_latency_us_max(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return find_lane(dispatch, lane, &room)->latency_us_max;
}

double wick_dispatch_latency_us_variance(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return latency_variance(find_lane(dispatch, lane, &room));
}

double wick_dispatch_latency_us_stddev(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return wick_latency_stddev(find_lane(dispatch, lane, &room));
}

double wick_dispatch_latency_cv_pct(const wick_dispatch *dispatch, wick_lane lane) {
  wick_latency room;
  return latency_cv_pct(find_lane(dispatch, lane, &room));
}

double wick_dispatch_latency_us_percentile(const wick_dispatch *dispatch, wick_lane lane,
                                           uint32_t permille) {
  wick_latency room;
  return wick_latency_percentile(find_lane(dispatch, lane, &room), permille);
}

double wick_dispatch_latency_us_p50(const wick_dispatch *dispatch, wick_lane lane) {
  return wick_dispatch_latency_us_percentile(dispatch, lane, 500);
}

double wick_dispatch_latency_us_p95(const wick_dispatch *dispatch, wick_lane lane) {
  return wick_dispatch_latency_us_percentile(dispatch, lane, 950);
}

double wick_dispatch_latency_us_p99(const wick_dispatch *dispatch, wick_lane lane) {
  return wick_dispatch_latency_us_percentile(dispatch, lane, 990);
}

double wick_dispatch_speedup_ratio(const wick_dispatch *dispatch, wick_lane slow, wick_lane fast) {
  const double fast_us = wick_dispatch_latency_us_mean(dispatch, fast);
  if (fast_us < MEAN_US_LEAST) return 0;
  return wick_dispatch_latency_us_mean(dispatch, slow) / fast_us;
}

double wick_dispatch_elapsed_s(const wick_dispatch *dispatch, uint64_t now_us) {
  return now_us < dispatch->start_us ? 0 : (double)(now_us - dispatch->start_us) / 1e6;
}

double wick_dispatch_throughput_rps(const wick_dispatch *dispatch, uint64_t now_us) {
  const double elapsed_s = wick_dispatch_elapsed_s(dispatch, now_us);
  return elapsed_s < 1e-3 ? 0 : (double)wick_dispatch_total(dispatch) / elapsed_s;
}

// Conformance cases BN-01 to BN-07: measurement. Some results differ from the original's: no terms
// are skipped, indices are drawn with splitmix64, and medians are midpoints.
#include <math.h>
#include <string.h>

#include "bench/quality.h"
#include "bench/stats.h"
#include "check.h"
#include "lab/summary.h"
#include "lab/verdict.h"
#include "platform/platform.h"
#include "reference/measurement.h"
#include "sample/rng.h"

enum { VALUES_MAX = 41000 };

static double values[VALUES_MAX], scratch[VALUES_MAX];

static void fill_range(double first, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = first + (double)i;
}

static double percentile(const double *from, size_t count, uint32_t permille) {
  double found = NAN;
  CHECK_EQ_INT(stat_percentile(from, count, permille, scratch, &found), WICK_OK);
  return found;
}

TEST(bn_01_percentiles) {
  fill_range(1, 10);
  const uint32_t permilles[] = {0, 10, 100, 500, 900, 950, 990, 1000};
  const double wanted[] = {1, 1, 1, 5, 9, 10, 10, 10};
  for (int i = 0; i < 8; i++) CHECK_NEAR(percentile(values, 10, permilles[i]), wanted[i], 0);
  const double one[] = {42};
  for (int i = 0; i < 8; i++) CHECK_NEAR(percentile(one, 1, permilles[i]), 42, 0);
  // Here ceil(n * 0.999) in floating point is one too large.
  fill_range(1, 41000);
  CHECK_NEAR(percentile(values, 41000, 999), 40959, 0);
}

static void check_itl(const double *gaps, size_t count, double median, double stddev, double p99,
                      double p999) {
  itl_stats stats;
  CHECK_EQ_INT(itl_stats_from(gaps, count, scratch, &stats), WICK_OK);
  CHECK_EQ_UINT(stats.count, count);
  CHECK_NEAR(stats.median_ms, median, 1e-12);
  CHECK_NEAR(stats.stddev_ms, stddev, 5e-6);
  CHECK_NEAR(stats.p99_ms, p99, 0);
  CHECK_NEAR(stats.p999_ms, p999, 0);
}

TEST(bn_02_gaps_between_tokens) {
  const double gaps[] = {10, 12, 11, 15, 13, 14, 11, 12, 13, 10};
  check_itl(gaps, 10, 12, 1.66333, 15, 15);
  fill_range(0, 100);
  check_itl(values, 100, 49.5, 29.01149, 98, 99);
  fill_range(1, 1000);
  check_itl(values, 1000, 500.5, 288.81944, 990, 999);
  const double one[] = {7}, two[] = {1, 3};
  check_itl(one, 1, 7, 0, 7, 7);
  check_itl(two, 2, 2, 1.41421, 3, 3);
  itl_stats stats;
  CHECK_EQ_INT(itl_stats_from(one, 0, scratch, &stats), WICK_E_NODATA);
  CHECK(stats.median_ms == 0 && stats.stddev_ms == 0 && stats.p999_ms == 0);
  CHECK(!itl_is_low_jitter(&stats, 100));
  CHECK_EQ_INT(itl_stats_from(two, 2, scratch, &stats), WICK_OK);
  CHECK(itl_is_low_jitter(&stats, 1.5));
  CHECK(!itl_is_low_jitter(&stats, stats.stddev_ms));
}

static bench_quality quality(const float *reference, const float *candidate, size_t count,
                             double limit) {
  bench_quality result;
  CHECK_EQ_INT(quality_check(reference, count, candidate, count, limit, &result), WICK_OK);
  return result;
}

TEST(bn_03_divergence) {
  const float rising[] = {1, 2, 3, 4, 5};
  const float shifted[] = {1.01f, 2.01f, 3.01f, 4.01f, 5.01f};
  const float peak[] = {10, 0, 0, 0, 0}, other_peak[] = {0, 0, 0, 0, 10};
  const float even[] = {0, 0}, uneven[] = {0, 1.0986122886681098f};
  bench_quality q = quality(rising, rising, 5, 0.01);
  CHECK(q.passed && q.kl_nats == 0 && q.top1_agrees);
  CHECK_EQ_STR(q.message, "");
  q = quality(rising, shifted, 5, 0.01);
  CHECK(q.passed && q.kl_nats >= 0 && q.kl_nats < 1e-9);
  q = quality(peak, other_peak, 5, 0.01);
  CHECK(!q.passed && !q.top1_agrees);
  CHECK_NEAR(q.kl_nats, 9.99773, 5e-6);
  CHECK_EQ_STR(q.message, "the distribution has moved too far");
  CHECK_NEAR(quality(even, uneven, 2, 0.01).kl_nats, 0.143841, 5e-7);
  CHECK_NEAR(quality(uneven, even, 2, 0.01).kl_nats, 0.130812, 5e-7);
  CHECK_EQ_INT(quality_check(rising, 3, rising, 2, 0.01, &q), WICK_E_SHAPE);
  CHECK(!q.passed && q.kl_nats == (double)INFINITY);
  CHECK_EQ_INT(quality_check(rising, 0, rising, 0, 0.01, &q), WICK_E_NODATA);
  CHECK(!q.passed);
  CHECK(!quality(rising, rising, 5, 0).passed);
  const double kl = quality(even, uneven, 2, 1).kl_nats;
  CHECK(!quality(even, uneven, 2, kl).passed);
}

TEST(bn_04_no_term_is_skipped) {
  const float left[] = {100, 0}, right[] = {0, 100}, even[] = {0, 0}, thirty[] = {30, 0};
  bench_quality q = quality(left, right, 2, 0.01);
  CHECK(!q.passed);
  CHECK_NEAR(q.kl_nats, 100, 1e-9);
  q = quality(even, thirty, 2, 0.01);
  CHECK(!q.passed);
  CHECK_NEAR(q.kl_nats, 14.306853, 5e-7);
  const float bad[][2] = {{NAN, 0}, {0, NAN}, {INFINITY, 0}, {-INFINITY, -INFINITY}};
  for (int i = 0; i < 4; i++) {
    CHECK_EQ_INT(quality_check(bad[i], 2, even, 2, 0.01, &q), WICK_E_NONFINITE);
    CHECK(!q.passed && q.kl_nats == (double)INFINITY);
    CHECK_EQ_INT(quality_check(even, 2, bad[i], 2, 0.01, &q), WICK_E_NONFINITE);
    CHECK(!q.passed);
  }
  const float certain[] = {0, -INFINITY};
  CHECK_NEAR(quality(certain, even, 2, 0.01).kl_nats, log(2), 1e-12);  // p = 0 adds nothing
  CHECK(quality(even, certain, 2, 0.01).kl_nats == (double)INFINITY);  // q = 0 where p is not
  CHECK(quality(certain, certain, 2, 0.01).passed);
}

static void check_ci(size_t count, double low, double high) {
  stat_interval ci = {0, 0};
  CHECK_EQ_INT(stat_bootstrap_ci(values, count, 0.95, BOOTSTRAP_RESAMPLES_DEFAULT,
                                 BOOTSTRAP_SEED_DEFAULT, scratch, &ci),
               WICK_OK);
  CHECK_NEAR(ci.low, low, 1e-9);
  CHECK_NEAR(ci.high, high, 1e-9);
}

TEST(bn_05_bootstrap_intervals) {
  const double throughputs[] = {140, 142, 141, 143, 139};
  memcpy(values, throughputs, sizeof throughputs);
  check_ci(5, 139.8, 142.2);
  fill_range(0, 2);
  check_ci(2, 0, 1);
  fill_range(1, 8);
  check_ci(8, 3.0, 6.125);
  fill_range(1, 100);
  check_ci(100, 44.55, 56.28);
  for (int i = 0; i < 9; i++) values[i] = 2.5;
  check_ci(9, 2.5, 2.5);
  fill_range(1, 100);
  stat_interval ninety;
  CHECK_EQ_INT(stat_bootstrap_ci(values, 100, 0.9, 1000, 1, scratch, &ninety), WICK_OK);
  CHECK(scratch[49] < scratch[50]);
  CHECK_NEAR(ninety.low, scratch[50], 0);
  CHECK_NEAR(ninety.high, scratch[949], 0);
  uint64_t state = BOOTSTRAP_SEED_DEFAULT;
  const uint64_t outputs[] = {0xbdd732262feb6e95, 0x28efe333b266f103, 0x47526757130f9f52};
  for (int i = 0; i < 3; i++) CHECK_EQ_UINT(splitmix64_next(&state), outputs[i]);
  state = BOOTSTRAP_SEED_DEFAULT;
  const uint64_t picks[] = {5, 1, 2, 2, 0, 6, 1, 6};
  for (int i = 0; i < 8; i++) CHECK_EQ_UINT((splitmix64_next(&state) >> 32) * 8 >> 32, picks[i]);
  stat_interval ci;
  CHECK_EQ_INT(stat_bootstrap_ci(values, 5, 0.95, 0, 42, scratch, &ci), WICK_E_ARG);
  CHECK_EQ_INT(stat_bootstrap_ci(values, 5, 1, 10, 42, scratch, &ci), WICK_E_ARG);
  CHECK_EQ_INT(stat_bootstrap_ci(values, 5, (double)NAN, 10, 42, scratch, &ci), WICK_E_ARG);
  CHECK_EQ_INT(stat_bootstrap_ci(values, 0, 0.95, 10, 42, scratch, &ci), WICK_E_NODATA);
  values[3] = (double)NAN;
  CHECK_EQ_INT(stat_bootstrap_ci(values, 5, 0.95, 10, 42, scratch, &ci), WICK_E_NONFINITE);
}

static const double TTFT[] = {20, 22, 21, 25, 23, 24, 22, 21, 20, 26};
static const double ITL[] = {10, 11, 10.5, 11.5, 10.2, 10.8, 11.2, 10.3, 10.7, 11};
static const double THROUGHPUT[] = {140, 142, 141, 143, 139};

static bench_outcome example_result(void) {
  return (bench_outcome){.ttft_ms = {TTFT, 10},
                         .itl_ms = {ITL, 10},
                         .generation_tok_s = {THROUGHPUT, 5},
                         .prefill_tok_s = {THROUGHPUT, 2},
                         .cold_start_ms = 12,
                         .load_ms = 34,
                         .memory_bytes_peak = 56,
                         .kv_waste_pct = 7.5,
                         .has_energy = true,
                         .energy_j = 50,
                         .tokens_generated = 1000,
                         .iterations = 10,
                         .cv_at_stop = 0.04};
}

TEST(bn_06_summary) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  bench_outcome result = example_result();
  bench_summary s;
  wick_error error;
  REQUIRE(bench_summarize(&memory, &result, &s, &error) == WICK_OK);
  CHECK(s.ttft_ms_p50 == 22 && s.ttft_ms_p95 == 26 && s.ttft_ms_p99 == 26 && s.ttft_ms_p999 == 26);
  CHECK_NEAR(s.ttft_ms_mean, 22.4, 1e-12);
  CHECK_NEAR(s.itl_ms_median, 10.75, 1e-12);
  CHECK_NEAR(s.itl_ms_p99, 11.5, 0);
  CHECK_NEAR(s.itl_ms_stddev, 0.473286, 5e-7);
  CHECK_NEAR(s.throughput_tok_s_median, 141, 0);
  CHECK_NEAR(s.throughput_tok_s_mean, 141, 1e-12);
  CHECK_NEAR(s.throughput_tok_s_ci95.low, 139.8, 1e-9);
  CHECK_NEAR(s.throughput_tok_s_ci95.high, 142.2, 1e-9);
  CHECK_NEAR(s.prefill_tok_s_median, 141, 0);
  CHECK_NEAR(s.token_j, 0.05, 1e-15);
  CHECK(s.cold_start_ms == 12 && s.load_ms == 34 && s.memory_bytes_peak == 56);
  CHECK(s.kv_waste_pct == 7.5 && s.iterations == 10 && s.cv_final == 0.04);
  CHECK(s.ttft_count == 10 && s.itl_count == 10 && s.throughput_count == 5);
  result.tokens_generated = 0;
  CHECK_EQ_INT(bench_summarize(&memory, &result, &s, &error), WICK_OK);
  CHECK_NEAR(s.token_j, 0, 0);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static convoy_result judge(const double *base, size_t base_count, const double *mixed,
                           size_t mixed_count, const double *hol, size_t hol_count,
                           double fragmentation_pct) {
  convoy_result result;
  convoy_judge(&CONVOY_CONFIG_DEFAULT, (convoy_samples){base, base_count},
               (convoy_samples){mixed, mixed_count}, (convoy_samples){hol, hol_count},
               fragmentation_pct, scratch, &result);
  return result;
}

TEST(bn_07_convoy) {
  const double base[] = {10, 12, 11, 13, 10.5}, mixed[] = {12, 14, 13, 15, 12.5};
  const double hol[] = {50, 100, 75, 80, 60}, blocked[] = {600}, met[] = {500};
  convoy_result r = judge(base, 5, mixed, 5, hol, 5, 10);
  CHECK(r.passed && r.reasons == 0 && r.long_requests == 10 && r.short_requests == 5);
  CHECK(r.baseline_short_ms_p99 == 13 && r.convoy_short_ms_p99 == 15);
  CHECK_NEAR(r.p99_increase_pct, 15.3846, 5e-5);
  CHECK_NEAR(r.hol_blocking_ms_max, 100, 0);
  CHECK_NEAR(r.hol_blocking_ms_mean, 73, 1e-12);
  CHECK_NEAR(r.kv_fragmentation_pct, 10, 0);
  double tens[100], elevens[100];
  for (int i = 0; i < 100; i++) tens[i] = 10;
  for (int i = 0; i < 100; i++) elevens[i] = 11;
  r = judge(tens, 100, elevens, 100, blocked, 1, 10);
  CHECK(!r.passed && r.reasons == CONVOY_HOL_BLOCKING);
  r = judge(tens, 100, elevens, 100, hol, 5, 20);
  CHECK(!r.passed && r.reasons == CONVOY_KV_FRAGMENTATION);
  for (int i = 0; i < 100; i++) elevens[i] = 15;
  r = judge(tens, 100, elevens, 100, met, 1, 15);
  CHECK(r.passed && r.p99_increase_pct == 50);
  for (int i = 0; i < 100; i++) elevens[i] = 15.1;
  CHECK_EQ_UINT(judge(tens, 100, elevens, 100, met, 1, 15).reasons, CONVOY_P99_INCREASE);
  // A convoy without measurements or without a baseline does not pass.
  const double nothing[] = {0};
  CHECK_EQ_UINT(judge(tens, 100, elevens, 0, hol, 5, 10).reasons, CONVOY_NO_DATA);
  CHECK_EQ_UINT(judge(nothing, 1, elevens, 100, hol, 5, 10).reasons, CONVOY_NO_DATA);
  CHECK_EQ_UINT(workload_tokens_in(WORKLOAD_SHORT_QA), 32);
  CHECK_EQ_UINT(workload_tokens_out(WORKLOAD_SHORT_QA), 64);
  CHECK_EQ_UINT(workload_tokens_in(WORKLOAD_LONG_CONTEXT), 2048);
  CHECK_EQ_UINT(workload_tokens_out(WORKLOAD_LONG_CONTEXT), 512);
  CHECK_EQ_UINT(CONVOY_CONFIG_DEFAULT.short_requests, 100);
}

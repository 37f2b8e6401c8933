// Benchmark statistics: sorting, empty and invalid input, stop rule, saturation. The specified
// cases are in conformance_bench_test.c.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "bench/quality.h"
#include "bench/stats.h"
#include "check.h"
#include "format/types.h"
#include "lab/summary.h"
#include "lab/verdict.h"
#include "platform/platform.h"
#include "reference/measurement.h"

static double values[BENCH_SAMPLES_MAX], scratch[16];

static bench_quality quality(const float *reference, const float *candidate, size_t count,
                             double limit) {
  bench_quality result;
  CHECK_EQ_INT(quality_check(reference, count, candidate, count, limit, &result), WICK_OK);
  return result;
}

TEST(summaries_of_empty_and_invalid_series) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  bench_outcome result = {0};
  bench_summary s;
  wick_error error;
  CHECK_EQ_INT(bench_summarize(&memory, &result, &s, &error), WICK_OK);
  CHECK(s.ttft_count == 0 && s.ttft_ms_p50 == 0 && s.throughput_tok_s_ci95.high == 0);
  const double broken[] = {1, (double)NAN};
  bench_series *const series[] = {&result.ttft_ms, &result.itl_ms, &result.generation_tok_s,
                                  &result.prefill_tok_s};
  for (int i = 0; i < 4; i++) {
    *series[i] = (bench_series){broken, 2};
    CHECK_EQ_INT(bench_summarize(&memory, &result, &s, &error), WICK_E_NONFINITE);
    CHECK_EQ_STR(error.message, "a measurement is not a number");
    *series[i] = (bench_series){NULL, 0};
  }
  memory.fail_at_call = memory.calls + 1;
  CHECK_EQ_INT(bench_summarize(&memory, &result, &s, &error), WICK_E_NOMEM);
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

TEST(a_convoy_without_data_does_not_pass) {
  const double good[] = {1, 2}, bad[] = {1, (double)NAN}, zero[] = {0, 0};
  const struct {
    const double *base, *mixed, *hol;
    size_t base_count, mixed_count, hol_count;
    double fragmentation_pct;
  } cases[] = {{good, good, good, 0, 2, 2, 0}, {good, good, good, 2, 0, 2, 0},
               {good, good, good, 2, 2, 0, 0}, {bad, good, good, 2, 2, 2, 0},
               {good, bad, good, 2, 2, 2, 0},  {good, good, bad, 2, 2, 2, 0},
               {zero, good, good, 2, 2, 2, 0}, {good, good, good, 2, 2, 2, (double)NAN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const convoy_result r =
        judge(cases[i].base, cases[i].base_count, cases[i].mixed, cases[i].mixed_count,
              cases[i].hol, cases[i].hol_count, cases[i].fragmentation_pct);
    CHECK(!r.passed && r.reasons == CONVOY_NO_DATA);
  }
}

TEST(saturation_accepts_loads_that_meet_the_limits) {
  const saturation_config *config = &SATURATION_CONFIG_DEFAULT;
  CHECK_NEAR(config->load_pct, 50, 0);
  CHECK(saturation_passes(config, 100, 70, 10, 20));
  CHECK(!saturation_passes(config, 100, 69, 10, 20));
  CHECK(!saturation_passes(config, 100, 70, 10, 20.1));
  CHECK(!saturation_passes(config, 0, 70, 10, 20));
  CHECK(!saturation_passes(config, 100, (double)NAN, 10, 20));
  CHECK(!saturation_passes(config, 100, 70, (double)NAN, 20));
}

// ---- single functions ----

TEST(sorting_works_for_every_length) {
  for (size_t count = 0; count < 300; count++) {
    double sum = 0, after = 0;
    for (size_t i = 0; i < count; i++) {
      values[i] = (double)(hash_mix_u64(count * 1000 + i) % (count % 3 == 0 ? 10 : 1000)) - 5;
      sum += values[i] * values[i] * values[i];
    }
    stat_sort(values, count);
    for (size_t i = 0; i < count; i++) after += values[i] * values[i] * values[i];
    for (size_t i = 1; i < count; i++) CHECK(values[i - 1] <= values[i]);
    CHECK_NEAR(after, sum, 0);
  }
}

TEST(percentiles_reject_values_they_cannot_rank) {
  const double broken[] = {1, (double)NAN, 2};
  double found;
  CHECK_EQ_INT(stat_percentile(broken, 3, 500, scratch, &found), WICK_E_NONFINITE);
  CHECK_EQ_INT(stat_percentile(broken, 0, 500, scratch, &found), WICK_E_NODATA);
  CHECK_EQ_INT(stat_percentile(broken, 1, 1001, scratch, &found), WICK_E_ARG);
  CHECK_EQ_INT(stat_median(broken, 3, scratch, &found), WICK_E_NONFINITE);
  CHECK_EQ_INT(stat_median(broken, 0, scratch, &found), WICK_E_NODATA);
}

TEST(tails_need_enough_values) {
  CHECK(!stat_has_tail(99, 990) && stat_has_tail(100, 990));
  CHECK(!stat_has_tail(999, 999) && stat_has_tail(1000, 999));
  CHECK(stat_has_tail(2, 500) && !stat_has_tail(1, 500));
  CHECK(!stat_has_tail(1000000, 1000));
}

TEST(variance_does_not_suffer_from_cancellation) {
  const double far[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  CHECK_NEAR(stat_variance(far, 4), 30, 1e-9);
  CHECK_NEAR(stat_variance(far, 1), 0, 0);
  CHECK_NEAR(stat_variance(far, 0), 0, 0);
  CHECK_NEAR(stat_mean(far, 0), 0, 0);
  const double zeros[] = {0, 0};
  CHECK_NEAR(stat_cv(zeros, 2), 0, 0);
}

TEST(log_softmax_sums_to_one) {
  const float logits[] = {3, -200, 0.5f, -INFINITY, 2};
  double logs[5], sum = 0;
  CHECK_EQ_INT(log_softmax_f64(logits, 5, logs), WICK_OK);
  for (int i = 0; i < 5; i++) sum += exp(logs[i]);
  CHECK_NEAR(sum, 1, 1e-15);
  CHECK_NEAR(logs[0] - logs[4], 1, 1e-15);
  CHECK(logs[3] == -(double)INFINITY);
  CHECK_EQ_INT(log_softmax_f64(logits, 0, logs), WICK_E_NODATA);
  CHECK_EQ_INT(log_softmax_f64(logits + 3, 1, logs), WICK_E_NONFINITE);
}

TEST(quality_reports_whether_the_top_token_agrees) {
  const float reference[] = {5, 4, 0}, candidate[] = {4, 5, 0};
  CHECK(quality(reference, reference, 3, 1).top1_agrees);
  CHECK(!quality(reference, candidate, 3, 1).top1_agrees);
}

TEST(each_type_has_a_divergence_limit) {
  double limit = 0;
  CHECK(quality_kl_nats_limit(GGML_TYPE_Q8_0, &limit) && limit == 0.01);
  CHECK(quality_kl_nats_limit(GGML_TYPE_Q4_K, &limit) && limit == 0.05);
  CHECK(quality_kl_nats_limit(GGML_TYPE_Q4_0, &limit) && limit == 0.10);
  CHECK(!quality_kl_nats_limit(GGML_TYPE_F32, &limit));
}

TEST(sampling_stops_when_the_mean_is_stable) {
  bench_stop stop = {0};
  for (int i = 0; i < BENCH_SAMPLES_MAX; i++) values[i] = i % 2 == 0 ? 100 : 101;
  for (size_t count = 1; count < 102; count++) {
    CHECK(!bench_should_stop(&stop, values, count));
  }
  CHECK(bench_should_stop(&stop, values, 102));
  stop = (bench_stop){0};
  values[120] = 200;  // one outlier in the window restarts the count
  CHECK(!bench_should_stop(&stop, values, 119));
  CHECK(!bench_should_stop(&stop, values, 120));
  CHECK(!bench_should_stop(&stop, values, 121));
  CHECK_EQ_UINT(stop.stable_checks, 0);
  for (int i = 0; i < BENCH_SAMPLES_MAX; i++) values[i] = i % 2;
  CHECK(!bench_should_stop(&stop, values, BENCH_SAMPLES_MAX - 1));
  CHECK(bench_should_stop(&stop, values, BENCH_SAMPLES_MAX));
}

TEST(kv_waste_is_a_share_of_the_allocated_bytes) {
  CHECK_NEAR(kv_pct_of_waste(200, 150), 25, 1e-12);
  CHECK_NEAR(kv_pct_of_waste(0, 0), 0, 0);
  CHECK_NEAR(kv_pct_of_waste(100, 100), 0, 0);
  CHECK_NEAR(kv_pct_of_waste(100, 120), 0, 0);
}

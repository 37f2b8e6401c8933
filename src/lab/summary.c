// lab/summary.c — the numbers of a benchmark run.
#include "lab/summary.h"

#include <string.h>

static const double CV_STABLE = 0.05;
static const double CONFIDENCE = 0.95;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static wick_status summarize_ttft(const bench_series *ttft, double *scratch, bench_summary *out) {
  out->ttft_count = ttft->count;
  if (ttft->count == 0) return WICK_OK;
  const double *values = ttft->values;
  wick_status status = stat_percentile(values, ttft->count, 500, scratch, &out->ttft_ms_p50);
  if (status != WICK_OK) return status;
  // The other statistics cannot fail if the first one has succeeded.
  stat_percentile(values, ttft->count, 950, scratch, &out->ttft_ms_p95);
  stat_percentile(values, ttft->count, 990, scratch, &out->ttft_ms_p99);
  stat_percentile(values, ttft->count, 999, scratch, &out->ttft_ms_p999);
  out->ttft_ms_mean = stat_mean(values, ttft->count);
  return WICK_OK;
}

static wick_status summarize_itl(const bench_series *itl, double *scratch, bench_summary *out) {
  itl_stats stats;
  const wick_status status = itl_stats_from(itl->values, itl->count, scratch, &stats);
  out->itl_count = stats.count;
  out->itl_ms_median = stats.median_ms;
  out->itl_ms_stddev = stats.stddev_ms;
  out->itl_ms_p99 = stats.p99_ms;
  return status == WICK_E_NODATA ? WICK_OK : status;
}

static wick_status summarize_throughput(const bench_series *series, double *scratch,
                                        bench_summary *out) {
  out->throughput_count = series->count;
  if (series->count == 0) return WICK_OK;
  const wick_status status =
      stat_median(series->values, series->count, scratch, &out->throughput_tok_s_median);
  if (status != WICK_OK) return status;
  out->throughput_tok_s_mean = stat_mean(series->values, series->count);
  return stat_bootstrap_ci(series->values, series->count, CONFIDENCE, BOOTSTRAP_RESAMPLES_DEFAULT,
                           BOOTSTRAP_SEED_DEFAULT, scratch, &out->throughput_tok_s_ci95);
}

static wick_status summarize_prefill(const bench_series *series, double *scratch,
                                     bench_summary *out) {
  const wick_status status =
      stat_median(series->values, series->count, scratch, &out->prefill_tok_s_median);
  return status == WICK_E_NODATA ? WICK_OK : status;
}

wick_status bench_summarize(memory_gate *memory, const bench_outcome *result, bench_summary *out,
                            wick_error *error) {
  memset(out, 0, sizeof *out);
  const size_t most = larger(larger(result->ttft_ms.count, result->itl_ms.count),
                             larger(result->generation_tok_s.count, result->prefill_tok_s.count));
  const size_t room = larger(most, BOOTSTRAP_RESAMPLES_DEFAULT);
  double *scratch = memory_alloc_array(memory, room, sizeof *scratch);
  if (scratch == NULL) return memory_fail(memory, error, "statistics");
  wick_status status = summarize_ttft(&result->ttft_ms, scratch, out);
  if (status == WICK_OK) status = summarize_itl(&result->itl_ms, scratch, out);
  if (status == WICK_OK) status = summarize_throughput(&result->generation_tok_s, scratch, out);
  if (status == WICK_OK) status = summarize_prefill(&result->prefill_tok_s, scratch, out);
  memory_free(memory, scratch);
  if (status != WICK_OK) {
    return fail_with(error, status, WICK_NO_OFFSET, "a measurement is not a number");
  }
  if (result->has_energy && result->tokens_generated > 0) {
    out->token_j = result->energy_j / (double)result->tokens_generated;
  }
  out->kv_waste_pct = result->kv_waste_pct;
  out->cold_start_ms = result->cold_start_ms;
  out->load_ms = result->load_ms;
  out->memory_bytes_peak = result->memory_bytes_peak;
  out->iterations = result->iterations;
  out->cv_final = result->cv_at_stop;
  return WICK_OK;
}

bool bench_should_stop(bench_stop *stop, const double *samples, size_t count) {
  if (count < BENCH_SAMPLES_MIN) return false;
  if (count >= BENCH_SAMPLES_MAX) return true;
  const double cv = stat_cv(samples + count - BENCH_WINDOW, BENCH_WINDOW);
  stop->stable_checks = cv < CV_STABLE ? stop->stable_checks + 1 : 0;
  return stop->stable_checks >= BENCH_STABLE_CHECKS;
}

double kv_pct_of_waste(uint64_t allocated_bytes, uint64_t used_bytes) {
  if (allocated_bytes == 0 || used_bytes >= allocated_bytes) return 0;
  return (double)(allocated_bytes - used_bytes) / (double)allocated_bytes * 100;
}

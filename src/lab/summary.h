// lab/summary.h — a benchmark's raw samples, the statistics computed from them, and the criterion
// for ending sampling.
//
//   TTFT: submit to first token.  ITL: gap between tokens.  tok/s: inverse of the mean gap.
#ifndef WICK_LAB_SUMMARY_H
#define WICK_LAB_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "bench/stats.h"

// The measurements, and the machine that they were taken on.
typedef struct bench_config {
  const char *model, *format, *quantization;  // "gguf", "Q4_0"
  const char *runtime, *runtime_version;      // "Chromium", "156"
  const char *engine_build;                   // "relaxed-threads"
  uint32_t threads, prompt_tokens, output_tokens;
} bench_config;

typedef struct bench_series {
  const double *values;
  size_t count;
} bench_series;

typedef struct bench_outcome {
  bench_config config;
  double cold_start_ms, load_ms;
  bench_series ttft_ms, itl_ms, prefill_tok_s, generation_tok_s;
  uint64_t memory_bytes_peak;  // linear memory and staging
  double kv_waste_pct;
  bool has_energy;  // browsers do not report energy
  double energy_j;
  uint64_t tokens_generated;
  uint32_t iterations;
  double cv_at_stop;
  uint64_t timestamp_s;  // Unix time
} bench_outcome;

// For an empty series, all numbers are 0. Percentiles are nearest ranks, medians are midpoints. A
// tail is meaningful if stat_has_tail(ttft_count, permille).
typedef struct bench_summary {
  size_t ttft_count, itl_count, throughput_count;
  double ttft_ms_mean, ttft_ms_p50, ttft_ms_p95, ttft_ms_p99, ttft_ms_p999;
  double itl_ms_median, itl_ms_stddev, itl_ms_p99;
  double prefill_tok_s_median;
  double throughput_tok_s_median, throughput_tok_s_mean;
  stat_interval throughput_tok_s_ci95;  // confidence interval of the mean
  double token_j;                       // 0 without energy or tokens
  double kv_waste_pct;
  double cold_start_ms, load_ms;
  uint64_t memory_bytes_peak;
  uint32_t iterations;
  double cv_final;
} bench_summary;

// Computes the summary. WICK_E_NONFINITE for a NaN in a series, WICK_E_NOMEM for scratch.
wick_status bench_summarize(memory_gate *memory, const bench_outcome *result, bench_summary *out,
                            wick_error *error);

// Sampling stops after 100 samples if stddev / mean of the last 50 was below 0.05 three times in a
// row, and otherwise after 10000 samples.
enum {
  BENCH_SAMPLES_MIN = 100,
  BENCH_SAMPLES_MAX = 10000,
  BENCH_WINDOW = 50,
  BENCH_STABLE_CHECKS = 3
};
typedef struct bench_stop {
  uint32_t stable_checks;  // consecutive stable checks; initially 0
} bench_stop;
// Returns whether sampling should stop. Called after each sample.
bool bench_should_stop(bench_stop *stop, const double *samples, size_t count);

// Returns the percentage of the allocated KV bytes that no token uses; 0 if nothing is allocated.
double kv_pct_of_waste(uint64_t allocated_bytes, uint64_t used_bytes);

#endif

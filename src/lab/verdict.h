// lab/verdict.h — checks measured latencies against limits. The convoy test measures how much
// slower short requests become if long ones are served at the same time, the saturation test how
// much slower requests become under load.
#ifndef WICK_LAB_VERDICT_H
#define WICK_LAB_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum bench_workload {
  WORKLOAD_SHORT_QA = 0,     // 32 tokens in, 64 out
  WORKLOAD_LONG_CONTEXT = 1  // 2048 in, 512 out
} bench_workload;

uint32_t workload_tokens_in(bench_workload workload);
uint32_t workload_tokens_out(bench_workload workload);

typedef struct convoy_config {
  uint32_t long_requests, short_requests;
  double p99_increase_pct_max;
  double hol_blocking_ms_max;  // maximum time queued while a long prefill occupies the engine
  double kv_fragmentation_pct_max;
} convoy_config;

extern const convoy_config CONVOY_CONFIG_DEFAULT;  // 10, 100, 50%, 500 ms, 15%

typedef struct convoy_request {
  bench_workload workload;
  double queue_ms, ttft_ms, total_ms;
} convoy_request;

// Reasons why a convoy failed, as bits.
enum {
  CONVOY_P99_INCREASE = 1 << 0,
  CONVOY_HOL_BLOCKING = 1 << 1,
  CONVOY_KV_FRAGMENTATION = 1 << 2,
  CONVOY_NO_DATA = 1 << 3  // a value is missing or NaN, or the baseline is 0
};

typedef struct convoy_result {
  uint32_t long_requests;
  size_t short_requests;  // measured in the convoy
  double baseline_short_ms_p99, convoy_short_ms_p99;
  double p99_increase_pct;
  double hol_blocking_ms_max, hol_blocking_ms_mean;
  double kv_fragmentation_pct;
  uint32_t reasons;  // bits; 0 when passed
  bool passed;
} convoy_result;

typedef struct convoy_samples {
  const double *values;
  size_t count;
} convoy_samples;

// Checks total latencies of short requests, alone and alongside long ones, and the times that they
// were blocked. A limit fails only if it is exceeded. scratch: as long as the longest array.
void convoy_judge(const convoy_config *config, convoy_samples baseline_ms, convoy_samples convoy_ms,
                  convoy_samples hol_blocking_ms, double kv_fragmentation_pct, double *scratch,
                  convoy_result *out);

typedef struct saturation_config {
  double load_pct, throughput_drop_pct_max, p99_increase_pct_max;
} saturation_config;

extern const saturation_config SATURATION_CONFIG_DEFAULT;  // 50, 30, 100

// Whether throughput and p99 latency under load stay within the limits; false without data.
bool saturation_passes(const saturation_config *config, double throughput_tok_s_alone,
                       double throughput_tok_s_loaded, double ms_p99_alone, double ms_p99_loaded);

#endif

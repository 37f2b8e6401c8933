// lab/verdict.c — limits on how much slower short requests may become.
#include "lab/verdict.h"

#include <string.h>

#include "bench/stats.h"

const convoy_config CONVOY_CONFIG_DEFAULT = {.long_requests = 10,
                                             .short_requests = 100,
                                             .p99_increase_pct_max = 50,
                                             .hol_blocking_ms_max = 500,
                                             .kv_fragmentation_pct_max = 15};

const saturation_config SATURATION_CONFIG_DEFAULT = {
    .load_pct = 50, .throughput_drop_pct_max = 30, .p99_increase_pct_max = 100};

uint32_t workload_tokens_in(bench_workload workload) {
  return workload == WORKLOAD_SHORT_QA ? 32 : 2048;
}

uint32_t workload_tokens_out(bench_workload workload) {
  return workload == WORKLOAD_SHORT_QA ? 64 : 512;
}

static double increase_pct(double from, double to) { return (to - from) / from * 100; }

void convoy_judge(const convoy_config *config, convoy_samples baseline_ms, convoy_samples convoy_ms,
                  convoy_samples hol_blocking_ms, double kv_fragmentation_pct, double *scratch,
                  convoy_result *out) {
  memset(out, 0, sizeof *out);
  out->long_requests = config->long_requests;
  out->short_requests = convoy_ms.count;
  out->reasons = CONVOY_NO_DATA;
  double hol_ms_max = 0;
  if (stat_percentile(baseline_ms.values, baseline_ms.count, 990, scratch,
                      &out->baseline_short_ms_p99) != WICK_OK ||
      stat_percentile(convoy_ms.values, convoy_ms.count, 990, scratch, &out->convoy_short_ms_p99) !=
          WICK_OK ||
      stat_percentile(hol_blocking_ms.values, hol_blocking_ms.count, 1000, scratch, &hol_ms_max) !=
          WICK_OK ||
      !(out->baseline_short_ms_p99 > 0) || kv_fragmentation_pct != kv_fragmentation_pct) {
    return;
  }
  out->p99_increase_pct = increase_pct(out->baseline_short_ms_p99, out->convoy_short_ms_p99);
  out->hol_blocking_ms_max = hol_ms_max > 0 ? hol_ms_max : 0;
  out->hol_blocking_ms_mean = stat_mean(hol_blocking_ms.values, hol_blocking_ms.count);
  out->kv_fragmentation_pct = kv_fragmentation_pct;
  out->reasons = 0;
  if (out->p99_increase_pct > config->p99_increase_pct_max) {
    out->reasons |= CONVOY_P99_INCREASE;
  }
  if (out->hol_blocking_ms_max > config->hol_blocking_ms_max) {
    out->reasons |= CONVOY_HOL_BLOCKING;
  }
  if (kv_fragmentation_pct > config->kv_fragmentation_pct_max) {
    out->reasons |= CONVOY_KV_FRAGMENTATION;
  }
  out->passed = out->reasons == 0;
}

bool saturation_passes(const saturation_config *config, double throughput_tok_s_alone,
                       double throughput_tok_s_loaded, double ms_p99_alone, double ms_p99_loaded) {
  if (!(throughput_tok_s_alone > 0) || !(ms_p99_alone > 0)) return false;
  const double drop_pct = -increase_pct(throughput_tok_s_alone, throughput_tok_s_loaded);
  return drop_pct <= config->throughput_drop_pct_max &&
         increase_pct(ms_p99_alone, ms_p99_loaded) <= config->p99_increase_pct_max;
}

// bench/quality.h — the distance of a quantised model's next-token distribution from the reference:
// Kullback-Leibler divergence of the softmaxes, in nats (as in llama.cpp's perplexity tool).
#ifndef WICK_BENCH_QUALITY_H
#define WICK_BENCH_QUALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Computes out[i] = log softmax(logits)[i], in doubles. WICK_E_NODATA if count is 0,
// WICK_E_NONFINITE if a logit is NaN or +Inf or all are -Inf.
wick_status log_softmax_f64(const float *logits, size_t count, double *out);

typedef struct bench_quality {
  bool passed;          // kl_nats < kl_nats_max
  double kl_nats;       // KL(reference, candidate); +Inf if unknown
  double kl_nats_max;   // the limit
  bool top1_agrees;     // both have the same most probable token (the lowest id among equals)
  const char *message;  // static; "" if passed
} bench_quality;

// Checks one position and always fills *out. The check fails if the status is WICK_E_SHAPE (lengths
// differ), WICK_E_NODATA (empty) or WICK_E_NONFINITE. No terms are skipped: p > 0 with q = 0
// results in +Inf.
wick_status quality_check(const float *reference, size_t reference_count, const float *candidate,
                          size_t candidate_count, double kl_nats_max, bench_quality *out);

#endif

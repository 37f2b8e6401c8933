// bench/quality.c — divergences by log-softmax in doubles. No term is skipped, and cancellation
// makes no term negative beyond rounding.
#include "bench/quality.h"

#include "base/math.h"

static const double KL_NATS_ROUNDING = 1e-9;  // a value this much below 0 counts as 0

static double infinity_f64(void) { return (double)f32_of_bits(0x7f800000u); }

typedef struct softmax_scale {
  size_t top;      // index of the largest logit
  double log_sum;  // log of the sum of all exponentials
} softmax_scale;

static wick_status find_scale(const float *logits, size_t count, softmax_scale *out) {
  if (count == 0) return WICK_E_NODATA;
  size_t top = 0;
  for (size_t i = 0; i < count; i++) {
    if (logits[i] != logits[i]) return WICK_E_NONFINITE;
    if (logits[i] > logits[top]) top = i;
  }
  if (!math_is_finite_f32(logits[top])) return WICK_E_NONFINITE;
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += math_exp((double)logits[i] - (double)logits[top]);
  *out = (softmax_scale){top, (double)logits[top] + math_log(sum)};
  return WICK_OK;
}

wick_status log_softmax_f64(const float *logits, size_t count, double *out) {
  softmax_scale scale;
  const wick_status status = find_scale(logits, count, &scale);
  for (size_t i = 0; status == WICK_OK && i < count; i++) {
    out[i] = (double)logits[i] - scale.log_sum;
  }
  return status;
}

static double sum_divergence(const float *reference, const softmax_scale *reference_scale,
                             const float *candidate, const softmax_scale *candidate_scale,
                             size_t count) {
  double kl_nats = 0;
  for (size_t i = 0; i < count; i++) {
    const double log_p = (double)reference[i] - reference_scale->log_sum;
    const double log_q = (double)candidate[i] - candidate_scale->log_sum;
    const double p = math_exp(log_p);
    if (p > 0) kl_nats += p * (log_p - log_q);  // +Inf when q is 0
  }
  return kl_nats < 0 && kl_nats >= -KL_NATS_ROUNDING ? 0 : kl_nats;
}

static wick_status fail_quality(bench_quality *out, wick_status status, const char *message) {
  out->message = message;
  return status;
}

wick_status quality_check(const float *reference, size_t reference_count, const float *candidate,
                          size_t candidate_count, double kl_nats_max, bench_quality *out) {
  *out = (bench_quality){false, infinity_f64(), kl_nats_max, false, ""};
  if (reference_count != candidate_count) {
    return fail_quality(out, WICK_E_SHAPE, "the numbers of logits differ");
  }
  softmax_scale reference_scale, candidate_scale;
  wick_status status = find_scale(reference, reference_count, &reference_scale);
  if (status == WICK_OK) status = find_scale(candidate, candidate_count, &candidate_scale);
  if (status == WICK_E_NODATA) return fail_quality(out, status, "there are no logits");
  if (status != WICK_OK) return fail_quality(out, status, "a logit is not finite");
  out->kl_nats =
      sum_divergence(reference, &reference_scale, candidate, &candidate_scale, reference_count);
  out->top1_agrees = reference_scale.top == candidate_scale.top;
  out->passed = out->kl_nats < kl_nats_max;
  if (!out->passed) out->message = "the distribution has moved too far";
  return WICK_OK;
}

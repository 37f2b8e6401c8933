// bench/stats.c — ranks are computed in integers, because ceil(41000 * 0.999) in floats is one too
// large.
#include "bench/stats.h"

#include <string.h>

#include "sample/rng.h"

// Sifts values[at] down in the heap [at, count).
static void heap_sink(double *values, size_t at, size_t count) {
  const double value = values[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && values[child + 1] > values[child]) child++;
    if (values[child] <= value) break;
    values[at] = values[child];
    at = child;
  }
  values[at] = value;
}

void stat_sort(double *values, size_t count) {
  for (size_t at = count / 2; at > 0; at--) heap_sink(values, at - 1, count);
  for (size_t end = count; end > 1; end--) {
    const double largest = values[0];
    values[0] = values[end - 1];
    values[end - 1] = largest;
    heap_sink(values, 0, end - 1);
  }
}

static wick_status copy_sorted(const double *values, size_t count, double *scratch) {
  if (count == 0) return WICK_E_NODATA;
  for (size_t i = 0; i < count; i++) {
    if (values[i] != values[i]) return WICK_E_NONFINITE;
  }
  memcpy(scratch, values, count * sizeof *values);
  stat_sort(scratch, count);
  return WICK_OK;
}

static double sorted_percentile(const double *sorted, size_t count, uint32_t permille) {
  const uint64_t rank = ((uint64_t)count * permille + 999) / 1000;
  return sorted[rank == 0 ? 0 : rank - 1];
}

static double sorted_median(const double *sorted, size_t count) {
  const double upper = sorted[count / 2];
  return count % 2 == 1 ? upper : (sorted[count / 2 - 1] + upper) / 2;
}

wick_status stat_percentile(const double *values, size_t count, uint32_t permille, double *scratch,
                            double *out) {
  if (permille > 1000) return WICK_E_ARG;
  const wick_status status = copy_sorted(values, count, scratch);
  if (status == WICK_OK) *out = sorted_percentile(scratch, count, permille);
  return status;
}

wick_status stat_median(const double *values, size_t count, double *scratch, double *out) {
  const wick_status status = copy_sorted(values, count, scratch);
  if (status == WICK_OK) *out = sorted_median(scratch, count);
  return status;
}

bool stat_has_tail(size_t count, uint32_t permille) {
  return permille < 1000 && (uint64_t)count * (1000 - permille) >= 1000;
}

double stat_mean(const double *values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += values[i];
  return count == 0 ? 0 : sum / (double)count;
}

double stat_variance(const double *values, size_t count) {
  double mean = 0, squares = 0;
  for (size_t i = 0; i < count; i++) {
    const double distance = values[i] - mean;
    mean += distance / (double)(i + 1);
    squares += distance * (values[i] - mean);
  }
  return count < 2 ? 0 : squares / (double)(count - 1);
}

double stat_stddev(const double *values, size_t count) {
  return __builtin_sqrt(stat_variance(values, count));
}

double stat_cv(const double *values, size_t count) {
  const double mean = stat_mean(values, count);
  return mean == 0 ? 0 : stat_stddev(values, count) / mean;
}

wick_status stat_bootstrap_ci(const double *values, size_t count, double confidence,
                              uint32_t resamples, uint64_t seed, double *scratch,
                              stat_interval *out) {
  if (resamples == 0 || count > UINT32_MAX || !(confidence > 0 && confidence < 1)) {
    return WICK_E_ARG;
  }
  if (count == 0) return WICK_E_NODATA;
  for (size_t i = 0; i < count; i++) {
    if (values[i] != values[i]) return WICK_E_NONFINITE;
  }
  uint64_t state = seed;
  for (uint32_t b = 0; b < resamples; b++) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
      const uint64_t high = splitmix64_next(&state) >> 32;
      sum += values[high * (uint64_t)count >> 32];
    }
    scratch[b] = sum / (double)count;
  }
  stat_sort(scratch, resamples);
  // Adds a tiny amount, because 1000 * (1 - 0.9) / 2 is 49.999... in doubles.
  const uint32_t low = (uint32_t)((double)resamples * (1 - confidence) / 2 + 1e-9);
  *out = (stat_interval){scratch[low], scratch[resamples - 1 - low]};
  return WICK_OK;
}

wick_status itl_stats_from(const double *gaps_ms, size_t count, double *scratch, itl_stats *out) {
  memset(out, 0, sizeof *out);
  const wick_status status = copy_sorted(gaps_ms, count, scratch);
  if (status != WICK_OK) return status;
  out->count = count;
  out->median_ms = sorted_median(scratch, count);
  out->stddev_ms = stat_stddev(gaps_ms, count);
  out->p99_ms = sorted_percentile(scratch, count, 990);
  out->p999_ms = sorted_percentile(scratch, count, 999);
  return WICK_OK;
}

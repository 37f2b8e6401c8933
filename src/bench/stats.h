// bench/stats.h — statistics for measurements: percentiles by nearest rank, sample variance,
// bootstrap intervals, and statistics of the gaps between tokens. The functions are pure; the
// caller supplies scratch.
#ifndef WICK_BENCH_STATS_H
#define WICK_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Sorts in ascending order, in place. O(n log n).
void stat_sort(double *values, size_t count);

// Gets the value of rank ceil(count * permille / 1000), at least the first. scratch: [count].
// WICK_E_NODATA if empty, WICK_E_NONFINITE for a NaN, WICK_E_ARG for permille above 1000.
wick_status stat_percentile(const double *values, size_t count, uint32_t permille, double *scratch,
                            double *out);
// Gets the middle value, or the mean of the two middle values. scratch: [count]. Returns the
// statuses of stat_percentile.
wick_status stat_median(const double *values, size_t count, double *scratch, double *out);
// Whether this many values have a tail beyond the percentile: count >= 1 / (1 - p). With fewer
// values, the percentile is the maximum and should not be printed.
bool stat_has_tail(size_t count, uint32_t permille);

double stat_mean(const double *values, size_t count);      // 0 when empty
double stat_variance(const double *values, size_t count);  // n - 1; Welford; n < 2: 0
double stat_stddev(const double *values, size_t count);
double stat_cv(const double *values, size_t count);  // stddev / mean; 0 when the mean is 0

typedef struct stat_interval {
  double low, high;
} stat_interval;

enum { BOOTSTRAP_SEED_DEFAULT = 42, BOOTSTRAP_RESAMPLES_DEFAULT = 1000 };

// Computes the percentile interval of the mean (Efron 1979). splitmix64 from `seed` draws the same
// samples on every host. confidence in (0, 1). scratch: [resamples]. WICK_E_ARG, WICK_E_NODATA,
// WICK_E_NONFINITE.
wick_status stat_bootstrap_ci(const double *values, size_t count, double confidence,
                              uint32_t resamples, uint64_t seed, double *scratch,
                              stat_interval *out);

// Statistics of inter-token latencies.
typedef struct itl_stats {
  size_t count;
  double median_ms, stddev_ms, p99_ms, p999_ms;
} itl_stats;

// Computes the statistics. scratch: [count]. If count is 0: zeros and WICK_E_NODATA.
// WICK_E_NONFINITE for a NaN.
wick_status itl_stats_from(const double *gaps_ms, size_t count, double *scratch, itl_stats *out);

#endif

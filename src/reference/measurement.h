// reference/measurement.h — limits of the specification that no measuring command requires.
#ifndef WICK_REFERENCE_MEASUREMENT_H
#define WICK_REFERENCE_MEASUREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/stats.h"

// Whether the standard deviation is below the limit; false without gaps.
bool itl_is_low_jitter(const itl_stats *stats, double stddev_ms_max);
// The largest divergence that a GGML type (format/types.h) may have: Q8_0 0.01, Q4_K 0.05, Q4_0
// 0.10; false for others.
bool quality_kl_nats_limit(uint32_t type, double *kl_nats_max);

#endif

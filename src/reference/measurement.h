// reference/measurement.h — limits of the specification that no benchmark command needs.
#ifndef WICK_REFERENCE_MEASUREMENT_H
#define WICK_REFERENCE_MEASUREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/stats.h"

// Returns whether the standard deviation is below the limit; false if there are no gaps.
bool itl_is_low_jitter(const itl_stats *stats, double stddev_ms_max);
// Sets the largest divergence that a GGML type (format/types.h) may have: Q8_0 0.01, Q4_K 0.05,
// Q4_0 0.10. Returns false for other types.
bool quality_kl_nats_limit(uint32_t type, double *kl_nats_max);

#endif

// reference/measurement.c — limits for measurements.
#include "reference/measurement.h"

#include "format/types.h"

bool itl_is_low_jitter(const itl_stats *stats, double stddev_ms_max) {
  return stats->count > 0 && stats->stddev_ms < stddev_ms_max;
}

bool quality_kl_nats_limit(uint32_t type, double *kl_nats_max) {
  if (type == GGML_TYPE_Q8_0) {
    *kl_nats_max = 0.01;
  } else if (type == GGML_TYPE_Q4_K) {
    *kl_nats_max = 0.05;
  } else if (type == GGML_TYPE_Q4_0) {
    *kl_nats_max = 0.10;
  } else {
    return false;
  }
  return true;
}

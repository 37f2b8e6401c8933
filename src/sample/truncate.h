// sample/truncate.h — top-k, top-p and min-p without sorting. Histograms find the smallest kept
// logit, digit by digit, exactly and in O(count) for any logits.
#ifndef WICK_SAMPLE_TRUNCATE_H
#define WICK_SAMPLE_TRUNCATE_H

#include <stdint.h>

#include "base/math.h"

enum { TRUNCATE_BUCKETS = 2048, LOGIT_BLOCK = 64 };

// Maps a float to an integer of the same order; -0 equals 0, NaNs are beyond the infinities.
static inline int32_t logit_key(float logit) {
  const uint32_t bits = bits_of_f32(logit + 0.0f);
  return (int32_t)(bits ^ ((bits >> 31) != 0 ? 0x7fffffffu : 0u));
}

static inline float logit_of_key(int32_t key) {
  return f32_of_bits((uint32_t)key ^ (key < 0 ? 0x7fffffffu : 0u));
}

typedef struct logit_range {
  int32_t least, most;  // keys
} logit_range;

// Finds the range, and the maximum of each block of LOGIT_BLOCK logits, in one pass (scan.c).
logit_range logit_scan(const float *logits, uint32_t count, float *block_max);

// The remaining candidates, by ascending id. `logits` may be the array from which they are
// gathered.
typedef struct candidates {
  int32_t *ids;     // [count]
  float *logits;    // [count]
  float *weights;   // [count] scratch: exponentials
  double *buckets;  // [TRUNCATE_BUCKETS] scratch
  uint32_t count;
} candidates;

// Keeps the k (1..count) largest of `logits` [count]; among equal logits, the lowest ids. block_max
// comes from logit_scan.
void truncate_top_k(candidates *kept, const float *logits, uint32_t count, const float *block_max,
                    uint32_t k);
// Keeps the fewest candidates, largest keys first, whose weights sum to at least `target`, which is
// above 0 and at most their sum. If weights is NULL, each weight is 1. Among equal keys, those with
// the lowest ids are kept. `keys` may be the logits.
void truncate_by_keys(candidates *kept, const float *keys, const float *weights, double target);
// Keeps the fewest candidates, largest first, whose weights (e^(logit - max), set by the caller)
// sum to at least `mass` (0..1) times all weights. At least one is kept.
void truncate_top_p(candidates *kept, float max, double mass);
// Keeps the candidates whose logit is at least `least`.
void truncate_at_least(candidates *kept, double least);
// Keeps candidates whose probability is at least `ratio` (0..1) times the probability of `max`, the
// largest logit.
void truncate_min_p(candidates *kept, float max, double ratio);

#endif

// sample/truncate.h — top-k, top-p and min-p without sorting: the smallest logit that stays is
// found digit by digit in histograms, exactly and in O(count) whatever the logits are.
#ifndef WICK_SAMPLE_TRUNCATE_H
#define WICK_SAMPLE_TRUNCATE_H

#include <stdint.h>

#include "base/math.h"

enum { TRUNCATE_BUCKETS = 2048, LOGIT_BLOCK = 64 };

// Orders as floats do; -0 equals 0, NaNs are beyond the infinities.
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

// One pass: the range, and the largest of each block of LOGIT_BLOCK logits.
logit_range logit_scan(const float *logits, uint32_t count, float *block_max);

// What is still in play, by rising id. `logits` may be the array that it is gathered from.
typedef struct candidates {
  int32_t *ids;     // [count]
  float *logits;    // [count]
  float *weights;   // [count] scratch: exponentials
  double *buckets;  // [TRUNCATE_BUCKETS] scratch
  uint32_t count;
} candidates;

// The k (1..count) largest of `logits` [count]; of equal ones the lowest ids. block_max is
// logit_scan's.
void truncate_top_k(candidates *kept, const float *logits, uint32_t count, const float *block_max,
                    uint32_t k);
// The fewest, largest first, whose weights (e^(logit - max), set by the caller) sum to at least
// `mass` (0..1) times all weights. At least one stays.
void truncate_top_p(candidates *kept, float max, double mass);
// Those whose probability is at least `ratio` (0..1) times that of `max`, the largest logit.
void truncate_min_p(candidates *kept, float max, double ratio);

#endif

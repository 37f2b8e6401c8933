// sample/softmax.h — exponentials of logits, in float and quick enough for a whole vocabulary. Each
// operation is rounded by IEEE 754 and sums have one order: the same bits on every host.
#ifndef WICK_SAMPLE_SOFTMAX_H
#define WICK_SAMPLE_SOFTMAX_H

#include <stdint.h>

#include "base/math.h"

// e^x for x <= 0, relative error below 1.2e-7; 0 below -87 (-Inf included). 2^n e^r with |r| <= ln
// 2 / 2, the polynomial of Cephes (Moshier 1989). Branchless, so that loops over it are vectorised.
static inline float softmax_exp(float x) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float shifted = x * 1.44269504f + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float fraction = p * (r * r) + r + 1.0f;
  const float scale = f32_of_bits((bits_of_f32(shifted) - bits_of_f32(magic) + 127u) << 23);
  return x < -87.0f ? 0.0f : fraction * scale;
}

// The sum of e^(logits[i] - max) over i, in an order of its own.
double softmax_sum(const float *logits, uint32_t count, float max);

// weights[i] = e^((logits[i] - max) / temperature).
void softmax_weights(const float *logits, uint32_t count, float max, float temperature,
                     float *weights);

#endif

// sample/softmax.h — exponentials of logits in float, fast enough for a whole vocabulary. Each
// operation is rounded as in IEEE 754 and the summation order is fixed, so the results are
// bit-identical on every host.
#ifndef WICK_SAMPLE_SOFTMAX_H
#define WICK_SAMPLE_SOFTMAX_H

#include <stdint.h>

#include "kernels/exp.h"

// Returns e^x for x <= 0, with a relative error below 1.2e-7; 0 below -87 (including -Inf). Like
// the kernels' exp_f32, but without a branch, so that loops over it are vectorised.
static inline float softmax_exp(float x) {
  const float rounded = x * EXP_LOG2_E + EXP_ROUND;
  const float n = rounded - EXP_ROUND;
  const float r = (x - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
  float p = EXP_P0 * r + EXP_P1;
  p = p * r + EXP_P2;
  p = p * r + EXP_P3;
  p = p * r + EXP_P4;
  p = p * r + EXP_P5;
  p = p * (r * r) + (r + 1.0f);
  const float power = f32_of_bits(bits_of_f32(p) + (bits_of_f32(rounded) << 23));
  return x < EXP_LEAST ? 0.0f : power;
}

// Returns the sum of e^(logits[i] - max) over i, in a fixed order.
double softmax_sum(const float *logits, uint32_t count, float max);

// Sets weights[i] = e^((logits[i] - max) / temperature).
void softmax_weights(const float *logits, uint32_t count, float max, float temperature,
                     float *weights);

#endif

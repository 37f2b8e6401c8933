// kernels/exp.h — e^x and functions based on it for one float, computed as in the SIMD kernels.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite, ln 2 in two parts), e^r by a polynomial of
// degree 6 (minimax coefficients of Cephes' expf), scaled by 2^n. Relative error below 3e-7 for
// x in [EXP_LEAST, EXP_MOST]; 0 below, +Inf above, NaN for NaN.
#ifndef WICK_KERNELS_EXP_H
#define WICK_KERNELS_EXP_H

#include "base/math.h"

#define EXP_LEAST (-87.0f)
#define EXP_MOST 88.0f
#define EXP_LOG2_E 1.44269504088896341f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW (-2.12194440e-4f)
#define EXP_ROUND 0x1.8p23f  // see ACT_ROUND
#define EXP_P0 1.9875691500e-4f
#define EXP_P1 1.3981999507e-3f
#define EXP_P2 8.3334519073e-3f
#define EXP_P3 4.1665795894e-2f
#define EXP_P4 1.6666665459e-1f
#define EXP_P5 5.0000001201e-1f

static inline float exp_f32(float x) {
  if (x != x) return x;
  if (x < EXP_LEAST) return 0.0f;
  if (x > EXP_MOST) return f32_of_bits(0x7f800000u);
  const float rounded = x * EXP_LOG2_E + EXP_ROUND;
  const float n = rounded - EXP_ROUND;
  const float r = (x - n * EXP_LN2_HIGH) - n * EXP_LN2_LOW;
  const float r2 = r * r;  // Estrin's order, which has fewer dependent steps
  float p = (EXP_P0 * r + EXP_P1) * r2 + (EXP_P2 * r + EXP_P3);
  p = p * r2 + (EXP_P4 * r + EXP_P5);
  p = p * r2 + (r + 1.0f);
  // The low bits of `rounded` are n; adding n to the exponent of p multiplies by 2^n.
  return f32_of_bits(bits_of_f32(p) + (bits_of_f32(rounded) << 23));
}

// Computes tanh. Absolute error below 3e-7.
static inline float tanh_f32(float x) { return 1.0f - 2.0f / (1.0f + exp_f32(2.0f * x)); }

// Computes erf (Abramowitz and Stegun 1964, 7.1.26). Absolute error below 5e-7.
static inline float erf_f32(float x) {
  const float size = x < 0 ? -x : x, t = 1.0f / (1.0f + 0.3275911f * size);
  const float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t +
                   0.254829592f) *
                  t;
  const float value = 1.0f - p * exp_f32(-size * size);
  return x < 0 ? -value : value;
}

// 2 sqrt(2 / pi), and this number times 0.044715 (Hendrycks and Gimpel 2016, the tanh form).
#define GELU_LINEAR 1.5957691216057308f
#define GELU_CUBIC 0.0713548162726f
#define GELU_ROOT 0.70710678118654752f  // sqrt(1 / 2), for the exact form

// ln(1 + e), e in [0, 1], is 2 atanh(s) = s (2 + 2/3 s^2 + 2/5 s^4 ...), s = e / (2 + e) <= 1/3.
// Relative error below 3e-7.
#define LOG1P_TERMS 7
#define LOG1P_TERM(i) (2.0f / (2.0f * (float)(i) + 1.0f))

// gpt-oss (OpenAI 2025)
#define SWIGLU_LIMIT 7.0f
#define SWIGLU_SLOPE 1.702f

#endif

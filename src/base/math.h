// base/math.h — the few transcendental functions that the engine needs, bit-identical on every host
// (libc functions are not), and half-precision conversions. Scalar; kernels have their own
// vectorised forms with stated error bounds.
#ifndef WICK_BASE_MATH_H
#define WICK_BASE_MATH_H

#include <stdint.h>
#include <string.h>

// Functions of doubles, with relative error below 4e-16 (exp, log) or absolute error below 4e-16
// (sin, cos for |x| < 1e7; larger x are first reduced modulo the double nearest to 2 pi; NaN for
// infinities).
double math_exp(double x);
double math_log(double x);                      // -inf at 0, NaN below
double math_pow(double base, double exponent);  // base > 0
void math_sin_cos(double x, double *sine, double *cosine);

static inline uint32_t bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float f32_of_bf16(uint16_t half) { return f32_of_bits((uint32_t)half << 16); }

float f32_of_f16(uint16_t half);   // exact, subnormals, Inf and NaN included
uint16_t f16_of_f32(float value);  // round to nearest even; overflow to Inf
static inline int math_is_finite_f32(float value) {
  return (bits_of_f32(value) & 0x7f800000u) != 0x7f800000u;
}

#endif

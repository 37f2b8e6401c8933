// quantize/scales.h — finds the scales of a block of values with the least squared error.
#ifndef WICK_QUANTIZE_SCALES_H
#define WICK_QUANTIZE_SCALES_H

#include <stdbool.h>
#include <stdint.h>

// Rounds to nearest, ties to even: adding 1.5 * 2^23 leaves the integer in the low bits. Saturates
// at +-2^21, far beyond all codes.
static inline int32_t quantize_nearest(float value) {
  const float limit = 2097152.0f, shift = 12582912.0f;
  const float near = value < -limit ? -limit : value > limit ? limit : value;
  return (int32_t)(near + shift - shift);
}

static inline int32_t quantize_clamp(int32_t code, int32_t low, int32_t high) {
  return code < low ? low : code > high ? high : code;
}

// Returns the scale for codes -levels to levels - 1, or 0 if all values are 0 or tiny.
float quantize_scale(const float *values, uint32_t count, int32_t levels);

typedef struct quantize_line {
  float scale, min;  // value = scale * code + min
} quantize_line;

// Returns the line for codes 0 to `top`. With `is_below_zero` the minimum is at most 0, as in the K
// types.
quantize_line quantize_scale_and_min(const float *values, uint32_t count, int32_t top,
                                     bool is_below_zero);

#endif

// base/checked.h — checked arithmetic on numbers from a file or a caller. Each function returns
// false instead of wrapping.
#ifndef WICK_BASE_CHECKED_H
#define WICK_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool checked_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (b > UINT64_MAX - a) return false;
  *out = a + b;
  return true;
}

// The product is checked in 32-bit halves: clang turns a check by division into a 128-bit product,
// which calls __multi3.
static inline bool checked_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  const uint64_t a_high = a >> 32, b_high = b >> 32;
  if (a_high != 0 && b_high != 0) return false;
  const uint64_t middle = a_high * (uint32_t)b + (uint64_t)(uint32_t)a * b_high;
  if (middle > UINT32_MAX) return false;
  return checked_add_u64(middle << 32, (uint64_t)(uint32_t)a * (uint32_t)b, out);
}

static inline bool checked_add_size(size_t a, size_t b, size_t *out) {
  if (b > SIZE_MAX - a) return false;
  *out = a + b;
  return true;
}

static inline bool checked_mul_size(size_t a, size_t b, size_t *out) {
  if (a != 0 && b > SIZE_MAX / a) return false;
  *out = a * b;
  return true;
}

// Rounds up to a multiple of `alignment`, a power of two.
static inline bool checked_align_u64(uint64_t value, uint64_t alignment, uint64_t *out) {
  uint64_t sum;
  if (!checked_add_u64(value, alignment - 1, &sum)) return false;
  *out = sum & ~(alignment - 1);
  return true;
}

static inline bool checked_to_size(uint64_t value, size_t *out) {
  if (value > SIZE_MAX) return false;
  *out = (size_t)value;
  return true;
}

static inline size_t align_size(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint32_t ceil_div_u32(uint32_t value, uint32_t by) {
  return value / by + (value % by != 0);
}

#endif

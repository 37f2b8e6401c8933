// kernels/floats_simd.c — products with F32, F16 and BF16 in 128-bit vectors. The records are
// described in floats.h.
#include "kernels/floats.h"

#include "kernels/families.h"
#include "kernels/layout.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// Rows 4 * half to 4 * half + 3 of a column as floats.
#define F16_CODE_SCALE 0x1p102f  // 2^(112 - F16_CODE_SHIFT)

typedef v128_t column_load(const uint8_t *record, uint32_t half);

SIMD_INLINE v128_t f32_column(const uint8_t *record, uint32_t half) {
  return wasm_v128_load(record + 16 * half);
}

// 2^102 too small: 2^112 because of simd_f16_tiny, 2^-10 because of the code.
SIMD_INLINE v128_t f16_column(const uint8_t *record, uint32_t half) {
  return simd_f16_tiny(wasm_v128_load(record), half);
}

SIMD_INLINE v128_t bf16_column(const uint8_t *record, uint32_t half) {
  const v128_t both = wasm_v128_load(record);
  return half ? wasm_v128_and(both, wasm_i32x4_splat((int32_t)0xffff0000))
              : wasm_i32x4_shl(both, 16);
}

// An element of x, 2^102 times as great where the weights are as much too small. A power of two
// changes no product's rounding. Where x becomes Inf the sums are not finite either.
SIMD_INLINE v128_t float_splat(const float *x, bool is_tiny) {
  const v128_t value = wasm_v128_load32_splat(x);
  return is_tiny ? wasm_f32x4_mul(value, wasm_f32x4_splat(F16_CODE_SCALE)) : value;
}

// 8 rows times 1 or 2 tokens, or 4 rows times 4: 4 or 8 sums in registers.
// sums: [token][8 rows]. x: rows `x_stride` floats apart.
SIMD_INLINE void float_strip(const uint8_t *group, uint32_t cols, const float *x, size_t x_stride,
                             float *sums, uint32_t tokens, uint32_t record_bytes,
                             simd_flavor flavor, column_load *load, bool is_tiny) {
  const uint32_t halves = tokens == 4 ? 1 : 2, count = halves * tokens;
  for (uint32_t half = 0; half < 2; half += halves) {
    v128_t even[4], odd[4];
    for (uint32_t i = 0; i < count; i++) even[i] = odd[i] = wasm_f32x4_splat(0);
    const uint8_t *record = group;
    uint32_t c = 0;
#pragma nounroll
    for (; c + 2 <= cols; c += 2, record += 2 * record_bytes) {
      for (uint32_t h = 0; h < halves; h++) {
        const v128_t w0 = load(record, half + h), w1 = load(record + record_bytes, half + h);
        for (uint32_t t = 0; t < tokens; t++) {
          const uint32_t i = h * tokens + t;
          const float *at = x + x_stride * t + c;
          even[i] = simd_multiply_add(w0, float_splat(at, is_tiny), even[i], flavor);
          odd[i] = simd_multiply_add(w1, float_splat(at + 1, is_tiny), odd[i], flavor);
        }
      }
    }
    for (uint32_t i = 0; c < cols && i < count; i++) {
      const v128_t last = float_splat(x + x_stride * (i % tokens) + c, is_tiny);
      even[i] = simd_multiply_add(load(record, half + i / tokens), last, even[i], flavor);
    }
    for (uint32_t i = 0; i < count; i++) {
      wasm_v128_store(sums + i % tokens * 8 + (half + i / tokens) * 4,
                      wasm_f32x4_add(even[i], odd[i]));
    }
  }
}

typedef void float_strip_function(const uint8_t *group, uint32_t cols, const float *x,
                                  size_t x_stride, float *sums);

typedef struct float_type {
  uint32_t record_bytes;
  float_strip_function *strips[3];  // for 1, 2, 4 tokens
  matmul_function *matmul_scalar;   // where a sum is not finite: x may have been too great
} float_type;

static bool are_finite(const float *sums, uint32_t rows) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < rows; i++) bad |= !(__builtin_fabsf(sums[i]) < __builtin_inff());
  return bad == 0;
}

static void float_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                         const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                         size_t y_stride, const float_type *type) {
  const size_t x_stride = act_stride_bytes / sizeof(float);
  for (uint32_t t = 0; t < tokens;) {
    const uint32_t log2_taken = tokens - t >= 4 ? 2 : tokens - t >= 2 ? 1 : 0;
    const float *x = (const float *)act + x_stride * t;
    for (uint32_t r = row_first; r < row_last; r += KERNEL_ROW_GROUP) {
      float sums[4][KERNEL_ROW_GROUP];
      const size_t offset = layout_record_offset(matrix->cols, r, 0, 1, type->record_bytes);
      type->strips[log2_taken](matrix->data + offset, matrix->cols, x, x_stride, sums[0]);
      const uint32_t rows = row_last - r < KERNEL_ROW_GROUP ? row_last - r : KERNEL_ROW_GROUP;
      for (uint32_t i = 0; i < 1u << log2_taken; i++) {
        memcpy(y + y_stride * (t + i) + r, sums[i], rows * sizeof(float));
        if (type->matmul_scalar == NULL || are_finite(sums[i], rows)) continue;
        type->matmul_scalar(matrix, r, r + rows, x + x_stride * i, act_stride_bytes, 1,
                            y + y_stride * (t + i), y_stride);
      }
    }
    t += 1u << log2_taken;
  }
}

#define FLOAT_STRIP(name, tokens, record_bytes, flavor, load, is_tiny)                        \
  static void name(const uint8_t *group, uint32_t cols, const float *x, size_t x_stride,      \
                   float *sums) {                                                             \
    float_strip(group, cols, x, x_stride, sums, tokens, record_bytes, flavor, load, is_tiny); \
  }

// The product of a type in a flavor. Where elements are wild the scalar reference computes it.
#define FLOAT_MATMUL(type, variant, record_bytes, flavor, is_tiny)                          \
  FLOAT_STRIP(type##_strip_1_##variant, 1, record_bytes, flavor, type##_column, is_tiny)    \
  FLOAT_STRIP(type##_strip_2_##variant, 2, record_bytes, flavor, type##_column, is_tiny)    \
  FLOAT_STRIP(type##_strip_4_##variant, 4, record_bytes, flavor, type##_column, is_tiny)    \
  void SIMD_NAME(type##_matmul_##variant)(                                                  \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act,  \
      size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {                \
    static const float_type strips = {                                                      \
        record_bytes,                                                                       \
        {type##_strip_1_##variant, type##_strip_2_##variant, type##_strip_4_##variant},     \
        (is_tiny) ? type##_matmul_scalar : NULL};                                           \
    if (matrix->flags & KERNEL_MATRIX_HAS_WILD_F16) {                                       \
      type##_matmul_scalar(matrix, row_first, row_last, act, act_stride_bytes, tokens, y,   \
                           y_stride);                                                       \
    } else {                                                                                \
      float_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride, \
                   &strips);                                                                \
    }                                                                                       \
  }

FLOAT_MATMUL(f32, simd128, F32_RECORD_BYTES, SIMD_PLAIN, false)
FLOAT_MATMUL(f16, simd128, F16_RECORD_BYTES, SIMD_PLAIN, true)
FLOAT_MATMUL(bf16, simd128, F16_RECORD_BYTES, SIMD_PLAIN, false)

#ifdef WICK_FUSED
FLOAT_MATMUL(f32, relaxed, F32_RECORD_BYTES, SIMD_QUADS, false)
FLOAT_MATMUL(f16, relaxed, F16_RECORD_BYTES, SIMD_QUADS, true)
FLOAT_MATMUL(bf16, relaxed, F16_RECORD_BYTES, SIMD_QUADS, false)
#endif

#endif

// kernels/q8_0_simd.c — products with Q8_0 in 128-bit vectors. The record is drawn in q8_0.h.
#include "kernels/families.h"
#include "kernels/q8_0.h"
#include "kernels/tile.h"

#ifdef WICK_SIMD128

// By 16-bit lanes, for PLAIN and PAIRS (two products of 8 bits fill 16, there is nothing to gain
// from adding pairs there) and for the code -128: lanes are 256 times a code, even columns shifted
// up, odd ones masked, and the sum, below 2^27, is shifted down.
SIMD_INLINE void q8_0_dots_wide(const q8_0_record *record, uint32_t half, uint32_t halves,
                                const int32_t *second, uint32_t tokens, v128_t *dots) {
  const uint32_t passes = tokens == 4 ? 2 : 1;  // even, then odd: operands of one at a time
  const v128_t mask = wasm_v128_load(simd_mask.high_8_of_16);
  for (uint32_t i = 0; i < halves * tokens; i++) dots[i] = wasm_i32x4_splat(0);
  for (uint32_t pass = 0; pass < passes; pass++) {
    const int32_t *words = second;
#pragma nounroll
    for (uint32_t k = 0; k < 8; k++, words += 2 * tokens) {
      SIMD_OPAQUE(words);
      for (uint32_t odd = pass; odd < 2; odd += passes) {
        v128_t splats[TILE_TOKENS];
        tile_splats(words, odd, tokens, splats);
        for (uint32_t h = 0; h < halves; h++) {
          v128_t codes = wasm_v128_load(record->codes[k] + (half + h) * 16);
          codes = odd ? wasm_v128_and(codes, mask) : wasm_i16x8_shl(codes, 8);
          for (uint32_t t = 0; t < tokens; t++) {
            v128_t *dot = &dots[h * tokens + t];
            *dot = tile_dot(*dot, splats[t], codes, SIMD_PLAIN);
          }
        }
      }
    }
  }
  for (uint32_t i = 0; i < halves * tokens; i++) dots[i] = wasm_i32x4_shr(dots[i], 8);
}

// The relaxed dot wants 7 bits on one side: that is |x|, and the code takes x's sign, which is
// exact above -128. One token: signs from its codes; several: they were split before.
SIMD_INLINE void q8_0_dots(const uint8_t *bytes, uint32_t half, uint32_t halves, const int32_t *x,
                           const int32_t *second, uint32_t tokens, simd_flavor flavor,
                           v128_t *dots) {
  const q8_0_record *record = (const q8_0_record *)(const void *)bytes;
  if (flavor != SIMD_QUADS) {
    q8_0_dots_wide(record, half, halves, second, tokens, dots);
    return;
  }
  for (uint32_t i = 0; i < halves * tokens; i++) dots[i] = wasm_i32x4_splat(0);
#pragma nounroll
  for (uint32_t k = 0; k < 8; k++, x += tokens, second += tokens) {
    SIMD_OPAQUE(x);
    SIMD_OPAQUE(second);
    v128_t magnitudes[TILE_TOKENS], signs[TILE_TOKENS];
    tile_splats(x, 0, tokens, magnitudes);
    if (tokens == 1) {
      signs[0] = wasm_i8x16_gt(wasm_i8x16_splat(0), magnitudes[0]);
      magnitudes[0] = wasm_i8x16_abs(magnitudes[0]);
    } else {
      tile_splats(second, 0, tokens, signs);
    }
    for (uint32_t t = 0; t < tokens; t++) {
      for (uint32_t h = 0; h < halves; h++) {
        const v128_t codes = wasm_v128_load(record->codes[k] + (half + h) * 16);
        const v128_t signed_codes = wasm_i8x16_sub(wasm_v128_xor(codes, signs[t]), signs[t]);
        v128_t *dot = &dots[h * tokens + t];
        *dot = simd_dot_quads(signed_codes, magnitudes[t], *dot);
      }
    }
  }
}

SIMD_INLINE void q8_0_strip(const uint8_t *records, uint32_t blocks, const int32_t *x,
                            const int32_t *second, float *sums, uint32_t tokens,
                            simd_flavor flavor) {
  tile_strip_32(records, blocks, x, second, sums, sizeof(q8_0_record), tokens, flavor, q8_0_dots);
}

TILE_TYPE(q8_0_plain, q8_0_strip, SIMD_PLAIN, 1, sizeof(q8_0_record), TILE_WIDE)
TILE_MATMUL(q8_0_matmul_simd128, q8_0_matmul_scalar, q8_0_plain)

#ifdef WICK_RELAXED
TILE_TYPE(q8_0_pairs, q8_0_strip, SIMD_PAIRS, 1, sizeof(q8_0_record), TILE_WIDE)
TILE_MATMUL(q8_0_matmul_pairs, q8_0_matmul_scalar, q8_0_pairs)
TILE_TYPE(q8_0_quads, q8_0_strip, SIMD_QUADS, 1, sizeof(q8_0_record), TILE_SIGNS)

void q8_0_matmul_quads(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                       const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                       size_t y_stride) {
  if (matrix->flags & (KERNEL_MATRIX_HAS_WILD_F16 | KERNEL_MATRIX_HAS_MINUS_128)) {
    q8_0_matmul_pairs(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride);
  } else {
    tile_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                &q8_0_quads);
  }
}
#endif

#endif

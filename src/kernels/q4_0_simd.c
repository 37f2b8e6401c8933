// kernels/q4_0_simd.c — products with Q4_0 in 128-bit vectors. The record is drawn in q4_0.h.
#include "kernels/families.h"
#include "kernels/q4_0.h"
#include "kernels/tile.h"

#ifdef WICK_SIMD128

// Four codes of each of 4 rows from 16-bit lanes, as pairs of columns two apart: bits 0-3 of the
// lanes are columns 4k and 4k + 2, then 16 and 18 further on, 4k + 1 and 4k + 3, 17 and 19.
SIMD_INLINE v128_t q4_0_nibbles(v128_t bytes, uint32_t index) {
  const v128_t low = index > 0 ? wasm_u16x8_shr(bytes, 4 * index) : bytes;
  return index < 3 ? wasm_v128_and(low, wasm_i16x8_splat(15)) : low;
}

SIMD_INLINE void q4_0_dots_plain(const q4_0_record *record, uint32_t half, uint32_t halves,
                                 const int32_t *x, const int32_t *second, uint32_t tokens,
                                 v128_t *dots) {
  for (uint32_t i = 0; i < halves * tokens; i++) {
    dots[i] = tile_dot_start(x, i % tokens, tokens, 3, SIMD_PLAIN);
  }
#pragma nounroll
  for (uint32_t k = 0; k < 4; k++, second += 2 * tokens) {
    v128_t bytes[2];
    for (uint32_t h = 0; h < halves; h++) {
      bytes[h] = wasm_v128_load(record->codes[k] + (half + h) * 16);
    }
    for (uint32_t n = 0; n < 4; n++) {
      const uint32_t word = n % 2 * 8 + n / 2;
      for (uint32_t h = 0; h < halves; h++) {
        const v128_t codes = q4_0_nibbles(bytes[h], n);
        for (uint32_t t = 0; t < tokens; t++) {
          v128_t *dot = &dots[h * tokens + t];
          *dot = tile_dot(*dot, tile_splat(second, word, t, tokens), codes, SIMD_PLAIN);
        }
      }
    }
  }
}

SIMD_INLINE void q4_0_dots(const uint8_t *bytes, uint32_t half, uint32_t halves, const int32_t *x,
                           const int32_t *second, uint32_t tokens, simd_flavor flavor,
                           v128_t *dots) {
  const q4_0_record *record = (const q4_0_record *)(const void *)bytes;
  if (flavor == SIMD_PLAIN) {
    q4_0_dots_plain(record, half, halves, x, second, tokens, dots);
    return;
  }
  for (uint32_t i = 0; i < halves * tokens; i++) {
    dots[i] = tile_dot_start(x, i % tokens, tokens, 3, flavor);
  }
  const v128_t mask = wasm_i8x16_splat(15);
#pragma nounroll
  for (uint32_t k = 0; k < 4; k++, x += tokens) {
    for (uint32_t h = 0; h < halves; h++) {
      const v128_t codes = wasm_v128_load(record->codes[k] + (half + h) * 16);
      const v128_t low = wasm_v128_and(codes, mask);
      const v128_t high = wasm_v128_and(wasm_u16x8_shr(codes, 4), mask);
      for (uint32_t t = 0; t < tokens; t++) {
        v128_t *dot = &dots[h * tokens + t];
        *dot = tile_dot(*dot, tile_splat(x, 0, t, tokens), low, flavor);
        *dot = tile_dot(*dot, tile_splat(x, 4, t, tokens), high, flavor);
      }
    }
  }
  for (uint32_t i = 0; i < halves * tokens; i++) dots[i] = tile_dot_total(dots[i], flavor);
}

SIMD_INLINE void q4_0_strip(const uint8_t *records, uint32_t blocks, const int32_t *x,
                            const int32_t *second, float *sums, uint32_t tokens,
                            simd_flavor flavor) {
  tile_strip_32(records, blocks, x, second, sums, sizeof(q4_0_record), tokens, flavor, q4_0_dots);
}

TILE_TYPE(q4_0_plain, q4_0_strip, SIMD_PLAIN, 1, sizeof(q4_0_record), TILE_WIDE)
TILE_MATMUL(q4_0_matmul_simd128, q4_0_matmul_scalar, q4_0_plain)

#ifdef WICK_RELAXED
TILE_TYPE(q4_0_pairs, q4_0_strip, SIMD_PAIRS, 1, sizeof(q4_0_record), TILE_NOTHING)
TILE_MATMUL(q4_0_matmul_pairs, q4_0_matmul_scalar, q4_0_pairs)
TILE_TYPE(q4_0_quads, q4_0_strip, SIMD_QUADS, 1, sizeof(q4_0_record), TILE_NOTHING)
TILE_MATMUL(q4_0_matmul_quads, q4_0_matmul_scalar, q4_0_quads)
#endif

#endif

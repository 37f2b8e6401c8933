// kernels/q4_0_simd.c — products with Q4_0 in 128-bit vectors. The record is drawn in q4_0.h.
#include "kernels/families.h"
#include "kernels/q4_0.h"
#include "kernels/tile.h"

#ifdef WICK_SIMD128

// Codes of one nibble of column group k, `halves` x 4 rows, times the words `word` of all tokens.
SIMD_INLINE void q4_0_group(const q4_0_record *record, uint32_t k, uint32_t half, uint32_t halves,
                            uint32_t nibble, v128_t mask, const int32_t *words, uint32_t word,
                            uint32_t tokens, simd_flavor flavor, v128_t *dots) {
  v128_t splats[TILE_TOKENS];
  tile_splats(words, word, tokens, splats);
  for (uint32_t h = 0; h < halves; h++) {
    v128_t codes = wasm_v128_load(record->codes[k] + (half + h) * 16);
    if (nibble > 0) codes = wasm_u16x8_shr(codes, 4 * nibble);
    if (nibble < 3) codes = wasm_v128_and(codes, mask);
    for (uint32_t t = 0; t < tokens; t++) {
      v128_t *dot = &dots[h * tokens + t];
      *dot = tile_dot(*dot, splats[t], codes, flavor);
    }
  }
}

// PLAIN: nibble n of the 16-bit lanes is column 4k and 4k + 2; 16 further on; 4k + 1 and 4k + 3; 16
// further on. Four tokens: one nibble after the other, else operands of several would be alive.
SIMD_INLINE void q4_0_dots(const uint8_t *bytes, uint32_t half, uint32_t halves, const int32_t *x,
                           const int32_t *second, uint32_t tokens, simd_flavor flavor,
                           v128_t *dots) {
  const q4_0_record *record = (const q4_0_record *)(const void *)bytes;
  const bool plain = flavor == SIMD_PLAIN;
  const uint32_t nibbles = plain ? 4 : 2, passes = tokens == 4 ? nibbles : 1;
  const v128_t mask = wasm_v128_load(plain ? simd_mask.low_4_of_16 : simd_mask.low_4);
  tile_dots_start(x, halves, tokens, 3, flavor, dots);
  for (uint32_t pass = 0; pass < passes; pass++) {
    const int32_t *words = plain ? second : x;
#pragma nounroll
    for (uint32_t k = 0; k < 4; k++, words += (plain ? 2 : 1) * tokens) {
      SIMD_OPAQUE(words);
      for (uint32_t n = pass; n < nibbles; n += passes) {
        const uint32_t word = plain ? n % 2 * 8 + n / 2 : 4 * n;
        q4_0_group(record, k, half, halves, n, mask, words, word, tokens, flavor, dots);
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

// kernels/q6_k_simd.c — products with Q6_K in 128-bit vectors. The record is drawn in q6_k.h.
#include "kernels/families.h"
#include "kernels/q6_k.h"
#include "kernels/tile.h"

#ifdef WICK_SIMD128

// Codes of 4 rows x 16 columns: four vectors of 4 x 4.
SIMD_INLINE void q6_k_codes(const uint8_t bytes[3][16], v128_t codes[4]) {
  const v128_t low = wasm_v128_load(simd_mask.low_6);
  const v128_t a = wasm_v128_load(bytes[0]), b = wasm_v128_load(bytes[1]);
  const v128_t c = wasm_v128_load(bytes[2]);
  codes[0] = wasm_v128_and(a, low);
  codes[1] = wasm_v128_and(b, low);
  codes[2] = wasm_v128_and(c, low);
  const v128_t top = wasm_v128_and(wasm_u16x8_shr(c, 2), wasm_i8x16_splat(0x30));
  const v128_t middle = wasm_v128_and(wasm_u16x8_shr(b, 4), wasm_i8x16_splat(0x0c));
  const v128_t bottom = wasm_v128_and(wasm_u16x8_shr(a, 6), wasm_i8x16_splat(0x03));
  codes[3] = wasm_v128_or(wasm_v128_or(top, middle), bottom);
}

// Byte `index` of each 32-bit lane, signed: in both 16-bit halves (PAIRS) or as 32 bits.
SIMD_INLINE v128_t q6_k_sub_scales(v128_t stored, uint32_t index, simd_flavor flavor) {
  const v128_t top = wasm_i32x4_shl(stored, 24 - 8 * index);
  if (flavor != SIMD_PAIRS) return wasm_i32x4_shr(top, 24);
  return wasm_i16x8_shr(
      wasm_i8x16_shuffle(top, top, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15), 8);
}

// Group g of 4 columns of a sub-block: adds to the dots of `tokens` tokens.
SIMD_INLINE void q6_k_group(v128_t codes, uint32_t group, const int32_t *x, const int32_t *second,
                            uint32_t tokens, simd_flavor flavor, v128_t *dots) {
  v128_t splats[TILE_TOKENS];
  if (flavor == SIMD_PLAIN) {
    const v128_t even = wasm_v128_and(codes, wasm_v128_load(simd_mask.low_8_of_16));
    const v128_t odd = wasm_u16x8_shr(codes, 8);
    tile_splats(second, 2 * group, tokens, splats);
    for (uint32_t t = 0; t < tokens; t++) dots[t] = tile_dot(dots[t], splats[t], even, flavor);
    tile_splats(second, 2 * group + 1, tokens, splats);
    for (uint32_t t = 0; t < tokens; t++) dots[t] = tile_dot(dots[t], splats[t], odd, flavor);
    return;
  }
  tile_splats(x, group, tokens, splats);
  for (uint32_t t = 0; t < tokens; t++) dots[t] = tile_dot(dots[t], splats[t], codes, flavor);
}

// Dots of a sub-block of 16 columns with 4 rows, the offset 32 included, times the sub-scale: added
// to `sums`. In PAIRS a dot is within 16 bits in every lane.
SIMD_INLINE void q6_k_sub_block(const q6_k_part *part, uint32_t sub_block, uint32_t half,
                                const int32_t *x, const int32_t *second, uint32_t tokens,
                                simd_flavor flavor, v128_t *sums) {
  const bool pairs = flavor == SIMD_PAIRS;
  const v128_t scale =
      q6_k_sub_scales(wasm_v128_load(part->sub_scales), half * 2 + sub_block, flavor);
  v128_t codes[4], dots[TILE_TOKENS];
  q6_k_codes(part->codes[sub_block][half], codes);
  tile_splats(x, (pairs ? ACT_WORD_MINUS_PAIRS_HALF : ACT_WORD_MINUS_SUM_HALF) + sub_block, tokens,
              dots);
  for (uint32_t t = 0; t < tokens; t++) {
    dots[t] = pairs ? wasm_i16x8_shl(dots[t], 5) : wasm_i32x4_shl(dots[t], 5);
  }
  for (uint32_t g = 0; g < 4; g++) {
    q6_k_group(codes[g], sub_block * 4 + g, x, second, tokens, flavor, dots);
  }
  for (uint32_t t = 0; t < tokens; t++) {
    const v128_t scaled =
        pairs ? wasm_i32x4_dot_i16x8(dots[t], scale) : wasm_i32x4_mul(dots[t], scale);
    sums[t] = sub_block == 0 ? scaled : wasm_i32x4_add(sums[t], scaled);
  }
}

SIMD_INLINE void q6_k_dots(const uint8_t *bytes, uint32_t half, uint32_t halves, const int32_t *x,
                           const int32_t *second, uint32_t tokens, simd_flavor flavor,
                           v128_t *dots) {
  const q6_k_part *part = (const q6_k_part *)(const void *)bytes;
  for (uint32_t h = 0; h < halves; h++) {
    for (uint32_t s = 0; s < 2; s++) {
      q6_k_sub_block(part, s, half + h, x, second, tokens, flavor, dots + h * tokens);
    }
  }
}

SIMD_INLINE void q6_k_strip(const uint8_t *records, uint32_t blocks, const int32_t *x,
                            const int32_t *second, float *sums, uint32_t tokens,
                            simd_flavor flavor) {
  tile_strip_256(records, blocks, x, second, sums, sizeof(q6_k_part), tokens, flavor, q6_k_dots);
}

TILE_TYPE(q6_k_plain, q6_k_strip, SIMD_PLAIN, 8, sizeof(q6_k_record), TILE_WIDE)
TILE_MATMUL(q6_k_matmul_simd128, q6_k_matmul_scalar, q6_k_plain)

#ifdef WICK_RELAXED
TILE_TYPE(q6_k_pairs, q6_k_strip, SIMD_PAIRS, 8, sizeof(q6_k_record), TILE_NOTHING)
TILE_MATMUL(q6_k_matmul_pairs, q6_k_matmul_scalar, q6_k_pairs)
TILE_TYPE(q6_k_quads, q6_k_strip, SIMD_QUADS, 8, sizeof(q6_k_record), TILE_NOTHING)
TILE_MATMUL(q6_k_matmul_quads, q6_k_matmul_scalar, q6_k_quads)
#endif

#endif

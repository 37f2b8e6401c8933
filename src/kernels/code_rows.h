// kernels/code_rows.h — rows of codes as pages have them (kv_pages.h) times pairs of 16-bit
// factors, in 128-bit vectors: what attention over codes of both kinds shares.
//
// A 16-bit lane of a row holds two codes: both = 256 * high + low, where `high` is signed and `low`
// is not. Two sums are kept, over `both` and over `high`. The sum over `low` is the first less 256
// times the second. The first may overflow, which does no harm: integers wrap, and the difference
// fits. So one shift unpacks a row.
#ifndef WICK_KERNELS_CODE_ROWS_H
#define WICK_KERNELS_CODE_ROWS_H

#include "kernels/kv_pages.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// FEW: heads that share unpacked codes; more sums would not fit into the registers.
enum { FEW = 4, BLOCK = KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };
enum { STRIP = 8, ROW_BYTES = 16, ROWS = 8, ROW_FACTORS = 2, STEP = KERNEL_STEP_TOKENS };

// simd_never between unrolled rows. Processors do not drop its branch, and have few enough rows
// under way without it.
SIMD_INLINE bool rows_never(uint32_t *zero) {
#ifdef __wasm__
  return simd_never(zero);
#else
  (void)zero;
  return false;
#endif
}

// sums[h][0] += ROWS rows of whole lanes (both codes) times pairs of factors; sums[h][1] += the
// same with the high codes. `heads` is known when compiled.
SIMD_INLINE void rows_add(const uint8_t *codes, const int16_t *const *factors, v128_t sums[FEW][2],
                          uint32_t heads) {
  const int16_t *x[FEW];
  for (uint32_t h = 0; h < heads; h++) {
    x[h] = factors[h];
    SIMD_OPAQUE(x[h]);
  }
  SIMD_OPAQUE(codes);
  uint32_t zero = 0;
#pragma unroll
  for (uint32_t u = 0; u < ROWS; u++) {
    if (u > 0 && rows_never(&zero)) break;
    const v128_t both = wasm_v128_load(codes + ROW_BYTES * u);
    const v128_t high = wasm_i16x8_shr(both, 8);
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t pair = wasm_v128_load32_splat(x[h] + ROW_FACTORS * u);
      sums[h][0] = wasm_i32x4_add(sums[h][0], wasm_i32x4_dot_i16x8(both, pair));
      sums[h][1] = wasm_i32x4_add(sums[h][1], wasm_i32x4_dot_i16x8(high, pair));
    }
  }
}

// The sums of columns 0-3 and of columns 4-7, as floats.
SIMD_INLINE void sums_end(v128_t sums[FEW][2], uint32_t heads) {
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t low = wasm_i32x4_sub(sums[h][0], wasm_i32x4_shl(sums[h][1], 8));
    sums[h][0] = wasm_f32x4_convert_i32x4(low);
    sums[h][1] = wasm_f32x4_convert_i32x4(sums[h][1]);
  }
}

static inline uint32_t few_of(uint32_t heads, uint32_t h) {
  return heads - h < FEW ? heads - h : FEW;
}

#endif
#endif

// kernels/code_rows.h — multiplies rows of codes as in pages (kv_pages.h) by pairs of 16-bit
// factors, in 128-bit vectors: the common part of attention over both kinds of codes.
//
// A 16-bit lane of a row has two codes: both = 256 * high + low, where `high` is signed and `low`
// is not. Two sums are kept, over `both` and over `high`. The sum over `low` is the first minus 256
// times the second. The first sum may overflow, which is harmless: integers wrap, and the
// difference fits. So a single shift unpacks a row.
#ifndef WICK_KERNELS_CODE_ROWS_H
#define WICK_KERNELS_CODE_ROWS_H

#include "kernels/kv_pages.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// FEW: heads that share unpacked codes; more sums would not fit into the registers. ROWS: rows per
// iteration of the loop; with 8, V8 11.3 (Node 20) keeps their operands in memory and takes 1.1 to
// 1.2 times as long.
enum { FEW = 4, BLOCK = KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };
enum { STRIP = 8, ROW_BYTES = 16, ROWS = 2, ROW_FACTORS = 2, STEP = KERNEL_STEP_TOKENS };

// The maximum number of heads whose sums are split into two chains. If a dot and its addition are
// one instruction, which takes 5 cycles, a single chain would stall the processor. For more heads,
// two chains do not fit into the registers.
#ifdef __AVXVNNI__
enum { CHAINED_HEADS = 3 };
#else
enum { CHAINED_HEADS = 0 };
#endif

// The sums of several heads, over the even rows and the odd rows.
typedef struct row_sums {
  v128_t even[FEW][2], odd[FEW][2];
} row_sums;

// Initializes sums with the biases, or with 0 if these are NULL.
SIMD_INLINE void sums_begin(row_sums *sums, const int32_t *const *biases, uint32_t heads) {
  const v128_t zero = wasm_i32x4_splat(0);
  for (uint32_t h = 0; h < heads; h++) {
    sums->even[h][0] = biases == NULL ? zero : wasm_v128_load32_splat(biases[h]);
    sums->even[h][1] = sums->odd[h][0] = sums->odd[h][1] = zero;
  }
}

// Adds up sums->even over all rows.
SIMD_INLINE void sums_join(row_sums *sums, uint32_t heads) {
  for (uint32_t i = 0; heads <= CHAINED_HEADS && i < heads * 2; i++) {
    sums->even[i / 2][i % 2] = wasm_i32x4_add(sums->even[i / 2][i % 2], sums->odd[i / 2][i % 2]);
  }
}

// Adds row u: sums[h][0] += low codes times pairs of factors; sums[h][1] += high codes times the
// same factors.
SIMD_INLINE void row_add(v128_t low, v128_t high, const int16_t *const *factors, uint32_t u,
                         row_sums *sums, uint32_t heads) {
  const bool is_odd = heads <= CHAINED_HEADS && u % 2 == 1;
  v128_t(*to)[2] = is_odd ? sums->odd : sums->even;
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t pair = wasm_v128_load32_splat(factors[h] + ROW_FACTORS * u);
    to[h][0] = simd_dot_add(low, pair, to[h][0]);
    to[h][1] = simd_dot_add(high, pair, to[h][1]);
  }
}

// Computes sums[h][0] += ROWS rows of whole lanes (both codes) times pairs of factors; sums[h][1]
// += high codes times the same factors. `heads` is a compile-time constant.
SIMD_INLINE void rows_add(const uint8_t *codes, const int16_t *const *factors, row_sums *sums,
                          uint32_t heads) {
  const int16_t *x[FEW];
  for (uint32_t h = 0; h < heads; h++) {
    x[h] = factors[h];
    SIMD_OPAQUE(x[h]);
  }
  SIMD_OPAQUE(codes);
#pragma unroll
  for (uint32_t u = 0; u < ROWS; u++) {
    const v128_t both = wasm_v128_load(codes + ROW_BYTES * u);
    row_add(both, wasm_i16x8_shr(both, 8), x, u, sums, heads);
  }
}

static inline uint32_t few_of(uint32_t heads, uint32_t h) {
  return heads - h < FEW ? heads - h : FEW;
}

#endif
#endif

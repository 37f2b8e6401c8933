// kernels/fp4_simd.c — products with MXFP4 in 128-bit vectors. The record is drawn in fp4.h. Step k
// gives column groups k and 4 + k, codes through the table, 12 added.
#include "kernels/fp4.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

// fp4_values + 12.
static const uint8_t values_from_0[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                          12, 11, 10, 9,  8,  6,  4,  0};

SIMD_INLINE void mxfp4_super(const uint8_t *record, strip_super *super) {
  const v128_t wide = wasm_u16x8_load8x8(record);
  for (uint32_t h = 0; h < 2; h++) {
    const v128_t exponents =
        h == 0 ? wasm_u32x4_extend_low_u16x8(wide) : wasm_u32x4_extend_high_u16x8(wide);
    const v128_t usual = wasm_i32x4_shl(wasm_i32x4_sub(exponents, wasm_i32x4_splat(1)), 23);
    const v128_t zero = wasm_i32x4_eq(exponents, wasm_i32x4_splat(0));
    const v128_t one = wasm_i32x4_eq(exponents, wasm_i32x4_splat(1));
    const v128_t subnormal = wasm_v128_and(one, wasm_i32x4_splat(0x00400000));
    const v128_t lowest = wasm_v128_and(zero, wasm_i32x4_splat(0x00200000));
    super->scales[h] = wasm_v128_or(wasm_v128_andnot(usual, zero), wasm_v128_or(subnormal, lowest));
  }
}

SIMD_INLINE void mxfp4_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                             v128_t state[2], v128_t *codes) {
  const v128_t mask = wasm_v128_load(simd_mask.low_4), values = wasm_v128_load(values_from_0);
  const mxfp4_record *block = (const mxfp4_record *)(const void *)record;
  const v128_t bytes = wasm_v128_load(block->codes[step] + 16 * half);
  (void)part;
  (void)state;
  codes[0] = simd_table(values, wasm_v128_and(bytes, mask));
  codes[1] = simd_table(values, wasm_v128_and(wasm_u16x8_shr(bytes, 4), mask));
}

static const strip_type mxfp4_strip = {.record_bytes = sizeof(mxfp4_record),
                                       .parts = 1,
                                       .kind = BLOCK_CODES,
                                       .steps = 4,
                                       .per_step = 2,
                                       .step_groups = 1,
                                       .code_groups = 4,
                                       .offset = 12,
                                       .folded = false,
                                       .super = mxfp4_super,
                                       .scales = strip_scales_of_super,
                                       .begin = strip_begin_nothing,
                                       .codes = mxfp4_codes,
                                       .strip_tokens = 1};

TILE_TYPE(mxfp4, mxfp4_strip)

#endif

// kernels/fp4_simd.c — products with MXFP4 in 128-bit vectors. fp4.h describes the record. Step k
// unpacks column groups k and 4 + k: it looks the codes up in the table, whose values have 12
// added.
#include "kernels/fp4.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

// Computes the bits of 2^(exponent - 128). As an integer, (e - 1) << 23 is less than (e + 1) << 21
// only for the exponents 0 and 1, where the latter has the bits of the subnormal scales.
SIMD_INLINE void mxfp4_super(const uint8_t *record, strip_super *super) {
  const v128_t both = wasm_u32x4_load16x4(record);
  for (uint32_t h = 0; h < 2; h++) {
    const v128_t e =
        h == 0 ? wasm_i32x4_shl(both, 24) : wasm_i32x4_shl(wasm_u32x4_shr(both, 8), 24);
    const v128_t normal = wasm_i32x4_sub(wasm_u32x4_shr(e, 1), wasm_i32x4_splat(1 << 23));
    const v128_t subnormal = wasm_i32x4_add(wasm_u32x4_shr(e, 3), wasm_i32x4_splat(1 << 21));
    super->scales[h] = wasm_i32x4_max(normal, subnormal);
  }
}

SIMD_INLINE void mxfp4_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                             v128_t state[2], v128_t *codes) {
  const v128_t mask = wasm_v128_load(simd_mask.low_4), values = wasm_v128_load(fp4_codes);
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
                                       .strip_tokens = 1,
                                       .is_unrolled = true};

TILE_TYPE(mxfp4, mxfp4_strip)

#endif

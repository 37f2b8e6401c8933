// kernels/q6_k_simd.c — products with Q6_K in 128-bit vectors. q6_k.h describes the record.
#include "kernels/q6_k.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

SIMD_INLINE void q6_k_super(const uint8_t *record, strip_super *super) {
  const v128_t halves = wasm_v128_load(record);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_exact(halves, h);
}

SIMD_INLINE const q6_k_part *q6_k_part_of(const uint8_t *record, uint32_t part) {
  return &((const q6_k_record *)(const void *)record)->parts[part];
}

SIMD_INLINE void q6_k_scales(const uint8_t *record, uint32_t part, const strip_super *super,
                             strip_scales *scales) {
  const v128_t bytes = wasm_v128_load(q6_k_part_of(record, part)->sub_scales);
  strip_scales_of_super(record, part, super, scales);
  for (uint32_t i = 0; i < 4; i++) {
    scales->sub_scales[i % 2][i / 2] = wasm_i32x4_shr(wasm_i32x4_shl(bytes, 24 - 8 * i), 24);
  }
}

SIMD_INLINE void q6_k_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)state;
  simd_six_bits(q6_k_part_of(record, part)->codes[step][half], codes);
}

static const strip_type q6_k_strip = {.record_bytes = sizeof(q6_k_record),
                                      .parts = 8,
                                      .kind = BLOCK_SUB,
                                      .steps = 2,
                                      .per_step = 4,
                                      .step_groups = 4,
                                      .code_groups = 1,
                                      .offset = 32,
                                      .super = q6_k_super,
                                      .scales = q6_k_scales,
                                      .begin = strip_begin_nothing,
                                      .codes = q6_k_codes,
                                      .strip_tokens = 5};

TILE_TYPE(q6_k, q6_k_strip)
TILE_LONG(q6_k, q6_k_strip)

#endif

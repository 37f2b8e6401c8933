// kernels/lowbits_simd.c — products with Q2_K and Q3_K in 128-bit vectors. lowbits.h describes the
// records. Step s reads the four column groups of sub-block s, which is 16 columns.
#include "kernels/lowbits.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

#define RECORD(type, record) ((const type *)(const void *)(record))

SIMD_INLINE void two_bits_take(const uint8_t bytes[16], v128_t *codes) {
  const v128_t all = wasm_v128_load(bytes), mask = wasm_v128_load(simd_mask.low_2);
  codes[0] = wasm_v128_and(all, mask);
  codes[1] = wasm_v128_and(wasm_u16x8_shr(all, 2), mask);
  codes[2] = wasm_v128_and(wasm_u16x8_shr(all, 4), mask);
  codes[3] = wasm_v128_and(wasm_u16x8_shr(all, 6), mask);
}

SIMD_INLINE void q2_k_super(const uint8_t *record, strip_super *super) {
  const q2_k_record *k = RECORD(q2_k_record, record);
  const v128_t scales = wasm_v128_load(k->scales), mins = wasm_v128_load(k->mins);
  for (uint32_t h = 0; h < 2; h++) {
    super->scales[h] = simd_f16_exact(scales, h);
    super->mins[h] = simd_f16_exact(mins, h);
  }
}

SIMD_INLINE void q2_k_scales(const uint8_t *record, uint32_t part, const strip_super *super,
                             strip_scales *scales) {
  const v128_t bytes = wasm_v128_load(RECORD(q2_k_record, record)->parts[part].subs);
  strip_scales_of_super(record, part, super, scales);
  for (uint32_t i = 0; i < 4; i++) {
    const v128_t top = wasm_i32x4_shl(bytes, 24 - 8 * i);
    scales->sub_scales[i % 2][i / 2] = wasm_u32x4_shr(wasm_i32x4_shl(top, 4), 28);
    scales->sub_mins[i % 2][i / 2] = wasm_u32x4_shr(top, 28);
  }
}

SIMD_INLINE void q2_k_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)state;
  two_bits_take(RECORD(q2_k_record, record)->parts[part].codes[step][half], codes);
}

// Unpacks the scales, and the sub-scales of all parts as bytes.
SIMD_INLINE void q3_k_super(const uint8_t *record, strip_super *super) {
  const q3_k_record *k = RECORD(q3_k_record, record);
  const v128_t scales = wasm_v128_load(k->scales);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_exact(scales, h);
  for (uint32_t i = 0; i < 2; i++) {
    v128_t subs[4];
    simd_six_bits(k->subs[i], subs);
    for (uint32_t p = 0; p < 4; p++) wasm_v128_store(super->subs[4 * i + p], subs[p]);
  }
}

SIMD_INLINE void q3_k_scales(const uint8_t *record, uint32_t part, const strip_super *super,
                             strip_scales *scales) {
  const v128_t bytes = wasm_v128_load(super->subs[part]);
  strip_scales_of_super(record, part, super, scales);
  for (uint32_t i = 0; i < 4; i++) {
    scales->sub_scales[i % 2][i / 2] =
        wasm_i32x4_sub(wasm_u32x4_shr(wasm_i32x4_shl(bytes, 24 - 8 * i), 24), wasm_i32x4_splat(32));
  }
}

SIMD_INLINE void q3_k_begin(const uint8_t *record, uint32_t part, v128_t state[2]) {
  const q3_k_part *k = &RECORD(q3_k_record, record)->parts[part];
  state[0] = wasm_v128_load(k->third[0]);
  state[1] = wasm_v128_load(k->third[1]);
}

// Returns codes. `state` has the third bits of the codes: bits 0 to 3 of each byte belong to the
// step's groups.
SIMD_INLINE void q3_k_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  const v128_t mask = wasm_v128_load(simd_mask.third), third = state[half];
  two_bits_take(RECORD(q3_k_record, record)->parts[part].codes[step][half], codes);
  codes[0] = wasm_v128_or(codes[0], wasm_v128_and(wasm_i16x8_shl(third, 2), mask));
  codes[1] = wasm_v128_or(codes[1], wasm_v128_and(wasm_i16x8_shl(third, 1), mask));
  codes[2] = wasm_v128_or(codes[2], wasm_v128_and(third, mask));
  codes[3] = wasm_v128_or(codes[3], wasm_v128_and(wasm_u16x8_shr(third, 1), mask));
  state[half] = wasm_u16x8_shr(third, 4);
}

#define LOWBITS(record, kind_, offset_)                                                       \
  .strip_tokens = 1, .record_bytes = sizeof(record), .parts = 8, .kind = (kind_), .steps = 2, \
  .per_step = 4, .step_groups = 4, .code_groups = 1, .offset = (offset_), .folded = false

static const strip_type q2_k_strip = {LOWBITS(q2_k_record, BLOCK_SUB_MINS, 0), q2_k_super,
                                      q2_k_scales, strip_begin_nothing, q2_k_codes};
static const strip_type q3_k_strip = {LOWBITS(q3_k_record, BLOCK_SUB, 4), q3_k_super, q3_k_scales,
                                      q3_k_begin, q3_k_codes};

TILE_TYPE(q2_k, q2_k_strip)
TILE_TYPE(q3_k, q3_k_strip)

#endif

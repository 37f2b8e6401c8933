// kernels/iq4_simd.c — products with IQ4_NL and IQ4_XS in 128-bit vectors. iq4.h describes the
// records. Step k reads column groups k and 4 + k and looks the codes up in the table.
#include "kernels/iq4.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

#define RECORD(type, record) ((const type *)(const void *)(record))

SIMD_INLINE void iq4_take(const uint8_t codes[4][32], uint32_t step, uint32_t half, v128_t *out) {
  const v128_t mask = wasm_v128_load(simd_mask.low_4), values = wasm_v128_load(iq4_values);
  const v128_t bytes = wasm_v128_load(codes[step] + 16 * half);
  out[0] = simd_table(values, wasm_v128_and(bytes, mask));
  out[1] = simd_table(values, wasm_v128_and(wasm_u16x8_shr(bytes, 4), mask));
}

SIMD_INLINE void iq4_nl_super(const uint8_t *record, strip_super *super) {
  const v128_t halves = wasm_v128_load(record);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_tiny(halves, h);
}

SIMD_INLINE void iq4_nl_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                              v128_t state[2], v128_t *codes) {
  (void)part;
  (void)state;
  iq4_take(RECORD(iq4_nl_record, record)->codes, step, half, codes);
}

// Unpacks sub-scales as bytes: those of parts p and p + 4 into subs[p].
SIMD_INLINE void iq4_xs_super(const uint8_t *record, strip_super *super) {
  const iq4_xs_record *k = RECORD(iq4_xs_record, record);
  const v128_t halves = wasm_v128_load(k->scales);
  v128_t subs[4];
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_exact(halves, h);
  simd_six_bits(k->subs, subs);
  for (uint32_t p = 0; p < 4; p++) {
    wasm_v128_store(super->subs[p], subs[p]);
    wasm_v128_store(super->subs[4 + p], wasm_u32x4_shr(subs[p], 16));
  }
}

SIMD_INLINE void iq4_xs_scales(const uint8_t *record, uint32_t part, const strip_super *super,
                               strip_scales *scales) {
  const v128_t bytes = wasm_v128_load(super->subs[part]);
  (void)record;
  for (uint32_t h = 0; h < 2; h++) {
    const v128_t sub = wasm_u32x4_shr(wasm_i32x4_shl(bytes, 24 - 8 * h), 24);
    const v128_t centred = wasm_i32x4_sub(sub, wasm_i32x4_splat(32));
    scales->scales[h] = wasm_f32x4_mul(super->scales[h], wasm_f32x4_convert_i32x4(centred));
  }
}

SIMD_INLINE void iq4_xs_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                              v128_t state[2], v128_t *codes) {
  (void)state;
  iq4_take(RECORD(iq4_xs_record, record)->codes[part], step, half, codes);
}

#define IQ4(record, parts_, folded_)                                                          \
  .strip_tokens = 1, .record_bytes = sizeof(record), .parts = (parts_), .kind = BLOCK_SIGNED, \
  .steps = 4, .per_step = 2, .step_groups = 1, .code_groups = 4, .offset = 0, .folded = (folded_)

static const strip_type iq4_nl_strip = {IQ4(iq4_nl_record, 1, true), iq4_nl_super,
                                        strip_scales_of_super, strip_begin_nothing, iq4_nl_codes};
static const strip_type iq4_xs_strip = {IQ4(iq4_xs_record, 8, false), iq4_xs_super, iq4_xs_scales,
                                        strip_begin_nothing, iq4_xs_codes};

TILE_TYPE(iq4_nl, iq4_nl_strip)
TILE_TYPE(iq4_xs, iq4_xs_strip)

#endif

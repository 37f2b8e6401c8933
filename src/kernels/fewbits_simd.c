// kernels/fewbits_simd.c — products with Q1_0, Q2_0 and TQ2_0 in 128-bit vectors. The records are
// described in fewbits.h. Codes are 1 more than weights: 0 to 3, and 0 or 2.
#include "kernels/fewbits.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

SIMD_INLINE void few_super(const uint8_t *record, strip_super *super) {
  const v128_t halves = wasm_v128_load(record);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_tiny(halves, h);
}

SIMD_INLINE void twos_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  const twos_record *twos = (const twos_record *)(const void *)record;
  const v128_t bytes = wasm_v128_load(twos->codes[part][step / 2] + 16 * half);
  const v128_t mask = wasm_v128_load(simd_mask.low_2);
  (void)state;
  codes[0] = wasm_v128_and(step % 2 == 0 ? bytes : wasm_u16x8_shr(bytes, 4), mask);
  codes[1] = wasm_v128_and(wasm_u16x8_shr(bytes, step % 2 == 0 ? 2 : 6), mask);
}

SIMD_INLINE void q1_0_begin(const uint8_t *record, uint32_t part, v128_t state[2]) {
  const q1_0_record *ones = (const q1_0_record *)(const void *)record;
  for (uint32_t h = 0; h < 2; h++) state[h] = wasm_v128_load(ones->codes[part] + 16 * h);
}

// Returns codes. Each step leaves the bits shifted right by one; the masks remove those of the next
// byte.
SIMD_INLINE void q1_0_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  const v128_t bits = state[half], mask = wasm_i8x16_splat(2);
  (void)record;
  (void)part;
  (void)step;
  codes[0] = wasm_v128_and(wasm_i16x8_shl(bits, 1), mask);
  codes[1] = wasm_v128_and(wasm_u16x8_shr(bits, 3), mask);
  state[half] = wasm_u16x8_shr(bits, 1);
}

#define FEW(bytes, parts_, unrolled)                                                               \
  .is_unrolled = (unrolled), .strip_tokens = 1, .record_bytes = (bytes), .parts = (parts_),        \
  .kind = BLOCK_CODES, .steps = 4, .per_step = 2, .step_groups = 1, .code_groups = 4, .offset = 1, \
  .folded = true

static const strip_type q2_0_strip = {FEW(Q2_0_RECORD_BYTES, 2, true), few_super,
                                      strip_scales_of_super, strip_begin_nothing, twos_codes};
static const strip_type tq2_0_strip = {FEW(TQ2_0_RECORD_BYTES, 8, true), few_super,
                                       strip_scales_of_super, strip_begin_nothing, twos_codes};
static const strip_type q1_0_strip = {FEW(sizeof(q1_0_record), 4, false), few_super,
                                      strip_scales_of_super, q1_0_begin, q1_0_codes};

TILE_TYPE(q2_0, q2_0_strip)
TILE_TYPE(tq2_0, tq2_0_strip)
TILE_TYPE(q1_0, q1_0_strip)

#endif

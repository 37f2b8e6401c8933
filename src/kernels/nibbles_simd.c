// kernels/nibbles_simd.c — products with Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K in 128-bit vectors.
// nibbles.h describes the records.
#include "kernels/nibbles.h"

#include "kernels/tile.h"

#ifdef WICK_SIMD128

// ---- codes: step k reads column groups k and 4 + k ----

SIMD_INLINE void nibbles_take(const uint8_t codes[4][32], uint32_t step, uint32_t half,
                              v128_t *out) {
  const v128_t mask = wasm_v128_load(simd_mask.low_4);
  const v128_t bytes = wasm_v128_load(codes[step] + 16 * half);
  out[0] = wasm_v128_and(bytes, mask);
  out[1] = wasm_v128_and(wasm_u16x8_shr(bytes, 4), mask);
}

// Loads the fifth bits of the codes. In each byte, bit 4 belongs to the code in the low nibble, and
// bit 0 to the code in the high nibble. After a step, the bytes are shifted right by one for the
// next step.
SIMD_INLINE void fifth_begin(const uint8_t fifth[32], v128_t state[2]) {
  state[0] = wasm_v128_load(fifth);
  state[1] = wasm_v128_load(fifth + 16);
}

SIMD_INLINE void fifth_take(v128_t *state, v128_t *codes) {
  const v128_t mask = wasm_v128_load(simd_mask.fifth);
  codes[0] = wasm_v128_or(codes[0], wasm_v128_and(*state, mask));
  codes[1] = wasm_v128_or(codes[1], wasm_v128_and(wasm_i16x8_shl(*state, 4), mask));
  *state = wasm_u16x8_shr(*state, 1);
}

// ---- blocks of 32 columns ----

#define RECORD(type, record) ((const type *)(const void *)(record))

SIMD_INLINE void q4_0_super(const uint8_t *record, strip_super *super) {
  const v128_t halves = wasm_v128_load(record);
  for (uint32_t h = 0; h < 2; h++) super->scales[h] = simd_f16_tiny(halves, h);
}

SIMD_INLINE void q4_1_super(const uint8_t *record, strip_super *super) {
  const v128_t scales = wasm_v128_load(record), mins = wasm_v128_load(record + 16);
  for (uint32_t h = 0; h < 2; h++) {
    super->scales[h] = simd_f16_exact(scales, h);
    super->mins[h] = wasm_f32x4_neg(simd_f16_exact(mins, h));
  }
}

SIMD_INLINE void q4_0_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  (void)state;
  nibbles_take(RECORD(q4_0_record, record)->codes, step, half, codes);
}

SIMD_INLINE void q4_1_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  (void)state;
  nibbles_take(RECORD(q4_1_record, record)->codes, step, half, codes);
}

SIMD_INLINE void q5_0_begin(const uint8_t *record, uint32_t part, v128_t state[2]) {
  (void)part;
  fifth_begin(RECORD(q5_0_record, record)->fifth, state);
}

SIMD_INLINE void q5_0_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  nibbles_take(RECORD(q5_0_record, record)->codes, step, half, codes);
  fifth_take(&state[half], codes);
}

SIMD_INLINE void q5_1_begin(const uint8_t *record, uint32_t part, v128_t state[2]) {
  (void)part;
  fifth_begin(RECORD(q5_1_record, record)->fifth, state);
}

SIMD_INLINE void q5_1_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)part;
  nibbles_take(RECORD(q5_1_record, record)->codes, step, half, codes);
  fifth_take(&state[half], codes);
}

// ---- blocks of 256 columns ----

// Unpacks the sub-scales and sub-minima of all parts as bytes, in the lane order of sixbits.
SIMD_INLINE void k_super(const uint8_t *record, strip_super *super) {
  const q4_k_record *k = RECORD(q4_k_record, record);
  const v128_t scales = wasm_v128_load(k->scales), mins = wasm_v128_load(k->mins);
  for (uint32_t h = 0; h < 2; h++) {
    super->scales[h] = simd_f16_exact(scales, h);
    super->mins[h] = simd_f16_exact(mins, h);
  }
  for (uint32_t i = 0; i < 2; i++) {
    v128_t subs[4];
    simd_six_bits(k->subs[i], subs);
    for (uint32_t p = 0; p < 4; p++) wasm_v128_store(super->subs[4 * i + p], subs[p]);
  }
}

// Returns byte `index` of each lane, which is below 64, as a float. (The shift is signed: if the
// compiler knew that the result is unsigned, it would use a conversion of unsigned integers, for
// which V8 needs eight instructions.)
SIMD_INLINE v128_t k_sub_float(v128_t bytes, uint32_t index) {
  return wasm_f32x4_convert_i32x4(wasm_i32x4_shr(wasm_i32x4_shl(bytes, 24 - 8 * index), 24));
}

SIMD_INLINE void k_scales_take(const uint8_t *record, uint32_t part, const strip_super *super,
                               strip_scales *scales) {
  const v128_t bytes = wasm_v128_load(super->subs[part]);
  (void)record;
  for (uint32_t h = 0; h < 2; h++) {
    scales->scales[h] = wasm_f32x4_mul(super->scales[h], k_sub_float(bytes, h));
    scales->mins[h] = wasm_f32x4_mul(super->mins[h], k_sub_float(bytes, 2 + h));
  }
}

SIMD_INLINE void q4_k_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  (void)state;
  nibbles_take(RECORD(q4_k_record, record)->codes[part], step, half, codes);
}

SIMD_INLINE void q5_k_begin(const uint8_t *record, uint32_t part, v128_t state[2]) {
  fifth_begin(RECORD(q5_k_record, record)->parts[part].fifth, state);
}

SIMD_INLINE void q5_k_codes(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half,
                            v128_t state[2], v128_t *codes) {
  nibbles_take(RECORD(q5_k_record, record)->parts[part].codes, step, half, codes);
  fifth_take(&state[half], codes);
}

#define NIBBLES(record, parts_, kind_, offset_, folded_, strip_tokens_, is_unrolled_)             \
  .is_unrolled = (is_unrolled_), .strip_tokens = (strip_tokens_), .record_bytes = sizeof(record), \
  .parts = (parts_), .kind = (kind_), .steps = 4, .per_step = 2, .step_groups = 1,                \
  .code_groups = 4, .offset = (offset_), .folded = (folded_)

static const strip_type q4_0_strip = {NIBBLES(q4_0_record, 1, BLOCK_CODES, 8, true, 32, true),
                                      q4_0_super, strip_scales_of_super, strip_begin_nothing,
                                      q4_0_codes};
static const strip_type q4_1_strip = {NIBBLES(q4_1_record, 1, BLOCK_MINS, 0, false, 1, false),
                                      q4_1_super, strip_scales_of_super, strip_begin_nothing,
                                      q4_1_codes};
static const strip_type q5_0_strip = {NIBBLES(q5_0_record, 1, BLOCK_CODES, 16, true, 5, false),
                                      q4_0_super, strip_scales_of_super, q5_0_begin, q5_0_codes};
static const strip_type q5_1_strip = {NIBBLES(q5_1_record, 1, BLOCK_MINS, 0, false, 1, false),
                                      q4_1_super, strip_scales_of_super, q5_1_begin, q5_1_codes};
static const strip_type q4_k_strip = {NIBBLES(q4_k_record, 8, BLOCK_MINS, 0, false, 5, true),
                                      k_super, k_scales_take, strip_begin_nothing, q4_k_codes};
static const strip_type q5_k_strip = {NIBBLES(q5_k_record, 8, BLOCK_MINS, 0, false, 4, false),
                                      k_super, k_scales_take, q5_k_begin, q5_k_codes};

TILE_TYPE(q4_0, q4_0_strip)
TILE_TYPE(q4_1, q4_1_strip)
TILE_TYPE(q5_0, q5_0_strip)
TILE_TYPE(q5_1, q5_1_strip)
TILE_TYPE(q4_k, q4_k_strip)
TILE_TYPE(q5_k, q5_k_strip)
TILE_LONG(q4_0, q4_0_strip)
TILE_LONG(q4_k, q4_k_strip)

#endif

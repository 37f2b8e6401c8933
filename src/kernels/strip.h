// kernels/strip.h — products with block-quantised weights in 128-bit vectors: the code that all
// types share.
//
// Terms. A "record" holds 8 rows of weights, with as many columns as a block of the type (32 to
// 256). A "part" of a record is 32 of its columns (blocks.h). A "strip" is the product of one or
// two groups of 8 rows with one or two tokens, along all columns. A "flavor" is the instruction
// that multiplies bytes (simd.h): PLAIN, PAIRS or QUADS.
//
// A type's strip_type defines how its scales and codes are read from a record. This file multiplies
// them by one token, or unpacks them for the tiles of several tokens (tile.h). For each combination
// of type and flavor, such as Q4_0 and QUADS, the compiler builds one function: all functions here
// are inlined into it, and the members of strip_type become constants.
#ifndef WICK_KERNELS_STRIP_H
#define WICK_KERNELS_STRIP_H

#include "kernels/blocks.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// An act_block as 32-bit words. Words 0 to 7 are the codes, 4 columns per word. The other words
// are:
enum {
  ACT_WORDS = 16,
  ACT_WORD_SCALE = 8,
  ACT_WORD_SCALE_FOLDED = 9,
  ACT_WORD_MINUS_SUM = 10,
  ACT_WORD_MINUS_SUM_HALF = 11,
  ACT_WORD_MINUS_PAIRS = 13,
  ACT_WORD_MINUS_PAIRS_HALF = 14
};

// Values that a type computes once per record. Index [half] is 0 for rows 0-3 of the record, 1 for
// rows 4-7. If `folded`, the scales are too small by a factor of 2^112 (simd_f16_tiny).
typedef struct strip_super {
  v128_t scales[2], mins[2];
  uint8_t subs[8][16];
} strip_super;

// Values that a type computes once per part.
typedef struct strip_scales {
  v128_t scales[2], mins[2];                // [half]
  v128_t half_scales[2][2];                 // [16 columns][half], of BLOCK_HALVES
  v128_t sub_scales[2][2], sub_mins[2][2];  // [16 columns][half], 32-bit integers
} strip_scales;

// How a type's records are read.
//
// The codes of a part are read in steps. A step returns `per_step` vectors for each half; a vector
// has 4 rows x 4 columns. The part's 32 columns are 8 groups of 4: vector i of step s is group s *
// step_groups + i * code_groups. For example, Q4_0 has 4 steps of 2 vectors, groups s and 4 + s:
// the low and the high nibbles of the same bytes. A type with sub-scales has two steps, one per 16
// columns. `state` has one vector per half, which a step passes to the next step.
typedef struct strip_type {
  uint32_t record_bytes, parts;
  block_kind kind;
  uint32_t steps, per_step, step_groups, code_groups;
  int32_t offset;  // added to codes to make them unsigned 7-bit numbers; not for BLOCK_SIGNED
  bool is_of_job;  // the offset is specified by the strip_job
  bool folded;
  void (*super)(const uint8_t *record, strip_super *super);
  void (*scales)(const uint8_t *record, uint32_t part, const strip_super *super,
                 strip_scales *scales);
  void (*begin)(const uint8_t *record, uint32_t part, v128_t state[2]);
  void (*codes)(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half, v128_t state[2],
                v128_t *codes);
  uint32_t strip_tokens;  // see tile_type
  bool is_unrolled;       // dots have no loop: faster, but more code
  bool has_fours;         // PAIRS processes four tokens at once; for BLOCK_SIGNED with 8 steps
} strip_type;

// The strip_begin function of types without state; does nothing.
SIMD_INLINE void strip_begin_nothing(const uint8_t *record, uint32_t part, v128_t state[2]) {
  (void)record;
  (void)part;
  state[0] = state[1] = wasm_i32x4_splat(0);
}

// Returns the scales of types that have one scale per row and record, a 16-bit float.
SIMD_INLINE void strip_scales_of_super(const uint8_t *record, uint32_t part,
                                       const strip_super *super, strip_scales *scales) {
  (void)record;
  (void)part;
  for (uint32_t h = 0; h < 2; h++) {
    scales->scales[h] = super->scales[h];
    scales->mins[h] = super->mins[h];
  }
}

SIMD_INLINE bool kind_has_sub(block_kind kind) {
  return kind == BLOCK_SUB || kind == BLOCK_SUB_MINS;
}

SIMD_INLINE bool kind_is_signed(block_kind kind) {
  return kind == BLOCK_SIGNED || kind == BLOCK_HALVES;
}

SIMD_INLINE v128_t strip_splat(const int32_t *x, uint32_t word) {
  return wasm_v128_load32_splat(x + word);
}

// Copies the low 16 bits of each 32-bit lane to its high 16 bits.
SIMD_INLINE v128_t simd_both_halves(v128_t lanes) {
  return wasm_i16x8_shuffle(lanes, lanes, 0, 0, 2, 2, 4, 4, 6, 6);
}

// Unpacks four vectors of 6-bit codes from three vectors of bytes. The low 6 bits are codes 0 to 2.
// The upper 2 bits of the three are code 3, with its lowest bits in the first vector.
SIMD_INLINE void simd_six_bits(const uint8_t bytes[3][16], v128_t codes[4]) {
  const v128_t low = wasm_v128_load(simd_mask.low_6);
  const v128_t bits_0 = wasm_v128_load(simd_mask.low_2), bits_2 = wasm_v128_load(simd_mask.bits_2);
  const v128_t bits_4 = wasm_v128_load(simd_mask.bits_4);
  const v128_t a = wasm_v128_load(bytes[0]), b = wasm_v128_load(bytes[1]);
  const v128_t c = wasm_v128_load(bytes[2]);
  codes[0] = wasm_v128_and(a, low);
  codes[1] = wasm_v128_and(b, low);
  codes[2] = wasm_v128_and(c, low);
  const v128_t top = wasm_v128_and(wasm_u16x8_shr(c, 2), bits_4);
  const v128_t middle = wasm_v128_and(wasm_u16x8_shr(b, 4), bits_2);
  const v128_t bottom = wasm_v128_and(wasm_u16x8_shr(a, 6), bits_0);
  codes[3] = wasm_v128_or(wasm_v128_or(top, middle), bottom);
}

// Returns the initial value of a dot: -offset * sum(x), which removes the offset of the codes.
// `step` 2 is for all 32 columns, 0 and 1 are for the first and the second 16 columns. PAIRS keeps
// dots in 16-bit lanes: sums of 32 products with codes below 16 fit, and sums of 16 products with
// codes below 32.
SIMD_INLINE v128_t strip_dot_start(int32_t offset, const int32_t *x, uint32_t step,
                                   simd_flavor flavor) {
  if (flavor == SIMD_PAIRS) {
    const uint32_t word = step == 2 ? ACT_WORD_MINUS_PAIRS : ACT_WORD_MINUS_PAIRS_HALF + step;
    return wasm_i16x8_mul(strip_splat(x, word), wasm_i16x8_splat((int16_t)offset));
  }
  const uint32_t word = step == 2 ? ACT_WORD_MINUS_SUM : ACT_WORD_MINUS_SUM_HALF + step;
  return wasm_i32x4_mul(strip_splat(x, word), wasm_i32x4_splat(offset));
}

// Returns codes as 16-bit lanes: columns 0 and 2 of each 4 (odd = 0), or columns 1 and 3 (odd = 1).
// Signed codes become 256 times too large; simd_dot_total divides them.
SIMD_INLINE v128_t simd_widen(v128_t codes, uint32_t odd, bool is_signed) {
  if (is_signed) {
    return odd ? wasm_v128_and(codes, wasm_v128_load(simd_mask.high_8_of_16))
               : wasm_i16x8_shl(codes, 8);
  }
  return odd ? wasm_u16x8_shr(codes, 8)
             : wasm_v128_and(codes, wasm_v128_load(simd_mask.low_8_of_16));
}

// Returns sum + codes * x. Codes are bytes for PAIRS and QUADS, 16-bit lanes for PLAIN.
SIMD_INLINE v128_t simd_dot(v128_t sum, v128_t x, v128_t codes, simd_flavor flavor) {
  if (flavor == SIMD_PAIRS) return wasm_i16x8_add(sum, simd_dot_pairs(x, codes));
  if (flavor == SIMD_QUADS || flavor == SIMD_SIGNED) return simd_dot_quads(x, codes, sum);
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(codes, x));
}

// Returns whether a flavor multiplies in 16-bit lanes. PAIRS does so for signed codes: a sum of two
// products of signed 8-bit numbers needs more than 16 bits.
SIMD_INLINE bool flavor_is_wide(block_kind kind, simd_flavor flavor) {
  return flavor == SIMD_PLAIN || (kind_is_signed(kind) && flavor == SIMD_PAIRS);
}

// Returns sum + codes * x, where codes are bytes and x is a token's word in every lane. Signed
// codes are only for QUADS and SIGNED.
SIMD_INLINE v128_t simd_dot_bytes(v128_t sum, v128_t codes, v128_t x, bool is_signed,
                                  simd_flavor flavor) {
  if (!is_signed || flavor == SIMD_SIGNED) return simd_dot(sum, x, codes, flavor);
  // the relaxed dot needs 7 bits on one side: |x|; the code gets x's sign, which is exact above
  // -128
  return simd_dot_quads(simd_with_sign(codes, x), wasm_i8x16_abs(x), sum);
}

// Returns sum + one vector of codes times one token's words. x and wide begin at the step's first
// group.
SIMD_INLINE v128_t strip_dot(v128_t sum, v128_t codes, const int32_t *x, const int32_t *wide,
                             uint32_t group, block_kind kind, simd_flavor flavor) {
  const bool is_signed = kind_is_signed(kind);
  if (flavor_is_wide(kind, flavor)) {
    sum = simd_dot(sum, strip_splat(wide, 2 * group), simd_widen(codes, 0, is_signed), SIMD_PLAIN);
    return simd_dot(sum, strip_splat(wide, 2 * group + 1), simd_widen(codes, 1, is_signed),
                    SIMD_PLAIN);
  }
  return simd_dot_bytes(sum, codes, strip_splat(x, group), is_signed, flavor);
}

// Returns the total of a dot as 32-bit lanes.
SIMD_INLINE v128_t simd_dot_total(v128_t sum, block_kind kind, simd_flavor flavor) {
  const bool is_wide = flavor == SIMD_PLAIN || flavor == SIMD_PAIRS;
  if (kind_is_signed(kind) && is_wide) return wasm_i32x4_shr(sum, 8);
  return flavor == SIMD_PAIRS ? wasm_i32x4_extadd_pairwise_i16x8(sum) : sum;
}

// Returns the sum of a dot of 16 columns times its sub-scales, as 32-bit lanes.
SIMD_INLINE v128_t simd_dot_scaled(v128_t sum, v128_t sub_scales, simd_flavor flavor) {
  return flavor == SIMD_PAIRS ? wasm_i32x4_dot_i16x8(sum, simd_both_halves(sub_scales))
                              : wasm_i32x4_mul(sum, sub_scales);
}

// ---- lanes ----
// A strip has one lane (8 rows times one token) or two: the same rows times two tokens, or two
// groups of rows times one token. Two lanes share the loads of codes or of activations.

typedef enum strip_lanes { LANES_ONE, LANES_TOKENS, LANES_GROUPS } strip_lanes;

#define LANES_COUNT(lanes) ((lanes) == LANES_ONE ? 1u : 2u)
#define LANES_RECORDS(lanes) ((lanes) == LANES_GROUPS ? 2u : 1u)

// A token's activations of a part: the words of its act_block and of its act_wide.
typedef struct strip_act {
  const int32_t *x, *wide;
} strip_act;

// For 16 columns (`s`) of a part whose type has sub-scales, adds the integer dot times the
// sub-scale to the totals. Processes one record and `tokens` (1 or 2) lanes.
SIMD_INLINE void strip_dots_half(const strip_type *type, int32_t offset, const uint8_t *record,
                                 uint32_t part, uint32_t s, const strip_super *super,
                                 v128_t state[2], const strip_act *act, uint32_t tokens,
                                 simd_flavor flavor, v128_t *totals) {
  v128_t codes[2][4];
  strip_scales scales;
  for (uint32_t h = 0; h < 2; h++) type->codes(record, part, s, h, state, codes[h]);
  type->scales(record, part, super, &scales);
  for (uint32_t l = 0; l < tokens; l++) {
    v128_t sums[2];
    sums[0] = sums[1] = strip_dot_start(offset, act[l].x, s, flavor);
    for (uint32_t i = 0; i < 8; i++) {
      sums[i % 2] = strip_dot(sums[i % 2], codes[i % 2][i / 2], act[l].x, act[l].wide,
                              4 * s + i / 2, type->kind, flavor);
    }
    for (uint32_t h = 0; h < 2; h++) {
      const v128_t scaled = simd_dot_scaled(sums[h], scales.sub_scales[s][h], flavor);
      v128_t *total = &totals[2 * l + h];
      *total = s == 0 ? scaled : wasm_i32x4_add(*total, scaled);
    }
  }
}

// Computes the dots of a part whose type has sub-scales.
SIMD_INLINE void strip_dots_sub(const strip_type *type, int32_t offset, const uint8_t *record,
                                uint32_t part, const strip_super *super, const strip_act *act,
                                uint32_t tokens, simd_flavor flavor, v128_t *totals) {
  v128_t state[2];
  uint32_t zero = 0;
  type->begin(record, part, state);
  strip_dots_half(type, offset, record, part, 0, super, state, act, tokens, flavor, totals);
  if (simd_never(&zero)) return;
  strip_dots_half(type, offset, record, part, 1, super, state, act, tokens, flavor, totals);
}

// ---- products of bytes in 16-bit lanes (LONG) ----
// A sum has two vectors: rows 0 and 1, rows 2 and 3, with 4 columns each. Unsigned codes are added
// in 16-bit lanes: 8 products with codes of 5 bits fit, and 4 with codes of 6 bits. Signed codes
// are added in pairs, in 32-bit lanes. The masks for extracting codes are hidden from the compiler:
// if it could see that codes are unsigned, it would widen them differently.

typedef struct long_sum {
  v128_t rows[2];
} long_sum;

SIMD_INLINE long_sum long_add(long_sum sum, v128_t codes, v128_t x, bool is_signed) {
  const v128_t products[2] = {wasm_i16x8_extmul_low_i8x16(codes, x),
                              wasm_i16x8_extmul_high_i8x16(codes, x)};
  for (uint32_t i = 0; i < 2; i++) {
    sum.rows[i] = is_signed
                      ? wasm_i32x4_add(sum.rows[i], wasm_i32x4_extadd_pairwise_i16x8(products[i]))
                      : wasm_i16x8_add(sum.rows[i], products[i]);
  }
  return sum;
}

SIMD_INLINE v128_t long_total(long_sum sum, bool is_signed) {
  for (uint32_t i = 0; i < 2 && !is_signed; i++)
    sum.rows[i] = wasm_i32x4_extadd_pairwise_i16x8(sum.rows[i]);
  return wasm_i32x4_add(wasm_i32x4_shuffle(sum.rows[0], sum.rows[1], 0, 2, 4, 6),
                        wasm_i32x4_shuffle(sum.rows[0], sum.rows[1], 1, 3, 5, 7));
}

// Adds the products of step `s` to the sums of [2 * lane + half].
SIMD_INLINE void long_step(const strip_type *type, const uint8_t *record[2], uint32_t part,
                           uint32_t s, v128_t state[2][2], strip_lanes lanes, const int32_t *x,
                           long_sum sums[4]) {
#pragma unroll
  for (uint32_t i = 0; i < 2 * LANES_RECORDS(lanes); i++) {
    v128_t codes[4];
    type->codes(record[i / 2], part, s, i % 2, state[i / 2], codes);
#pragma unroll
    for (uint32_t v = 0; v < type->per_step; v++) {
      const uint32_t group = s * type->step_groups + v * type->code_groups;
      sums[i] = long_add(sums[i], codes[v], strip_splat(x, group), kind_is_signed(type->kind));
    }
  }
}

// Computes the dots of a part of the lanes' records with one token, in totals[2 * lane + half].
SIMD_INLINE void strip_dots_long(const strip_type *type, const uint8_t *record[2], uint32_t part,
                                 strip_lanes lanes, const int32_t *x, v128_t totals[4]) {
  const bool is_signed = kind_is_signed(type->kind);
  const uint32_t records = LANES_RECORDS(lanes);
  const v128_t start = strip_dot_start(type->offset, x, 2, SIMD_LONG);
  const v128_t zeros = wasm_i32x4_splat(0);
  v128_t state[2][2];
  long_sum sums[4] = {{{zeros, zeros}}, {{zeros, zeros}}, {{zeros, zeros}}, {{zeros, zeros}}};
  uint32_t zero = 0;
  SIMD_OPAQUE(x);
  for (uint32_t l = 0; l < records; l++) type->begin(record[l], part, state[l]);
#pragma unroll
  for (uint32_t s = 0; s < type->steps; s++) {
    long_step(type, record, part, s, state, lanes, x, sums);
    if (simd_never(&zero)) break;
  }
#pragma unroll
  for (uint32_t i = 0; i < 2 * records; i++) {
    totals[i] = long_total(sums[i], is_signed);
    if (type->offset != 0) totals[i] = wasm_i32x4_add(totals[i], start);
  }
}

// Computes the dots of a part whose type has sub-scales, with one token.
SIMD_INLINE void strip_dots_sub_long(const strip_type *type, const uint8_t *record, uint32_t part,
                                     const strip_super *super, const int32_t *x, v128_t totals[2]) {
  const v128_t zeros = wasm_i32x4_splat(0);
  v128_t state[2][2];
  uint32_t zero = 0;
  type->begin(record, part, state[0]);
#pragma unroll
  for (uint32_t s = 0; s < 2; s++) {
    strip_scales scales;
    long_sum sums[4] = {{{zeros, zeros}}, {{zeros, zeros}}};
    long_step(type, &record, part, s, state, LANES_ONE, x, sums);
    type->scales(record, part, super, &scales);
    const v128_t start = strip_dot_start(type->offset, x, s, SIMD_LONG);
    for (uint32_t h = 0; h < 2; h++) {
      const v128_t dot = wasm_i32x4_add(long_total(sums[h], false), start);
      const v128_t scaled = wasm_i32x4_mul(dot, scales.sub_scales[s][h]);
      totals[h] = s == 0 ? scaled : wasm_i32x4_add(totals[h], scaled);
    }
    if (simd_never(&zero)) return;
  }
}

// Adds the products of step `s` to the dots. act begins at the step's first column group.
SIMD_INLINE void strip_step(const strip_type *type, const uint8_t *record[2], uint32_t part,
                            uint32_t s, v128_t state[2][2], strip_lanes lanes,
                            const strip_act act[2], simd_flavor flavor, v128_t totals[4]) {
  const bool apart = lanes == LANES_GROUPS;
  for (uint32_t h = 0; h < 2; h++) {
    v128_t codes[2][2];
    for (uint32_t l = 0; l < LANES_RECORDS(lanes); l++) {
      type->codes(record[l], part, s, h, state[l], codes[l]);
    }
    for (uint32_t i = 0; i < type->per_step; i++) {
      for (uint32_t l = 0; l < LANES_COUNT(lanes); l++) {
        totals[2 * l + h] = strip_dot(totals[2 * l + h], codes[apart ? l : 0][i], act[l].x,
                                      act[l].wide, i * type->code_groups, type->kind, flavor);
      }
    }
  }
}

SIMD_INLINE void strip_act_next(const strip_type *type, uint32_t steps, uint32_t count,
                                strip_act act[2]) {
  for (uint32_t l = 0; l < count; l++) {
    act[l].x += steps * type->step_groups;
    act[l].wide += 2 * steps * type->step_groups;
  }
}

SIMD_INLINE void strip_act_hide(bool apart, uint32_t count, strip_act act[2]) {
  for (uint32_t l = 0; l < count - apart; l++) {
    SIMD_OPAQUE(act[l].x);
    SIMD_OPAQUE(act[l].wide);
  }
  if (apart) act[1] = act[0];
}

// Computes the dots of steps [step_first, step_last), in totals[2 * lane + half]. `start` is the
// step of strip_dot_start.
SIMD_INLINE void strip_dots(const strip_type *type, int32_t offset, const uint8_t *record[2],
                            uint32_t part, uint32_t step_first, uint32_t step_last, uint32_t start,
                            strip_lanes lanes, const strip_act from[2], simd_flavor flavor,
                            v128_t totals[4]) {
  const bool apart = lanes == LANES_GROUPS;
  const uint32_t count = LANES_COUNT(lanes);
  v128_t state[2][2];
  strip_act act[2] = {from[0], from[1]};
  uint32_t zero = 0;
  for (uint32_t l = 0; l < LANES_RECORDS(lanes); l++) type->begin(record[l], part, state[l]);
  for (uint32_t i = 0; i < 2 * count; i++) {
    totals[i] = strip_dot_start(offset, act[i / 2].x, start, flavor);
  }
  strip_act_next(type, step_first, count, act);
  strip_act_hide(apart, count, act);
  if (type->is_unrolled) {
#pragma unroll
    for (uint32_t s = step_first; s < step_last; s++) {
      strip_step(type, record, part, s, state, lanes, act, flavor, totals);
      strip_act_next(type, 1, count, act);
      if (simd_never(&zero)) break;
    }
  } else {
#pragma nounroll
    for (uint32_t s = step_first; s < step_last; s++) {
      strip_act_hide(apart, count, act);
      strip_step(type, record, part, s, state, lanes, act, flavor, totals);
      strip_act_next(type, 1, count, act);
    }
  }
}

// Returns sum + one part's products, scaled and added in the order of blocks.h.
SIMD_INLINE v128_t strip_part_add(block_kind kind, bool folded, const strip_scales *scales,
                                  uint32_t half, v128_t dot, const int32_t *x, simd_flavor flavor,
                                  v128_t sum) {
  const v128_t x_scale = strip_splat(x, folded ? ACT_WORD_SCALE_FOLDED : ACT_WORD_SCALE);
  sum = simd_multiply_add(wasm_f32x4_convert_i32x4(dot),
                          wasm_f32x4_mul(scales->scales[half], x_scale), sum, flavor);
  if (kind == BLOCK_MINS) {
    const v128_t x_sum = wasm_f32x4_convert_i32x4(strip_splat(x, ACT_WORD_MINUS_SUM));
    sum = simd_multiply_add(scales->mins[half], wasm_f32x4_mul(x_sum, x_scale), sum, flavor);
  }
  if (kind == BLOCK_SUB_MINS) {
    const v128_t mins = wasm_i32x4_add(
        wasm_i32x4_mul(scales->sub_mins[0][half], strip_splat(x, ACT_WORD_MINUS_SUM_HALF)),
        wasm_i32x4_mul(scales->sub_mins[1][half], strip_splat(x, ACT_WORD_MINUS_SUM_HALF + 1)));
    sum = simd_multiply_add(wasm_f32x4_convert_i32x4(mins),
                            wasm_f32x4_mul(scales->mins[half], x_scale), sum, flavor);
  }
  return sum;
}

// Adds one half (16 columns) of an unpacked part, with two tokens. BLOCK_HALVES has a float scale
// for each half: its product is added to the sums. The other types have integer sub-scales: the
// dots are multiplied by these and added up.
SIMD_INLINE void strip_part_half(const strip_type *type, int32_t offset, const uint8_t *record[2],
                                 uint32_t s, const strip_act act[2], simd_flavor flavor,
                                 v128_t dots[4], v128_t sums[4]) {
  v128_t half[4];
  strip_scales scales;
  strip_dots(type, offset, record, 0, 4 * s, 4 * s + 4, s, LANES_TOKENS, act, flavor, half);
  type->scales(record[0], 0, NULL, &scales);
  for (uint32_t i = 0; i < 4; i++) {
    if (type->kind == BLOCK_HALVES) {
      const v128_t x_scale = strip_splat(act[i / 2].x, ACT_WORD_SCALE);
      const v128_t scale = wasm_f32x4_mul(scales.half_scales[s][i % 2], x_scale);
      const v128_t dot = simd_dot_total(half[i], type->kind, flavor);
      sums[i] = simd_multiply_add(wasm_f32x4_convert_i32x4(dot), scale, sums[i], flavor);
    } else {
      const v128_t dot = simd_dot_scaled(half[i], scales.sub_scales[s][i % 2], flavor);
      dots[i] = s == 0 ? dot : wasm_i32x4_add(dots[i], dot);
    }
  }
}

// Adds the products of one part of the lanes' records to the sums.
SIMD_INLINE void strip_part(const strip_type *type, int32_t offset, const uint8_t *record[2],
                            uint32_t part, strip_lanes lanes, strip_super super[2],
                            const strip_act act[2], simd_flavor flavor, v128_t sums[4]) {
  strip_scales scales[2];
  v128_t dots[4];
  const bool apart = lanes == LANES_GROUPS;
  const uint32_t count = LANES_COUNT(lanes), records = LANES_RECORDS(lanes);
  if (type->kind == BLOCK_HALVES || (kind_has_sub(type->kind) && type->parts == 1)) {
    uint32_t zero = 0;
    strip_part_half(type, offset, record, 0, act, flavor, dots, sums);
    if (simd_never(&zero)) return;
    strip_part_half(type, offset, record, 1, act, flavor, dots, sums);
    if (type->kind == BLOCK_HALVES) return;
  } else if (flavor == SIMD_LONG && !kind_has_sub(type->kind)) {
    strip_dots_long(type, record, part, lanes, act[0].x, dots);
  } else if (flavor == SIMD_LONG) {
    strip_dots_sub_long(type, record[0], part, super, act[0].x, dots);
  } else if (!kind_has_sub(type->kind)) {
    strip_dots(type, offset, record, part, 0, type->steps, 2, lanes, act, flavor, dots);
    for (uint32_t i = 0; i < 2 * count; i++) dots[i] = simd_dot_total(dots[i], type->kind, flavor);
  } else {
    strip_dots_sub(type, offset, record[0], part, super, act, count, flavor, dots);
  }
  // loaded only now, so that they do not take registers from the dots
  for (uint32_t l = 0; l < records; l++) {
    if (type->parts == 1) type->super(record[l], &super[l]);
    type->scales(record[l], part, &super[l], &scales[l]);
  }
  for (uint32_t i = 0; i < 2 * count; i++) {
    sums[i] = strip_part_add(type->kind, type->folded, &scales[apart ? i / 2 : 0], i % 2, dots[i],
                             act[i / 2].x, flavor, sums[i]);
  }
}

// The operands of a call: `parts` parts of `groups` groups of 8 rows, with `tokens` tokens. A group
// begins group_stride_bytes after the previous one, and a token's activations begin act_stride
// words after those of the previous token. sums is [group][slot][8 rows], with one slot per token.
// Tokens are processed in pairs, so an odd number of tokens needs one more slot.
typedef struct strip_job {
  const uint8_t *record;
  size_t group_stride_bytes;
  uint32_t groups, parts;
  strip_act act;
  size_t act_stride;
  uint32_t tokens, slots;
  int32_t offset;
  float *sums;
} strip_job;

// Multiplies the lanes' records along all parts of the job. The sums of lane l are at y[l].
SIMD_INLINE void strip_run(const strip_type *type, const strip_job *job, const uint8_t *record[2],
                           strip_act act[2], strip_lanes lanes, float *const y[2],
                           simd_flavor flavor) {
  v128_t sums[4];
  const uint32_t count = LANES_COUNT(lanes), records = LANES_RECORDS(lanes);
  // a compile-time constant unless the job specifies the offset
  const int32_t offset = type->is_of_job ? job->offset : type->offset;
  for (uint32_t i = 0; i < 2 * count; i++) sums[i] = wasm_v128_load(y[i / 2] + 4 * (i % 2));
#pragma nounroll
  for (uint32_t r = job->parts / type->parts; r > 0; r--) {
    strip_super super[2];
    for (uint32_t l = 0; l < records && type->parts > 1; l++) type->super(record[l], &super[l]);
#pragma nounroll
    for (uint32_t part = 0; part < type->parts; part++) {
      strip_part(type, offset, record, part, lanes, super, act, flavor, sums);
      for (uint32_t l = 0; l < count; l++) {
        act[l].x += ACT_WORDS;
        act[l].wide += ACT_WORDS;
      }
    }
    for (uint32_t l = 0; l < records; l++) record[l] += type->record_bytes;
  }
  for (uint32_t i = 0; i < 2 * count; i++) wasm_v128_store(y[i / 2] + 4 * (i % 2), sums[i]);
}

// ---- four tokens at a time, signed codes in 16-bit lanes ----
// This order needs the fewest instructions per product. The dots of 8 rows and 4 tokens fill the
// registers, so the float sums stay in memory.

enum { FOUR = 4 };

// Adds the products of 8 rows and 4 tokens, for the even or the odd columns of step `s`.
SIMD_INLINE void strip_four_step(const strip_type *type, const uint8_t *record, uint32_t s,
                                 uint32_t odd, const int32_t *const wide[FOUR],
                                 v128_t dots[FOUR][2]) {
  v128_t codes[2], state[2];
  for (uint32_t h = 0; h < 2; h++) {
    type->codes(record, 0, s, h, state, &codes[h]);
    codes[h] = simd_widen(codes[h], odd, true);
  }
  for (uint32_t t = 0; t < FOUR; t++) {
    const v128_t x = strip_splat(wide[t], 2 * s + odd);
    for (uint32_t h = 0; h < 2; h++) {
      dots[t][h] = simd_dot(dots[t][h], x, codes[h], SIMD_PLAIN);
    }
  }
}

// Multiplies all parts of one group by 4 tokens. sums is [4 tokens][8 rows].
SIMD_INLINE void strip_run_four(const strip_type *type, const strip_job *job, const uint8_t *record,
                                strip_act act, float *sums, simd_flavor flavor) {
  const int32_t *x[FOUR], *wide[FOUR];
  for (uint32_t t = 0; t < FOUR; t++) {
    x[t] = act.x + t * job->act_stride;
    wide[t] = act.wide + t * job->act_stride;
  }
#pragma nounroll
  for (uint32_t p = job->parts; p > 0; p--, record += type->record_bytes) {
    v128_t dots[FOUR][2];
    strip_super super;
    strip_scales scales;
    uint32_t zero = 0;
    for (uint32_t t = 0; t < FOUR; t++) {
      dots[t][0] = dots[t][1] = wasm_i32x4_splat(0);
      SIMD_OPAQUE(wide[t]);
    }
#pragma unroll
    for (uint32_t s = 0; s < 8; s++) {
      strip_four_step(type, record, s, 0, wide, dots);
      if (simd_never(&zero)) break;
      strip_four_step(type, record, s, 1, wide, dots);
      if (simd_never(&zero)) break;
    }
    type->super(record, &super);
    type->scales(record, 0, &super, &scales);
    for (uint32_t i = 0; i < 2 * FOUR; i++) {
      const uint32_t t = i / 2, h = i % 2;
      const v128_t dot = simd_dot_total(dots[t][h], BLOCK_SIGNED, SIMD_PLAIN);
      const v128_t sum = wasm_v128_load(sums + 4 * i);
      wasm_v128_store(sums + 4 * i,
                      strip_part_add(type->kind, type->folded, &scales, h, dot, x[t], flavor, sum));
    }
    for (uint32_t t = 0; t < FOUR; t++) {
      x[t] += ACT_WORDS;
      wide[t] += ACT_WORDS;
    }
  }
}

// Multiplies several tokens: in fours if the type supports it, then in pairs. A last token without
// a partner is multiplied twice, with itself as its partner.
SIMD_INLINE void strip_run_pairs(const strip_type *type, const strip_job *job, simd_flavor flavor) {
  float *y = job->sums;
#pragma nounroll
  for (uint32_t g = 0; g < job->groups; g++) {
    strip_act next = job->act;
    uint32_t t = 0;
#pragma nounroll
    for (; type->has_fours && flavor == SIMD_PAIRS && t + FOUR <= job->tokens; t += FOUR) {
      strip_run_four(type, job, job->record + g * job->group_stride_bytes, next, y, flavor);
      next.x += FOUR * job->act_stride;
      next.wide += FOUR * job->act_stride;
      y += 8 * FOUR;
    }
#pragma nounroll
    for (; t < job->tokens; t += 2, y += 16) {
      const uint8_t *record[2] = {job->record + g * job->group_stride_bytes, NULL};
      const size_t stride = t + 1 < job->tokens ? job->act_stride : 0;
      strip_act act[2] = {next, {next.x + stride, next.wide + stride}};
      float *const both[2] = {y, y + 8};
      next.x += 2 * job->act_stride;
      next.wide += 2 * job->act_stride;
      strip_run(type, job, record, act, LANES_TOKENS, both, flavor);
    }
  }
}

// Multiplies one token by an even number of groups. Types with one part per record process two
// groups at a time.
SIMD_INLINE void strip_run_single(const strip_type *type, const strip_job *job,
                                  simd_flavor flavor) {
  const strip_lanes lanes = type->parts == 1 ? LANES_GROUPS : LANES_ONE;
  const uint8_t *next = job->record;
  float *y = job->sums;
#pragma nounroll
  for (uint32_t g = 0; g < job->groups; g += LANES_RECORDS(lanes)) {
    const uint8_t *record[2] = {next, next + job->group_stride_bytes};
    strip_act act[2] = {job->act, job->act};
    float *const both[2] = {y, y + 8};
    next += LANES_RECORDS(lanes) * job->group_stride_bytes;
    y += 8 * LANES_RECORDS(lanes);
    strip_run(type, job, record, act, lanes, both, flavor);
  }
}

// A part of 8 rows in the form that tiles read.
typedef struct tile_part {
  uint8_t codes[8][32];                      // [column group][8 rows][4 columns]
  int16_t wide[8][2][16];                    // [column group][even or odd columns][8 rows][2]
  float scales[8], mins[8];                  // true values, even if the type is folded
  int32_t sub_scales[2][8], sub_mins[2][8];  // [16 columns]
  float half_scales[2][8];
} tile_part;

SIMD_INLINE void tile_part_scales(const strip_type *type, const strip_scales *scales,
                                  tile_part *out) {
  for (uint32_t h = 0; h < 2; h++) {
    const v128_t size = wasm_f32x4_splat(type->folded ? 0x1p112f : 1.0f);
    wasm_v128_store(out->scales + 4 * h, wasm_f32x4_mul(scales->scales[h], size));
    if (type->kind == BLOCK_MINS || type->kind == BLOCK_SUB_MINS) {
      wasm_v128_store(out->mins + 4 * h, scales->mins[h]);
    }
    for (uint32_t s = 0; s < 2; s++) {
      if (kind_has_sub(type->kind)) {
        wasm_v128_store(out->sub_scales[s] + 4 * h, scales->sub_scales[s][h]);
      }
      if (type->kind == BLOCK_SUB_MINS) {
        wasm_v128_store(out->sub_mins[s] + 4 * h, scales->sub_mins[s][h]);
      }
    }
  }
}

// Widens 4 rows x 4 columns of codes in bytes, column group k, to the form of tile_part.wide.
SIMD_INLINE void tile_part_widen(v128_t codes, uint32_t k, uint32_t half, bool is_signed,
                                 tile_part *out) {
  for (uint32_t odd = 0; odd < 2; odd++) {
    const v128_t wide = simd_widen(codes, odd, is_signed);
    wasm_v128_store(out->wide[k][odd] + 8 * half, is_signed ? wasm_i16x8_shr(wide, 8) : wide);
  }
}

// Unpacks parts [first, last) of a record.
SIMD_INLINE void strip_unpack(const strip_type *type, const uint8_t *record, uint32_t first,
                              uint32_t last, tile_part *out) {
  strip_super super;
  type->super(record, &super);
#pragma nounroll
  for (uint32_t part = first; part < last; part++, out++) {
    strip_scales scales;
    v128_t state[2];
    type->scales(record, part, &super, &scales);
    tile_part_scales(type, &scales, out);
    type->begin(record, part, state);
#pragma nounroll
    for (uint32_t s = 0; s < type->steps; s++) {
      for (uint32_t h = 0; h < 2; h++) {
        v128_t codes[4];
        type->codes(record, part, s, h, state, codes);
        for (uint32_t i = 0; i < type->per_step; i++) {
          const uint32_t group = s * type->step_groups + i * type->code_groups;
          wasm_v128_store(out->codes[group] + 16 * h, codes[i]);
        }
      }
    }
  }
}

#endif
#endif

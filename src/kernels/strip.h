// kernels/strip.h — the frame that all block-quantised types share in 128-bit vectors. A type
// brings how its scales and codes come out of a record (strip_type); this file multiplies them with
// one token, or unpacks them for the tiles of several tokens (tile.h). Everything is inlined into
// one function per type and flavor, where the members of strip_type are constants.
#ifndef WICK_KERNELS_STRIP_H
#define WICK_KERNELS_STRIP_H

#include "kernels/blocks.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// An act_block by 32-bit words: 8 words of codes, then
enum {
  ACT_WORDS = 16,
  ACT_WORD_SCALE = 8,
  ACT_WORD_SCALE_FOLDED = 9,
  ACT_WORD_MINUS_SUM = 10,
  ACT_WORD_MINUS_SUM_HALF = 11,
  ACT_WORD_MINUS_PAIRS = 13,
  ACT_WORD_MINUS_PAIRS_HALF = 14
};

// What is worked out once for a record, and for a part of it. [half]: rows 0-3 and 4-7 of the
// group. scales of types with `folded` are 2^112 too small (simd_f16_tiny).
typedef struct strip_super {
  v128_t scales[2], mins[2];
  uint8_t subs[8][16];
} strip_super;

typedef struct strip_scales {
  v128_t scales[2], mins[2];
  v128_t sub_scales[2][2], sub_mins[2][2];  // [16 columns][half], 32-bit integers
} strip_scales;

// Codes come in steps; a step gives `per_step` vectors of 4 rows x 4 columns for each half. Vector
// i of step s is column group s * step_groups + i * code_groups of the part's 8. Types with
// sub-scales have two steps, one per 16 columns. `state` (a vector a half) is carried from step to
// step.
typedef struct strip_type {
  uint32_t record_bytes, parts;
  block_kind kind;
  uint32_t steps, per_step, step_groups, code_groups;
  int32_t offset;  // codes come with it added, so that they fill 7 unsigned bits (not BLOCK_SIGNED)
  bool folded;
  void (*super)(const uint8_t *record, strip_super *super);
  void (*scales)(const uint8_t *record, uint32_t part, const strip_super *super,
                 strip_scales *scales);
  void (*begin)(const uint8_t *record, uint32_t part, v128_t state[2]);
  void (*codes)(const uint8_t *record, uint32_t part, uint32_t step, uint32_t half, v128_t state[2],
                v128_t *codes);
  uint32_t strip_tokens;  // see tile_type
} strip_type;

// For a type without state.
SIMD_INLINE void strip_begin_nothing(const uint8_t *record, uint32_t part, v128_t state[2]) {
  (void)record;
  (void)part;
  state[0] = state[1] = wasm_i32x4_splat(0);
}

// For types whose scale is one 16-bit float per row and record.
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

SIMD_INLINE v128_t strip_splat(const int32_t *x, uint32_t word) {
  return wasm_v128_load32_splat(x + word);
}

// The low 16 bits of each 32-bit lane in both halves.
SIMD_INLINE v128_t simd_both_halves(v128_t lanes) {
  return wasm_i16x8_shuffle(lanes, lanes, 0, 0, 2, 2, 4, 4, 6, 6);
}

// Four vectors of 6-bit codes out of three: the fourth in the upper 2 bits of the others, lowest
// first.
SIMD_INLINE void simd_six_bits(const uint8_t bytes[3][16], v128_t codes[4]) {
  const v128_t low = wasm_v128_load(simd_mask.low_6);
  const v128_t a = wasm_v128_load(bytes[0]), b = wasm_v128_load(bytes[1]);
  const v128_t c = wasm_v128_load(bytes[2]);
  codes[0] = wasm_v128_and(a, low);
  codes[1] = wasm_v128_and(b, low);
  codes[2] = wasm_v128_and(c, low);
  const v128_t top = wasm_v128_and(wasm_u16x8_shr(c, 2), wasm_i8x16_splat(0x30));
  const v128_t middle = wasm_v128_and(wasm_u16x8_shr(b, 4), wasm_i8x16_splat(0x0c));
  const v128_t bottom = wasm_v128_and(wasm_u16x8_shr(a, 6), wasm_i8x16_splat(0x03));
  codes[3] = wasm_v128_or(wasm_v128_or(top, middle), bottom);
}

// -offset * sum(x) to begin a dot with: of all codes (step 2) or of those of 16 columns (step 0,
// 1). PAIRS keeps dots in 16-bit lanes, where sums of 32 columns x 16 or 16 columns x 32 just fit.
SIMD_INLINE v128_t strip_dot_start(const int32_t *x, uint32_t step, int32_t offset,
                                   simd_flavor flavor) {
  if (offset == 0) return wasm_i32x4_splat(0);
  if (flavor == SIMD_PAIRS) {
    const uint32_t word = step == 2 ? ACT_WORD_MINUS_PAIRS : ACT_WORD_MINUS_PAIRS_HALF + step;
    return wasm_i16x8_mul(strip_splat(x, word), wasm_i16x8_splat((int16_t)offset));
  }
  const uint32_t word = step == 2 ? ACT_WORD_MINUS_SUM : ACT_WORD_MINUS_SUM_HALF + step;
  return wasm_i32x4_mul(strip_splat(x, word), wasm_i32x4_splat(offset));
}

// The even columns (0 and 2 of 4) or odd ones of codes in bytes, in 16-bit lanes; signed codes come
// out 256 times too large.
SIMD_INLINE v128_t simd_widen(v128_t codes, uint32_t odd, bool is_signed) {
  if (is_signed) {
    return odd ? wasm_v128_and(codes, wasm_v128_load(simd_mask.high_8_of_16))
               : wasm_i16x8_shl(codes, 8);
  }
  return odd ? wasm_u16x8_shr(codes, 8)
             : wasm_v128_and(codes, wasm_v128_load(simd_mask.low_8_of_16));
}

// sum + codes * x, one step of a dot. codes: in the form that the flavor wants.
SIMD_INLINE v128_t simd_dot(v128_t sum, v128_t x, v128_t codes, simd_flavor flavor) {
  if (flavor == SIMD_PAIRS) return wasm_i16x8_add(sum, simd_dot_pairs(x, codes));
  if (flavor == SIMD_QUADS) return simd_dot_quads(x, codes, sum);
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(codes, x));
}

// Whether a flavor multiplies in 16-bit lanes: two products of 8 bits and a sign fill 16 bits, so
// PAIRS gains nothing with such codes.
SIMD_INLINE bool flavor_is_wide(block_kind kind, simd_flavor flavor) {
  const bool is_signed = kind == BLOCK_SIGNED || kind == BLOCK_HALVES;
  return flavor == SIMD_PLAIN || (is_signed && flavor == SIMD_PAIRS);
}

// One vector of codes times one token's words. x and wide: of the first group of the step.
SIMD_INLINE v128_t strip_dot(v128_t sum, v128_t codes, const int32_t *x, const int32_t *wide,
                             uint32_t group, block_kind kind, simd_flavor flavor) {
  const bool is_signed = kind == BLOCK_SIGNED;
  if (flavor_is_wide(kind, flavor)) {
    sum = simd_dot(sum, strip_splat(wide, 2 * group), simd_widen(codes, 0, is_signed), SIMD_PLAIN);
    return simd_dot(sum, strip_splat(wide, 2 * group + 1), simd_widen(codes, 1, is_signed),
                    SIMD_PLAIN);
  }
  const v128_t splat = strip_splat(x, group);
  if (!is_signed) return simd_dot(sum, splat, codes, flavor);
  // The relaxed dot wants 7 bits on one side: |x|. The code takes x's sign, exact above -128.
  const v128_t sign = wasm_i8x16_gt(wasm_i8x16_splat(0), splat);
  const v128_t signed_codes = wasm_i8x16_sub(wasm_v128_xor(codes, sign), sign);
  return simd_dot_quads(signed_codes, wasm_i8x16_abs(splat), sum);
}

// A finished dot as 32-bit lanes.
SIMD_INLINE v128_t simd_dot_total(v128_t sum, block_kind kind, simd_flavor flavor) {
  if (kind == BLOCK_SIGNED && flavor != SIMD_QUADS) return wasm_i32x4_shr(sum, 8);
  return flavor == SIMD_PAIRS ? wasm_i32x4_extadd_pairwise_i16x8(sum) : sum;
}

// A finished dot of 16 columns times its sub-scales.
SIMD_INLINE v128_t simd_dot_scaled(v128_t sum, v128_t sub_scales, simd_flavor flavor) {
  return flavor == SIMD_PAIRS ? wasm_i32x4_dot_i16x8(sum, simd_both_halves(sub_scales))
                              : wasm_i32x4_mul(sum, sub_scales);
}

// Integer dots of a part, sub-scales applied.
SIMD_INLINE void strip_dots(const strip_type *type, const uint8_t *record, uint32_t part,
                            const strip_scales *scales, const int32_t *x, const int32_t *wide,
                            simd_flavor flavor, v128_t totals[2]) {
  const bool has_sub = kind_has_sub(type->kind);
  v128_t state[2], sums[2];
  type->begin(record, part, state);
  if (has_sub) {
    for (uint32_t s = 0; s < 2; s++) {
      for (uint32_t h = 0; h < 2; h++) {
        v128_t codes[4];
        v128_t sum = strip_dot_start(x, s, type->offset, flavor);
        type->codes(record, part, s, h, state, codes);
        for (uint32_t i = 0; i < 4; i++) {
          sum = strip_dot(sum, codes[i], x, wide, 4 * s + i, type->kind, flavor);
        }
        const v128_t scaled = simd_dot_scaled(sum, scales->sub_scales[s][h], flavor);
        totals[h] = s == 0 ? scaled : wasm_i32x4_add(totals[h], scaled);
      }
    }
    return;
  }
  sums[0] = sums[1] = strip_dot_start(x, 2, type->offset, flavor);
#pragma nounroll
  for (uint32_t s = 0; s < type->steps; s++) {
    SIMD_OPAQUE(x);
    SIMD_OPAQUE(wide);
    for (uint32_t h = 0; h < 2; h++) {
      v128_t codes[2];
      type->codes(record, part, s, h, state, codes);
      for (uint32_t i = 0; i < type->per_step; i++) {
        sums[h] = strip_dot(sums[h], codes[i], x, wide, i * type->code_groups, type->kind, flavor);
      }
    }
    x += type->step_groups;
    wide += 2 * type->step_groups;
  }
  for (uint32_t h = 0; h < 2; h++) totals[h] = simd_dot_total(sums[h], type->kind, flavor);
}

// sums += one part's share, in the order of blocks.h.
SIMD_INLINE void strip_part_add(const strip_type *type, const strip_scales *scales,
                                const v128_t dots[2], const int32_t *x, simd_flavor flavor,
                                v128_t sums[2]) {
  const v128_t x_scale = strip_splat(x, type->folded ? ACT_WORD_SCALE_FOLDED : ACT_WORD_SCALE);
  for (uint32_t h = 0; h < 2; h++) {
    sums[h] = simd_multiply_add(wasm_f32x4_convert_i32x4(dots[h]),
                                wasm_f32x4_mul(scales->scales[h], x_scale), sums[h], flavor);
    if (type->kind == BLOCK_MINS) {
      const v128_t x_sum = wasm_f32x4_convert_i32x4(strip_splat(x, ACT_WORD_MINUS_SUM));
      sums[h] = simd_multiply_add(scales->mins[h], wasm_f32x4_mul(x_sum, x_scale), sums[h], flavor);
    }
    if (type->kind == BLOCK_SUB_MINS) {
      const v128_t dot = wasm_i32x4_add(
          wasm_i32x4_mul(scales->sub_mins[0][h], strip_splat(x, ACT_WORD_MINUS_SUM_HALF)),
          wasm_i32x4_mul(scales->sub_mins[1][h], strip_splat(x, ACT_WORD_MINUS_SUM_HALF + 1)));
      sums[h] = simd_multiply_add(wasm_f32x4_convert_i32x4(dot),
                                  wasm_f32x4_mul(scales->mins[h], x_scale), sums[h], flavor);
    }
  }
}

// One group of 8 rows times one token: y[8] over `records` records. x: the row's act_blocks, wide:
// its act_wides.
SIMD_INLINE void strip_run(const strip_type *type, const uint8_t *record, uint32_t records,
                           const int32_t *x, const int32_t *wide, float *y, simd_flavor flavor) {
  v128_t sums[2] = {wasm_f32x4_splat(0), wasm_f32x4_splat(0)};
#pragma nounroll
  for (uint32_t r = 0; r < records; r++, record += type->record_bytes) {
    strip_super super;
    type->super(record, &super);
#pragma nounroll
    for (uint32_t part = 0; part < type->parts; part++, x += ACT_WORDS, wide += ACT_WORDS) {
      strip_scales scales;
      v128_t dots[2];
      type->scales(record, part, &super, &scales);
      strip_dots(type, record, part, &scales, x, wide, flavor, dots);
      strip_part_add(type, &scales, dots, x, flavor, sums);
    }
  }
  wasm_v128_store(y, sums[0]);
  wasm_v128_store(y + 4, sums[1]);
}

// A part of 8 rows in the form that tiles read.
typedef struct tile_part {
  uint8_t codes[8][32];                      // [column group][8 rows][4 columns]
  float scales[8], mins[8];                  // at their right size
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

// Unpacks a record into type->parts parts.
SIMD_INLINE void strip_unpack(const strip_type *type, const uint8_t *record, tile_part *out) {
  strip_super super;
  type->super(record, &super);
#pragma nounroll
  for (uint32_t part = 0; part < type->parts; part++, out++) {
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

// kernels/fours.h — multiplies 8 rows by 4 tokens, for prompts of many tokens (tile.h). The weights
// are unpacked parts of types without sub-scales.
//
// A step multiplies two vectors of codes (rows 0-3 and 4-7) by a word of each token's activations,
// with the same word in all lanes. four_act_make copies the words into all lanes in advance:
// v128.load32_splat costs V8 one more instruction for its address, and a step has only 22. The dots
// fill the registers, so the float sums stay in memory.
//
// Signed codes as bytes: the dots of simd.h require 7 bits without a sign on one side, |x|. So the
// code w gets the sign of x. Flipping all bits turns w into -w - 1, even for -128, and
//
//   sum of w x = sum of |x| (x < 0 ? ~w : w) + sum of |x| where x < 0
//
// The second sum is the same for all rows. Two products of a pair are at most 2 * 127 * 128, which
// fits into 16 bits. QUADS does not need this if SIMD_HAS_BYTES: codes are raised by 128 if the dot
// reads them as unsigned, and stay unchanged if it reads them as signed.
#ifndef WICK_KERNELS_FOURS_H
#define WICK_KERNELS_FOURS_H

#include "kernels/strip.h"

#ifdef WICK_SIMD128

// How codes are multiplied.
typedef enum four_form {
  FOUR_WIDE,   // as 16-bit lanes: codes are those of tile_part.wide, words those of act_wide
  FOUR_CODES,  // as bytes: words are those of act_block.codes
  FOUR_SIGNED  // as bytes with a sign: each column group has a word of |x|, followed by a word
               // whose bytes are all ones where x < 0
} four_form;

SIMD_INLINE four_form four_form_of(block_kind kind, simd_flavor flavor) {
  if (flavor == SIMD_PLAIN) return FOUR_WIDE;
  if (!kind_is_signed(kind)) return FOUR_CODES;
  return flavor == SIMD_QUADS && SIMD_HAS_BYTES ? FOUR_CODES : FOUR_SIGNED;
}

// The activations of 4 tokens for one part. Words and sums are the same in all lanes.
typedef struct four_act {
  int32_t words[16][FOUR][4];  // [word][token]; FOUR_CODES has 8 words
  int32_t start[FOUR][4];      // FOUR_SIGNED: sum of |x| where x < 0; FOUR_CODES: -offset * x
  act_block blocks[FOUR];      // without codes
} four_act;

SIMD_INLINE void four_words_store(v128_t four, uint32_t word, uint32_t step, uint32_t token,
                                  four_act *out) {
  wasm_v128_store(out->words[word][token], wasm_i32x4_shuffle(four, four, 0, 0, 0, 0));
  wasm_v128_store(out->words[word + step][token], wasm_i32x4_shuffle(four, four, 1, 1, 1, 1));
  wasm_v128_store(out->words[word + 2 * step][token], wasm_i32x4_shuffle(four, four, 2, 2, 2, 2));
  wasm_v128_store(out->words[word + 3 * step][token], wasm_i32x4_shuffle(four, four, 3, 3, 3, 3));
}

SIMD_INLINE void four_act_make(const act_block *block, const act_wide *wide, four_form form,
                               int32_t offset, uint32_t token, four_act *out) {
  v128_t sum = wasm_i32x4_splat(0);
  memcpy(&out->blocks[token].scale, &block->scale, sizeof *block - offsetof(act_block, scale));
#pragma nounroll
  for (uint32_t w = 0; w < 16; w += 8) {
    const v128_t codes = wasm_v128_load((const uint8_t *)block->codes + 2 * w);
    if (form == FOUR_WIDE) {
      four_words_store(wasm_v128_load(wide->codes[w / 2]), w, 1, token, out);
      four_words_store(wasm_v128_load(wide->codes[w / 2 + 2]), w + 4, 1, token, out);
    } else if (form == FOUR_CODES) {
      four_words_store(codes, w / 2, 1, token, out);
    } else {
      const v128_t sizes = wasm_i8x16_abs(codes), signs = wasm_i8x16_shr(codes, 7);
      const v128_t pairs = wasm_i16x8_extadd_pairwise_i8x16(wasm_v128_and(sizes, signs));
      sum = wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(pairs));
      four_words_store(sizes, w, 2, token, out);
      four_words_store(signs, w + 1, 2, token, out);
    }
  }
  sum = wasm_i32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
  sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 1, 0, 3, 2));
  if (form == FOUR_CODES) sum = wasm_i32x4_splat(block->minus_sum * offset);
  wasm_v128_store(out->start[token], sum);
}

// Returns sum + w x for 4 columns, where the sign of x is separate.
SIMD_INLINE v128_t four_dot_signed(v128_t sum, v128_t codes, v128_t size, v128_t sign, v128_t ones,
                                   simd_flavor flavor) {
  const v128_t turned = wasm_v128_xor(codes, sign);
  if (flavor == SIMD_QUADS) return simd_dot_quads(turned, size, sum);
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(simd_dot_pairs(turned, size), ones));
}

// Adds the products with one word of each token, or for FOUR_SIGNED with the two words of a column
// group.
SIMD_INLINE void four_step(const tile_part *part, const four_act *act, uint32_t word,
                           four_form form, v128_t ones, simd_flavor flavor, v128_t dots[FOUR][2]) {
  v128_t codes[2];
  for (uint32_t h = 0; h < 2; h++) {
    codes[h] = form == FOUR_WIDE ? wasm_v128_load(part->wide[word / 2][word % 2] + 8 * h)
                                 : wasm_v128_load(part->codes[word] + 16 * h);
  }
  for (uint32_t t = 0; t < FOUR; t++) {
    const v128_t x = wasm_v128_load(act->words[form == FOUR_SIGNED ? 2 * word : word][t]);
    const v128_t sign = form == FOUR_SIGNED ? wasm_v128_load(act->words[2 * word + 1][t]) : x;
    for (uint32_t h = 0; h < 2; h++) {
      dots[t][h] = form == FOUR_SIGNED
                       ? four_dot_signed(dots[t][h], codes[h], x, sign, ones, flavor)
                       : simd_dot(dots[t][h], x, codes[h], flavor);
    }
  }
}

// Computes the dots of a part as 32-bit lanes.
SIMD_INLINE void four_dots(const tile_part *part, const four_act *act, int32_t offset,
                           block_kind kind, simd_flavor flavor, v128_t dots[FOUR][2]) {
  const four_form form = four_form_of(kind, flavor);
  const v128_t ones = wasm_v128_load(simd_mask.ones);
  uint32_t zero = 0;
  for (uint32_t t = 0; t < FOUR; t++) {
    const int32_t *x = (const int32_t *)(const void *)&act->blocks[t];
    dots[t][0] = wasm_i32x4_splat(0);
    if (form == FOUR_SIGNED || (flavor == SIMD_QUADS && kind != BLOCK_MINS)) {
      dots[t][0] = wasm_v128_load(act->start[t]);
    } else if (kind == BLOCK_CODES) {
      dots[t][0] = strip_dot_start(offset, x, 2, flavor);
    }
    dots[t][1] = dots[t][0];
  }
#pragma unroll
  for (uint32_t k = 0; k < 8; k++) {
    four_step(part, act, form == FOUR_WIDE ? 2 * k : k, form, ones, flavor, dots);
    if (simd_never(&zero)) break;
    if (form == FOUR_WIDE) four_step(part, act, 2 * k + 1, form, ones, flavor, dots);
    if (simd_never(&zero)) break;
  }
  for (uint32_t i = 0; i < 2 * FOUR && form == FOUR_CODES; i++) {
    v128_t *dot = &dots[i / 2][i % 2];
    *dot = simd_dot_total(*dot, kind, flavor);
  }
}

// Multiplies one part by 4 tokens. sums: [4 tokens][8 rows].
SIMD_INLINE void four_run(const tile_part *part, const four_act *act, int32_t offset,
                          block_kind kind, simd_flavor flavor, float *sums) {
  v128_t dots[FOUR][2];
  strip_scales scales;
  four_dots(part, act, offset, kind, flavor, dots);
  for (uint32_t h = 0; h < 2; h++) {
    scales.scales[h] = wasm_v128_load(part->scales + 4 * h);
    scales.mins[h] = wasm_v128_load(part->mins + 4 * h);
  }
  for (uint32_t i = 0; i < 2 * FOUR; i++) {
    const uint32_t t = i / 2, h = i % 2;
    const int32_t *x = (const int32_t *)(const void *)&act->blocks[t];
    const v128_t sum = wasm_v128_load(sums + 4 * i);
    wasm_v128_store(sums + 4 * i,
                    strip_part_add(kind, false, &scales, h, dots[t][h], x, flavor, sum));
  }
}

#endif
#endif

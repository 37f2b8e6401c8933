// kernels/fours.h — products of 8 rows with 4 tokens, for prompts of many tokens (tile.h). The
// weights are unpacked parts of types without sub-scales.
//
// A step multiplies two vectors of codes (rows 0-3 and 4-7) with a word of each token's
// activations, the same word in all lanes. four_act_make copies the words into all lanes
// beforehand: v128.load32_splat costs V8 one more instruction for its address, and a step has only
// 22. The dots fill the registers, so the sums of floats stay in memory.
#ifndef WICK_KERNELS_FOURS_H
#define WICK_KERNELS_FOURS_H

#include "kernels/strip.h"

#ifdef WICK_SIMD128

// The activations of 4 tokens for one part.
typedef struct four_act {
  int32_t words[16][FOUR]
               [4];        // [word of act_block.codes or act_wide][token][the same in all lanes]
  act_block blocks[FOUR];  // without codes
} four_act;

// Words of a part. Where lanes have 16 bits, codes are those of tile_part.wide and words those of
// act_wide.
#define FOUR_WORDS(kind, flavor) (flavor_is_wide(kind, flavor) ? 16u : 8u)

SIMD_INLINE void four_act_make(const act_block *block, const act_wide *wide, uint32_t words,
                               uint32_t token, four_act *out) {
  const uint8_t *from = words == 16 ? (const uint8_t *)wide : (const uint8_t *)block->codes;
  memcpy(&out->blocks[token].scale, &block->scale, sizeof *block - offsetof(act_block, scale));
#pragma nounroll
  for (uint32_t w = 0; w < words; w += 4, from += 16) {
    const v128_t four = wasm_v128_load(from);
    wasm_v128_store(out->words[w][token], wasm_i32x4_shuffle(four, four, 0, 0, 0, 0));
    wasm_v128_store(out->words[w + 1][token], wasm_i32x4_shuffle(four, four, 1, 1, 1, 1));
    wasm_v128_store(out->words[w + 2][token], wasm_i32x4_shuffle(four, four, 2, 2, 2, 2));
    wasm_v128_store(out->words[w + 3][token], wasm_i32x4_shuffle(four, four, 3, 3, 3, 3));
  }
}

// Adds the products with one word of each token.
SIMD_INLINE void four_step(const tile_part *part, const four_act *act, uint32_t word,
                           block_kind kind, simd_flavor flavor, v128_t dots[FOUR][2]) {
  v128_t codes[2];
  for (uint32_t h = 0; h < 2; h++) {
    codes[h] = flavor_is_wide(kind, flavor) ? wasm_v128_load(part->wide[word / 2][word % 2] + 8 * h)
                                            : wasm_v128_load(part->codes[word] + 16 * h);
  }
  for (uint32_t t = 0; t < FOUR; t++) {
    const v128_t x = wasm_v128_load(act->words[word][t]);
    for (uint32_t h = 0; h < 2; h++) {
      dots[t][h] = flavor_is_wide(kind, flavor)
                       ? simd_dot(dots[t][h], x, codes[h], SIMD_PLAIN)
                       : simd_dot_bytes(dots[t][h], codes[h], x, kind_is_signed(kind), flavor);
    }
  }
}

// The dots of a part as 32-bit lanes.
SIMD_INLINE void four_dots(const tile_part *part, const four_act *act, int32_t offset,
                           block_kind kind, simd_flavor flavor, v128_t dots[FOUR][2]) {
  const bool is_wide = flavor_is_wide(kind, flavor);
  uint32_t zero = 0;
  for (uint32_t t = 0; t < FOUR; t++) {
    const int32_t *x = (const int32_t *)(const void *)&act->blocks[t];
    dots[t][0] = dots[t][1] =
        kind == BLOCK_CODES ? strip_dot_start(offset, x, 2, flavor) : wasm_i32x4_splat(0);
  }
#pragma unroll
  for (uint32_t k = 0; k < 8; k++) {
    four_step(part, act, is_wide ? 2 * k : k, kind, flavor, dots);
    if (simd_never(&zero)) break;
    if (is_wide) four_step(part, act, 2 * k + 1, kind, flavor, dots);
    if (simd_never(&zero)) break;
  }
  for (uint32_t i = 0; i < 2 * FOUR && !is_wide; i++) {
    v128_t *dot = &dots[i / 2][i % 2];
    *dot = simd_dot_total(*dot, kind, flavor);
  }
}

// One part x 4 tokens. sums: [4 tokens][8 rows].
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

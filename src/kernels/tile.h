// kernels/tile.h — the frame around the integer products of all SIMD variants: which tokens and
// blocks meet in a tile, where activations and sums lie. A type brings its strips.
//
// A strip multiplies one group of 8 rows with 1, 2 or 4 tokens over up to TILE_BLOCKS blocks of
// 32 columns (one token: over all of them) and adds to sums[token][8 rows]. Calls are short, so
// that V8 has a strip in optimised code early.
//
// Activations of n tokens are transposed by 32-bit words, so that a strip finds what it splats at
// constant offsets: x[(block * 16 + word) * n + token]. For one token that is the act row itself.
// `second` lies in the same way, see tile_second.
#ifndef WICK_KERNELS_TILE_H
#define WICK_KERNELS_TILE_H

#include "kernels/act.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

enum { TILE_TOKENS = 4, TILE_BLOCKS = 16, TILE_WORDS = 16 };

// The words of an act_block behind its 8 words of codes.
enum {
  ACT_WORD_SCALE = 8,
  ACT_WORD_SCALE_FOLDED = 9,
  ACT_WORD_MINUS_SUM = 10,
  ACT_WORD_MINUS_SUM_HALF = 11,
  ACT_WORD_MINUS_PAIRS = 13,
  ACT_WORD_MINUS_PAIRS_HALF = 14
};

// `records`: those of the group from the first block on. `blocks`: of 32 columns.
typedef void tile_strip(const uint8_t *records, uint32_t blocks, const int32_t *x,
                        const int32_t *second, float *sums);

// What a strip finds behind its second pointer: nothing, the codes in 16 bits, or (several tokens)
// the signs of the codes as masks while `x` has their magnitudes.
typedef enum tile_second { TILE_NOTHING = 0, TILE_WIDE = 1, TILE_SIGNS = 2 } tile_second;

typedef struct tile_type {
  uint32_t blocks_per_record;  // 1, or 8 where a record has 256 columns
  uint32_t record_bytes;
  tile_second second;
  tile_strip *strips[4];  // for 1, 2, 4, 8 tokens
} tile_type;

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type);

// Word `word` of each token in all four lanes. Four tokens: one load and four shuffles take fewer
// instructions than four loads, whose offsets V8 adds apart.
SIMD_INLINE void tile_splats(const int32_t *x, uint32_t word, uint32_t tokens, v128_t *splats) {
  if (tokens == 4) {
    const v128_t four = wasm_v128_load(x + word * 4);
    splats[0] = wasm_i32x4_shuffle(four, four, 0, 0, 0, 0);
    splats[1] = wasm_i32x4_shuffle(four, four, 1, 1, 1, 1);
    splats[2] = wasm_i32x4_shuffle(four, four, 2, 2, 2, 2);
    splats[3] = wasm_i32x4_shuffle(four, four, 3, 3, 3, 3);
    return;
  }
  for (uint32_t t = 0; t < tokens; t++) {
    splats[t] = wasm_v128_load32_splat(x + word * tokens + t);
  }
}

// Sums of a dot over codes in 16-bit lanes (PAIRS) or 32-bit lanes, one step and the total.
SIMD_INLINE v128_t tile_dot(v128_t sum, v128_t x, v128_t codes, simd_flavor flavor) {
  if (flavor == SIMD_PAIRS) return wasm_i16x8_add(sum, simd_dot_pairs(x, codes));
  if (flavor == SIMD_QUADS) return simd_dot_quads(x, codes, sum);
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(codes, x));
}

SIMD_INLINE v128_t tile_dot_total(v128_t sum, simd_flavor flavor) {
  return flavor == SIMD_PAIRS ? wasm_i32x4_extadd_pairwise_i16x8(sum) : sum;
}

// -offset * sum(x), offset = 2^shift, to begin sums with.
SIMD_INLINE void tile_dots_start(const int32_t *x, uint32_t halves, uint32_t tokens, uint32_t shift,
                                 simd_flavor flavor, v128_t *dots) {
  const bool pairs = flavor == SIMD_PAIRS;
  tile_splats(x, pairs ? ACT_WORD_MINUS_PAIRS : ACT_WORD_MINUS_SUM, tokens, dots);
  for (uint32_t t = 0; t < tokens; t++) {
    dots[t] = pairs ? wasm_i16x8_shl(dots[t], shift) : wasm_i32x4_shl(dots[t], shift);
    if (halves == 2) dots[tokens + t] = dots[t];
  }
}

// What a type with blocks of 32 columns brings: integer dots of `halves` x 4 rows, beginning with
// row 4 * half, and `tokens` tokens: dots[half * tokens + token]. Everything but the pointers is
// constant where it is inlined.
typedef void tile_block_dots(const uint8_t *record, uint32_t half, uint32_t halves,
                             const int32_t *x, const int32_t *second, uint32_t tokens,
                             simd_flavor flavor, v128_t *dots);

// Sums of up to 4 vectors stay in registers from block to block, more in memory: V8 has 16
// registers for everything.
SIMD_INLINE bool tile_in_registers(uint32_t halves, uint32_t tokens) {
  return halves * tokens <= 4;
}

// Where sum i = (row half h) * tokens + token lies.
SIMD_INLINE uint32_t tile_sum_index(uint32_t i, uint32_t half, uint32_t tokens) {
  return i % tokens * 8 + (half + i / tokens) * 4;
}

SIMD_INLINE void tile_sums_load(v128_t *kept, const float *sums, uint32_t half, uint32_t halves,
                                uint32_t tokens) {
  if (!tile_in_registers(halves, tokens)) return;
  for (uint32_t i = 0; i < halves * tokens; i++) {
    kept[i] = wasm_v128_load(sums + tile_sum_index(i, half, tokens));
  }
}

SIMD_INLINE void tile_sums_store(const v128_t *kept, float *sums, uint32_t half, uint32_t halves,
                                 uint32_t tokens) {
  if (!tile_in_registers(halves, tokens)) return;
  for (uint32_t i = 0; i < halves * tokens; i++) {
    wasm_v128_store(sums + tile_sum_index(i, half, tokens), kept[i]);
  }
}

// sums += dots * (weight scale * activation scale), for one block.
SIMD_INLINE void tile_sums_add(v128_t *kept, float *sums, uint32_t half, uint32_t halves,
                               uint32_t tokens, const v128_t *dots, const v128_t *scales,
                               const int32_t *x, uint32_t scale_word, simd_flavor flavor) {
  v128_t x_scales[TILE_TOKENS];
  tile_splats(x, scale_word, tokens, x_scales);
  for (uint32_t i = 0; i < halves * tokens; i++) {
    const v128_t dot = wasm_f32x4_convert_i32x4(dots[i]);
    const v128_t scale = wasm_f32x4_mul(scales[i / tokens], x_scales[i % tokens]);
    if (tile_in_registers(halves, tokens)) {
      kept[i] = simd_multiply_add(dot, scale, kept[i], flavor);
    } else {
      float *sum = sums + tile_sum_index(i, half, tokens);
      wasm_v128_store(sum, simd_multiply_add(dot, scale, wasm_v128_load(sum), flavor));
    }
  }
}

// A strip of a type with blocks of 32 columns.
SIMD_INLINE void tile_strip_32(const uint8_t *records, uint32_t blocks, const int32_t *x,
                               const int32_t *second, float *sums, uint32_t record_bytes,
                               uint32_t tokens, simd_flavor flavor, tile_block_dots *block_dots) {
  const uint32_t halves = 2;
  for (uint32_t half = 0; half < 2; half += halves) {
    v128_t kept[4];
    tile_sums_load(kept, sums, half, halves, tokens);
    const uint8_t *record = records;
    const int32_t *x_block = x, *second_block = second;
#pragma nounroll
    for (uint32_t b = 0; b < blocks; b++, record += record_bytes) {
      v128_t dots[8], scales[2];
      if (!tile_in_registers(halves, tokens)) SIMD_FORGET();
      block_dots(record, half, halves, x_block, second_block, tokens, flavor, dots);
      const v128_t stored = wasm_v128_load(record);
      for (uint32_t h = 0; h < halves; h++) scales[h] = simd_f16_tiny(stored, half + h);
      tile_sums_add(kept, sums, half, halves, tokens, dots, scales, x_block, ACT_WORD_SCALE_FOLDED,
                    flavor);
      x_block += TILE_WORDS * tokens;
      second_block += TILE_WORDS * tokens;
    }
    tile_sums_store(kept, sums, half, halves, tokens);
  }
}

// The same for types with records of 256 columns: 16 bytes of scales, then 8 parts of 32 columns.
SIMD_INLINE void tile_strip_256(const uint8_t *records, uint32_t blocks, const int32_t *x,
                                const int32_t *second, float *sums, uint32_t part_bytes,
                                uint32_t tokens, simd_flavor flavor, tile_block_dots *part_dots) {
  const uint32_t halves = 2;
  for (uint32_t half = 0; half < 2; half += halves) {
    v128_t kept[4];
    tile_sums_load(kept, sums, half, halves, tokens);
    const uint8_t *record = records;
    const int32_t *x_block = x, *second_block = second;
#pragma nounroll
    for (uint32_t b = 0; b < blocks; b += 8) {
      v128_t scales[2];
      const v128_t stored = wasm_v128_load(record);
      for (uint32_t h = 0; h < halves; h++) scales[h] = simd_f16_exact(stored, half + h);
      record += 16;
#pragma nounroll
      for (uint32_t part = 0; part < 8; part++, record += part_bytes) {
        v128_t dots[8];
        if (!tile_in_registers(halves, tokens)) SIMD_FORGET();
        part_dots(record, half, halves, x_block, second_block, tokens, flavor, dots);
        tile_sums_add(kept, sums, half, halves, tokens, dots, scales, x_block, ACT_WORD_SCALE,
                      flavor);
        x_block += TILE_WORDS * tokens;
        second_block += TILE_WORDS * tokens;
      }
    }
    tile_sums_store(kept, sums, half, halves, tokens);
  }
}

// The four strips of a type in a flavor and their table. `strip` is an inline function with the
// arguments of tile_strip, then tokens and flavor.
#define TILE_STRIP(name, strip, tokens, flavor)                               \
  static void name(const uint8_t *records, uint32_t blocks, const int32_t *x, \
                   const int32_t *second, float *sums) {                      \
    strip(records, blocks, x, second, sums, tokens, flavor);                  \
  }

#define TILE_TYPE(name, strip, flavor, blocks_per_record, record_bytes, second) \
  TILE_STRIP(name##_strip_1, strip, 1, flavor)                                  \
  TILE_STRIP(name##_strip_2, strip, 2, flavor)                                  \
  TILE_STRIP(name##_strip_4, strip, 4, flavor)                                  \
  static const tile_type name = {                                               \
      blocks_per_record, record_bytes, second, {name##_strip_1, name##_strip_2, name##_strip_4}};

// The product of a type: by tiles, or by the scalar reference where a scale is Inf or NaN.
#define TILE_MATMUL(name, reference, type)                                                       \
  void name(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act, \
            size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {               \
    if (matrix->flags & KERNEL_MATRIX_HAS_WILD_F16) {                                            \
      reference(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride);        \
    } else {                                                                                     \
      tile_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,       \
                  &(type));                                                                      \
    }                                                                                            \
  }

#endif
#endif

// kernels/act.h — rows of activations in the form KERNEL_ACT_Q8.
//
// A row is cols / 32 blocks (the last block is padded with zeros), followed in the SIMD variants by
// the same codes widened to 16 bits. The scalar reference reads the blocks of every variant.
//
//   row = [ act_block x blocks ][ SIMD variants: act_wide x blocks ]
//
// A block's scale is amax / 127, so codes are in -127..127. If amax is not finite or at least
// ACT_AMAX_END, the scale is NaN, so outputs are NaN and the step fails. (ggml, whose activations
// have f16 scales, overflows at 8.3e6.) If amax is below ACT_TINY, the block counts as zero.
#ifndef WICK_KERNELS_ACT_H
#define WICK_KERNELS_ACT_H

#include "base/checked.h"
#include "kernels/kernels.h"

enum { ACT_BLOCK = 32 };

// The sums are negated, because they are used with the offset of a type: (code - 8) x = code x + 8
// (-x). "pairs": the first sum is over columns c with c % 4 < 2, the second over the other columns,
// which is how the two 16-bit lanes of a 32-bit lane add up.
typedef struct act_block {
  int8_t codes[ACT_BLOCK];
  float scale;
  float scale_folded;              // scale * 2^112, for weight scales that are too small by 2^112
  int32_t minus_sum;               // of all 32 codes
  int32_t minus_sum_half[2];       // of codes 0-15 and 16-31
  int16_t minus_pairs[2];          // of all 32 codes
  int16_t minus_pairs_half[2][2];  // of codes 0-15 and 16-31
} act_block;

_Static_assert(sizeof(act_block) == 64, "a cache line, as the rows' strides are");

// The codes as 16-bit pairs in the order in which masks and shifts by 8 extract them from 32-bit
// lanes. Group k of 8 has columns 4k, 4k + 2, then 4k + 1, 4k + 3.
typedef struct act_wide {
  int16_t codes[8][2][2];
} act_wide;

#define ACT_TINY 0x1p-100f
#define ACT_AMAX_END (127 * 0x1p15f)

// Adding this number leaves the value, rounded to the nearest integer (ties to even), in the low
// bits of the mantissa.
#define ACT_ROUND 0x1.8p23f

static inline uint32_t act_blocks(uint32_t cols) { return ceil_div_u32(cols, ACT_BLOCK); }

static inline size_t act_wide_offset(uint32_t cols) {
  return (size_t)act_blocks(cols) * sizeof(act_block);
}

static inline const act_block *act_row(const void *act, size_t stride_bytes, uint32_t token) {
  return (const act_block *)(const void *)((const uint8_t *)act + stride_bytes * token);
}

#endif

// kernels/act.h — rows of activations in the form KERNEL_ACT_Q8.
//
// A row is cols / 32 blocks (the last is filled up with zeros), then whatever its variant adds: the
// scalar reference reads the blocks of every variant. Codes are int8 in -127..127.
//
//   row = [ act_block x blocks ][ to a multiple of 64 ][ simd128 alone: act_wide x blocks ]
#ifndef WICK_KERNELS_ACT_H
#define WICK_KERNELS_ACT_H

#include "base/checked.h"
#include "kernels/kernels.h"

enum { ACT_BLOCK = 32 };

typedef struct act_block {
  int8_t codes[ACT_BLOCK];
  float scale;          // amax / 127; NaN when a value is not finite; 0 when amax < ACT_TINY
  int32_t sum;          // of all 32 codes
  int32_t sum_half[2];  // of codes 0-15 and 16-31
} act_block;

// The codes as 16-bit pairs in the order that masks and shifts by 8 take them out of 32-bit lanes:
// for each k of 8 groups of 4 columns: 4k, 4k + 2, 4k + 1, 4k + 3.
typedef struct act_wide {
  int16_t codes[ACT_BLOCK];
} act_wide;

// Below it a block counts as zero: 1 / scale must stay finite.
#define ACT_TINY 0x1p-100f

// Adding it leaves the value, rounded to the nearest even integer, in the low bits of the mantissa.
#define ACT_ROUND 0x1.8p23f

static inline uint32_t act_blocks(uint32_t cols) { return ceil_div_u32(cols, ACT_BLOCK); }

static inline size_t act_wide_offset(uint32_t cols) {
  return align_size((size_t)act_blocks(cols) * sizeof(act_block), 64);
}

static inline const act_block *act_row(const void *act, size_t stride_bytes, uint32_t token) {
  return (const act_block *)(const void *)((const uint8_t *)act + stride_bytes * token);
}

size_t act_bytes_scalar(kernel_act_form form, uint32_t cols);
void act_make_scalar(kernel_act_form form, const float *x, uint32_t cols, void *act);

#endif

// kernels/act_simd.c — converts activations to int8 in 128-bit vectors: the codes, scales and sums
// of act.c, followed by the widened codes.
#include <string.h>

#include "base/math.h"
#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

size_t act_bytes_simd(kernel_act_form form, uint32_t cols) {
  if (form == KERNEL_ACT_F32) return align_size((size_t)cols * sizeof(float), 64);
  return act_wide_offset(cols) + (size_t)act_blocks(cols) * sizeof(act_wide);
}

// Returns the largest magnitude of 32 values as bits. Inf and NaN count as the largest.
static uint32_t amax_bits_32(const float *x) {
  const v128_t mask = wasm_i32x4_splat(0x7fffffff);
  v128_t most = wasm_v128_and(wasm_v128_load(x), mask);
  for (uint32_t i = 4; i < ACT_BLOCK; i += 4) {
    most = wasm_i32x4_max(most, wasm_v128_and(wasm_v128_load(x + i), mask));
  }
  most = wasm_i32x4_max(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_i32x4_max(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  return (uint32_t)wasm_i32x4_extract_lane(most, 0);
}

// Returns 8 values as 16-bit integers, rounded to nearest even.
static v128_t codes_8(const float *x, v128_t inverse) {
  const v128_t round = wasm_f32x4_splat(ACT_ROUND);
  const v128_t a = wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(x), inverse), round);
  const v128_t b = wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(x + 4), inverse), round);
  return wasm_i16x8_narrow_i32x4(wasm_i32x4_sub(a, round), wasm_i32x4_sub(b, round));
}

// Widens 16 codes, in the order of act_wide.
static void codes_widen(v128_t codes, int16_t *wide) {
  const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl(codes, 8), 8);
  const v128_t odd = wasm_i16x8_shr(codes, 8);
  wasm_v128_store(wide, wasm_i32x4_shuffle(even, odd, 0, 4, 1, 5));
  wasm_v128_store(wide + 8, wasm_i32x4_shuffle(even, odd, 2, 6, 3, 7));
}

// Adds up 16 codes, negated, as two 16-bit sums (see act_block).
static uint32_t minus_pair_sums(v128_t codes) {
  v128_t sums = wasm_i16x8_extadd_pairwise_i8x16(codes);
  sums = wasm_i16x8_add(sums, wasm_i64x2_shuffle(sums, sums, 1, 0));
  sums = wasm_i16x8_add(sums, wasm_i32x4_shuffle(sums, sums, 1, 0, 3, 2));
  return (uint32_t)wasm_i32x4_extract_lane(wasm_i16x8_neg(sums), 0);
}

static void block_make(const float *x, act_block *block, act_wide *wide) {
  const uint32_t amax_bits = amax_bits_32(x);
  const float amax = f32_of_bits(amax_bits);
  if (amax_bits >= bits_of_f32(ACT_AMAX_END) || amax < ACT_TINY) {
    memset(block, 0, sizeof *block);
    memset(wide, 0, sizeof *wide);
    if (amax_bits >= bits_of_f32(ACT_AMAX_END)) {
      block->scale = block->scale_folded = f32_of_bits(0x7fc00000u);
    }
    return;
  }
  block->scale = amax / 127.0f;
  block->scale_folded = block->scale * 0x1p112f;
  const v128_t inverse = wasm_f32x4_splat(127.0f / amax);
  for (uint32_t half = 0; half < 2; half++) {
    const v128_t codes = wasm_i8x16_narrow_i16x8(codes_8(x + 16 * half, inverse),
                                                 codes_8(x + 16 * half + 8, inverse));
    wasm_v128_store(block->codes + 16 * half, codes);
    codes_widen(codes, wide->codes[4 * half][0]);
    const uint32_t sums = minus_pair_sums(codes);
    memcpy(block->minus_pairs_half[half], &sums, sizeof sums);
    block->minus_sum_half[half] = (int16_t)sums + (int16_t)(sums >> 16);
  }
  block->minus_sum = block->minus_sum_half[0] + block->minus_sum_half[1];
  for (uint32_t i = 0; i < 2; i++) {
    block->minus_pairs[i] =
        (int16_t)(block->minus_pairs_half[0][i] + block->minus_pairs_half[1][i]);
  }
}

void act_make_simd(kernel_act_form form, const float *x, uint32_t cols, void *act) {
  if (form == KERNEL_ACT_F32) {
    memcpy(act, x, (size_t)cols * sizeof(float));
    return;
  }
  act_block *block = act;
  act_wide *wide = (act_wide *)(void *)((uint8_t *)act + act_wide_offset(cols));
  for (; cols >= ACT_BLOCK; cols -= ACT_BLOCK, x += ACT_BLOCK) block_make(x, block++, wide++);
  if (cols > 0) {
    float padded[ACT_BLOCK] = {0};
    memcpy(padded, x, cols * sizeof(float));
    block_make(padded, block, wide);
  }
}

#endif

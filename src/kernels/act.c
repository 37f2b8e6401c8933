// kernels/act.c — converts activations to int8 with a scale per 32 values; scalar reference.
#include "kernels/act.h"

#include <string.h>

#include "base/math.h"
#include "kernels/families.h"

size_t act_bytes_scalar(kernel_act_form form, uint32_t cols) {
  if (form == KERNEL_ACT_F32) return align_size((size_t)cols * sizeof(float), 64);
  return act_wide_offset(cols);
}

// Returns the largest magnitude as bits. Inf and NaN count as the largest.
static uint32_t act_amax_bits(const float *x, uint32_t n) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t bits = bits_of_f32(x[i]) & 0x7fffffffu;
    if (bits > most) most = bits;
  }
  return most;
}

static void act_block_sums(act_block *block) {
  for (uint32_t i = 0; i < ACT_BLOCK; i++) {
    const int32_t code = block->codes[i];
    block->minus_sum -= code;
    block->minus_sum_half[i / 16] -= code;
    int16_t *all = &block->minus_pairs[i % 4 / 2],
            *half = &block->minus_pairs_half[i / 16][i % 4 / 2];
    *all = (int16_t)(*all - code);
    *half = (int16_t)(*half - code);
  }
}

// Makes a block of n values (1..32); the codes after them become 0.
static void act_block_make(const float *x, uint32_t n, act_block *block) {
  const uint32_t amax_bits = act_amax_bits(x, n);
  memset(block, 0, sizeof *block);
  if (amax_bits >= bits_of_f32(ACT_AMAX_END)) {
    block->scale = block->scale_folded = f32_of_bits(0x7fc00000u);
    return;
  }
  const float amax = f32_of_bits(amax_bits);
  if (amax < ACT_TINY) return;
  block->scale = amax / 127.0f;
  block->scale_folded = block->scale * 0x1p112f;
  const float inverse = 127.0f / amax;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t bits = bits_of_f32(x[i] * inverse + ACT_ROUND);
    block->codes[i] = (int8_t)((int32_t)bits - (int32_t)bits_of_f32(ACT_ROUND));
  }
  act_block_sums(block);
}

void act_make_scalar(kernel_act_form form, const float *x, uint32_t cols, void *act) {
  if (form == KERNEL_ACT_F32) {
    memcpy(act, x, (size_t)cols * sizeof(float));
    return;
  }
  act_block *block = act;
  for (uint32_t c = 0; c < cols; c += ACT_BLOCK, block++) {
    act_block_make(x + c, cols - c < ACT_BLOCK ? cols - c : ACT_BLOCK, block);
  }
}

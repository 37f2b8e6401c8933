// kernels/simd.c — the masks of simd.h and the constants of exp_simd.h. They are in a separate file
// so that the compiler loads them from memory.
#include "kernels/simd.h"

#include <stdint.h>

#include "kernels/exp_simd.h"
#include "kernels/kv_pages.h"

#ifdef WICK_SIMD128

#define FOUR(a) {a, a, a, a}
#define SIXTEEN(a, b) {a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b}

const simd_masks simd_mask = {.low_4 = SIXTEEN(15, 15),
                              .low_6 = SIXTEEN(63, 63),
                              .low_7 = SIXTEEN(127, 127),
                              .low_1 = SIXTEEN(1, 1),
                              .fifth = SIXTEEN(16, 16),
                              .third = SIXTEEN(4, 4),
                              .low_2 = SIXTEEN(3, 3),
                              .bits_2 = SIXTEEN(12, 12),
                              .bits_4 = SIXTEEN(48, 48),
                              .top = SIXTEEN(128, 128),
                              .low_8_of_16 = SIXTEEN(255, 0),
                              .high_8_of_16 = SIXTEEN(0, 255),
                              .f16_tiny = {0, 0xe0, 0xff, 0x8f, 0, 0xe0, 0xff, 0x8f, 0, 0xe0, 0xff,
                                           0x8f, 0, 0xe0, 0xff, 0x8f},
                              .f16_low = {1 << 13, 0, 1 << 13, 0, 1 << 13, 0, 1 << 13, 0},
                              .ones = {1, 1, 1, 1, 1, 1, 1, 1},
                              .code_round = FOUR(KV_ROUND),
                              .code_bits = FOUR(KV_ROUND_BITS),
                              .q4_offsets = SIXTEEN(KV_CODE_BIAS - 8, 256 - 8)};

const exp_constants exp_constant = {.log2_e = FOUR(EXP_LOG2_E),
                                    .round = FOUR(EXP_ROUND),
                                    .minus_ln2_high = FOUR(-EXP_LN2_HIGH),
                                    .minus_ln2_low = FOUR(-EXP_LN2_LOW),
                                    .p = {FOUR(EXP_P0), FOUR(EXP_P1), FOUR(EXP_P2), FOUR(EXP_P3),
                                          FOUR(EXP_P4), FOUR(EXP_P5), FOUR(1.0f)},
                                    .least = FOUR(EXP_LEAST)};

#endif

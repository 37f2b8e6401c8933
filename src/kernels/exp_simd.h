// kernels/exp_simd.h — exp.h on four lanes, bit for bit the same.
#ifndef WICK_KERNELS_EXP_SIMD_H
#define WICK_KERNELS_EXP_SIMD_H

#include "kernels/exp.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// For inner loops, see simd_masks.
typedef struct exp_constants {
  float log2_e[4], round[4], minus_ln2_high[4], minus_ln2_low[4], p[7][4], least[4];
} exp_constants;

extern const exp_constants exp_constant;

// For x <= 0 or NaN; a flavor that fuses rounds some sums once.
SIMD_INLINE v128_t exp_most_0(v128_t x, simd_flavor flavor) {
  const exp_constants *c = &exp_constant;
  const v128_t round = wasm_v128_load(c->round);
  const v128_t rounded = simd_multiply_add(x, wasm_v128_load(c->log2_e), round, flavor);
  const v128_t n = wasm_f32x4_sub(rounded, round);
  v128_t r = simd_multiply_add(n, wasm_v128_load(c->minus_ln2_high), x, flavor);
  r = simd_multiply_add(n, wasm_v128_load(c->minus_ln2_low), r, flavor);
  v128_t p = wasm_v128_load(c->p[0]);
  for (uint32_t i = 1; i < 6; i++) p = simd_multiply_add(p, r, wasm_v128_load(c->p[i]), flavor);
  p = simd_multiply_add(p, wasm_f32x4_mul(r, r), wasm_f32x4_add(r, wasm_v128_load(c->p[6])),
                        flavor);
  const v128_t result = wasm_i32x4_add(p, wasm_i32x4_shl(rounded, 23));
  const v128_t too_small = wasm_f32x4_lt(x, wasm_v128_load(c->least));
  return wasm_v128_or(wasm_v128_andnot(result, too_small), wasm_f32x4_ne(x, x));
}

SIMD_INLINE v128_t exp_f32x4(v128_t x) {
  const v128_t result = wasm_v128_bitselect(wasm_i32x4_splat(0x7f800000), exp_most_0(x, SIMD_PLAIN),
                                            wasm_f32x4_gt(x, wasm_f32x4_splat(EXP_MOST)));
  return wasm_v128_bitselect(x, result, wasm_f32x4_ne(x, x));
}

#endif
#endif

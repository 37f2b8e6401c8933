// kernels/exp_simd.h — the functions of exp.h on four lanes, with bit-identical results.
#ifndef WICK_KERNELS_EXP_SIMD_H
#define WICK_KERNELS_EXP_SIMD_H

#include "kernels/exp.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// Constants for inner loops (see simd_masks).
typedef struct exp_constants {
  float log2_e[4], round[4], minus_ln2_high[4], minus_ln2_low[4], p[7][4], least[4];
} exp_constants;

extern const exp_constants exp_constant;

// Computes two terms of the polynomial: p[index] * r + p[index + 1].
SIMD_INLINE v128_t exp_pair(uint32_t index, v128_t r, simd_flavor flavor) {
  const exp_constants *c = &exp_constant;
  return simd_multiply_add(wasm_v128_load(c->p[index]), r, wasm_v128_load(c->p[index + 1]), flavor);
}

// Computes e^x for x up to EXP_MOST or NaN. A flavor with fused multiply-adds rounds some sums only
// once.
SIMD_INLINE v128_t exp_up_to_most(v128_t x, simd_flavor flavor) {
  const exp_constants *c = &exp_constant;
  const v128_t round = wasm_v128_load(c->round);
  const v128_t rounded = simd_multiply_add(x, wasm_v128_load(c->log2_e), round, flavor);
  const v128_t n = wasm_f32x4_sub(rounded, round);
  v128_t r = simd_multiply_add(n, wasm_v128_load(c->minus_ln2_high), x, flavor);
  r = simd_multiply_add(n, wasm_v128_load(c->minus_ln2_low), r, flavor);
  const v128_t r2 = wasm_f32x4_mul(r, r);
  v128_t p = simd_multiply_add(exp_pair(0, r, flavor), r2, exp_pair(2, r, flavor), flavor);
  p = simd_multiply_add(p, r2, exp_pair(4, r, flavor), flavor);
  p = simd_multiply_add(p, r2, wasm_f32x4_add(r, wasm_v128_load(c->p[6])), flavor);
  p = wasm_i32x4_add(p, wasm_i32x4_shl(rounded, 23));
  // 0 where x is too small; e^x is greater than x, so the larger of the two is e^x or NaN
  p = wasm_v128_andnot(p, wasm_f32x4_lt(x, wasm_v128_load(c->least)));
  return wasm_f32x4_pmax(x, p);
}

SIMD_INLINE v128_t exp_f32x4(v128_t x) {
  return wasm_v128_bitselect(wasm_i32x4_splat(0x7f800000), exp_up_to_most(x, SIMD_PLAIN),
                             wasm_f32x4_gt(x, wasm_f32x4_splat(EXP_MOST)));
}

SIMD_INLINE v128_t tanh_f32x4(v128_t x) {
  const v128_t one = wasm_f32x4_splat(1), two = wasm_f32x4_splat(2);
  const v128_t e = exp_f32x4(wasm_f32x4_mul(two, x));
  return wasm_f32x4_sub(one, wasm_f32x4_div(two, wasm_f32x4_add(one, e)));
}

#endif
#endif

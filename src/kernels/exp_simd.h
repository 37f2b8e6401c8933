// kernels/exp_simd.h — exp.h on four lanes, bit for bit the same.
#ifndef WICK_KERNELS_EXP_SIMD_H
#define WICK_KERNELS_EXP_SIMD_H

#include "kernels/exp.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

SIMD_INLINE v128_t exp_step(v128_t p, v128_t r, float coefficient) {
  return wasm_f32x4_add(wasm_f32x4_mul(p, r), wasm_f32x4_splat(coefficient));
}

SIMD_INLINE v128_t exp_f32x4(v128_t x) {
  const v128_t round = wasm_f32x4_splat(EXP_ROUND);
  const v128_t rounded = wasm_f32x4_add(wasm_f32x4_mul(x, wasm_f32x4_splat(EXP_LOG2_E)), round);
  const v128_t n = wasm_f32x4_sub(rounded, round);
  const v128_t high = wasm_f32x4_mul(n, wasm_f32x4_splat(EXP_LN2_HIGH));
  const v128_t low = wasm_f32x4_mul(n, wasm_f32x4_splat(EXP_LN2_LOW));
  const v128_t r = wasm_f32x4_sub(wasm_f32x4_sub(x, high), low);
  v128_t p = exp_step(wasm_f32x4_splat(EXP_P0), r, EXP_P1);
  p = exp_step(p, r, EXP_P2);
  p = exp_step(p, r, EXP_P3);
  p = exp_step(p, r, EXP_P4);
  p = exp_step(p, r, EXP_P5);
  p = wasm_f32x4_add(wasm_f32x4_mul(p, wasm_f32x4_mul(r, r)),
                     wasm_f32x4_add(r, wasm_f32x4_splat(1)));
  v128_t result = wasm_i32x4_add(p, wasm_i32x4_shl(rounded, 23));
  result = wasm_v128_andnot(result, wasm_f32x4_lt(x, wasm_f32x4_splat(EXP_LEAST)));
  result = wasm_v128_bitselect(wasm_i32x4_splat(0x7f800000), result,
                               wasm_f32x4_gt(x, wasm_f32x4_splat(EXP_MOST)));
  return wasm_v128_bitselect(x, result, wasm_f32x4_ne(x, x));
}

#endif
#endif

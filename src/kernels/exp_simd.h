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

// x[count][4], up to EXP_MOST or NaN, become e^x; a flavor that fuses rounds some sums once.
// `count`, up to 4: known when compiled. A step is done for all of them before the next, which
// waits for it.
SIMD_INLINE void exp_steps(v128_t x[], uint32_t count, simd_flavor flavor) {
  const exp_constants *c = &exp_constant;
  const v128_t round = wasm_v128_load(c->round);
  v128_t rounded[4], n[4], r[4], p[4];
  uint32_t zero = 0;
#define EXP_STEP(values)                                             \
  _Pragma("unroll") for (uint32_t i = 0; i < count; i++) { values; } \
  if (simd_never(&zero)) return
  EXP_STEP(rounded[i] = simd_multiply_add(x[i], wasm_v128_load(c->log2_e), round, flavor));
  EXP_STEP(n[i] = wasm_f32x4_sub(rounded[i], round));
  EXP_STEP(r[i] = simd_multiply_add(n[i], wasm_v128_load(c->minus_ln2_high), x[i], flavor));
  EXP_STEP(r[i] = simd_multiply_add(n[i], wasm_v128_load(c->minus_ln2_low), r[i], flavor));
  EXP_STEP(p[i] =
               simd_multiply_add(wasm_v128_load(c->p[0]), r[i], wasm_v128_load(c->p[1]), flavor));
  EXP_STEP(p[i] = simd_multiply_add(p[i], r[i], wasm_v128_load(c->p[2]), flavor));
  EXP_STEP(p[i] = simd_multiply_add(p[i], r[i], wasm_v128_load(c->p[3]), flavor));
  EXP_STEP(p[i] = simd_multiply_add(p[i], r[i], wasm_v128_load(c->p[4]), flavor));
  EXP_STEP(p[i] = simd_multiply_add(p[i], r[i], wasm_v128_load(c->p[5]), flavor));
  EXP_STEP(p[i] = simd_multiply_add(p[i], wasm_f32x4_mul(r[i], r[i]),
                                    wasm_f32x4_add(r[i], wasm_v128_load(c->p[6])), flavor));
  EXP_STEP(p[i] = wasm_i32x4_add(p[i], wasm_i32x4_shl(rounded[i], 23)));
  // 0 where x is too small; e^x is more than x, so the larger of them is e^x or NaN
  EXP_STEP(p[i] = wasm_v128_andnot(p[i], wasm_f32x4_lt(x[i], wasm_v128_load(c->least)));
           x[i] = wasm_f32x4_pmax(x[i], p[i]));
#undef EXP_STEP
}

SIMD_INLINE v128_t exp_f32x4(v128_t x) {
  v128_t result = x;
  exp_steps(&result, 1, SIMD_PLAIN);
  return wasm_v128_bitselect(wasm_i32x4_splat(0x7f800000), result,
                             wasm_f32x4_gt(x, wasm_f32x4_splat(EXP_MOST)));
}

#endif
#endif

// kernels/simd.h — 128-bit vectors: the compiler's own on WebAssembly; in native builds with
// WICK_SIMDE, the same intrinsics from SIMDe, which maps them to SSE, AVX or NEON. Defines
// WICK_SIMD128 if vectors are available, WICK_RELAXED if there are other dots than the plain one,
// WICK_FUSED if float sums may be fused, and the code that several families share.
//
// Native builds have the plain flavor for every processor of the architecture. On x86-64 the same
// sources are compiled again for WICK_LEVEL, avx2 or avxvnni (flags.mk), with the dots of those
// processors. No native flavor fuses: all are bit-identical to the scalar reference. With
// WICK_CHECKED_DOTS (used by the sanitizer builds), the other flavors exist without a level, and
// trap if an operand has bits that they must not rely on.
#ifndef WICK_KERNELS_SIMD_H
#define WICK_KERNELS_SIMD_H

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#define WICK_SIMD128 1
#ifdef __wasm_relaxed_simd__
#define WICK_RELAXED 1
#define WICK_FUSED 1
#endif
#elif defined(WICK_SIMDE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/wasm/simd128.h>
#define WICK_SIMD128 1
#if defined(WICK_LEVEL) || defined(WICK_CHECKED_DOTS)
#define WICK_RELAXED 1
#endif
#ifdef WICK_CHECKED_DOTS
#define WICK_FUSED 1
#endif
#endif

#ifdef WICK_SIMD128

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

// How a kernel multiplies codes. PLAIN: 16-bit lanes, i32x4.dot_i16x8, with products and float sums
// rounded separately (bit-identical to the scalar reference). PAIRS and QUADS are relaxed SIMD with
// fused float sums; PAIRS adds pairs of products in 16-bit lanes where they fit, QUADS uses the dot
// of four products. PAIRS is faster if the CPU has no such instruction (kernels.c tests for it).
// Two more flavors are for one token on ARM. LONG is bit-identical to PLAIN, but multiplies bytes
// and adds 16-bit products; both are single instructions on ARM. SIGNED is QUADS with a dot of two
// signed operands, so that the signs of codes need no conversion.
typedef enum simd_flavor {
  SIMD_PLAIN = 0,
  SIMD_PAIRS = 1,
  SIMD_QUADS = 2,
  SIMD_LONG = 3,
  SIMD_SIGNED = 4
} simd_flavor;

#if defined(WICK_RELAXED) && defined(__wasm_simd128__)

#define simd_dot_pairs(x, codes) wasm_i16x8_relaxed_dot_i8x16_i7x16(x, codes)
#define simd_dot_quads(x, codes, sum) wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, codes, sum)
#define simd_madd(a, b, c) wasm_f32x4_relaxed_madd(a, b, c)
#define simd_table(values, indexes) wasm_i8x16_relaxed_swizzle(values, indexes)

#elif defined(WICK_LEVEL)

SIMD_INLINE v128_t simd_dot_pairs(v128_t x, v128_t codes) {
  return (v128_t)_mm_maddubs_epi16((__m128i)codes, (__m128i)x);
}

SIMD_INLINE v128_t simd_dot_quads(v128_t x, v128_t codes, v128_t sum) {
#ifdef __AVXVNNI__
  return (v128_t)_mm_dpbusd_avx_epi32((__m128i)sum, (__m128i)codes, (__m128i)x);
#else
  const __m128i pairs = _mm_maddubs_epi16((__m128i)codes, (__m128i)x);
  return wasm_i32x4_add(sum, (v128_t)_mm_madd_epi16(pairs, _mm_set1_epi16(1)));
#endif
}

SIMD_INLINE v128_t simd_madd(v128_t a, v128_t b, v128_t c) {
  return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
}

#elif defined(WICK_RELAXED)

// Emulations that trap where the relaxed operation would depend on the CPU.
static inline v128_t simd_dot_pairs(v128_t x, v128_t codes) {
  int8_t a[16], b[16];
  int16_t sums[8];
  memcpy(a, &x, 16);
  memcpy(b, &codes, 16);
  for (int i = 0; i < 16; i++) {
    if (b[i] < 0) __builtin_trap();
  }
  for (int i = 0; i < 8; i++) {
    sums[i] = (int16_t)(a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
  }
  return wasm_v128_load(sums);
}

static inline v128_t simd_dot_quads(v128_t x, v128_t codes, v128_t sum) {
  return wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(simd_dot_pairs(x, codes)));
}

static inline v128_t simd_madd(v128_t a, v128_t b, v128_t c) {
  return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
}

#else

// The plain build also declares these, so that one source serves both; its kernels never call them.
static inline v128_t simd_dot_pairs(v128_t x, v128_t codes) { return wasm_v128_and(x, codes); }
static inline v128_t simd_dot_quads(v128_t x, v128_t codes, v128_t sum) {
  return wasm_i32x4_add(simd_dot_pairs(x, codes), sum);
}
static inline v128_t simd_madd(v128_t a, v128_t b, v128_t c) {
  return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
}

#endif

// Whether the dot of four products accepts codes of all 8 bits, signed or unsigned. x86 without
// VNNI adds pairs that saturate; kernels.c does not select QUADS there.
#if defined(__AVXVNNI__) || (defined(WICK_RELAXED) && defined(__wasm_simd128__))
#define SIMD_HAS_BYTES true
#else
#define SIMD_HAS_BYTES false
#endif

// Hides the origin of `pointer` from the compiler, so that offsets from it are encoded in the load
// instructions. Otherwise, loops are rewritten to count one index and add each offset separately.
#define SIMD_OPAQUE(pointer) __asm__("" : "+r"(pointer))

// Returns whether a variable that is always 0 is not 0. The compiler cannot know the result;
// engines can, and drop the branch. So `if (simd_never(&zero)) break;` keeps the code before it
// before the code after it, at no cost. Without this, the compiler puts all products of one sum of
// an unrolled loop one after the other, and their operands do not fit into the registers.
SIMD_INLINE bool simd_never(uint32_t *zero) {
  __asm__ volatile("" : "+r"(*zero));
  return *zero != 0;
}

// Ensures that stored values stay in memory: the compiler must not keep them in registers past this
// point.
#define SIMD_FORGET() __asm__ volatile("" ::: "memory")

// Masks for inner loops. V8 rebuilds a constant in every iteration (three instructions), but values
// loaded from memory stay in a register.
typedef struct simd_masks {
  uint8_t low_4[16];   // 0x0f in every byte
  uint8_t low_6[16];   // 0x3f
  uint8_t low_7[16];   // 0x7f
  uint8_t low_1[16];   // 0x01
  uint8_t fifth[16];   // 0x10
  uint8_t third[16];   // 0x04
  uint8_t low_2[16];   // 0x03
  uint8_t bits_2[16];  // 0x0c
  uint8_t bits_4[16];  // 0x30
  uint8_t top[16];     // 0x80
  uint8_t low_8_of_16[16], high_8_of_16[16];
  uint8_t f16_tiny[16];  // for simd_f16_tiny
  int16_t f16_low[8];    // multiplies pairs of halves: selects the low ones, shifted as f16_tiny
                         // needs them
  int16_t ones[8];
  float code_round[4];     // KV_ROUND
  int32_t code_bits[4];    // KV_ROUND_BITS
  uint8_t q4_offsets[16];  // from codes of 0 to 15 to the bytes of a kv_q8_block
} simd_masks;

extern const simd_masks simd_mask;

// Returns values[index] for indexes below 16.
#if defined(WICK_LEVEL)
SIMD_INLINE v128_t simd_table(v128_t values, v128_t indexes) {
  return (v128_t)_mm_shuffle_epi8((__m128i)values, (__m128i)indexes);
}
#elif !defined(simd_table)
#define simd_table(values, indexes) wasm_i8x16_swizzle(values, indexes)
#endif

// Returns codes (above -128), negated where x is negative; any value where x is 0.
SIMD_INLINE v128_t simd_with_sign(v128_t codes, v128_t x) {
#if defined(WICK_LEVEL)
  return (v128_t)_mm_sign_epi8((__m128i)codes, (__m128i)x);
#else
  const v128_t sign = wasm_i8x16_gt(wasm_i8x16_splat(0), x);
  return wasm_i8x16_sub(wasm_v128_xor(codes, sign), sign);
#endif
}

// Returns sum + wasm_i32x4_dot_i16x8(a, b). AVX-VNNI has one instruction for this. Clang splits the
// intrinsic into two instructions again, so it is written in assembly here.
SIMD_INLINE v128_t simd_dot_add(v128_t a, v128_t b, v128_t sum) {
#ifdef __AVXVNNI__
  __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
#else
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(a, b));
#endif
}

// Returns sum + a * b, rounded once if the flavor fuses.
SIMD_INLINE v128_t simd_multiply_add(v128_t a, v128_t b, v128_t sum, simd_flavor flavor) {
  const bool is_apart = flavor == SIMD_PLAIN || flavor == SIMD_LONG;
  return is_apart ? wasm_f32x4_add(sum, wasm_f32x4_mul(a, b)) : simd_madd(a, b, sum);
}

// Returns rows 0-3 (low halves) or 4-7 (high halves) of 8 halves as floats that are too small by
// 2^112: sign, exponent and mantissa are moved to their positions, but the exponent keeps the wrong
// bias. Subnormals are converted correctly, Inf and NaN are not (KERNEL_MATRIX_HAS_WILD_F16).
SIMD_INLINE v128_t simd_f16_tiny(v128_t halves, uint32_t high) {
  const v128_t top = high ? halves : wasm_i32x4_shl(halves, 16);
  return wasm_v128_and(wasm_i32x4_shr(top, 3), wasm_i32x4_splat((int32_t)0x8fffe000));
}

// Returns the values of simd_f16_tiny multiplied by 2^112: the true values. A subnormal's exponent
// field becomes that of 2^-15, although its leading bit is not implied: adding min(0, v - 2^-14)
// corrects this. (Multiplying by 2^112 would also work, but costs 150 cycles per subnormal on many
// CPUs.)
SIMD_INLINE v128_t simd_f16_exact(v128_t halves, uint32_t high) {
  const v128_t top = high ? halves : wasm_i32x4_shl(halves, 16);
  const v128_t sign = wasm_v128_and(top, wasm_i32x4_splat(INT32_MIN));
  const v128_t bits = wasm_v128_and(wasm_u32x4_shr(top, 3), wasm_i32x4_splat(0x0fffe000));
  const v128_t value = wasm_i32x4_add(bits, wasm_i32x4_splat(112 << 23));
  const v128_t excess = wasm_f32x4_sub(value, wasm_f32x4_splat(0x1p-14f));
  const v128_t fix = wasm_f32x4_pmin(wasm_f32x4_splat(0), excess);
  return wasm_v128_or(wasm_f32x4_add(value, fix), sign);
}

// Stores the first `count` (1 to 8) of 8 rows.
SIMD_INLINE void simd_store_rows(float *y, v128_t low, v128_t high, uint32_t count) {
  if (count >= 8) {
    wasm_v128_store(y, low);
    wasm_v128_store(y + 4, high);
    return;
  }
  float rows[8];
  wasm_v128_store(rows, low);
  wasm_v128_store(rows + 4, high);
  memcpy(y, rows, count * sizeof(float));
}

#endif
#endif

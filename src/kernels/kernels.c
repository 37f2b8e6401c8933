// kernels/kernels.c — the tables of this build, and the selection of one of them for this
// processor. The tables are constant data; only the selection is made at run time.
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <string.h>

#include "base/extras.h"
#include "base/math.h"
#include "kernels/grid_points.h"
#include "kernels/simd.h"
#include "kernels/tables.h"

static const kernel_table table_scalar = {
    .name = "scalar",
    TABLE_COMMON,
    TABLE_TYPES(scalar, scalar, scalar),
    TABLE_ATTENTION(scalar),
    TABLE_ROWS(scalar),
    .act_bytes = act_bytes_scalar,
    .act_make = act_make_scalar,
};

#ifdef WICK_SIMD128
// The name of the instruction set that SIMD128 vectors are compiled to.
#if defined(__wasm_simd128__)
#define SIMD128_TABLE "simd128"
#elif defined(__x86_64__)
#define SIMD128_TABLE "sse2"
#elif defined(__aarch64__)
#define SIMD128_TABLE "neon"
#else
#define SIMD128_TABLE "simde"
#endif

// The kernels that all vector tables share.
#define TABLE_SIMD(attention)                                                                 \
  TABLE_COMMON, TABLE_ATTENTION(attention), TABLE_ROWS(simd128), .act_bytes = act_bytes_simd, \
      .act_make = act_make_simd

static const kernel_table table_simd128 = {
    .name = SIMD128_TABLE,
    TABLE_TYPES(simd128, simd128, simd128),
    TABLE_SIMD(simd128),
};
#endif

#if defined(WICK_SIMD128) && !(defined(WICK_RELAXED) && defined(__wasm_simd128__))
#define HAS_LONG 1
// Computes bit-identical results with instructions that ARM has; x86 would need more instructions.
static const kernel_table table_long = {
    .name = SIMD128_TABLE "-long",
    TABLE_TYPES_USUAL(simd128, simd128, simd128, long, long),
    TABLE_SIMD(simd128),
};
#endif

#ifdef WICK_RELAXED
// Returns whether dots add up correctly. Not inlined, because engines compile whole functions. The
// dots are in one register, as in the kernels.
static __attribute__((noinline)) bool dots_add_up(int8_t x, int8_t code) {
  const v128_t xs = wasm_i8x16_splat(x), codes = wasm_i8x16_splat(code);
  v128_t quads = wasm_i32x4_splat(7), pairs = wasm_i16x8_splat(7);
#pragma nounroll
  for (uint32_t i = 0; i < KERNEL_DOTS; i++) {
    quads = simd_dot_quads(xs, codes, quads);
    pairs = wasm_i16x8_add(pairs, simd_dot_pairs(xs, codes));
  }
  const v128_t quads_off = wasm_v128_xor(quads, wasm_i32x4_splat(7 + 4 * KERNEL_DOTS * x * code));
  const v128_t pairs_off =
      wasm_v128_xor(pairs, wasm_i16x8_splat((int16_t)(7 + 2 * KERNEL_DOTS * x * code)));
  return !wasm_v128_any_true(wasm_v128_or(quads_off, pairs_off));
}

static bool relaxed_dots_are_right(void) {
  volatile int8_t x = -3, code = 5;
  return dots_add_up(x, code);
}

// Tables for both relaxed flavors (simd_flavor): the CPU determines which of the two is faster.
static const kernel_table table_pairs = {
    .name = "relaxed-pairs",
    .dots_are_right = relaxed_dots_are_right,
    TABLE_TYPES(relaxed, pairs, pairs),
    TABLE_SIMD(relaxed),
};

static const kernel_table table_quads = {
    .name = "relaxed-quads",
    .dots_are_right = relaxed_dots_are_right,
    TABLE_TYPES(relaxed, quads, quads),
    TABLE_SIMD(relaxed),
};
#endif

#if defined(WICK_RELAXED) && defined(__wasm_simd128__)
// For CPUs whose QUADS read codes as signed, like ARM's.
static const kernel_table table_signed = {
    .name = "relaxed-signed",
    .dots_are_right = relaxed_dots_are_right,
    TABLE_TYPES_USUAL(relaxed, quads, quads, quads, signed),
    TABLE_SIMD(relaxed),
};

static int32_t dot_of(int8_t x, int8_t code) {
  volatile int8_t xs = x, codes = code;
  const v128_t dot =
      simd_dot_quads(wasm_i8x16_splat(xs), wasm_i8x16_splat(codes), wasm_i32x4_splat(0));
  return wasm_i32x4_extract_lane(dot, 0);
}

// Selects a table by this CPU's result of a dot of four products with an operand of more than 7
// bits: 4 * 127 * 255 if the dot is one instruction with unsigned codes; -4 * 127 if it is one
// instruction with signed codes; 2 * 32767 if it consists of pairs, which saturate at 16 bits, as
// on x86 without VNNI.
static const kernel_table *best_of_relaxed(void) {
  const int32_t dot = dot_of(127, -1);
  if (dot == 4 * 127 * 255) return &table_quads;
  return dot == -4 * 127 && dot_of(-127, -127) == 4 * 127 * 127 ? &table_signed : &table_pairs;
}
#elif defined(__wasm_simd128__)
// Returns whether 0 / 0 is a NaN without the sign bit, as on ARM. On x86, the sign bit is set.
static bool cpu_is_like_arm(void) {
  volatile float zero = 0;
  return bits_of_f32(zero / zero) >> 31 == 0;
}
#endif

// The tables of this build, from the slowest to the fastest.
static const kernel_table *const tables[] = {
    &table_scalar,
#ifdef WICK_SIMD128
    &table_simd128,
#endif
#ifdef HAS_LONG
    &table_long,
#endif
#ifdef WICK_RELAXED
    &table_pairs,   &table_quads,
#endif
#if defined(WICK_RELAXED) && defined(__wasm_simd128__)
    &table_signed,
#endif
#ifdef WICK_LEVELS
    &kernels_avx2,  &kernels_avxvnni,
#endif
};

enum { TABLES = sizeof tables / sizeof tables[0] };

#ifdef WICK_LEVELS
typedef struct cpuid_answer {
  uint32_t eax, ebx, ecx, edx;
} cpuid_answer;

static cpuid_answer cpuid(uint32_t leaf, uint32_t subleaf) {
  cpuid_answer said;
  __asm__ volatile("cpuid"
                   : "=a"(said.eax), "=b"(said.ebx), "=c"(said.ecx), "=d"(said.edx)
                   : "a"(leaf), "c"(subleaf));
  return said;
}

static bool has_bits(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

// Returns whether the processor has x86-64-v3: AVX2, BMI, FMA and related extensions, with
// registers that the system saves. The compiler's own __builtin_cpu_supports needs libgcc, which
// not every linker has (zig cc).
static bool cpu_is_v3(void) {
  const uint32_t fma_movbe_osxsave_avx_f16c = 1U << 12 | 1U << 22 | 1U << 27 | 1U << 28 | 1U << 29;
  const uint32_t bmi1_avx2_bmi2 = 1U << 3 | 1U << 5 | 1U << 8;
  const uint32_t lzcnt = 1U << 5, xmm_ymm = 6;
  if (cpuid(0, 0).eax < 7 || cpuid(0x80000000U, 0).eax < 0x80000001U) return false;
  if (!has_bits(cpuid(1, 0).ecx, fma_movbe_osxsave_avx_f16c)) return false;
  uint32_t saved, high;
  __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  return has_bits(saved, xmm_ymm) && has_bits(cpuid(7, 0).ebx, bmi1_avx2_bmi2) &&
         has_bits(cpuid(0x80000001U, 0).ecx, lzcnt);
}

static bool cpu_has_vnni(void) {
  const uint32_t avx_vnni = 1U << 4;
  return cpuid(7, 0).eax >= 1 && has_bits(cpuid(7, 1).eax, avx_vnni);
}

typedef enum cpu_level { CPU_UNKNOWN, CPU_BASELINE, CPU_V3, CPU_VNNI } cpu_level;

// Determines the processor's level once, because a virtual machine traps each cpuid, which takes
// tens of microseconds.
static cpu_level cpu_level_known(void) {
  static _Atomic cpu_level known;
  cpu_level level = atomic_load(&known);
  if (level != CPU_UNKNOWN) return level;
  level = !cpu_is_v3() ? CPU_BASELINE : cpu_has_vnni() ? CPU_VNNI : CPU_V3;
  atomic_store(&known, level);
  return level;
}
#endif

// Returns whether this processor has the instructions of a table.
static bool cpu_runs(const kernel_table *kernels) {
#ifdef WICK_LEVELS
  if (kernels == &kernels_avx2) return cpu_level_known() >= CPU_V3;
  return kernels != &kernels_avxvnni || cpu_level_known() == CPU_VNNI;
#elif defined(WICK_RELAXED) && defined(__wasm_simd128__)
  return kernels != &table_quads || best_of_relaxed() != &table_pairs;
#else
  (void)kernels;
  return true;
#endif
}

const kernel_table *kernels_bind(void) {
  if (extras_are_there()) grids_unpack();
#if defined(WICK_RELAXED) && defined(__wasm_simd128__)
  return best_of_relaxed();
#elif defined(__wasm_simd128__)
  return cpu_is_like_arm() ? &table_long : &table_simd128;
#elif defined(WICK_SIMD128)
  const kernel_table *best = &table_simd128;
#ifdef WICK_LEVELS
  if (cpu_runs(&kernels_avx2)) best = &kernels_avx2;
  if (cpu_runs(&kernels_avxvnni)) best = &kernels_avxvnni;
#endif
  return best;
#else
  return &table_scalar;
#endif
}

const kernel_table *kernels_by_name(const char *name) {
  grids_unpack();
  for (size_t i = 0; i < TABLES; i++) {
    const size_t bytes = strlen(tables[i]->name) + 1;
    if (strlen(name) + 1 == bytes && memcmp(name, tables[i]->name, bytes) == 0) {
      return cpu_runs(tables[i]) ? tables[i] : NULL;
    }
  }
  return NULL;
}

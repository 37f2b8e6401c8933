// kernels/kernels.c — the tables: what each variant runs for each type. Constant data; nothing is
// bound at run time but the choice of the table.
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/simd.h"

#define TYPE_OPS(family, form, variant) \
  {family##_matrix_bytes, family##_repack, family##_row_dequant, form, family##_matmul_##variant}

#define KV_OPS(name, queries)                                    \
  {kv_##name##_bytes,   kv_##name##_bytes,  kv_##name##_k_write, \
   kv_##name##_v_write, kv_##name##_k_read, kv_##name##_v_read,  \
   kv_##name##_k_copy,  kv_##name##_v_copy, queries}

// What is the same in all tables.
#define TABLE_COMMON                                                      \
  .attention_begin = attention_begin, .attention_merge = attention_merge, \
  .attention_end = attention_end,                                         \
  .kv = {[KERNEL_KV_F32] = KV_OPS(f32, NULL),                             \
         [KERNEL_KV_F16] = KV_OPS(f16, NULL),                             \
         [KERNEL_KV_Q8] = KV_OPS(q8, kv_queries_make),                    \
         [KERNEL_KV_Q4] = KV_OPS(q4, kv_queries_make)}

// Keys of one type with values of each.
#define ATTENTION_STEPS(k, variant)                      \
  {[KERNEL_KV_F32] = attention_step_##k##_f32_##variant, \
   [KERNEL_KV_F16] = attention_step_##k##_f16_##variant, \
   [KERNEL_KV_Q8] = attention_step_##k##_q8_##variant,   \
   [KERNEL_KV_Q4] = attention_step_##k##_q4_##variant}

#define TABLE_ATTENTION(variant)                                      \
  .attention_step = {[KERNEL_KV_F32] = ATTENTION_STEPS(f32, variant), \
                     [KERNEL_KV_F16] = ATTENTION_STEPS(f16, variant), \
                     [KERNEL_KV_Q8] = ATTENTION_STEPS(q8, variant),   \
                     [KERNEL_KV_Q4] = ATTENTION_STEPS(q4, variant)}

#define TABLE_ROWS(variant)                                                               \
  .rms_norm = rms_norm_##variant, .rope = rope_##variant, .silu_mul = silu_mul_##variant, \
  .silu = silu_##variant, .sigmoid_mul = sigmoid_mul_##variant, .add = add_##variant,     \
  .scale = scale_##variant, .l2_norm = l2_norm_##variant, .conv = conv_##variant,         \
  .delta = delta_##variant, .scan = scan_##variant, .ssd = ssd_##variant

#define TABLE_TYPES(floats, integers)                                         \
  .types = {[WICK_TYPE_F32] = TYPE_OPS(f32, KERNEL_ACT_F32, floats),          \
            [WICK_TYPE_F16] = TYPE_OPS(f16, KERNEL_ACT_F32, floats),          \
            [WICK_TYPE_BF16] = TYPE_OPS(bf16, KERNEL_ACT_F32, floats),        \
            [WICK_TYPE_Q4_0] = TYPE_OPS(q4_0, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q4_1] = TYPE_OPS(q4_1, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q5_0] = TYPE_OPS(q5_0, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q5_1] = TYPE_OPS(q5_1, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q8_0] = TYPE_OPS(q8_0, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q2_K] = TYPE_OPS(q2_k, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q3_K] = TYPE_OPS(q3_k, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q4_K] = TYPE_OPS(q4_k, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q5_K] = TYPE_OPS(q5_k, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q6_K] = TYPE_OPS(q6_k, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_IQ4_NL] = TYPE_OPS(iq4_nl, KERNEL_ACT_Q8, integers),   \
            [WICK_TYPE_IQ4_XS] = TYPE_OPS(iq4_xs, KERNEL_ACT_Q8, integers),   \
            [WICK_TYPE_IQ2_XXS] = TYPE_OPS(iq2_xxs, KERNEL_ACT_Q8, integers), \
            [WICK_TYPE_IQ2_XS] = TYPE_OPS(iq2_xs, KERNEL_ACT_Q8, integers),   \
            [WICK_TYPE_IQ3_XXS] = TYPE_OPS(iq3_xxs, KERNEL_ACT_Q8, integers), \
            [WICK_TYPE_IQ1_S] = TYPE_OPS(iq1_s, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_IQ3_S] = TYPE_OPS(iq3_s, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_IQ2_S] = TYPE_OPS(iq2_s, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_IQ1_M] = TYPE_OPS(iq1_m, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_TQ1_0] = TYPE_OPS(tq1_0, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_TQ2_0] = TYPE_OPS(tq2_0, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_MXFP4] = TYPE_OPS(mxfp4, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_NVFP4] = TYPE_OPS(nvfp4, KERNEL_ACT_Q8, integers),     \
            [WICK_TYPE_Q1_0] = TYPE_OPS(q1_0, KERNEL_ACT_Q8, integers),       \
            [WICK_TYPE_Q2_0] = TYPE_OPS(q2_0, KERNEL_ACT_Q8, integers)}

static const wick_kernels table_scalar = {
    .name = "scalar",
    TABLE_COMMON,
    TABLE_TYPES(scalar, scalar),
    TABLE_ATTENTION(scalar),
    TABLE_ROWS(scalar),
    .act_bytes = act_bytes_scalar,
    .act_make = act_make_scalar,
};

#ifdef WICK_SIMD128
static const wick_kernels table_simd128 = {
    .name = "simd128",
    TABLE_COMMON,
    TABLE_TYPES(simd128, simd128),
    TABLE_ATTENTION(simd128),
    TABLE_ROWS(simd128),
    .act_bytes = act_bytes_simd,
    .act_make = act_make_simd,
};
#endif

#ifdef WICK_RELAXED
// See simd_flavor: which of the two is faster depends on the CPU.
static const wick_kernels table_pairs = {
    .name = "relaxed-pairs",
    TABLE_COMMON,
    TABLE_TYPES(relaxed, pairs),
    TABLE_ATTENTION(relaxed),
    TABLE_ROWS(simd128),
    .act_bytes = act_bytes_simd,
    .act_make = act_make_simd,
};

static const wick_kernels table_quads = {
    .name = "relaxed-quads",
    TABLE_COMMON,
    TABLE_TYPES(relaxed, quads),
    TABLE_ATTENTION(relaxed),
    TABLE_ROWS(simd128),
    .act_bytes = act_bytes_simd,
    .act_make = act_make_simd,
};
#endif

#if defined(WICK_RELAXED) && defined(__wasm_simd128__)
// Whether this CPU makes the dot of four products of two dots of two, which saturate at 16 bits:
// x86 without VNNI does. With an operand beyond 7 bits the two differ: 4 * 127 * 255 when it is one
// instruction on unsigned codes, -4 * 127 on signed ones, 2 * 32767 when it is made of pairs.
static bool dot_is_made_of_pairs(void) {
  volatile int8_t x = 127, code = -1;
  const v128_t dot =
      simd_dot_quads(wasm_i8x16_splat(x), wasm_i8x16_splat(code), wasm_i32x4_splat(0));
  return wasm_i32x4_extract_lane(dot, 0) == 2 * 32767;
}
#endif

const wick_kernels *kernels_bind(void) {
#if defined(WICK_RELAXED) && defined(__wasm_simd128__)
  return dot_is_made_of_pairs() ? &table_pairs : &table_quads;
#elif defined(WICK_SIMD128)
  return &table_simd128;
#else
  return &table_scalar;
#endif
}

const wick_kernels *kernels_by_name(const char *name) {
  static const wick_kernels *const tables[] = {
      &table_scalar,
#ifdef WICK_SIMD128
      &table_simd128,
#endif
#ifdef WICK_RELAXED
      &table_pairs,
      &table_quads,
#endif
  };
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    const size_t length = strlen(tables[i]->name);
    if (strlen(name) == length && memcmp(name, tables[i]->name, length) == 0) return tables[i];
  }
  return NULL;
}

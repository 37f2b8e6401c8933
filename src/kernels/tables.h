// kernels/tables.h — builds a table of kernels with the functions of each variant for each type.
#ifndef WICK_KERNELS_TABLES_H
#define WICK_KERNELS_TABLES_H

#include "kernels/act.h"
#include "kernels/families.h"

#define TYPE_OPS(family, form, variant)                                \
  {family##_matrix_bytes, family##_repack, family##_row_dequant, form, \
   SIMD_NAME(family##_matmul_##variant)}

#define KV_OPS(name, queries) \
  {kv_##name##_bytes,         \
   kv_##name##_bytes,         \
   kv_##name##_k_write,       \
   kv_##name##_v_write,       \
   kv_##name##_k_read,        \
   kv_##name##_v_read,        \
   kv_##name##_k_copy,        \
   kv_##name##_v_copy,        \
   queries,                   \
   NULL,                      \
   NULL,                      \
   NULL}
#define KV_KEYS(name)                \
  {.k_bytes = kv_##name##_bytes,     \
   .k_read = kv_##name##_k_read,     \
   .k_copy = kv_##name##_k_copy,     \
   .k_encode = kv_##name##_k_encode, \
   .factors_make = kv_factors_make}
#define KV_VALUES(name)            \
  {.v_bytes = kv_##name##_bytes,   \
   .v_write = kv_##name##_v_write, \
   .v_read = kv_##name##_v_read,   \
   .v_copy = kv_##name##_v_copy,   \
   .values_end = kv_##name##_values_end}

// The entries that all tables share.
#define TABLE_COMMON                                                                \
  .attention_begin = attention_begin, .attention_merge = attention_merge,           \
  .attention_end = attention_end, .relu_mul = relu_mul, .relu_square = relu_square, \
  .clamp = clamp_values, .multiply = multiply_values,                               \
  .kv = {[KERNEL_KV_F32] = KV_OPS(f32, NULL),                                       \
         [KERNEL_KV_F16] = KV_OPS(f16, NULL),                                       \
         [KERNEL_KV_Q8] = KV_OPS(q8, kv_queries_make),                              \
         [KERNEL_KV_Q4] = KV_OPS(q4, kv_queries_make),                              \
         [KERNEL_KV_C8] = KV_KEYS(c8),                                              \
         [KERNEL_KV_C4] = KV_KEYS(c4),                                              \
         [KERNEL_KV_R4] = KV_VALUES(r4)}

// Attention over keys of one type, with values of each type.
#define ATTENTION_STEPS(k, variant)                                 \
  {[KERNEL_KV_F32] = SIMD_NAME(attention_step_##k##_f32_##variant), \
   [KERNEL_KV_F16] = SIMD_NAME(attention_step_##k##_f16_##variant), \
   [KERNEL_KV_Q8] = SIMD_NAME(attention_step_##k##_q8_##variant),   \
   [KERNEL_KV_Q4] = SIMD_NAME(attention_step_##k##_q4_##variant),   \
   [KERNEL_KV_R4] = SIMD_NAME(attention_step_##k##_q4_##variant)}

#define TABLE_ATTENTION(variant)                                      \
  .attention_step = {[KERNEL_KV_F32] = ATTENTION_STEPS(f32, variant), \
                     [KERNEL_KV_F16] = ATTENTION_STEPS(f16, variant), \
                     [KERNEL_KV_Q8] = ATTENTION_STEPS(q8, variant),   \
                     [KERNEL_KV_Q4] = ATTENTION_STEPS(q4, variant),   \
                     [KERNEL_KV_C8] = ATTENTION_STEPS(c8, variant),   \
                     [KERNEL_KV_C4] = ATTENTION_STEPS(c4, variant)}

#define TABLE_ROWS(variant)                                                                     \
  .rms_norm = rms_norm_##variant, .rope = rope_##variant, .silu_mul = silu_mul_##variant,       \
  .silu = silu_##variant, .sigmoid_mul = sigmoid_mul_##variant, .add = add_##variant,           \
  .scale = scale_##variant, .l2_norm = l2_norm_##variant, .conv = conv_##variant,               \
  .delta = delta_##variant, .layer_norm = layer_norm_##variant, .gelu_mul = gelu_mul_##variant, \
  .gelu_erf_mul = gelu_erf_mul_##variant, .soft_cap = soft_cap_##variant,                       \
  .xielu = xielu_##variant, .swiglu_clamped = swiglu_clamped_##variant,                         \
  .softplus = softplus_##variant, .scan = scan_##variant, .ssd = ssd_##variant,                 \
  .wkv = wkv_##variant

// A different variant may be used for signed codes of 8 bits (block_kind) and for the types that
// most models have.
#define TABLE_TYPES(floats, integers, signeds) \
  TABLE_TYPES_USUAL(floats, integers, signeds, integers, signeds)
#define TABLE_TYPES_USUAL(floats, integers, signeds, usual, bytes)           \
  .types = {[GGML_TYPE_F32] = TYPE_OPS(f32, KERNEL_ACT_F32, floats),         \
            [GGML_TYPE_F16] = TYPE_OPS(f16, KERNEL_ACT_F32, floats),         \
            [GGML_TYPE_BF16] = TYPE_OPS(bf16, KERNEL_ACT_F32, floats),       \
            [GGML_TYPE_Q4_0] = TYPE_OPS(q4_0, KERNEL_ACT_Q8, usual),         \
            [GGML_TYPE_Q4_1] = TYPE_OPS(q4_1, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q5_0] = TYPE_OPS(q5_0, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q5_1] = TYPE_OPS(q5_1, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q8_0] = TYPE_OPS(q8_0, KERNEL_ACT_Q8, bytes),         \
            [GGML_TYPE_Q2_K] = TYPE_OPS(q2_k, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q3_K] = TYPE_OPS(q3_k, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q4_K] = TYPE_OPS(q4_k, KERNEL_ACT_Q8, usual),         \
            [GGML_TYPE_Q5_K] = TYPE_OPS(q5_k, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q6_K] = TYPE_OPS(q6_k, KERNEL_ACT_Q8, usual),         \
            [GGML_TYPE_IQ4_NL] = TYPE_OPS(iq4_nl, KERNEL_ACT_Q8, signeds),   \
            [GGML_TYPE_IQ4_XS] = TYPE_OPS(iq4_xs, KERNEL_ACT_Q8, signeds),   \
            [GGML_TYPE_IQ2_XXS] = TYPE_OPS(iq2_xxs, KERNEL_ACT_Q8, signeds), \
            [GGML_TYPE_IQ2_XS] = TYPE_OPS(iq2_xs, KERNEL_ACT_Q8, signeds),   \
            [GGML_TYPE_IQ3_XXS] = TYPE_OPS(iq3_xxs, KERNEL_ACT_Q8, signeds), \
            [GGML_TYPE_IQ1_S] = TYPE_OPS(iq1_s, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_IQ3_S] = TYPE_OPS(iq3_s, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_IQ2_S] = TYPE_OPS(iq2_s, KERNEL_ACT_Q8, signeds),     \
            [GGML_TYPE_IQ1_M] = TYPE_OPS(iq1_m, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_TQ1_0] = TYPE_OPS(tq1_0, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_TQ2_0] = TYPE_OPS(tq2_0, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_MXFP4] = TYPE_OPS(mxfp4, KERNEL_ACT_Q8, integers),    \
            [GGML_TYPE_NVFP4] = TYPE_OPS(nvfp4, KERNEL_ACT_Q8, signeds),     \
            [GGML_TYPE_Q1_0] = TYPE_OPS(q1_0, KERNEL_ACT_Q8, integers),      \
            [GGML_TYPE_Q2_0] = TYPE_OPS(q2_0, KERNEL_ACT_Q8, integers)}

#endif

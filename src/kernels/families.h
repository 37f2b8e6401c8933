// kernels/families.h — declares all kernels of every family and variant, for the tables of
// kernels.c, and defines the loop that all scalar products share. kernels.h has the contracts.
#ifndef WICK_KERNELS_FAMILIES_H
#define WICK_KERNELS_FAMILIES_H

#include "kernels/kernels.h"

// Some sources are compiled again for other processor levels (simd.h). In these builds SIMD_NAME(f)
// is f_avx2, for example; otherwise it is f.
#ifdef WICK_LEVEL
#define SIMD_NAME(name) SIMD_NAME_AT(name, WICK_LEVEL)
#define SIMD_NAME_AT(name, level) SIMD_NAME_JOINED(name, level)
#define SIMD_NAME_JOINED(name, level) name##_##level
#define act_bytes_simd SIMD_NAME(act_bytes_simd)
#define act_make_simd SIMD_NAME(act_make_simd)
#define read_ahead SIMD_NAME(read_ahead)
#define codes_scores_simd SIMD_NAME(codes_scores_simd)
#define channels_scores_simd SIMD_NAME(channels_scores_simd)
#define codes_values_simd SIMD_NAME(codes_values_simd)
#define rms_norm_simd128 SIMD_NAME(rms_norm_simd128)
#define rope_simd128 SIMD_NAME(rope_simd128)
#define silu_mul_simd128 SIMD_NAME(silu_mul_simd128)
#define add_simd128 SIMD_NAME(add_simd128)
#define scale_simd128 SIMD_NAME(scale_simd128)
#define silu_simd128 SIMD_NAME(silu_simd128)
#define sigmoid_mul_simd128 SIMD_NAME(sigmoid_mul_simd128)
#define l2_norm_simd128 SIMD_NAME(l2_norm_simd128)
#define layer_norm_simd128 SIMD_NAME(layer_norm_simd128)
#define gelu_mul_simd128 SIMD_NAME(gelu_mul_simd128)
#define gelu_erf_mul_simd128 SIMD_NAME(gelu_erf_mul_simd128)
#define soft_cap_simd128 SIMD_NAME(soft_cap_simd128)
#define xielu_simd128 SIMD_NAME(xielu_simd128)
#define swiglu_clamped_simd128 SIMD_NAME(swiglu_clamped_simd128)
#define conv_simd128 SIMD_NAME(conv_simd128)
#define delta_simd128 SIMD_NAME(delta_simd128)
#define scan_simd128 SIMD_NAME(scan_simd128)
#define ssd_simd128 SIMD_NAME(ssd_simd128)
#define wkv_simd128 SIMD_NAME(wkv_simd128)
#define softplus_simd128 SIMD_NAME(softplus_simd128)
#define tile_matmul SIMD_NAME(tile_matmul)
#define tile_unpack_rows SIMD_NAME(tile_unpack_rows)
#else
#define SIMD_NAME(name) name
#endif

typedef bool matrix_bytes_function(uint32_t rows, uint32_t cols, uint64_t *bytes);
typedef uint32_t repack_function(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                                 uint32_t block_count, const uint8_t *file_blocks);
typedef void row_dequant_function(const kernel_matrix *matrix, uint32_t row, float *out);
typedef void matmul_function(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                             const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                             size_t y_stride);

// Declares the functions of a type: scalar ones, and SIMD variants where simd.h has vectors.
#define KERNEL_FAMILY(name)                                                       \
  matrix_bytes_function name##_matrix_bytes;                                      \
  repack_function name##_repack;                                                  \
  row_dequant_function name##_row_dequant;                                        \
  matmul_function name##_matmul_scalar, SIMD_NAME(name##_matmul_simd128);         \
  matmul_function SIMD_NAME(name##_matmul_pairs), SIMD_NAME(name##_matmul_quads); \
  matmul_function SIMD_NAME(name##_matmul_relaxed), SIMD_NAME(name##_matmul_long)

KERNEL_FAMILY(f32);
KERNEL_FAMILY(f16);
KERNEL_FAMILY(bf16);
KERNEL_FAMILY(q4_0);
KERNEL_FAMILY(q4_1);
KERNEL_FAMILY(q5_0);
KERNEL_FAMILY(q5_1);
KERNEL_FAMILY(q8_0);
KERNEL_FAMILY(q2_k);
KERNEL_FAMILY(q3_k);
KERNEL_FAMILY(q4_k);
KERNEL_FAMILY(q5_k);
KERNEL_FAMILY(q6_k);
KERNEL_FAMILY(iq4_nl);
KERNEL_FAMILY(iq4_xs);
KERNEL_FAMILY(iq2_xxs);
KERNEL_FAMILY(iq2_xs);
KERNEL_FAMILY(iq3_xxs);
KERNEL_FAMILY(iq1_s);
KERNEL_FAMILY(iq3_s);
KERNEL_FAMILY(iq2_s);
KERNEL_FAMILY(iq1_m);
KERNEL_FAMILY(tq1_0);
KERNEL_FAMILY(tq2_0);
KERNEL_FAMILY(mxfp4);
KERNEL_FAMILY(nvfp4);
KERNEL_FAMILY(q1_0);
KERNEL_FAMILY(q2_0);
matmul_function SIMD_NAME(q8_0_matmul_signed);

// Multiplies one row of the matrix by one row of activations.
typedef float row_dot_function(const kernel_matrix *matrix, uint32_t row, const void *act_row);

// Computes a product with row_dot, one output at a time.
static inline void matmul_by_rows(const kernel_matrix *matrix, uint32_t row_first,
                                  uint32_t row_last, const void *act, size_t act_stride_bytes,
                                  uint32_t tokens, float *y, size_t y_stride,
                                  row_dot_function *row_dot) {
  for (uint32_t t = 0; t < tokens; t++) {
    const uint8_t *act_row = (const uint8_t *)act + act_stride_bytes * t;
    for (uint32_t r = row_first; r < row_last; r++) {
      y[y_stride * t + r] = row_dot(matrix, r, act_row);
    }
  }
}

size_t act_bytes_scalar(kernel_act_form form, uint32_t cols);
void act_make_scalar(kernel_act_form form, const float *x, uint32_t cols, void *act);

size_t act_bytes_simd(kernel_act_form form, uint32_t cols);
void act_make_simd(kernel_act_form form, const float *x, uint32_t cols, void *act);

typedef size_t kv_bytes_function(uint32_t head_dim);
typedef uint32_t kv_write_function(void *page, uint32_t slot, const float *row, uint32_t head_dim);
typedef void kv_read_function(const void *page, uint32_t slot, float *row, uint32_t head_dim);
typedef void kv_copy_function(void *to, const void *from, uint32_t slots, uint32_t head_dim);

// Declares the functions of an element type of KV pages.
#define KERNEL_KV_FAMILY(name)                                \
  kv_bytes_function kv_##name##_bytes;                        \
  kv_write_function kv_##name##_k_write, kv_##name##_v_write; \
  kv_read_function kv_##name##_k_read, kv_##name##_v_read;    \
  kv_copy_function kv_##name##_k_copy, kv_##name##_v_copy

// Converts queries for Q8 and Q4 (kernel_kv_ops.queries_make).
void kv_queries_make(float *q, uint32_t heads, uint32_t head_dim);

KERNEL_KV_FAMILY(f32);
KERNEL_KV_FAMILY(f16);
KERNEL_KV_FAMILY(q8);
KERNEL_KV_FAMILY(q4);

// Pages of keys with scales per channel, and rotated values.
typedef void kv_encode_function(void *page, const void *f16_page, uint32_t first, uint32_t last,
                                uint32_t head_dim);
kv_bytes_function kv_c8_bytes, kv_c4_bytes, kv_r4_bytes;
kv_encode_function kv_c8_k_encode, kv_c4_k_encode;
void kv_factors_make(const float *q, uint32_t heads, uint32_t head_dim, void *factors);
kv_read_function kv_c8_k_read, kv_c4_k_read, kv_r4_v_read;
kv_copy_function kv_c8_k_copy, kv_c4_k_copy, kv_r4_v_copy;
kv_write_function kv_r4_v_write;
typedef void kv_values_end_function(float *values, uint32_t heads, uint32_t head_dim);
kv_values_end_function kv_r4_values_end;

typedef void attention_step_function(const kernel_attention *state, const kernel_page *pages,
                                     uint32_t count);
void attention_begin(const kernel_attention *state);
void attention_merge(const kernel_attention *state, const kernel_attention *part);
void attention_end(const kernel_attention *state, float *out);

// The progress of a call's prefetching, in steps of `step_bytes` at each address.
typedef struct reading_ahead {
  const kernel_ahead *places;
  uint32_t done_bytes, step_bytes;
} reading_ahead;

void read_ahead(reading_ahead *ahead);

// Attention over pages of codes in 128-bit vectors, the same in every flavor. Rows of scores and p
// are KERNEL_STEP_TOKENS long. The functions compute the scores of all tokens of `count` pages, and
// add p * V over these tokens to acc [heads][head_dim], where p is at most 1, and 0 for tokens that
// do not count.
void codes_scores_simd(const float *q, uint32_t dims, uint32_t heads, const kernel_page *pages,
                       uint32_t count, kernel_kv_type type, float *scores, reading_ahead *ahead);
void codes_values_simd(float *acc, uint32_t dims, uint32_t heads, const kernel_page *pages,
                       uint32_t count, kernel_kv_type type, const float *p, reading_ahead *ahead);

// Computes only the scores, for pages of C8 or C4. factors: [heads] of kv_factor_bytes.
void channels_scores_simd(const uint8_t *factors, uint32_t dims, uint32_t heads,
                          const kernel_page *pages, uint32_t count, kernel_kv_type type,
                          float *scores, reading_ahead *ahead);

#define KERNEL_ATTENTION_STEPS(k, variant)                               \
  attention_step_function SIMD_NAME(attention_step_##k##_f32_##variant); \
  attention_step_function SIMD_NAME(attention_step_##k##_f16_##variant); \
  attention_step_function SIMD_NAME(attention_step_##k##_q8_##variant);  \
  attention_step_function SIMD_NAME(attention_step_##k##_q4_##variant)
#define KERNEL_ATTENTION(variant)       \
  KERNEL_ATTENTION_STEPS(f32, variant); \
  KERNEL_ATTENTION_STEPS(f16, variant); \
  KERNEL_ATTENTION_STEPS(q8, variant);  \
  KERNEL_ATTENTION_STEPS(q4, variant);  \
  KERNEL_ATTENTION_STEPS(c8, variant);  \
  KERNEL_ATTENTION_STEPS(c4, variant)

KERNEL_ATTENTION(scalar);
KERNEL_ATTENTION(simd128);
KERNEL_ATTENTION(relaxed);

void rms_norm_scalar(const float *x, const float *weight, uint32_t n, float epsilon, float *out);
void rope_scalar(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot, const float *cos_sin,
                 bool interleaved);
void silu_mul_scalar(float *gate, const float *up, uint32_t n);
void silu_scalar(float *x, uint32_t n);
void sigmoid_mul_scalar(float *x, const float *gate, uint32_t n);
void softplus_scalar(float *x, uint32_t n);
void add_scalar(float *x, const float *y, uint32_t n);
void scale_scalar(float *x, float factor, uint32_t n);
void l2_norm_scalar(const float *x, uint32_t n, float epsilon, float *out);
void layer_norm_scalar(const float *x, const float *weight, const float *bias, uint32_t n,
                       float epsilon, float *out);
void gelu_mul_scalar(float *gate, const float *up, uint32_t n);
void gelu_erf_mul_scalar(float *gate, const float *up, uint32_t n);
void soft_cap_scalar(float *x, float cap, uint32_t n);
void swiglu_clamped_scalar(float *gate, const float *up, uint32_t n);
void xielu_scalar(float *x, const kernel_xielu *curve, uint32_t n);
void relu_mul(float *x, const float *up, uint32_t n);
void relu_square(float *x, uint32_t n);
void clamp_values(float *x, float limit, uint32_t n);
void multiply_values(float *x, const float *y, uint32_t n);

void rms_norm_simd128(const float *x, const float *weight, uint32_t n, float epsilon, float *out);
void rope_simd128(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot, const float *cos_sin,
                  bool interleaved);
void silu_mul_simd128(float *gate, const float *up, uint32_t n);
void silu_simd128(float *x, uint32_t n);
void sigmoid_mul_simd128(float *x, const float *gate, uint32_t n);
void softplus_simd128(float *x, uint32_t n);
void add_simd128(float *x, const float *y, uint32_t n);
void scale_simd128(float *x, float factor, uint32_t n);
void l2_norm_simd128(const float *x, uint32_t n, float epsilon, float *out);
void layer_norm_simd128(const float *x, const float *weight, const float *bias, uint32_t n,
                        float epsilon, float *out);
void gelu_mul_simd128(float *gate, const float *up, uint32_t n);
void gelu_erf_mul_simd128(float *gate, const float *up, uint32_t n);
void soft_cap_simd128(float *x, float cap, uint32_t n);
void swiglu_clamped_simd128(float *gate, const float *up, uint32_t n);
void xielu_simd128(float *x, const kernel_xielu *curve, uint32_t n);

void conv_scalar(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last);
void delta_scalar(const kernel_delta *delta);
// Computes only the columns [first, last) of the values.
void delta_columns(const kernel_delta *delta, uint32_t first, uint32_t last);
void scan_scalar(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last);
void ssd_scalar(const kernel_ssd *ssd);
// Computes only the columns [first, last) of the head.
void ssd_columns(const kernel_ssd *ssd, uint32_t first, uint32_t last);
void wkv_scalar(const kernel_wkv *wkv);
void wkv_columns(const kernel_wkv *wkv, uint32_t first, uint32_t last);
// Writes the inputs before the token after the last one, for the channels [first, last).
void conv_state_write(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last);

void conv_simd128(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last);
void delta_simd128(const kernel_delta *delta);
void scan_simd128(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last);
void ssd_simd128(const kernel_ssd *ssd);
void wkv_simd128(const kernel_wkv *wkv);

// Returns row `at` of the inputs, counted from the oldest row in the state.
static inline const float *conv_input(const kernel_conv *conv, uint32_t at) {
  const uint32_t before = conv->width - 1;
  return at < before ? conv->state_in + (size_t)at * conv->channels
                     : conv->x + conv->x_stride * (at - before);
}

// The tables of the levels of x86-64 (table_simd.c).
extern const kernel_table kernels_avx2, kernels_avxvnni;

#endif

// kernels/floats_scalar.c — F32, F16 and BF16: rows as floats, and the products that are the
// reference for the SIMD kernels. Code that SIMD kernels replace is optimised for size.
#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/floats.h"
#include "kernels/layout.h"

static inline float f32_element(const uint8_t *group, uint32_t row, uint32_t col) {
  float value;
  memcpy(&value, group + (size_t)col * F32_RECORD_BYTES + row % 8 * sizeof value, sizeof value);
  return value;
}

static inline float f16_element(const uint8_t *group, uint32_t row, uint32_t col) {
  const uint8_t *record = group + (size_t)col * F16_RECORD_BYTES;
  return f32_of_f16(f16_of_code(load_u16(record + layout_scale_offset(row))));
}

static inline float bf16_element(const uint8_t *group, uint32_t row, uint32_t col) {
  const uint8_t *record = group + (size_t)col * F16_RECORD_BYTES;
  return f32_of_bf16(load_u16(record + layout_scale_offset(row)));
}

typedef float element_function(const uint8_t *group, uint32_t row, uint32_t col);

static inline void row_dequant(const kernel_matrix *matrix, uint32_t row, float *out,
                               uint32_t record_bytes, element_function *element) {
  const uint8_t *group = matrix->data + layout_record_offset(matrix->cols, row, 0, 1, record_bytes);
  for (uint32_t c = 0; c < matrix->cols; c++) out[c] = element(group, row, c);
}

static inline float row_dot(const kernel_matrix *matrix, uint32_t row, const float *x,
                            uint32_t record_bytes, element_function *element) {
  const uint8_t *group = matrix->data + layout_record_offset(matrix->cols, row, 0, 1, record_bytes);
  float sums[2] = {0, 0};
  for (uint32_t c = 0; c < matrix->cols; c++) sums[c % 2] += element(group, row, c) * x[c];
  return sums[0] + sums[1];
}

void f32_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {
  row_dequant(matrix, row, out, F32_RECORD_BYTES, f32_element);
}

void f16_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {
  row_dequant(matrix, row, out, F16_RECORD_BYTES, f16_element);
}

void bf16_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {
  row_dequant(matrix, row, out, F16_RECORD_BYTES, bf16_element);
}

static float f32_row_dot(const kernel_matrix *matrix, uint32_t row, const void *act_row) {
  return row_dot(matrix, row, act_row, F32_RECORD_BYTES, f32_element);
}

static float f16_row_dot(const kernel_matrix *matrix, uint32_t row, const void *act_row) {
  return row_dot(matrix, row, act_row, F16_RECORD_BYTES, f16_element);
}

static float bf16_row_dot(const kernel_matrix *matrix, uint32_t row, const void *act_row) {
  return row_dot(matrix, row, act_row, F16_RECORD_BYTES, bf16_element);
}

void f32_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                       const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                       size_t y_stride) {
  matmul_by_rows(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                 f32_row_dot);
}

void f16_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                       const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                       size_t y_stride) {
  matmul_by_rows(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                 f16_row_dot);
}

void bf16_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                        const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                        size_t y_stride) {
  matmul_by_rows(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                 bf16_row_dot);
}

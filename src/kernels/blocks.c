// kernels/blocks.c — dequantisation of and products with all block-quantised types; scalar
// reference.
#include "kernels/blocks.h"

static bool has_sub(block_kind kind) { return kind == BLOCK_SUB || kind == BLOCK_SUB_MINS; }
static bool has_min(block_kind kind) { return kind == BLOCK_MINS || kind == BLOCK_SUB_MINS; }

static void part_dequant(const block_part *part, block_kind kind, float *out) {
  for (uint32_t s = 0; s < 2; s++) {
    float scale = kind == BLOCK_HALVES ? part->half_scales[s] : part->scale;
    if (has_sub(kind)) scale *= (float)part->sub_scales[s];
    const float min = kind == BLOCK_SUB_MINS ? part->min * (float)part->sub_mins[s] : part->min;
    for (uint32_t i = 16 * s; i < 16 * s + 16; i++) {
      const float value = scale * (float)part->codes[i];
      out[i] = has_min(kind) ? value - min : value;
    }
  }
}

void block_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out,
                       const block_type *type) {
  for (uint32_t b = 0; b < matrix->cols / type->columns; b++) {
    const uint8_t *record = block_record(matrix, row, b, type);
    for (uint32_t p = 0; p < type->columns / BLOCK_PART; p++, out += BLOCK_PART) {
      block_part part = {0};
      type->load(record, row, p, &part);
      part_dequant(&part, type->kind, out);
    }
  }
}

// Returns sum plus the integer dots times their scales. Dots, with sub-scales applied, are below
// 2^24 in every type, so they are exact as floats.
static float part_add(const block_part *part, block_kind kind, const act_block *x, float sum) {
  int32_t dots[2] = {0, 0};
  for (uint32_t i = 0; i < BLOCK_PART; i++) dots[i / 16] += part->codes[i] * x->codes[i];
  if (kind == BLOCK_HALVES) {
    sum += (float)dots[0] * (part->half_scales[0] * x->scale);
    return sum + (float)dots[1] * (part->half_scales[1] * x->scale);
  }
  if (has_sub(kind)) {
    for (uint32_t s = 0; s < 2; s++) dots[s] *= part->sub_scales[s];
  }
  return sum + (float)(dots[0] + dots[1]) * (part->scale * x->scale);
}

// Returns the term of the minimum.
static float part_min(const block_part *part, block_kind kind, const act_block *x) {
  if (kind == BLOCK_MINS) return part->min * ((float)x->minus_sum * x->scale);
  const int32_t sum =
      part->sub_mins[0] * x->minus_sum_half[0] + part->sub_mins[1] * x->minus_sum_half[1];
  return (float)sum * (part->min * x->scale);
}

static float row_dot(const kernel_matrix *matrix, uint32_t row, const act_block *x,
                     const block_type *type) {
  float sum = 0;
  for (uint32_t b = 0; b < matrix->cols / type->columns; b++) {
    const uint8_t *record = block_record(matrix, row, b, type);
    for (uint32_t p = 0; p < type->columns / BLOCK_PART; p++, x++) {
      block_part part = {0};
      type->load(record, row, p, &part);
      sum = part_add(&part, type->kind, x, sum);
      if (has_min(type->kind)) sum += part_min(&part, type->kind, x);
    }
  }
  return sum;
}

void block_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                  const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                  size_t y_stride, const block_type *type) {
  for (uint32_t t = 0; t < tokens; t++) {
    for (uint32_t r = row_first; r < row_last; r++) {
      y[y_stride * t + r] = row_dot(matrix, r, act_row(act, act_stride_bytes, t), type);
    }
  }
}

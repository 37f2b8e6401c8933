// kernels/blocks.h — common parts of all block-quantised types, and their scalar reference.
//
// A "part" is 32 columns of a row, like one block of activations: a block of 32 columns, or an
// eighth of a block of 256. In every type, a weight in a part is
//
//   (scale * sub_scale) * code - min * sub_min
//
// with sub-scales and sub-minima per 16 columns; the kind defines which of these exist. For each
// part, products add in this order: the integer dot times (scale * activation scale), then the
// minimum times the activations' sum. For BLOCK_HALVES, they add the dot of the first 16 columns,
// then the dot of the other 16 columns. SIMD variants keep this order.
#ifndef WICK_KERNELS_BLOCKS_H
#define WICK_KERNELS_BLOCKS_H

#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/layout.h"

enum { BLOCK_PART = 32, BLOCK_SUPER = 256, BLOCK_PARTS = 8 };

typedef enum block_kind {
  BLOCK_CODES = 0,     // scale * code
  BLOCK_MINS = 1,      // scale * code - min
  BLOCK_SUB = 2,       // scale * sub_scale * code
  BLOCK_SUB_MINS = 3,  // scale * sub_scale * code - min * sub_min
  BLOCK_SIGNED = 4,    // scale * code, signed codes of 8 bits
  BLOCK_HALVES = 5     // like BLOCK_SIGNED, with one scale per 16 columns, in half_scales
} block_kind;

// One part of one row, with codes whose offset has been subtracted.
typedef struct block_part {
  int8_t codes[BLOCK_PART];
  float scale, min, half_scales[2];
  int32_t sub_scales[2], sub_mins[2];
} block_part;

// Reads part `part` (0..7; 0 if blocks have 32 columns) of row `row` from a record. Fields that the
// kind does not have stay unchanged.
typedef void block_part_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out);

typedef struct block_type {
  uint32_t columns;       // per block: 32 to 256
  uint32_t record_bytes;  // 8 rows x columns
  block_kind kind;
  block_part_load *load;
} block_type;

static inline const uint8_t *block_record(const kernel_matrix *matrix, uint32_t row,
                                          uint32_t block_index, const block_type *type) {
  return matrix->data +
         layout_record_offset(matrix->cols, row, block_index, type->columns, type->record_bytes);
}

void block_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out,
                       const block_type *type);
void block_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                  const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                  size_t y_stride, const block_type *type);

// Defines the functions of a type that follow from its properties.
#define BLOCK_FUNCTIONS(name, type)                                                              \
  bool name##_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {                      \
    return layout_bytes(rows, cols, (type).columns, (type).record_bytes, bytes);                 \
  }                                                                                              \
  void name##_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {               \
    block_row_dequant(matrix, row, out, &(type));                                                \
  }                                                                                              \
  void name##_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,  \
                            const void *act, size_t act_stride_bytes, uint32_t tokens, float *y, \
                            size_t y_stride) {                                                   \
    block_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,        \
                 &(type));                                                                       \
  }

#endif

// kernels/layout.h — addresses within the kernel layouts, the same for every type.
//
//   matrix   = ceil(rows / 8) groups
//   group    = cols / block records, one after the other
//   record   = 8 rows x one block of columns, 8 times the file's block bytes
//
// A vector of codes has 4 rows x 4 columns, so that one 32-bit lane is one row: "half" 0 is rows
// 0-3 of the group, half 1 rows 4-7. A vector of 16-bit scales has all 8 rows: lane i has row i
// in its low half and row i + 4 in its high half.
#ifndef WICK_KERNELS_LAYOUT_H
#define WICK_KERNELS_LAYOUT_H

#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "kernels/kernels.h"

// Computes the size of a matrix whose records have `record_bytes` bytes for `block` columns each.
static inline bool layout_bytes(uint32_t rows, uint32_t cols, uint32_t block, uint32_t record_bytes,
                                uint64_t *bytes) {
  if (cols == 0 || cols % block != 0) return false;
  const uint64_t groups = ceil_div_u32(rows, KERNEL_ROW_GROUP);
  return checked_mul_u64(groups * (cols / block), record_bytes, bytes);
}

// Returns the byte offset of a record. It fits size_t if layout_bytes succeeded.
static inline size_t layout_record_offset(uint32_t cols, uint32_t row, uint32_t block_index,
                                          uint32_t block, uint32_t record_bytes) {
  const size_t records = (size_t)(row / KERNEL_ROW_GROUP) * (cols / block) + block_index;
  return records * record_bytes;
}

// Returns the offset of the 16-bit scale of row `row` in the 16 bytes of scales.
static inline uint32_t layout_scale_offset(uint32_t row) { return (row % 4) * 4 + row % 8 / 4 * 2; }

static inline uint16_t load_u16(const uint8_t *bytes) {
  uint16_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static inline float layout_scale_load(const uint8_t *scales, uint32_t row) {
  return f32_of_f16(load_u16(scales + layout_scale_offset(row)));
}

// Returns the offset of row `row` within the 32 bytes of 8 rows x 4 columns.
static inline uint32_t layout_word_offset(uint32_t row) { return row % 8 * 4; }

// Stores a row's `words` words of 4 columns, each 32 bytes after the previous one.
static inline void layout_words_store(uint8_t *codes, uint32_t row, const uint8_t *from,
                                      uint32_t words) {
  for (uint32_t k = 0; k < words; k++)
    memcpy(codes + k * 32 + layout_word_offset(row), from + k * 4, 4);
}

static inline void layout_words_load(const uint8_t *codes, uint32_t row, uint8_t *to,
                                     uint32_t words) {
  for (uint32_t k = 0; k < words; k++)
    memcpy(to + k * 4, codes + k * 32 + layout_word_offset(row), 4);
}

// Returns whether a 16-bit float has the exponent 31, so that it is Inf or NaN.
static inline bool layout_f16_is_wild(uint16_t half) { return (half & 0x7c00u) == 0x7c00u; }

// Copies a 16-bit float to its position. Returns the flag that the value requires.
static inline uint32_t layout_half_store(uint8_t halves[16], uint32_t row, const uint8_t *from) {
  memcpy(halves + layout_scale_offset(row), from, 2);
  return layout_f16_is_wild(load_u16(from)) ? KERNEL_MATRIX_HAS_WILD_F16 : 0;
}

static inline uint32_t load_u32(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

#define RECORD_AT(type, data, cols, row, block, columns) \
  ((type *)(void *)((data) + layout_record_offset(cols, row, block, columns, sizeof(type))))

#endif

// kernels/file_blocks.h — types whose records contain the file's blocks of 8 rows unchanged, one
// after the other. Products unpack a part of a row at a time into codes and scales
// (block_part_load), both in the scalar reference and for the tiles of tile.h. A single token also
// uses a tile. This suits types whose codes must be looked up row by row anyway.
#ifndef WICK_KERNELS_FILE_BLOCKS_H
#define WICK_KERNELS_FILE_BLOCKS_H

#include "kernels/blocks.h"
#include "kernels/tile.h"

// Returns the block of row `row` in a record.
static inline const uint8_t *file_block(const uint8_t *record, uint32_t row, uint32_t bytes) {
  return record + (size_t)(row % KERNEL_ROW_GROUP) * bytes;
}

static inline void file_blocks_store(uint8_t *data, uint32_t cols, uint32_t row,
                                     uint32_t first_block, uint32_t block_count,
                                     const uint8_t *file, const block_type *type) {
  const uint32_t bytes = type->record_bytes / KERNEL_ROW_GROUP;
  data += layout_record_offset(cols, row, first_block, type->columns, type->record_bytes);
  data += (size_t)(row % KERNEL_ROW_GROUP) * bytes;
  for (uint32_t b = 0; b < block_count; b++, data += type->record_bytes, file += bytes) {
    memcpy(data, file, bytes);
  }
}

#define FILE_BLOCKS_VARIANT(name, type, offset, variant)                                        \
  void SIMD_NAME(name##_matmul_##variant)(                                                      \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act,      \
      size_t act_stride_bytes, uint32_t tokens, float *y, size_t y_stride) {                    \
    const tile_type tile = {(type).record_bytes,                                                \
                            (type).columns / BLOCK_PART,                                        \
                            (type).kind,                                                        \
                            (offset),                                                           \
                            NULL,                                                               \
                            NULL,                                                               \
                            name##_unpack,                                                      \
                            0};                                                                 \
    tile_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride, &tile, \
                &SIMD_NAME(tile_kernels_##variant));                                            \
  }

#ifdef WICK_RELAXED
#define FILE_BLOCKS_RELAXED(name, type, offset)  \
  FILE_BLOCKS_VARIANT(name, type, offset, pairs) \
  FILE_BLOCKS_VARIANT(name, type, offset, quads)
#else
#define FILE_BLOCKS_RELAXED(name, type, offset)
#endif

#ifdef WICK_SIMD128
#define FILE_BLOCKS_SIMD(name, type, offset)                                      \
  static void name##_unpack(const uint8_t *record, uint32_t first, uint32_t last, \
                            tile_part *out) {                                     \
    tile_unpack_rows(record, first, last, &(type), (offset), out);                \
  }                                                                               \
  FILE_BLOCKS_VARIANT(name, type, offset, simd128)                                \
  FILE_BLOCKS_RELAXED(name, type, offset)
#else
#define FILE_BLOCKS_SIMD(name, type, offset)
#endif

// Defines all functions of a type. offset: the number that makes its codes unsigned for the tiles
// (tile_type).
#define FILE_BLOCKS_TYPE(name, type, offset)                                               \
  uint32_t name##_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block, \
                         uint32_t block_count, const uint8_t *file) {                      \
    file_blocks_store(data, cols, row, first_block, block_count, file, &(type));           \
    return 0;                                                                              \
  }                                                                                        \
  BLOCK_FUNCTIONS(name, type)                                                              \
  FILE_BLOCKS_SIMD(name, type, offset)

// Builds for a level define only the SIMD functions; the other functions are in the build without a
// level.
#ifdef WICK_LEVEL
#undef FILE_BLOCKS_TYPE
#define FILE_BLOCKS_TYPE(name, type, offset) FILE_BLOCKS_SIMD(name, type, offset)
#endif

#endif

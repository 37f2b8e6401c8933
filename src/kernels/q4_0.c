// kernels/q4_0.c — Q4_0: layout and scalar reference. The record is drawn in q4_0.h.
#include "kernels/q4_0.h"

#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/layout.h"

bool q4_0_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {
  return layout_bytes(rows, cols, Q4_0_BLOCK, sizeof(q4_0_record), bytes);
}

// The file's byte j holds columns j and 16 + j, so its 4-byte words go over as they are.
uint32_t q4_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks) {
  uint32_t flags = 0;
  q4_0_record *record =
      (q4_0_record *)(void *)(data + layout_record_offset(cols, row, first_block, Q4_0_BLOCK,
                                                          sizeof *record));
  for (uint32_t b = 0; b < block_count; b++, record++, file_blocks += Q4_0_FILE_BYTES) {
    memcpy(record->scales + layout_scale_offset(row), file_blocks, 2);
    layout_words_store(record->codes[0], row, file_blocks + 2, 4);
    if (layout_f16_is_wild(load_u16(file_blocks))) flags |= KERNEL_MATRIX_HAS_WILD_F16;
  }
  return flags;
}

static const q4_0_record *q4_0_records(const kernel_matrix *matrix, uint32_t row) {
  const size_t offset = layout_record_offset(matrix->cols, row, 0, Q4_0_BLOCK, sizeof(q4_0_record));
  return (const q4_0_record *)(const void *)(matrix->data + offset);
}

void q4_0_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {
  const q4_0_record *record = q4_0_records(matrix, row);
  for (uint32_t c = 0; c < matrix->cols; c += Q4_0_BLOCK, record++, out += Q4_0_BLOCK) {
    uint8_t codes[16];
    layout_words_load(record->codes[0], row, codes, 4);
    const float scale = layout_scale_load(record->scales, row);
    for (uint32_t j = 0; j < 16; j++) {
      out[j] = (float)((codes[j] & 15) - 8) * scale;
      out[16 + j] = (float)((codes[j] >> 4) - 8) * scale;
    }
  }
}

static float q4_0_row_dot(const kernel_matrix *matrix, uint32_t row, const void *act_row) {
  const q4_0_record *record = q4_0_records(matrix, row);
  const act_block *x = act_row;
  float sum = 0;
  for (uint32_t c = 0; c < matrix->cols; c += Q4_0_BLOCK, record++, x++) {
    uint8_t codes[16];
    layout_words_load(record->codes[0], row, codes, 4);
    int32_t dot = 8 * x->minus_sum;
    for (uint32_t j = 0; j < 16; j++) {
      dot += (codes[j] & 15) * x->codes[j] + (codes[j] >> 4) * x->codes[16 + j];
    }
    sum += (float)dot * (layout_scale_load(record->scales, row) * x->scale);
  }
  return sum;
}

void q4_0_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                        const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                        size_t y_stride) {
  matmul_by_rows(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                 q4_0_row_dot);
}

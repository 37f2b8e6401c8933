// kernels/q8_0.c — Q8_0: layout and scalar reference. The record is drawn in q8_0.h.
#include "kernels/q8_0.h"

#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/layout.h"

bool q8_0_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {
  return layout_bytes(rows, cols, Q8_0_BLOCK, sizeof(q8_0_record), bytes);
}

static bool q8_0_has_minus_128(const uint8_t *codes) {
  bool found = false;
  for (uint32_t j = 0; j < Q8_0_BLOCK; j++) found |= codes[j] == 0x80;
  return found;
}

uint32_t q8_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks) {
  uint32_t flags = 0;
  q8_0_record *record =
      (q8_0_record *)(void *)(data + layout_record_offset(cols, row, first_block, Q8_0_BLOCK,
                                                          sizeof *record));
  for (uint32_t b = 0; b < block_count; b++, record++, file_blocks += Q8_0_FILE_BYTES) {
    memcpy(record->scales + layout_scale_offset(row), file_blocks, 2);
    layout_words_store(record->codes[0], row, file_blocks + 2, 8);
    if (layout_f16_is_wild(load_u16(file_blocks))) flags |= KERNEL_MATRIX_HAS_WILD_F16;
    if (q8_0_has_minus_128(file_blocks + 2)) flags |= KERNEL_MATRIX_HAS_MINUS_128;
  }
  return flags;
}

static const q8_0_record *q8_0_records(const kernel_matrix *matrix, uint32_t row) {
  const size_t offset = layout_record_offset(matrix->cols, row, 0, Q8_0_BLOCK, sizeof(q8_0_record));
  return (const q8_0_record *)(const void *)(matrix->data + offset);
}

void q8_0_row_dequant(const kernel_matrix *matrix, uint32_t row, float *out) {
  const q8_0_record *record = q8_0_records(matrix, row);
  for (uint32_t c = 0; c < matrix->cols; c += Q8_0_BLOCK, record++, out += Q8_0_BLOCK) {
    int8_t codes[Q8_0_BLOCK];
    layout_words_load(record->codes[0], row, (uint8_t *)codes, 8);
    const float scale = layout_scale_load(record->scales, row);
    for (uint32_t j = 0; j < Q8_0_BLOCK; j++) out[j] = (float)codes[j] * scale;
  }
}

static float q8_0_row_dot(const kernel_matrix *matrix, uint32_t row, const void *act_row) {
  const q8_0_record *record = q8_0_records(matrix, row);
  const act_block *x = act_row;
  float sum = 0;
  for (uint32_t c = 0; c < matrix->cols; c += Q8_0_BLOCK, record++, x++) {
    int8_t codes[Q8_0_BLOCK];
    layout_words_load(record->codes[0], row, (uint8_t *)codes, 8);
    int32_t dot = 0;
    for (uint32_t j = 0; j < Q8_0_BLOCK; j++) dot += codes[j] * x->codes[j];
    sum += (float)dot * (layout_scale_load(record->scales, row) * x->scale);
  }
  return sum;
}

void q8_0_matmul_scalar(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                        const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                        size_t y_stride) {
  matmul_by_rows(matrix, row_first, row_last, act, act_stride_bytes, tokens, y, y_stride,
                 q8_0_row_dot);
}

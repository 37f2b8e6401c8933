// kernels/q8_0.c — Q8_0: layout and scalar reference. The record is drawn in q8_0.h.
#include "kernels/q8_0.h"

#include "kernels/blocks.h"

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

static void q8_0_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q8_0_record *record = (const q8_0_record *)(const void *)bytes;
  (void)part;
  layout_words_load(record->codes[0], row, (uint8_t *)out->codes, 8);
  out->scale = layout_scale_load(record->scales, row);
}

static const block_type q8_0_type = {Q8_0_BLOCK, sizeof(q8_0_record), BLOCK_SIGNED, q8_0_load};

BLOCK_FUNCTIONS(q8_0, q8_0_type)

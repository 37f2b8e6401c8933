// kernels/q8_0.c — Q8_0: layout and scalar reference. q8_0.h describes the record.
#include "kernels/q8_0.h"

#include "kernels/blocks.h"

// Returns a nonzero value if one of the block's codes is -128: a byte of `word ^ 0x80..80` is zero
// (Warren, Hacker's Delight, 6-1). Tests whole words, because comparing each byte would cost more
// than the block's stores.
static uint64_t q8_0_minus_128(const uint8_t *codes) {
  const uint64_t low_bits = UINT64_C(0x0101010101010101), high_bits = low_bits << 7;
  uint64_t found = 0;
  for (uint32_t j = 0; j < Q8_0_BLOCK; j += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, codes + j, sizeof word);
    word ^= high_bits;
    found |= (word - low_bits) & ~word & high_bits;
  }
  return found;
}

uint32_t q8_0_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks) {
  uint32_t flags = 0;
  uint64_t minus_128 = 0;
  q8_0_record *record =
      (q8_0_record *)(void *)(data + layout_record_offset(cols, row, first_block, Q8_0_BLOCK,
                                                          sizeof *record));
  for (uint32_t b = 0; b < block_count; b++, record++, file_blocks += Q8_0_FILE_BYTES) {
    memcpy(record->scales + layout_scale_offset(row), file_blocks, 2);
    layout_words_store(record->codes[0], row, file_blocks + 2, 8);
    if (layout_f16_is_wild(load_u16(file_blocks))) flags |= KERNEL_MATRIX_HAS_WILD_F16;
    minus_128 |= q8_0_minus_128(file_blocks + 2);
  }
  return flags | (minus_128 != 0 ? KERNEL_MATRIX_HAS_MINUS_128 : 0);
}

static void q8_0_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const q8_0_record *record = (const q8_0_record *)(const void *)bytes;
  (void)part;
  layout_words_load(record->codes[0], row, (uint8_t *)out->codes, 8);
  out->scale = layout_scale_load(record->scales, row);
}

static const block_type q8_0_type = {Q8_0_BLOCK, sizeof(q8_0_record), BLOCK_SIGNED, q8_0_load};

BLOCK_FUNCTIONS(q8_0, q8_0_type)

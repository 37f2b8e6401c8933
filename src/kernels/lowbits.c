// kernels/lowbits.c — Q2_K and Q3_K: layouts and scalar reference. The records are described in
// lowbits.h, the file's blocks in ggml-common.h. In both types, column c of 256 has its 2 bits in
// qs[c / 128 * 32 + c % 32] at 2 * (c % 128 / 32), and belongs to sub-block c / 16.
#include "kernels/lowbits.h"

#include "kernels/blocks.h"

static uint32_t sub_byte(uint32_t row, uint32_t sub_block) {
  return row % 4 * 4 + row % 8 / 4 * 2 + sub_block % 2;
}

static uint32_t two_bits_of_file(const uint8_t *qs, uint32_t column) {
  return qs[column / 128 * 32 + column % 32] >> (column % 128 / 32 * 2) & 3;
}

// Returns the byte that has the two bits of column c of a part.
static uint8_t *two_bits_byte(uint8_t codes[2][2][16], uint32_t row, uint32_t c) {
  return &codes[c / 16][row % 8 / 4][row % 4 * 4 + c % 4];
}

static void two_bits_store(uint8_t codes[2][2][16], uint32_t row, uint32_t c, uint32_t value) {
  uint8_t *byte = two_bits_byte(codes, row, c);
  const uint32_t shift = c % 16 / 4 * 2;
  *byte = (uint8_t)((*byte & ~(3u << shift)) | value << shift);
}

static int8_t two_bits_load(const uint8_t codes[2][2][16], uint32_t row, uint32_t c) {
  return codes[c / 16][row % 8 / 4][row % 4 * 4 + c % 4] >> (c % 16 / 4 * 2) & 3;
}

uint32_t q2_k_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 84, CODES_OFFSET = 16, SCALE_OFFSET = 80 };
  uint32_t flags = 0;
  q2_k_record *record = RECORD_AT(q2_k_record, data, cols, row, first_block, BLOCK_SUPER);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file + SCALE_OFFSET);
    flags |= layout_half_store(record->mins, row, file + SCALE_OFFSET + 2);
    for (uint32_t s = 0; s < 16; s++) record->parts[s / 2].subs[sub_byte(row, s)] = file[s];
    for (uint32_t c = 0; c < BLOCK_SUPER; c++) {
      two_bits_store(record->parts[c / 32].codes, row, c % 32,
                     two_bits_of_file(file + CODES_OFFSET, c));
    }
  }
  return flags;
}

static void q2_k_load(const uint8_t *bytes, uint32_t row, uint32_t part_index, block_part *out) {
  const q2_k_record *record = (const q2_k_record *)(const void *)bytes;
  const q2_k_part *part = &record->parts[part_index];
  out->scale = layout_scale_load(record->scales, row);
  out->min = layout_scale_load(record->mins, row);
  for (uint32_t c = 0; c < 32; c++) out->codes[c] = two_bits_load(part->codes, row, c);
  for (uint32_t s = 0; s < 2; s++) {
    out->sub_scales[s] = part->subs[sub_byte(row, s)] & 15;
    out->sub_mins[s] = part->subs[sub_byte(row, s)] >> 4;
  }
}

// Returns the 6-bit sub-scale of sub-block s: low nibbles in 8 bytes, then the high pairs of bits
// in 4 bytes.
static uint8_t q3_k_sub_of_file(const uint8_t *scales, uint32_t s) {
  const uint32_t low = scales[s % 8] >> (s / 8 * 4) & 15;
  const uint32_t high = scales[8 + s % 4] >> (s / 4 * 2) & 3;
  return (uint8_t)(low | high << 4);
}

uint32_t q3_k_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 110, CODES_OFFSET = 32, SUBS_OFFSET = 96, SCALE_OFFSET = 108 };
  uint32_t flags = 0;
  q3_k_record *record = RECORD_AT(q3_k_record, data, cols, row, first_block, BLOCK_SUPER);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    flags |= layout_half_store(record->scales, row, file + SCALE_OFFSET);
    for (uint32_t s = 0; s < 16; s++) {
      sixbits_store(record->subs[s / 8], sub_byte(row, s), s / 2 % 4,
                    q3_k_sub_of_file(file + SUBS_OFFSET, s));
    }
    for (uint32_t c = 0; c < BLOCK_SUPER; c++) {
      q3_k_part *part = &record->parts[c / 32];
      const uint32_t third = file[c % 32] >> (c / 32) & 1u;
      uint8_t *byte = &part->third[row % 8 / 4][row % 4 * 4 + c % 4];
      *byte = (uint8_t)((*byte & ~(1u << c % 32 / 4)) | third << (c % 32 / 4));
      two_bits_store(part->codes, row, c % 32, two_bits_of_file(file + CODES_OFFSET, c));
    }
  }
  return flags;
}

static void q3_k_load(const uint8_t *bytes, uint32_t row, uint32_t part_index, block_part *out) {
  const q3_k_record *record = (const q3_k_record *)(const void *)bytes;
  const q3_k_part *part = &record->parts[part_index];
  out->scale = layout_scale_load(record->scales, row);
  for (uint32_t c = 0; c < 32; c++) {
    const int third = part->third[row % 8 / 4][row % 4 * 4 + c % 4] >> (c / 4) & 1;
    out->codes[c] = (int8_t)(two_bits_load(part->codes, row, c) + 4 * third - 4);
  }
  for (uint32_t s = 0; s < 2; s++) {
    const uint8_t(*subs)[16] = record->subs[part_index / 4];
    out->sub_scales[s] = (int32_t)sixbits_load(subs, sub_byte(row, s), part_index % 4) - 32;
  }
}

static const block_type q2_k_type = {BLOCK_SUPER, sizeof(q2_k_record), BLOCK_SUB_MINS, q2_k_load};
static const block_type q3_k_type = {BLOCK_SUPER, sizeof(q3_k_record), BLOCK_SUB, q3_k_load};

BLOCK_FUNCTIONS(q2_k, q2_k_type)
BLOCK_FUNCTIONS(q3_k, q3_k_type)

// kernels/ternary.c — TQ1_0 and TQ2_0 (256 columns), Q1_0 (128) and Q2_0 (64): few levels and one
// f16 scale. Blocks are those of ggml-common.h, arithmetic as in ggml-quants.c (both of ggml).
#include "kernels/file_blocks.h"

enum { TQ1_0_BYTES = 54, TQ2_0_BYTES = 66, Q1_0_BYTES = 18, Q2_0_BYTES = 18 };

// Digit `index` of a byte that holds ternary digits as a fraction of 256: the first digit is the
// whole part of 3 * byte / 256.
static int8_t ternary_digit(uint8_t byte, uint32_t index) {
  static const uint8_t powers[5] = {1, 3, 9, 27, 81};
  const uint8_t shifted = (uint8_t)(byte * powers[index]);
  return (int8_t)((shifted * 3 >> 8) - 1);
}

// TQ1_0: 32 bytes with 5 digits for columns 0-159, 16 for 160-239, 4 with 4 digits for the others,
// f16 scale. A byte's digits are 32, 16 and 4 columns apart.
static void tq1_0_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, TQ1_0_BYTES);
  out->scale = f32_of_f16(load_u16(block + 52));
  for (uint32_t i = 0; i < BLOCK_PART; i++) {
    const uint32_t col = part * BLOCK_PART + i;
    if (col < 160) {
      out->codes[i] = ternary_digit(block[i], part);
    } else if (col < 240) {
      out->codes[i] = ternary_digit(block[32 + i % 16], (col - 160) / 16);
    } else {
      out->codes[i] = ternary_digit(block[48 + i % 4], (col - 240) / 4);
    }
  }
}

// TQ2_0: 64 bytes of four 2-bit codes that are 32 columns apart, f16 scale.
static void tq2_0_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, TQ2_0_BYTES), *bytes = block + part / 4 * 32;
  out->scale = f32_of_f16(load_u16(block + 64));
  for (uint32_t i = 0; i < BLOCK_PART; i++) {
    out->codes[i] = (int8_t)((bytes[i] >> (part % 4 * 2) & 3) - 1);
  }
}

// Q1_0: f16 scale, 128 bits: 1 or -1.
static void q1_0_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, Q1_0_BYTES);
  const uint32_t bits = load_u32(block + 2 + 4 * part);
  out->scale = f32_of_f16(load_u16(block));
  for (uint32_t i = 0; i < BLOCK_PART; i++) out->codes[i] = (int8_t)((bits >> i & 1) * 2) - 1;
}

// Q2_0: f16 scale, 64 x 2 bits: -1 to 2.
static void q2_0_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, Q2_0_BYTES), *bytes = block + 2 + 8 * part;
  out->scale = f32_of_f16(load_u16(block));
  for (uint32_t i = 0; i < BLOCK_PART; i++) {
    out->codes[i] = (int8_t)((bytes[i / 4] >> (i % 4 * 2) & 3) - 1);
  }
}

static const block_type tq1_0_type = {BLOCK_SUPER, 8 * TQ1_0_BYTES, BLOCK_CODES, tq1_0_load};
static const block_type tq2_0_type = {BLOCK_SUPER, 8 * TQ2_0_BYTES, BLOCK_CODES, tq2_0_load};
static const block_type q1_0_type = {128, 8 * Q1_0_BYTES, BLOCK_CODES, q1_0_load};
static const block_type q2_0_type = {64, 8 * Q2_0_BYTES, BLOCK_CODES, q2_0_load};

FILE_BLOCKS_TYPE(tq1_0, tq1_0_type, 1)
FILE_BLOCKS_TYPE(tq2_0, tq2_0_type, 1)
FILE_BLOCKS_TYPE(q1_0, q1_0_type, 1)
FILE_BLOCKS_TYPE(q2_0, q2_0_type, 1)

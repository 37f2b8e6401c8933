// kernels/ternary.c — TQ1_0 (256 columns): five digits of -1, 0 and 1 in a byte, one f16 scale.
// Blocks are those of ggml-common.h, arithmetic as in ggml-quants.c (both of ggml).
#include "kernels/file_blocks.h"

enum { TQ1_0_BYTES = 54 };

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

static const block_type tq1_0_type = {BLOCK_SUPER, 8 * TQ1_0_BYTES, BLOCK_CODES, tq1_0_load};

FILE_BLOCKS_TYPE(tq1_0, tq1_0_type, 1)

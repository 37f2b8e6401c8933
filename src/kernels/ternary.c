// kernels/ternary.c — TQ1_0 (256 columns): five digits of -1, 0 and 1 per byte, one f16 scale.
// Blocks are defined in ggml-common.h, arithmetic in ggml-quants.c (both of ggml).
#include "kernels/file_blocks.h"

enum { TQ1_0_BYTES = 54 };

static const uint8_t powers[5] = {1, 3, 9, 27, 81};

// Extracts digit `index` of 8 bytes that contain ternary digits as a fraction of 256: the first
// digit is the whole part of 3 * byte / 256. Every second byte has 16 bits for its products.
static void ternary_digits(const uint8_t *bytes, uint32_t count, uint32_t index, int8_t *out) {
  const uint64_t low = 0x00ff00ff00ff00ffu, tops = 0x8080808080808080u;
  uint64_t both = 0;
  memcpy(&both, bytes, count);
  const uint64_t even = ((both & low) * powers[index] & low) * 3;
  const uint64_t odd = ((both >> 8 & low) * powers[index] & low) * 3;
  const uint64_t digits = (even >> 8 & low) | (odd & ~low);
  const uint64_t codes = ((digits | tops) - 0x0101010101010101u) ^ tops;
  memcpy(out, &codes, count);
}

// Reads TQ1_0: 32 bytes with 5 digits for columns 0-159, 16 bytes for columns 160-239, 4 bytes with
// 4 digits for the other columns, f16 scale. A byte's digits are 32, 16 and 4 columns apart.
static void tq1_0_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, TQ1_0_BYTES);
  out->scale = f32_of_f16(load_u16(block + 52));
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t half = 2 * part + i;  // of 16 columns
    int8_t *codes = out->codes + 16 * i;
    const uint8_t *bytes = half < 10 ? block + 16 * i : block + 32;
    if (half < 15) {
      const uint32_t digit = half < 10 ? part : half - 10;
      ternary_digits(bytes, 8, digit, codes);
      ternary_digits(bytes + 8, 8, digit, codes + 8);
      continue;
    }
    for (uint32_t digit = 0; digit < 4; digit++) {
      ternary_digits(block + 48, 4, digit, codes + 4 * digit);
    }
  }
}

static const block_type tq1_0_type = {BLOCK_SUPER, 8 * TQ1_0_BYTES, BLOCK_CODES, tq1_0_load};

FILE_BLOCKS_TYPE(tq1_0, tq1_0_type, 1)

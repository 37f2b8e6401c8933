// kernels/fp4.c — MXFP4: layout and scalar reference. Blocks are defined in ggml-common.h, scales
// in ggml-impl.h (both of ggml).
#include "kernels/fp4.h"

#include "kernels/blocks.h"

// The values are kvalues_mxfp4 of ggml-common.h.
const int8_t fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
const uint8_t fp4_codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

static uint32_t exponent_offset(uint32_t row) { return row % 4 * 2 + row % 8 / 4; }

// Returns 2^(exponent - 128); the two lowest values are subnormal.
static float mxfp4_scale(uint32_t exponent) {
  return f32_of_bits(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

uint32_t mxfp4_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                      uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 17 };
  mxfp4_record *record = RECORD_AT(mxfp4_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    record->exponents[exponent_offset(row)] = file[0];
    layout_words_store(record->codes[0], row, file + 1, 4);
  }
  return 0;
}

static void mxfp4_load(const uint8_t *bytes, uint32_t row, uint32_t part, block_part *out) {
  const mxfp4_record *record = (const mxfp4_record *)(const void *)bytes;
  uint8_t codes[16];
  (void)part;
  layout_words_load(record->codes[0], row, codes, 4);
  for (uint32_t j = 0; j < 16; j++) {
    out->codes[j] = fp4_values[codes[j] & 15];
    out->codes[16 + j] = fp4_values[codes[j] >> 4];
  }
  out->scale = mxfp4_scale(record->exponents[exponent_offset(row)]);
}

static const block_type mxfp4_type = {BLOCK_PART, sizeof(mxfp4_record), BLOCK_SIGNED, mxfp4_load};

BLOCK_FUNCTIONS(mxfp4, mxfp4_type)

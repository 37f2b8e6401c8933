// kernels/fp4.c — MXFP4: layout and scalar reference; NVFP4: everything. Blocks are those of
// ggml-common.h, scales as in ggml-impl.h (both of ggml).
#include "kernels/fp4.h"

#include "kernels/file_blocks.h"

// kvalues_mxfp4 of ggml-common.h.
const int8_t fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// ---- MXFP4 ----

// 2^(exponent - 128); the two lowest are subnormal.
static float mxfp4_scale(uint32_t exponent) {
  return f32_of_bits(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

uint32_t mxfp4_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                      uint32_t block_count, const uint8_t *file) {
  enum { FILE_BYTES = 17 };
  mxfp4_record *record = RECORD_AT(mxfp4_record, data, cols, row, first_block, BLOCK_PART);
  for (uint32_t b = 0; b < block_count; b++, record++, file += FILE_BYTES) {
    record->exponents[row % KERNEL_ROW_GROUP] = file[0];
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
  out->scale = mxfp4_scale(record->exponents[row % KERNEL_ROW_GROUP]);
}

static const block_type mxfp4_type = {BLOCK_PART, sizeof(mxfp4_record), BLOCK_SIGNED, mxfp4_load};

BLOCK_FUNCTIONS(mxfp4, mxfp4_type)

// ---- NVFP4: 64 columns, 4 scales per 16 of them, then 4 x 8 bytes: columns j and 8 + j ----

enum { NVFP4_BYTES = 36 };

// Half of an unsigned 8-bit float with 4 bits of exponent and 3 of mantissa; 0x7f is 0.
static float nvfp4_scale(uint8_t bits) {
  const uint32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (bits == 0x7f) return 0;
  if (exponent == 0) return (float)mantissa * 0x1p-10f;
  return (float)(8 + mantissa) * f32_of_bits((exponent + 127 - 11) << 23);
}

static void nvfp4_load(const uint8_t *record, uint32_t row, uint32_t part, block_part *out) {
  const uint8_t *block = file_block(record, row, NVFP4_BYTES), *bytes = block + 4 + 16 * part;
  for (uint32_t s = 0; s < 2; s++, bytes += 8) {
    out->half_scales[s] = nvfp4_scale(block[2 * part + s]);
    for (uint32_t j = 0; j < 8; j++) {
      out->codes[16 * s + j] = fp4_values[bytes[j] & 15];
      out->codes[16 * s + 8 + j] = fp4_values[bytes[j] >> 4];
    }
  }
}

static const block_type nvfp4_type = {64, 8 * NVFP4_BYTES, BLOCK_HALVES, nvfp4_load};

FILE_BLOCKS_TYPE(nvfp4, nvfp4_type, 0)

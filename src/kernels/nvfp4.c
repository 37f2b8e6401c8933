// kernels/nvfp4.c — NVFP4: 64 columns with 4 scales, one per 16 columns, then 4 x 8 bytes: columns
// j and 8 + j. Blocks are defined in ggml-common.h, scales in ggml-impl.h (both of ggml).
#include "kernels/file_blocks.h"
#include "kernels/fp4.h"

enum { NVFP4_BYTES = 36 };

// Returns half of an unsigned 8-bit float with 4 bits of exponent and 3 of mantissa; 0x7f is 0.
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

// kernels/floats.c — float weights: F32, F16, BF16; layout and repacking. The records are described
// in floats.h.
#include "kernels/floats.h"

#include "kernels/act.h"
#include "kernels/families.h"
#include "kernels/layout.h"

bool f32_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {
  return layout_bytes(rows, cols, 1, F32_RECORD_BYTES, bytes);
}

bool f16_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {
  return layout_bytes(rows, cols, 1, F16_RECORD_BYTES, bytes);
}

bool bf16_matrix_bytes(uint32_t rows, uint32_t cols, uint64_t *bytes) {
  return layout_bytes(rows, cols, 1, F16_RECORD_BYTES, bytes);
}

uint32_t f32_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                    uint32_t block_count, const uint8_t *file_blocks) {
  uint8_t *to = data + layout_record_offset(cols, row, first_block, 1, F32_RECORD_BYTES);
  to += row % KERNEL_ROW_GROUP * sizeof(float);
  for (uint32_t c = 0; c < block_count; c++) memcpy(to + c * 32, file_blocks + c * 4, 4);
  return 0;
}

uint32_t bf16_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                     uint32_t block_count, const uint8_t *file_blocks) {
  uint8_t *to = data + layout_record_offset(cols, row, first_block, 1, F16_RECORD_BYTES);
  to += layout_scale_offset(row);
  for (uint32_t c = 0; c < block_count; c++) memcpy(to + c * 16, file_blocks + c * 2, 2);
  return 0;
}

// ---- Codes of F16 elements ----

enum {
  SIGN = 0x8000,
  MANTISSA_BITS = 10,
  MANTISSA = (1 << MANTISSA_BITS) - 1,
  GREAT_EXPONENT =
      32 - F16_CODE_SHIFT  // the first F16 exponent whose code would have more than 5 bits
};

// Returns one of the codes that no smaller element uses, in order. Of exponent 0, all codes but
// zero are free. Of exponent e up to 10, the normalised subnormals use every 2^(11 - e)-th code.
static uint32_t free_code(uint32_t index) {
  uint32_t exponent = 0, stride = MANTISSA + 1, count = MANTISSA;
  while (index >= count) {
    index -= count;
    exponent++;
    stride = (MANTISSA + 1) >> (exponent - 1);
    count = MANTISSA + 1 - (1u << (exponent - 1));
  }
  return exponent << MANTISSA_BITS | (index / (stride - 1) * stride + index % (stride - 1) + 1);
}

// Returns the index of a free code.
static uint32_t free_index(uint32_t exponent, uint32_t mantissa) {
  if (exponent == 0) return mantissa - 1;
  const uint32_t before = exponent * (MANTISSA + 1) - (1u << (exponent - 1));
  const uint32_t stride = (MANTISSA + 1) >> (exponent - 1);
  return before + mantissa / stride * (stride - 1) + mantissa % stride - 1;
}

uint16_t f16_code(uint16_t half) {
  const uint32_t sign = half & SIGN, bits = half & (SIGN - 1);
  const uint32_t great = (uint32_t)GREAT_EXPONENT << MANTISSA_BITS;
  if (bits == 0) return half;
  if (bits >= great) return (uint16_t)(sign | free_code(bits - great));
  if (bits > MANTISSA) return (uint16_t)(half + (F16_CODE_SHIFT << MANTISSA_BITS));
  const uint32_t shift = (uint32_t)__builtin_clz(bits) - (31 - MANTISSA_BITS);
  const uint32_t exponent = F16_CODE_SHIFT + 1 - shift;
  return (uint16_t)(sign | exponent << MANTISSA_BITS | (bits << shift & MANTISSA));
}

uint16_t f16_of_code(uint16_t code) {
  const uint32_t sign = code & SIGN, bits = code & (SIGN - 1);
  const uint32_t exponent = bits >> MANTISSA_BITS, mantissa = bits & MANTISSA;
  if (bits == 0) return code;
  if (exponent > F16_CODE_SHIFT) return (uint16_t)(code - (F16_CODE_SHIFT << MANTISSA_BITS));
  const uint32_t shift = F16_CODE_SHIFT + 1 - exponent;
  if (exponent > 0 && (mantissa & ((1u << shift) - 1)) == 0) {
    return (uint16_t)(sign | (MANTISSA + 1 + mantissa) >> shift);
  }
  return (uint16_t)(sign |
                    (((uint32_t)GREAT_EXPONENT << MANTISSA_BITS) + free_index(exponent, mantissa)));
}

uint32_t f16_repack(uint8_t *data, uint32_t cols, uint32_t row, uint32_t first_block,
                    uint32_t block_count, const uint8_t *file_blocks) {
  uint8_t *to = data + layout_record_offset(cols, row, first_block, 1, F16_RECORD_BYTES);
  uint32_t flags = 0;
  to += layout_scale_offset(row);
  for (uint32_t c = 0; c < block_count; c++) {
    const uint16_t half = load_u16(file_blocks + c * 2), code = f16_code(half);
    if ((half & (SIGN - 1)) >> MANTISSA_BITS >= GREAT_EXPONENT) flags = KERNEL_MATRIX_HAS_WILD_F16;
    memcpy(to + c * 16, &code, sizeof code);
  }
  return flags;
}

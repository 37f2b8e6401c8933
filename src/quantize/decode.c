// quantize/decode.c — decodes floats directly, and blocks through the kernels' layout, as a matrix
// of one row.
#include "quantize/decode.h"

#include <string.h>

#include "base/math.h"

bool quantize_can_decode(const kernel_table *kernels, ggml_type type) {
  return kernels->types[type].matmul != NULL;
}

static float half_at(const uint8_t *bytes, size_t index) {
  uint16_t half;
  memcpy(&half, bytes + 2 * index, sizeof half);
  return f32_of_f16(half);
}

static float bf16_at(const uint8_t *bytes, size_t index) {
  uint16_t half;
  memcpy(&half, bytes + 2 * index, sizeof half);
  return f32_of_bf16(half);
}

void quantize_decode(const kernel_table *kernels, ggml_type type, const uint8_t *blocks,
                     size_t count, float *out) {
  if (type == GGML_TYPE_F32) {
    memcpy(out, blocks, count * sizeof *out);
  } else if (type == GGML_TYPE_F16) {
    for (size_t i = 0; i < count; i++) out[i] = half_at(blocks, i);
  } else if (type == GGML_TYPE_BF16) {
    for (size_t i = 0; i < count; i++) out[i] = bf16_at(blocks, i);
  } else {
    _Alignas(64) uint8_t layout[QUANTIZE_LAYOUT_BYTES_MAX];
    const uint32_t cols = (uint32_t)count, block_count = cols / type_facts(type)->block_values;
    kernel_matrix matrix = {layout, 1, cols, type, 0};
    memset(layout, 0, sizeof layout);
    matrix.flags = kernels->types[type].repack(layout, cols, 0, 0, block_count, blocks);
    kernels->types[type].row_dequant(&matrix, 0, out);
  }
}

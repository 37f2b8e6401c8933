// quantize/decode.h — blocks of GGUF files to floats, as ggml's dequantisation gives them.
#ifndef WICK_QUANTIZE_DECODE_H
#define WICK_QUANTIZE_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

enum {
  QUANTIZE_CHUNK_VALUES = 1024,  // decoded at a time, whole blocks of every type
  // their codes and scales in the layout of any type, for the 8 rows of a group
  QUANTIZE_LAYOUT_BYTES_MAX = QUANTIZE_CHUNK_VALUES * KERNEL_ROW_GROUP * 2
};

// `type`: one that has facts (format/types.h).
bool quantize_can_decode(const kernel_table *kernels, ggml_type type);

// `count`: at most QUANTIZE_CHUNK_VALUES, a multiple of the type's block.
void quantize_decode(const kernel_table *kernels, ggml_type type, const uint8_t *blocks,
                     size_t count, float *out);

#endif

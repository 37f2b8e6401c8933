// quantize/decode.h — decodes blocks of GGUF files to floats, as ggml's dequantisation does.
#ifndef WICK_QUANTIZE_DECODE_H
#define WICK_QUANTIZE_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/kernels.h"

enum {
  QUANTIZE_CHUNK_VALUES = 1024,  // decoded at a time; whole blocks of every type
  // codes and scales of a chunk in the layout of any type, for the 8 rows of a group
  QUANTIZE_LAYOUT_BYTES_MAX = QUANTIZE_CHUNK_VALUES * KERNEL_ROW_GROUP * 2
};

// Returns whether the type can be decoded. `type` must be known (type_facts).
bool quantize_can_decode(const kernel_table *kernels, ggml_type type);

// Decodes `count` values: at most QUANTIZE_CHUNK_VALUES, a multiple of the type's block.
void quantize_decode(const kernel_table *kernels, ggml_type type, const uint8_t *blocks,
                     size_t count, float *out);

#endif

// quantize/encode.h — encodes floats as blocks of GGUF files. Layouts: ggml-common.h of ggml.
// Scales are chosen for the least squared error: several scales are tried, and each is fitted to
// its codes by linear least squares.
#ifndef WICK_QUANTIZE_ENCODE_H
#define WICK_QUANTIZE_ENCODE_H

#include <stddef.h>

#include "format/types.h"

// Encodes `count` values, a multiple of the type's block, and writes them to `out`
// (type_row_bytes). The type is one of F32, F16, BF16, Q8_0, Q4_0, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K.
// Except for F32 and BF16, values must be finite and at most QUANTIZE_VALUE_MAX in magnitude.
void quantize_encode(ggml_type type, const float *values, size_t count, uint8_t *out);

#define QUANTIZE_VALUE_MAX 65504.0f  // the largest half float: scales are half floats

#endif

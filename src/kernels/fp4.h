// kernels/fp4.h — MXFP4: 32 columns with a power of two as scale; weight = scale *
// fp4_values[code]. Codes are stored as in nibbles.h. As in ggml, values are twice as large, and
// scales half as large, as in the OCP specification of microscaling formats.
#ifndef WICK_KERNELS_FP4_H
#define WICK_KERNELS_FP4_H

#include <stdint.h>

extern const int8_t fp4_values[16];
// fp4_values + 12, for vectors: a table in memory stays in a register (simd_masks).
extern const uint8_t fp4_codes[16];

// exponents: byte 2i belongs to row i, byte 2i + 1 to row 4 + i.
typedef struct mxfp4_record {
  uint8_t exponents[8];
  uint8_t codes[4][32];
} mxfp4_record;

#endif

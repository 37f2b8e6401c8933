// kernels/fp4.h — MXFP4: 32 columns with a power of two as scale; weight = scale *
// fp4_values[code]. Codes as in nibbles.h. The values and the scale are twice and half of what the
// OCP's specification of microscaling formats says, as in ggml.
#ifndef WICK_KERNELS_FP4_H
#define WICK_KERNELS_FP4_H

#include <stdint.h>

extern const int8_t fp4_values[16];
// fp4_values + 12, for vectors: a table in memory stays in a register (simd_masks).
extern const uint8_t fp4_codes[16];

// exponents: of row i in byte 2i, of row 4 + i in byte 2i + 1.
typedef struct mxfp4_record {
  uint8_t exponents[8];
  uint8_t codes[4][32];
} mxfp4_record;

#endif

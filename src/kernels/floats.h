// kernels/floats.h — records of F32, F16 and BF16: one column of 8 rows. F32: 8 floats. 16-bit
// types: lane i has row i in its low half and row i + 4 in its high half, like the scales of
// layout.h. A product keeps two sums, of the even and of the odd columns, which are added at the
// end.
#ifndef WICK_KERNELS_FLOATS_H
#define WICK_KERNELS_FLOATS_H

#include <stdint.h>

// F16 elements are stored as codes: sign, 5 bits of an exponent 10 higher than F16's, 10 bits of
// mantissa. So every subnormal of F16 has a normalised code, and code * 2^-112 is a normal F32 or
// 0: a shift and a mask decode it (simd_f16_tiny), whereas F16 itself needs eight operations.
// Elements outside this range (128 and above, Inf and NaN) use the remaining codes; a matrix that
// contains such elements has the flag KERNEL_MATRIX_HAS_WILD_F16.
enum { F32_RECORD_BYTES = 32, F16_RECORD_BYTES = 16 };
enum { F16_CODE_SHIFT = 10 };

uint16_t f16_code(uint16_t half);
uint16_t f16_of_code(uint16_t code);

#endif

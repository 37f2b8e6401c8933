// kernels/floats.h — records of F32, F16 and BF16: one column of 8 rows. F32: 8 floats. 16-bit
// types: lane i has row i in its low half and row i + 4 in its high half, as the scales of
// layout.h. Sums of a product: even columns in one, odd columns in another, then even + odd.
#ifndef WICK_KERNELS_FLOATS_H
#define WICK_KERNELS_FLOATS_H

enum { F32_RECORD_BYTES = 32, F16_RECORD_BYTES = 16 };

#endif

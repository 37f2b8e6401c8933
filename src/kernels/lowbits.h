// kernels/lowbits.h — records of Q2_K and Q3_K. Blocks have 256 columns, with one sub-scale per 16
// columns.
//
// Two bits of a code: bytes [2 times 16 columns][rows 0-3, rows 4-7][4 rows][c of 4]. Bits 2g and
// 2g + 1 of a byte belong to column 4g + c of the 16. Sub-scales of a part: the 4 bytes of lane i
// are the two sub-scales of row i, for the first and the second 16 columns, then the two of row i +
// 4.
#ifndef WICK_KERNELS_LOWBITS_H
#define WICK_KERNELS_LOWBITS_H

#include <stdint.h>

#include "kernels/sixbits.h"

typedef struct q2_k_part {
  uint8_t subs[16];  // sub-scale in the low nibble, sub-minimum in the high nibble
  uint8_t codes[2][2][16];
} q2_k_part;

typedef struct q2_k_record {
  uint8_t scales[16], mins[16];
  q2_k_part parts[8];
} q2_k_record;

// The third bits of the codes: bytes [rows 0-3, rows 4-7][4 rows][c of 4]. Bit g belongs to column
// 4g + c of the part's 32. A weight is scale * (sub_scale - 32) * (code - 4).
typedef struct q3_k_part {
  uint8_t third[2][16];
  uint8_t codes[2][2][16];
} q3_k_part;

typedef struct q3_k_record {
  uint8_t scales[16];
  sixbits subs[2];  // of 4 parts each
  q3_k_part parts[8];
} q3_k_record;

#endif

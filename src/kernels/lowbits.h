// kernels/lowbits.h — records of Q2_K and Q3_K: 256 columns, sub-scales per 16.
//
// Codes of 2 bits: [16 columns][rows 0-3, rows 4-7][4 rows][4 columns c], bits 2g and 2g + 1 of a
// byte for column 4g + c. Sub-scales: the 4 bytes of lane i are row i's of the part's first and
// second 16 columns, then row i + 4's.
#ifndef WICK_KERNELS_LOWBITS_H
#define WICK_KERNELS_LOWBITS_H

#include <stdint.h>

#include "kernels/sixbits.h"

typedef struct q2_k_part {
  uint8_t subs[16];  // sub-scale in the low nibble, sub-minimum in the high one
  uint8_t codes[2][2][16];
} q2_k_part;

typedef struct q2_k_record {
  uint8_t scales[16], mins[16];
  q2_k_part parts[8];
} q2_k_record;

// The third bit of a code: [rows 0-3, rows 4-7][4 rows][4 columns c], bit g of a byte for column
// 4g + c of the part's 32. weight = scale * (sub_scale - 32) * (code - 4).
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

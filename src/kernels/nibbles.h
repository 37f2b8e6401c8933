// kernels/nibbles.h — records of the types whose codes are a nibble, some with a fifth bit: Q4_0,
// Q4_1, Q5_0, Q5_1 with blocks of 32 columns, Q4_K and Q5_K with blocks of 256.
//
// Codes of 8 rows x 32 columns: [column group k of 4][8 rows][4 columns c], the low nibble for
// column 4k + c, the high one for 16 + 4k + c. Fifth bits: [8 rows][4 columns c], bit 4 + k for
// column 4k + c, bit k for 16 + 4k + c.
#ifndef WICK_KERNELS_NIBBLES_H
#define WICK_KERNELS_NIBBLES_H

#include <stdint.h>

#include "kernels/sixbits.h"

typedef struct q4_0_record {
  uint8_t scales[16];
  uint8_t codes[4][32];
} q4_0_record;

typedef struct q4_1_record {
  uint8_t scales[16], mins[16];
  uint8_t codes[4][32];
} q4_1_record;

typedef struct q5_0_record {
  uint8_t scales[16];
  uint8_t fifth[32];
  uint8_t codes[4][32];
} q5_0_record;

typedef struct q5_1_record {
  uint8_t scales[16], mins[16];
  uint8_t fifth[32];
  uint8_t codes[4][32];
} q5_1_record;

// Sub-scales and sub-minima of 4 parts each. The 4 bytes of lane i are row i's sub-scale, row i +
// 4's, row i's sub-minimum, row i + 4's.
typedef struct q4_k_record {
  uint8_t scales[16], mins[16];
  sixbits subs[2];
  uint8_t codes[8][4][32];
} q4_k_record;

typedef struct q5_k_part {
  uint8_t fifth[32];
  uint8_t codes[4][32];
} q5_k_part;

typedef struct q5_k_record {
  uint8_t scales[16], mins[16];
  sixbits subs[2];
  q5_k_part parts[8];
} q5_k_record;

#endif

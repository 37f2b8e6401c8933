// kernels/nibbles.h — records of the types whose codes have 4 bits (a nibble) or 5 bits. Q4_0,
// Q4_1, Q5_0 and Q5_1 have blocks of 32 columns, Q4_K and Q5_K blocks of 256.
//
// The nibbles of 8 rows x 32 columns are bytes [k of 4][8 rows][c of 4]. The low nibble is the code
// of column 4k + c, the high nibble is the code of column 16 + 4k + c. The fifth bits are bytes [8
// rows][c of 4]. Bit 4 + k belongs to column 4k + c, bit k to column 16 + 4k + c.
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

// subs[0] has the sub-scales and sub-minima of parts 0 to 3, subs[1] those of parts 4 to 7. The 4
// bytes of lane i are the sub-scales of rows i and i + 4, then their sub-minima.
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

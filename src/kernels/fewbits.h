// kernels/fewbits.h — records of types with 1 or 2 bits per weight and one f16 scale per block:
// Q1_0 (128 columns, -1 or 1), Q2_0 (64 columns, -1 to 2) and TQ2_0 (256 columns, -1 to 1).
//
// A part is 32 columns, in eight groups of 4. Step k of a part processes column groups k and 4 + k.
// With 2 bits, these groups are fields 2 * (k % 2) and 2 * (k % 2) + 1 of a byte in vector k / 2;
// with 1 bit, they are bits k and 4 + k of a byte.
#ifndef WICK_KERNELS_FEWBITS_H
#define WICK_KERNELS_FEWBITS_H

#include <stdint.h>

typedef uint8_t twos_part[2][32];  // [vector][8 rows][4 columns]

// A record of Q2_0 has 2 parts, a record of TQ2_0 has 8.
typedef struct twos_record {
  uint8_t scales[16];
  twos_part codes[];
} twos_record;

enum {
  Q2_0_RECORD_BYTES = sizeof(twos_record) + 2 * sizeof(twos_part),
  TQ2_0_RECORD_BYTES = sizeof(twos_record) + 8 * sizeof(twos_part)
};

typedef struct q1_0_record {
  uint8_t scales[16];
  uint8_t codes[4][32];  // [part][8 rows][4 columns]
} q1_0_record;

#endif

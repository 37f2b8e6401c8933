// kernels/iq4.h — records of IQ4_NL (32 columns) and IQ4_XS (256 columns with 6-bit sub-scales per
// 32 columns): weight = scale * iq4_values[code], for IQ4_XS also times (sub_scale - 32). Codes are
// stored as in nibbles.h.
#ifndef WICK_KERNELS_IQ4_H
#define WICK_KERNELS_IQ4_H

#include <stdint.h>

#include "kernels/sixbits.h"

extern const int8_t iq4_values[16];

typedef struct iq4_nl_record {
  uint8_t scales[16];
  uint8_t codes[4][32];
} iq4_nl_record;

// subs: value v of byte lane 4 * i + j is the sub-scale of row i + 4 * (j % 2), part v + 4 * (j /
// 2).
typedef struct iq4_xs_record {
  uint8_t scales[16];
  sixbits subs;
  uint8_t codes[8][4][32];
} iq4_xs_record;

#endif

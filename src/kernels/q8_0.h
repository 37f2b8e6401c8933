// kernels/q8_0.h — Q8_0: 32 columns with one f16 scale; weight = code * scale, code int8.
#ifndef WICK_KERNELS_Q8_0_H
#define WICK_KERNELS_Q8_0_H

#include <stdint.h>

enum { Q8_0_BLOCK = 32, Q8_0_FILE_BYTES = 34 };

// 8 rows x 32 columns. codes: [column group k of 8][8 rows][4 columns].
typedef struct q8_0_record {
  uint8_t scales[16];
  uint8_t codes[8][32];
} q8_0_record;

#endif

// kernels/q4_0.h — Q4_0: 32 columns with one f16 scale; weight = (code - 8) * scale.
#ifndef WICK_KERNELS_Q4_0_H
#define WICK_KERNELS_Q4_0_H

#include <stdint.h>

enum { Q4_0_BLOCK = 32, Q4_0_FILE_BYTES = 18 };

// 8 rows x 32 columns. codes: [column group k of 4][8 rows][4 columns c], the low nibble for column
// 4k + c, the high one for 16 + 4k + c.
typedef struct q4_0_record {
  uint8_t scales[16];
  uint8_t codes[4][32];
} q4_0_record;

#endif

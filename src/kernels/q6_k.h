// kernels/q6_k.h — Q6_K: 256 columns with one f16 scale and 16 int8 sub-scales of 16 columns each;
// weight = scale * sub_scale * (code - 32), code 0..63.
#ifndef WICK_KERNELS_Q6_K_H
#define WICK_KERNELS_Q6_K_H

#include <stdint.h>

enum { Q6_K_BLOCK = 256, Q6_K_FILE_BYTES = 210, Q6_K_PARTS = 8 };

// 8 rows x 32 columns, two sub-blocks of 16 columns.
// sub_scales: the 4 bytes of lane i are row i (sub-blocks 0, 1), then row i + 4 (sub-blocks 0, 1).
// codes: [sub-block][rows 0-3, rows 4-7][byte b of 3][4 rows][4 columns c]. Byte b has the code of
// column 4b + c of the sub-block in its low 6 bits; its high 2 bits are bits 2b and 2b + 1 of the
// code of column 12 + c. So three vectors contain the codes of four, which takes 11 operations.
typedef struct q6_k_part {
  int8_t sub_scales[16];
  uint8_t codes[2][2][3][16];
} q6_k_part;

// 8 rows x 256 columns.
typedef struct q6_k_record {
  uint8_t scales[16];
  q6_k_part parts[Q6_K_PARTS];
} q6_k_record;

#endif

// kernels/grid_points.h — the points of the grids of IQ1, IQ2 and IQ3. The program contains them as
// bits (grids_tables.h), because their gzipped size is then only a third.
#ifndef WICK_KERNELS_GRID_POINTS_H
#define WICK_KERNELS_GRID_POINTS_H

#include <stdint.h>

// The values of a point are packed from its lowest bit up.
typedef struct grid_points {
  uint16_t iq1[2048];  // 8 x 2 bits: value + 1
  // 8 x 2 bits: 0, 1, 2 represent 8, 25, 43
  uint16_t iq2_xxs[256], iq2_xs[512], iq2_s[1024];
  uint16_t iq3_xxs[256];  // 4 x 4 bits: 0 to 7 represent 4, 12, 20, 28, 36, 44, 52, 62
  uint16_t iq3_s[512];    // 4 x 4 bits: (value - 1) / 2
  // The points of IQ2, with one byte per value.
  uint64_t iq2_xxs_codes[256], iq2_xs_codes[512], iq2_s_codes[1024];
  uint32_t iq3_xxs_codes[256], iq3_s_codes[512];
  uint64_t signs[256];  // byte i is 0xff if bit i is set
} grid_points;

extern grid_points kernel_grids;

// Fills kernel_grids; must be called before a kernel reads them. Any thread may call it, any number
// of times; the first call takes about 50 us.
void grids_unpack(void);

#endif

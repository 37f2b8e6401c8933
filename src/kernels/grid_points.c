// kernels/grid_points.c — unpacks the grids of IQ1, IQ2 and IQ3.
#include "kernels/grid_points.h"

#include <stdatomic.h>

#include "kernels/grids_tables.h"

grid_points kernel_grids;

// The points whose bits are set. Fields of `width` bits hold values below `levels`; all possible
// points have a bit each, in their order.
static void unpack(const uint8_t *bits, uint32_t levels, uint32_t width, uint16_t *points) {
  const uint32_t mask = (1u << width) - 1;
  uint32_t point = 0;
  for (uint32_t index = 0; point < 1u << 16; index++) {
    if ((bits[index / 8] >> index % 8 & 1) != 0) *points++ = (uint16_t)point;
    point++;
    for (uint32_t at = 0; (point >> at & mask) == levels; at += width) {
      point += (mask + 1 - levels) << at;  // the next field carries
    }
  }
}

void grids_unpack(void) {
  static _Atomic uint32_t state;  // 1: somebody unpacks, 2: all is there
  uint32_t none = 0;
  if (atomic_load(&state) == 2) return;
  if (!atomic_compare_exchange_strong(&state, &none, 1)) {
    while (atomic_load(&state) != 2) continue;
    return;
  }
  unpack(grid_iq1_bits, 3, 2, kernel_grids.iq1);
  unpack(grid_iq2_xxs_bits, 3, 2, kernel_grids.iq2_xxs);
  unpack(grid_iq2_xs_bits, 3, 2, kernel_grids.iq2_xs);
  unpack(grid_iq2_s_bits, 3, 2, kernel_grids.iq2_s);
  unpack(grid_iq3_xxs_bits, 8, 4, kernel_grids.iq3_xxs);
  unpack(grid_iq3_s_bits, 8, 4, kernel_grids.iq3_s);
  atomic_store(&state, 2);
}

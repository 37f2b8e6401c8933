// kernels/grid_points.c — unpacks the grids of IQ1, IQ2 and IQ3.
#include "kernels/grid_points.h"

#include <stdatomic.h>

#include "kernels/grids_tables.h"

grid_points kernel_grids;

// Unpacks the points whose bits are set. Fields of `width` bits contain values below `levels`;
// every possible point has one bit, in order.
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

// Returns `count` fields of `width` bits as the bytes that the levels represent.
static uint64_t codes_of(uint32_t point, uint32_t count, uint32_t width, const uint8_t *levels) {
  uint64_t codes = 0;
  for (uint32_t i = 0; i < count; i++) {
    codes |= (uint64_t)levels[point >> (i * width) & ((1u << width) - 1)] << (8 * i);
  }
  return codes;
}

static void iq2_unpack(const uint16_t *points, uint32_t count, uint64_t *codes) {
  static const uint8_t levels[4] = {8, 25, 43};
  for (uint32_t i = 0; i < count; i++) codes[i] = codes_of(points[i], 8, 2, levels);
}

static void iq3_unpack(const uint16_t *points, uint32_t count, const uint8_t *levels,
                       uint32_t *codes) {
  for (uint32_t i = 0; i < count; i++) codes[i] = (uint32_t)codes_of(points[i], 4, 4, levels);
}

static void codes_unpack(void) {
  static const uint8_t iq3_xxs[16] = {4, 12, 20, 28, 36, 44, 52, 62};
  static const uint8_t iq3_s[16] = {1, 3, 5, 7, 9, 11, 13, 15}, sign[2] = {0, 0xff};
  grid_points *grids = &kernel_grids;
  iq2_unpack(grids->iq2_xxs, 256, grids->iq2_xxs_codes);
  iq2_unpack(grids->iq2_xs, 512, grids->iq2_xs_codes);
  iq2_unpack(grids->iq2_s, 1024, grids->iq2_s_codes);
  iq3_unpack(grids->iq3_xxs, 256, iq3_xxs, grids->iq3_xxs_codes);
  iq3_unpack(grids->iq3_s, 512, iq3_s, grids->iq3_s_codes);
  for (uint32_t i = 0; i < 256; i++) grids->signs[i] = codes_of(i, 8, 1, sign);
}

void grids_unpack(void) {
  static _Atomic uint32_t state;  // 1: a thread is unpacking, 2: all grids are unpacked
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
  codes_unpack();
  atomic_store(&state, 2);
}

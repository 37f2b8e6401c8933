// The grids of IQ1, IQ2 and IQ3 are identical to ggml's.
#include "kernels/grid_points.h"

#include "base/hash.h"
#include "check.h"

// Checks that the points are in ascending order without duplicates and that no value exceeds the
// levels.
static void check_order(const uint16_t *points, uint32_t count, uint32_t width, uint32_t levels) {
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0 && !CHECK(points[i - 1] < points[i])) return;
    for (uint32_t at = 0; at < 16; at += width) {
      if (!CHECK((points[i] >> at & ((1u << width) - 1)) < levels)) return;
    }
  }
}

// The hashes of the tables in gguf 0.19.0 (tools/grids/generate.py), 16 bits per point.
TEST(grids_match_ggml) {
  const struct {
    const uint16_t *points;
    uint32_t count, width, levels;
    uint64_t hash;
  } grids[] = {
      {kernel_grids.iq1, 2048, 2, 3, 0x6e13a9a0e446e71c},
      {kernel_grids.iq2_xxs, 256, 2, 3, 0x062eee82cf41fecf},
      {kernel_grids.iq2_xs, 512, 2, 3, 0x048f0c94626310e4},
      {kernel_grids.iq2_s, 1024, 2, 3, 0x647cccac6d735b55},
      {kernel_grids.iq3_xxs, 256, 4, 8, 0x5e204f4f8c90a3ac},
      {kernel_grids.iq3_s, 512, 4, 8, 0x645412b7ad5a22b6},
  };
  grids_unpack();
  grids_unpack();
  for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
    check_order(grids[i].points, grids[i].count, grids[i].width, grids[i].levels);
    CHECK_EQ_UINT(hash_bytes(grids[i].points, grids[i].count * sizeof(uint16_t), 0), grids[i].hash);
  }
}

// Rotary frequencies (model/rope.h) interpolated by YaRN: the ramp for the values of a real model,
// and for any values that a file may contain.
#include <math.h>

#include "base/math.h"
#include "check.h"
#include "model/rope.h"

enum { DIMS = 64 };

static double plain_frequency(double base, uint32_t pair) {
  return math_pow(base, -2.0 * (double)pair / (double)DIMS);
}

TEST(yarn_interpolates_slow_rotations_and_leaves_fast_ones) {
  double frequencies[DIMS / 2];
  const model_rope rope = {.dims = DIMS,
                           .theta = 10000,
                           .scale = 4,
                           .magnitude = 1,
                           .yarn = {true, 32, 1},
                           .original_context = 4096,
                           .frequencies = frequencies};
  rope_fill(&rope, 8192);
  CHECK(frequencies[0] == 1);
  // pairs 10 to 23 are the ramp: 64 log(4096 / (2 pi turns)) / (2 log 10000) is 10.5 and 22.5
  for (uint32_t i = 0; i < DIMS / 2; i++) {
    const double ratio = frequencies[i] / plain_frequency(rope.theta, i);
    const double share = i <= 10 ? 0 : i >= 23 ? 1 : (i - 10) / 13.0;
    CHECK(fabs(ratio - (1 - share + share / 4)) < 1e-12);
  }
}

// With a base of 1 all pairs rotate equally, so the ramp is at infinity; with other values the ramp
// has no position (NaN).
TEST(yarn_gives_valid_frequencies_for_any_values) {
  static const double BASES[] = {1e-6, 0.5, 1 - 1e-15, 1, 1 + 1e-15, 2, 1e10};
  static const double TURNS[] = {0, 1e-40, 1, 16 / (2 * 3.14159265358979323846), 32, 1e38};
  enum { BASE_COUNT = sizeof BASES / sizeof *BASES, TURN_COUNT = sizeof TURNS / sizeof *TURNS };
  for (uint32_t n = 0; n < BASE_COUNT * TURN_COUNT * TURN_COUNT; n++) {
    double frequencies[DIMS / 2];
    const model_rope rope = {
        .dims = DIMS,
        .theta = BASES[n % BASE_COUNT],
        .scale = 4,
        .magnitude = 1,
        .yarn = {true, TURNS[n / BASE_COUNT % TURN_COUNT], TURNS[n / BASE_COUNT / TURN_COUNT]},
        .original_context = 16,
        .frequencies = frequencies};
    rope_fill(&rope, 64);
    for (uint32_t i = 0; i < DIMS / 2; i++) {
      const double ratio = frequencies[i] / plain_frequency(rope.theta, i);
      CHECK(ratio >= 0.25 && ratio <= 1 + 1e-12);
    }
  }
}

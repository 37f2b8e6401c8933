// Splitmix64 (sample/rng.h): the tests' random numbers, the same on every host.
#ifndef WICK_TESTS_RANDOM_H
#define WICK_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sample/rng.h"

static inline uint64_t random_u64(uint64_t *state) { return splitmix64_next(state); }

// In [0, bound), bound > 0.
static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
  return random_u64(state) % bound;
}

// ---- make soak: hundreds of runs, of which a normal test does a twentieth ----

static inline bool soak_is_on(void) {
  const char *soak = getenv("WICK_SOAK");
  return soak != NULL && strcmp(soak, "1") == 0;
}

// `make test`, which runs a part of what `make test-all` does: every `step`th of a long series,
// else each.
static inline uint32_t level_step(uint32_t step) {
  const char *level = getenv("WICK_TEST_LEVEL");
  return level != NULL && strcmp(level, "main") == 0 ? step : 1;
}

static inline uint32_t soak_count(uint32_t full) {
  if (soak_is_on() || full < 20) return full;
  const uint32_t count = full / 20 / level_step(5);
  return count == 0 ? 1 : count;
}

// Where random tests begin: 0, or what make soak has printed.
static inline uint64_t soak_seed(void) {
  const char *seed = getenv("WICK_SEED");
  return soak_is_on() && seed != NULL ? strtoull(seed, NULL, 10) : 0;
}

#endif

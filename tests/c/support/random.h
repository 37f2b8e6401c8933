// Random numbers for tests from Splitmix64 (sample/rng.h), the same on every host.
#ifndef WICK_TESTS_RANDOM_H
#define WICK_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sample/rng.h"

static inline uint64_t random_u64(uint64_t *state) { return splitmix64_next(state); }

// Returns a number in [0, bound); requires bound > 0.
static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
  return random_u64(state) % bound;
}

// ---- make soak: hundreds of runs; a normal test does a twentieth of these ----

static inline bool soak_is_on(void) {
  const char *soak = getenv("WICK_SOAK");
  return soak != NULL && strcmp(soak, "1") == 0;
}

// Returns `step` under `make test`, which runs only every `step`th case of a long series, or 1
// under `make test-all`.
static inline uint32_t level_step(uint32_t step) {
  const char *level = getenv("WICK_TEST_LEVEL");
  return level != NULL && strcmp(level, "main") == 0 ? step : 1;
}

static inline uint32_t soak_count(uint32_t full) {
  if (soak_is_on() || full < 20) return full;
  const uint32_t count = full / 20 / level_step(5);
  return count == 0 ? 1 : count;
}

// Returns the seed of random tests: 0, or the seed that make soak has printed.
static inline uint64_t soak_seed(void) {
  const char *seed = getenv("WICK_SEED");
  return soak_is_on() && seed != NULL ? strtoull(seed, NULL, 10) : 0;
}

#endif

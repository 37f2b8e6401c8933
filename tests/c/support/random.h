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

// ---- make soak: the runs of hundreds, of which a test does a twentieth otherwise ----

static inline bool soak_is_on(void) {
  const char *soak = getenv("WICK_SOAK");
  return soak != NULL && strcmp(soak, "1") == 0;
}

static inline uint32_t soak_count(uint32_t full) {
  return soak_is_on() || full < 20 ? full : full / 20;
}

// Where random tests begin: 0, or what make soak has printed.
static inline uint64_t soak_seed(void) {
  const char *seed = getenv("WICK_SEED");
  return soak_is_on() && seed != NULL ? strtoull(seed, NULL, 10) : 0;
}

#endif

// tests/c/random.h — splitmix64 (sample/rng.h): the tests' random numbers, the same on every host.
#ifndef WICK_TESTS_RANDOM_H
#define WICK_TESTS_RANDOM_H

#include <stdint.h>

#include "sample/rng.h"

static inline uint64_t random_u64(uint64_t *state) { return splitmix64_next(state); }

// In [0, bound), bound > 0.
static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
  return random_u64(state) % bound;
}

#endif

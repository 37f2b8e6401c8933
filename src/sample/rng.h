// sample/rng.h — random numbers that are the same on every host: splitmix64 (Steele, Lea and Flood
// 2014; Vigna 2015) generates seeds, xoshiro256** 1.0 (Blackman and Vigna 2018) draws.
#ifndef WICK_SAMPLE_RNG_H
#define WICK_SAMPLE_RNG_H

#include <stdint.h>

// Returns the next output of splitmix64; any state is valid.
uint64_t splitmix64_next(uint64_t *state);

typedef struct rng {
  uint64_t state[4];  // not all zero
} rng;

// Seeds with four outputs of splitmix64, as the authors recommend.
void rng_seed(rng *rng, uint64_t seed);
uint64_t rng_next(rng *rng);
// Returns a value uniform in [0, 1): a multiple of 2^-53.
double rng_uniform(rng *rng);

#endif

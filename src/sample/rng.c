// sample/rng.c — splitmix64 and xoshiro256**.
#include "sample/rng.h"

#include "base/hash.h"

uint64_t splitmix64_next(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  return hash_mix_u64(*state);
}

void rng_seed(rng *rng, uint64_t seed) {
  for (int i = 0; i < 4; i++) rng->state[i] = splitmix64_next(&seed);
}

static uint64_t rotate_left(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

uint64_t rng_next(rng *rng) {
  uint64_t *s = rng->state;
  const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
  const uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotate_left(s[3], 45);
  return result;
}

double rng_uniform(rng *rng) { return (double)(rng_next(rng) >> 11) * 0x1p-53; }

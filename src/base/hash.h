// base/hash.h — 64-bit hashing for tables and fingerprints (not cryptographic).
#ifndef WICK_BASE_HASH_H
#define WICK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that mixes all bits.
static inline uint64_t hash_mix_u64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

// FNV-1a over bytes, then mixed.
uint64_t hash_bytes(const void *bytes, size_t size_bytes, uint64_t seed);

#endif

// base/hash.c — hashing of byte strings for tables.
#include "base/hash.h"

uint64_t hash_bytes(const void *bytes, size_t size_bytes, uint64_t seed) {
  const uint8_t *p = bytes;
  uint64_t hash = 0xcbf29ce484222325u ^ seed;
  for (size_t i = 0; i < size_bytes; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
  return hash_mix_u64(hash);
}

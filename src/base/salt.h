// base/salt.h — isolates the tenants of an engine: pages computed for one tenant are never found by
// another.
#ifndef WICK_BASE_SALT_H
#define WICK_BASE_SALT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The first 128 bits of a name's SHA-256 (FIPS 180-4), so that no tenant can choose a name with
// another tenant's salt: finding one takes about 2^128 attempts. Zeros: no name, a separate tenant.
typedef struct cache_salt {
  uint64_t low, high;
} cache_salt;

// Returns the salt of a name; an empty name has the salt 0.
cache_salt salt_of(const void *name, size_t size_bytes);

static inline bool salt_is_same(cache_salt a, cache_salt b) {
  return a.low == b.low && a.high == b.high;
}

#endif

// reference/prefix_lookup.h — looks up single entries of the prefix cache. The engine finds the
// longest prefix of a sequence and attaches it in one call (prefix_attach in kv/prefix.h).
#ifndef WICK_REFERENCE_PREFIX_LOOKUP_H
#define WICK_REFERENCE_PREFIX_LOOKUP_H

#include "kv/prefix.h"

// Computes h = basis; for each token: h = (h ^ token) * prime, modulo 2^64. FNV-1a folds bytes;
// this function folds whole tokens.
prefix_hash_t prefix_hash(const int32_t *tokens, size_t count);

// Finds the longest cached prefix in whole pages, at most count - 1 tokens. *id: its last entry, or
// PREFIX_NONE. Counts one hit or miss. Returns the number of its tokens. O(count).
uint32_t prefix_find_longest(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                             uint32_t count, prefix_id *id);
// Returns the entry that ends exactly these tokens, or PREFIX_NONE if they are not whole cached
// pages. Counts one hit or miss.
prefix_id prefix_lookup_tokens(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                               uint32_t count);
// Looks up by hash only, without comparing tokens.
prefix_id prefix_lookup_hash(prefix_cache *cache, prefix_hash_t hash);
bool prefix_contains(const prefix_cache *cache, prefix_hash_t hash);  // not counted as a lookup
// Removes all entries. An entry with users is no longer found, and is removed when its last user
// releases it. Statistics are kept.
void prefix_clear(prefix_cache *cache);

bool prefix_is_empty(const prefix_cache *cache);
double prefix_used_ratio(const prefix_cache *cache);  // 0 if the capacity is 0
uint64_t prefix_tick(const prefix_cache *cache);      // clock of last uses

#endif

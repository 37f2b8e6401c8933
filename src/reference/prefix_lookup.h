// reference/prefix_lookup.h — looks up single entries of the prefix cache. The engine searches the
// longest prefix of a sequence and attaches it in one call (prefix_attach in kv/prefix.h).
#ifndef WICK_REFERENCE_PREFIX_LOOKUP_H
#define WICK_REFERENCE_PREFIX_LOOKUP_H

#include "kv/prefix.h"

// h = basis; for each token: h = (h ^ token) * prime, modulo 2^64. FNV-1a folds bytes; this folds
// whole tokens.
prefix_hash_t prefix_hash(const int32_t *tokens, size_t count);

// The longest cached prefix in whole pages, at most count - 1 tokens; *id: its last entry, or
// PREFIX_NONE. Counts one hit or miss. Returns the number of its tokens. O(count).
uint32_t prefix_find_longest(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                             uint32_t count, prefix_id *id);
// The entry of exactly these tokens; PREFIX_NONE if they are not whole cached pages. Counts one
// hit or miss.
prefix_id prefix_lookup_tokens(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                               uint32_t count);
// The same by hash alone, without comparing tokens.
prefix_id prefix_lookup_hash(prefix_cache *cache, prefix_hash_t hash);
bool prefix_contains(const prefix_cache *cache, prefix_hash_t hash);  // not counted
// Removes all entries. One with users is no longer found and is removed with its last user.
// Statistics are kept.
void prefix_clear(prefix_cache *cache);

bool prefix_is_empty(const prefix_cache *cache);
double prefix_used_ratio(const prefix_cache *cache);  // 0 if the capacity is 0
uint64_t prefix_tick(const prefix_cache *cache);      // of the clock of last uses

#endif

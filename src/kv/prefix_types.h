// kv/prefix_types.h — types that prefix.c (sequences and lookups), prefix_entries.c (the hash table
// of entries) and src/reference/ share.
#ifndef WICK_KV_PREFIX_TYPES_H
#define WICK_KV_PREFIX_TYPES_H

#include "kv/prefix.h"

struct prefix_cache {
  memory_gate *memory;
  kv_pool *pool;
  prefix_config config;
  prefix_entry *entries;  // [place_capacity]
  int32_t *tokens;        // [place_capacity][page_tokens]
  uint32_t place_count;   // slots that were ever used
  uint32_t place_capacity;
  prefix_id free_first;  // first free slot that was used before
  prefix_id *buckets;    // [bucket_count], a power of two; 0 before the first entry
  uint32_t bucket_count;
  uint32_t count;  // linked entries
  uint64_t tick, serial;
  prefix_stats stats;
};

// Returns whether the slot has an entry.
bool prefix_is_live(const prefix_cache *cache, prefix_id id);
void prefix_touch(prefix_cache *cache, prefix_id id);  // makes it the most recently used
// Finds the entry after `parent` with these tokens. An equal hash of different tokens counts as a
// collision.
prefix_id prefix_find(prefix_cache *cache, prefix_id parent, cache_salt salt,
                      const int32_t *tokens);
// Removes an entry and frees its page.
void prefix_remove(prefix_cache *cache, prefix_id id);
// Unlinks an entry, so that lookups no longer find it.
void prefix_unlink(prefix_cache *cache, prefix_id id);
// Follows the chain through at most `pages` whole pages. Returns the number of pages found and sets
// *id to the last entry.
uint32_t prefix_walk(prefix_cache *cache, cache_salt salt, const int32_t *tokens, uint32_t pages,
                     prefix_id *id);
// Counts a lookup of `count` tokens that ended at `id`. The entry and its ancestors become the most
// recently used.
void prefix_count_lookup(prefix_cache *cache, prefix_id id, uint32_t count);

#endif

// reference/prefix_lookup.c — lookups in the prefix cache.
#include "reference/prefix_lookup.h"

#include "kv/prefix_types.h"

prefix_hash_t prefix_hash(const int32_t *tokens, size_t count) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; i++) hash = (hash ^ (uint32_t)tokens[i]) * 0x100000001b3u;
  return hash;
}

uint32_t prefix_find_longest(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                             uint32_t count, prefix_id *id) {
  const uint32_t pages = count == 0 ? 0 : (count - 1) / cache->config.page_tokens;
  const uint32_t found = prefix_walk(cache, salt, tokens, pages, id);
  prefix_count_lookup(cache, *id, count);
  return found * cache->config.page_tokens;
}

prefix_id prefix_lookup_tokens(prefix_cache *cache, cache_salt salt, const int32_t *tokens,
                               uint32_t count) {
  const uint32_t pages = count / cache->config.page_tokens;
  prefix_id id;
  const uint32_t found = prefix_walk(cache, salt, tokens, pages, &id);
  if (found < pages || count % cache->config.page_tokens != 0) id = PREFIX_NONE;
  prefix_count_lookup(cache, id, count);
  return id;
}

static prefix_id find_hash(const prefix_cache *cache, prefix_hash_t hash) {
  if (cache->bucket_count == 0) return PREFIX_NONE;
  prefix_id id = cache->buckets[(uint32_t)hash & (cache->bucket_count - 1)];
  while (id != PREFIX_NONE && cache->entries[id].hash != hash) id = cache->entries[id].next;
  return id;
}

bool prefix_contains(const prefix_cache *cache, prefix_hash_t hash) {
  return find_hash(cache, hash) != PREFIX_NONE;
}

prefix_id prefix_lookup_hash(prefix_cache *cache, prefix_hash_t hash) {
  const prefix_id id = find_hash(cache, hash);
  if (id == PREFIX_NONE) {
    cache->stats.misses++;
    return id;
  }
  cache->stats.hits++;
  cache->tick++;
  prefix_touch(cache, id);
  return id;
}

void prefix_clear(prefix_cache *cache) {
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (!prefix_is_live(cache, id) || !cache->entries[id].is_linked) continue;
    prefix_unlink(cache, id);
    cache->entries[id].parent = PREFIX_NONE;
    cache->entries[id].child_count = 0;
  }
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id) && cache->entries[id].ref_count == 0) prefix_remove(cache, id);
  }
}

bool prefix_is_empty(const prefix_cache *cache) { return cache->count == 0; }

double prefix_used_ratio(const prefix_cache *cache) {
  const uint32_t max = cache->config.entries_max;
  return max == 0 ? 0 : (double)cache->count / (double)max;
}

uint64_t prefix_tick(const prefix_cache *cache) { return cache->tick; }

// kv/prefix_entries.c — the entries of the prefix cache: places, hash table, users, eviction, and
// the callbacks of the pool.
#include <string.h>

#include "base/checked.h"
#include "kv/prefix_types.h"

void wick_prefix_entry_init(wick_prefix_entry *entry, wick_prefix_hash_t hash, uint32_t token_count,
                            wick_kv_page_id page) {
  *entry = (wick_prefix_entry){.hash = hash,
                               .token_count = token_count,
                               .page = page,
                               .ref_count = 1,
                               .parent = WICK_PREFIX_NONE,
                               .next = WICK_PREFIX_NONE};
}

void wick_prefix_entry_retain(wick_prefix_entry *entry) { entry->ref_count++; }

wick_status wick_prefix_entry_release(wick_prefix_entry *entry, bool *is_idle) {
  if (entry->ref_count == 0) return WICK_E_ARG;
  *is_idle = --entry->ref_count == 0;
  return WICK_OK;
}

bool prefix_is_live(const wick_prefix_cache *cache, wick_prefix_id id) {
  return id < cache->place_count && cache->entries[id].page != WICK_KV_PAGE_NONE;
}

void prefix_touch(wick_prefix_cache *cache, wick_prefix_id id) {
  cache->entries[id].last_access_tick = cache->tick;
}

// ---- Buckets ----

static wick_prefix_id *bucket_of(const wick_prefix_cache *cache, wick_prefix_hash_t hash) {
  return &cache->buckets[(uint32_t)hash & (cache->bucket_count - 1)];
}

static void link_entry(wick_prefix_cache *cache, wick_prefix_id id) {
  wick_prefix_id *bucket = bucket_of(cache, cache->entries[id].hash);
  cache->entries[id].next = *bucket;
  cache->entries[id].is_linked = true;
  *bucket = id;
}

static void unlink_entry(wick_prefix_cache *cache, wick_prefix_id id) {
  wick_prefix_id *at = bucket_of(cache, cache->entries[id].hash);
  while (*at != id) at = &cache->entries[*at].next;
  *at = cache->entries[id].next;
  cache->entries[id].next = WICK_PREFIX_NONE;
  cache->entries[id].is_linked = false;
  cache->count--;
}

static wick_prefix_hash_t hash_after(const wick_prefix_cache *cache, wick_prefix_id parent,
                                     wick_salt salt, const int32_t *tokens) {
  const wick_prefix_hash_t before = parent == WICK_PREFIX_NONE ? 0 : cache->entries[parent].hash;
  return cache->config.hash(before, salt.low, tokens, cache->config.page_tokens);
}

wick_prefix_id prefix_find(wick_prefix_cache *cache, wick_prefix_id parent, wick_salt salt,
                           const int32_t *tokens) {
  if (cache->bucket_count == 0) return WICK_PREFIX_NONE;
  const wick_prefix_hash_t hash = hash_after(cache, parent, salt, tokens);
  const size_t bytes = cache->config.page_tokens * sizeof *tokens;
  wick_prefix_id id = *bucket_of(cache, hash);
  for (; id != WICK_PREFIX_NONE; id = cache->entries[id].next) {
    const wick_prefix_entry *entry = &cache->entries[id];
    if (entry->hash != hash) continue;
    const bool is_same = entry->parent == parent && salt_is_same(entry->salt, salt) &&
                         memcmp(wick_prefix_entry_tokens(cache, id), tokens, bytes) == 0;
    if (is_same) return id;
    cache->stats.collisions++;
  }
  return WICK_PREFIX_NONE;
}

static wick_prefix_id find_hash(const wick_prefix_cache *cache, wick_prefix_hash_t hash) {
  if (cache->bucket_count == 0) return WICK_PREFIX_NONE;
  wick_prefix_id id = *bucket_of(cache, hash);
  while (id != WICK_PREFIX_NONE && cache->entries[id].hash != hash) id = cache->entries[id].next;
  return id;
}

bool wick_prefix_contains(const wick_prefix_cache *cache, wick_prefix_hash_t hash) {
  return find_hash(cache, hash) != WICK_PREFIX_NONE;
}

wick_prefix_id wick_prefix_lookup_hash(wick_prefix_cache *cache, wick_prefix_hash_t hash) {
  const wick_prefix_id id = find_hash(cache, hash);
  if (id == WICK_PREFIX_NONE) {
    cache->stats.misses++;
    return id;
  }
  cache->stats.hits++;
  cache->tick++;
  prefix_touch(cache, id);
  return id;
}

// ---- Places ----

static bool grow_buckets(wick_prefix_cache *cache, uint32_t places) {
  uint32_t count = cache->bucket_count == 0 ? 16 : cache->bucket_count;
  while (count < places) count *= 2;
  if (count == cache->bucket_count) return true;
  wick_prefix_id *buckets = memory_alloc_array(cache->memory, count, sizeof *buckets);
  if (buckets == NULL) return false;
  memory_free(cache->memory, cache->buckets);
  cache->buckets = buckets;
  cache->bucket_count = count;
  memset(buckets, 0xff, count * sizeof *buckets);
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id) && cache->entries[id].is_linked) link_entry(cache, id);
  }
  return true;
}

static bool grow_places(wick_prefix_cache *cache) {
  // entries that were cleared while they had users take places beyond entries_max
  uint32_t capacity = cache->place_capacity < 16 ? 16 : cache->place_capacity * 2;
  size_t entry_bytes, token_bytes;
  if (capacity > INT32_MAX || !checked_mul_size(capacity, sizeof *cache->entries, &entry_bytes) ||
      !checked_mul_size(capacity, cache->config.page_tokens * sizeof(int32_t), &token_bytes)) {
    return false;
  }
  wick_prefix_entry *entries = memory_resize(cache->memory, cache->entries, entry_bytes);
  if (entries == NULL) return false;
  cache->entries = entries;
  int32_t *tokens = memory_resize(cache->memory, cache->tokens, token_bytes);
  if (tokens == NULL) return false;
  cache->tokens = tokens;
  if (!grow_buckets(cache, capacity)) return false;
  cache->place_capacity = capacity;
  return true;
}

wick_status wick_prefix_reserve(wick_prefix_cache *cache, uint32_t entries, wick_error *error) {
  uint64_t needed = (uint64_t)cache->place_count + entries;
  if (needed > cache->config.entries_max) needed = cache->config.entries_max;
  while (cache->place_capacity < needed) {
    if (!grow_places(cache)) {
      return memory_fail(cache->memory, error, "the prefix cache", cache->place_capacity * 2ull);
    }
  }
  return WICK_OK;
}

static wick_prefix_id take_place(wick_prefix_cache *cache) {
  const wick_prefix_id id = cache->free_first;
  if (id != WICK_PREFIX_NONE) {
    cache->free_first = cache->entries[id].next;
    return id;
  }
  if (cache->place_count == cache->place_capacity && !grow_places(cache)) return WICK_PREFIX_NONE;
  return cache->place_count++;
}

void prefix_remove(wick_prefix_cache *cache, wick_prefix_id id) {
  wick_prefix_entry *entry = &cache->entries[id];
  if (cache->config.removed != NULL) cache->config.removed(cache->config.context, id);
  if (entry->is_linked) unlink_entry(cache, id);
  if (entry->parent != WICK_PREFIX_NONE) cache->entries[entry->parent].child_count--;
  wick_kv_page_unhold(cache->pool, entry->page);
  cache->stats.pages_held--;
  entry->page = WICK_KV_PAGE_NONE;
  entry->next = cache->free_first;
  cache->free_first = id;
}

// ---- Entries ----

static bool is_held_alone(const wick_prefix_cache *cache, wick_prefix_id id) {
  return wick_kv_pool_page(cache->pool, cache->entries[id].page)->ref_count == 1;
}

// Marks entries with users, and their ancestors: they cannot be evicted.
static void mark_blocked(wick_prefix_cache *cache) {
  for (wick_prefix_id id = 0; id < cache->place_count; id++) cache->entries[id].is_blocked = false;
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (!prefix_is_live(cache, id) || cache->entries[id].ref_count == 0) continue;
    for (wick_prefix_id at = id; at != WICK_PREFIX_NONE && !cache->entries[at].is_blocked;
         at = cache->entries[at].parent) {
      cache->entries[at].is_blocked = true;
    }
  }
}

// Whether evicting the entry, after its descendants, frees its page. Call mark_blocked before.
static bool is_reclaimable(const wick_prefix_cache *cache, wick_prefix_id id) {
  return prefix_is_live(cache, id) && !cache->entries[id].is_blocked && is_held_alone(cache, id);
}

static bool follows_reclaimable(const wick_prefix_cache *cache, wick_prefix_id id) {
  wick_prefix_id at = cache->entries[id].parent;
  while (at != WICK_PREFIX_NONE && !is_reclaimable(cache, at)) at = cache->entries[at].parent;
  return at != WICK_PREFIX_NONE;
}

// Which idle leaves may be evicted.
typedef enum victim_kind {
  VICTIM_ANY,
  VICTIM_FREES,    // those whose page becomes free
  VICTIM_UNBLOCKS  // those with an ancestor whose page can become free; call mark_blocked before
} victim_kind;

static bool is_victim(const wick_prefix_cache *cache, wick_prefix_id id, victim_kind kind) {
  const wick_prefix_entry *entry = &cache->entries[id];
  if (!prefix_is_live(cache, id) || entry->ref_count > 0 || entry->child_count > 0) return false;
  if (kind == VICTIM_ANY) return true;
  return kind == VICTIM_FREES ? is_held_alone(cache, id) : follows_reclaimable(cache, id);
}

static wick_prefix_id find_victim(const wick_prefix_cache *cache, victim_kind kind) {
  wick_prefix_id victim = WICK_PREFIX_NONE;
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (!is_victim(cache, id, kind)) continue;
    const wick_prefix_entry *entry = &cache->entries[id];
    const wick_prefix_entry *best = &cache->entries[victim == WICK_PREFIX_NONE ? id : victim];
    const bool is_older = entry->last_access_tick != best->last_access_tick
                              ? entry->last_access_tick < best->last_access_tick
                              : entry->insert_serial < best->insert_serial;
    if (victim == WICK_PREFIX_NONE || is_older) victim = id;
  }
  return victim;
}

static bool evict(wick_prefix_cache *cache, victim_kind kind) {
  const wick_prefix_id victim = find_victim(cache, kind);
  if (victim == WICK_PREFIX_NONE) return false;
  prefix_remove(cache, victim);
  cache->stats.prefixes_evicted++;
  return true;
}

bool wick_prefix_evict(wick_prefix_cache *cache) { return evict(cache, VICTIM_ANY); }

static wick_status make_room(wick_prefix_cache *cache, wick_prefix_id parent, wick_error *error) {
  const uint32_t max = cache->config.entries_max;
  if (cache->count < max) return WICK_OK;
  // the parent must not be the leaf that is evicted
  if (parent != WICK_PREFIX_NONE) cache->entries[parent].ref_count++;
  const bool has_room = max > 0 && wick_prefix_evict(cache);
  if (parent != WICK_PREFIX_NONE) cache->entries[parent].ref_count--;
  if (has_room) return WICK_OK;
  cache->stats.insert_refused++;
  return wick_fail(error, WICK_E_FULL, WICK_NO_OFFSET,
                   "the prefix cache has %u entries of at most %u, and none is idle", cache->count,
                   max);
}

static wick_status check_insert(const wick_prefix_cache *cache, wick_prefix_id parent,
                                wick_kv_page_id id, wick_error *error) {
  const wick_kv_page *page = wick_kv_pool_page(cache->pool, id);
  const bool has_parent = parent == WICK_PREFIX_NONE ||
                          (prefix_is_live(cache, parent) && cache->entries[parent].is_linked);
  if (has_parent && page != NULL && page->ref_count > 0) return WICK_OK;
  return wick_fail(error, WICK_E_RANGE, WICK_NO_OFFSET, "entry %u or page %d is not in use", parent,
                   (int)id);
}

wick_status wick_prefix_insert(wick_prefix_cache *cache, wick_prefix_id parent, wick_salt salt,
                               const int32_t *tokens, wick_kv_page_id page, wick_prefix_id *id,
                               bool *existed, wick_error *error) {
  wick_status status = check_insert(cache, parent, page, error);
  if (status != WICK_OK) return status;
  *id = prefix_find(cache, parent, salt, tokens);
  *existed = *id != WICK_PREFIX_NONE;
  if (*existed) {
    prefix_touch(cache, *id);
    return WICK_OK;
  }
  const wick_prefix_id place = take_place(cache);
  if (place == WICK_PREFIX_NONE) return memory_fail(cache->memory, error, "the prefix cache", 0);
  wick_prefix_entry *entry = &cache->entries[place];
  entry->page = WICK_KV_PAGE_NONE;
  status = make_room(cache, parent, error);
  if (status != WICK_OK) {
    entry->next = cache->free_first;
    cache->free_first = place;
    return status;
  }
  const uint32_t before = parent == WICK_PREFIX_NONE ? 0 : cache->entries[parent].token_count;
  wick_prefix_entry_init(entry, hash_after(cache, parent, salt, tokens),
                         before + cache->config.page_tokens, page);
  entry->salt = salt;
  entry->parent = parent;
  entry->insert_serial = cache->serial++;
  memcpy(cache->tokens + (size_t)place * cache->config.page_tokens, tokens,
         cache->config.page_tokens * sizeof *tokens);
  if (parent != WICK_PREFIX_NONE) cache->entries[parent].child_count++;
  prefix_touch(cache, place);
  wick_kv_page_hold(cache->pool, page);
  link_entry(cache, place);
  cache->count++;
  cache->stats.pages_held++;
  cache->stats.prefixes_cached++;
  cache->stats.tokens_inserted += cache->config.page_tokens;
  *id = place;
  return WICK_OK;
}

wick_status wick_prefix_retain(wick_prefix_cache *cache, wick_prefix_id id) {
  if (!prefix_is_live(cache, id)) return WICK_E_RANGE;
  wick_prefix_entry_retain(&cache->entries[id]);
  cache->tick++;
  prefix_touch(cache, id);
  return WICK_OK;
}

wick_status wick_prefix_release(wick_prefix_cache *cache, wick_prefix_id id) {
  if (!prefix_is_live(cache, id)) return WICK_E_RANGE;
  wick_prefix_entry *entry = &cache->entries[id];
  bool is_idle;
  const wick_status status = wick_prefix_entry_release(entry, &is_idle);
  if (status == WICK_OK && is_idle && !entry->is_linked) prefix_remove(cache, id);
  return status;
}

void wick_prefix_clear(wick_prefix_cache *cache) {
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (!prefix_is_live(cache, id) || !cache->entries[id].is_linked) continue;
    unlink_entry(cache, id);
    cache->entries[id].parent = WICK_PREFIX_NONE;
    cache->entries[id].child_count = 0;
  }
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id) && cache->entries[id].ref_count == 0) prefix_remove(cache, id);
  }
}

// ---- Callbacks of the pool ----

static uint32_t count_reclaimable(void *context) {
  wick_prefix_cache *cache = context;
  uint32_t count = 0;
  mark_blocked(cache);
  for (wick_prefix_id id = 0; id < cache->place_count; id++) count += is_reclaimable(cache, id);
  return count;
}

// A sequence may have dropped a page, or slid past it, and still have pages after it. The entries
// of these pages are evicted only where nothing else frees a page.
static uint32_t reclaim(void *context, uint32_t pages) {
  wick_prefix_cache *cache = context;
  uint32_t freed = 0;
  mark_blocked(cache);
  while (freed < pages) {
    if (evict(cache, VICTIM_FREES)) {
      freed++;
    } else if (!evict(cache, VICTIM_UNBLOCKS)) {
      break;
    }
  }
  return freed;
}

static void page_moved(void *context, wick_kv_page_id from, wick_kv_page_id to) {
  wick_prefix_cache *cache = context;
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (cache->entries[id].page == from) cache->entries[id].page = to;
  }
}

static wick_status check_config(wick_prefix_config *config, wick_error *error) {
  if (config->hash == NULL) config->hash = wick_page_hash;
  if (config->page_tokens >= 1 && config->page_tokens <= WICK_PREFIX_PAGE_TOKENS_MAX) {
    return WICK_OK;
  }
  return wick_fail(error, WICK_E_ARG, WICK_NO_OFFSET, "pages of %u tokens: 1 to %d can be",
                   config->page_tokens, (int)WICK_PREFIX_PAGE_TOKENS_MAX);
}

wick_status wick_prefix_cache_init(wick_memory *memory, wick_kv_pool *pool,
                                   const wick_prefix_config *config, wick_prefix_cache **out,
                                   wick_error *error) {
  wick_prefix_config chosen = {.entries_max = WICK_PREFIX_ENTRIES_DEFAULT,
                               .page_tokens = KERNEL_PAGE_TOKENS};
  if (config != NULL) chosen = *config;
  const wick_status status = check_config(&chosen, error);
  if (status != WICK_OK) return status;
  wick_prefix_cache *cache = memory_alloc_zeroed(memory, sizeof *cache);
  if (cache == NULL) return memory_fail(memory, error, "the prefix cache", sizeof *cache);
  cache->memory = memory;
  cache->pool = pool;
  cache->config = chosen;
  cache->free_first = WICK_PREFIX_NONE;
  const wick_kv_holder holder = {cache, count_reclaimable, reclaim, page_moved};
  wick_kv_pool_set_holder(pool, &holder);
  *out = cache;
  return WICK_OK;
}

void wick_prefix_cache_destroy(wick_prefix_cache *cache) {
  if (cache == NULL) return;
  for (wick_prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id)) wick_kv_page_unhold(cache->pool, cache->entries[id].page);
  }
  wick_kv_pool_set_holder(cache->pool, NULL);
  memory_free(cache->memory, cache->entries);
  memory_free(cache->memory, cache->tokens);
  memory_free(cache->memory, cache->buckets);
  memory_free(cache->memory, cache);
}

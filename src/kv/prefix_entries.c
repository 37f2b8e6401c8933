// kv/prefix_entries.c — the entries of the prefix cache: slots, hash table, users, eviction, and
// the pool's callbacks.
#include <string.h>

#include "kv/prefix_types.h"

void prefix_entry_init(prefix_entry *entry, prefix_hash_t hash, uint32_t token_count,
                       kv_page_id page) {
  *entry = (prefix_entry){.hash = hash,
                          .token_count = token_count,
                          .page = page,
                          .ref_count = 1,
                          .parent = PREFIX_NONE,
                          .next = PREFIX_NONE};
}

void prefix_entry_retain(prefix_entry *entry) { entry->ref_count++; }

wick_status prefix_entry_release(prefix_entry *entry, bool *is_idle) {
  if (entry->ref_count == 0) return WICK_E_ARG;
  *is_idle = --entry->ref_count == 0;
  return WICK_OK;
}

bool prefix_is_live(const prefix_cache *cache, prefix_id id) {
  return id < cache->place_count && cache->entries[id].page != KV_PAGE_NONE;
}

void prefix_touch(prefix_cache *cache, prefix_id id) {
  cache->entries[id].last_access_tick = cache->tick;
}

// ---- Buckets ----

static prefix_id *bucket_of(const prefix_cache *cache, prefix_hash_t hash) {
  return &cache->buckets[(uint32_t)hash & (cache->bucket_count - 1)];
}

static void link_entry(prefix_cache *cache, prefix_id id) {
  prefix_id *bucket = bucket_of(cache, cache->entries[id].hash);
  cache->entries[id].next = *bucket;
  cache->entries[id].is_linked = true;
  *bucket = id;
}

void prefix_unlink(prefix_cache *cache, prefix_id id) {
  prefix_id *at = bucket_of(cache, cache->entries[id].hash);
  while (*at != id) at = &cache->entries[*at].next;
  *at = cache->entries[id].next;
  cache->entries[id].next = PREFIX_NONE;
  cache->entries[id].is_linked = false;
  cache->count--;
}

static prefix_hash_t hash_after(const prefix_cache *cache, prefix_id parent, cache_salt salt,
                                const int32_t *tokens) {
  const prefix_hash_t before = parent == PREFIX_NONE ? 0 : cache->entries[parent].hash;
  return cache->config.hash(before, salt.low, tokens, cache->config.page_tokens);
}

prefix_id prefix_find(prefix_cache *cache, prefix_id parent, cache_salt salt,
                      const int32_t *tokens) {
  if (cache->bucket_count == 0) return PREFIX_NONE;
  const prefix_hash_t hash = hash_after(cache, parent, salt, tokens);
  const size_t bytes = cache->config.page_tokens * sizeof *tokens;
  prefix_id id = *bucket_of(cache, hash);
  for (; id != PREFIX_NONE; id = cache->entries[id].next) {
    const prefix_entry *entry = &cache->entries[id];
    if (entry->hash != hash) continue;
    const bool is_same = entry->parent == parent && salt_is_same(entry->salt, salt) &&
                         memcmp(prefix_entry_tokens(cache, id), tokens, bytes) == 0;
    if (is_same) return id;
    cache->stats.collisions++;
  }
  return PREFIX_NONE;
}

// ---- Slots ----

static bool grow_buckets(prefix_cache *cache, uint32_t places) {
  uint32_t count = cache->bucket_count == 0 ? 16 : cache->bucket_count;
  while (count < places) count *= 2;
  if (count == cache->bucket_count) return true;
  prefix_id *buckets = memory_alloc_array(cache->memory, count, sizeof *buckets);
  if (buckets == NULL) return false;
  memory_free(cache->memory, cache->buckets);
  cache->buckets = buckets;
  cache->bucket_count = count;
  memset(buckets, 0xff, count * sizeof *buckets);
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id) && cache->entries[id].is_linked) link_entry(cache, id);
  }
  return true;
}

static bool grow_places(prefix_cache *cache) {
  // entries that were cleared while they had users occupy slots beyond entries_max
  uint32_t capacity = cache->place_capacity < 16 ? 16 : cache->place_capacity * 2;
  const size_t asked = capacity > INT32_MAX ? SIZE_MAX : capacity;
  memory_gate *memory = cache->memory;
  prefix_entry *entries = memory_resize_array(memory, cache->entries, asked, sizeof *entries);
  if (entries == NULL) return false;
  cache->entries = entries;
  int32_t *tokens =
      memory_resize_array(memory, cache->tokens, asked, cache->config.page_tokens * sizeof *tokens);
  if (tokens == NULL) return false;
  cache->tokens = tokens;
  if (!grow_buckets(cache, capacity)) return false;
  cache->place_capacity = capacity;
  return true;
}

wick_status prefix_reserve(prefix_cache *cache, uint32_t entries, wick_error *error) {
  uint64_t needed = (uint64_t)cache->place_count + entries;
  if (needed > cache->config.entries_max) needed = cache->config.entries_max;
  while (cache->place_capacity < needed) {
    if (!grow_places(cache)) {
      return memory_fail(cache->memory, error, "the prefix cache");
    }
  }
  return WICK_OK;
}

static prefix_id take_place(prefix_cache *cache) {
  const prefix_id id = cache->free_first;
  if (id != PREFIX_NONE) {
    cache->free_first = cache->entries[id].next;
    return id;
  }
  if (cache->place_count == cache->place_capacity && !grow_places(cache)) return PREFIX_NONE;
  return cache->place_count++;
}

void prefix_remove(prefix_cache *cache, prefix_id id) {
  prefix_entry *entry = &cache->entries[id];
  if (cache->config.removed != NULL) cache->config.removed(cache->config.context, id);
  if (entry->is_linked) prefix_unlink(cache, id);
  if (entry->parent != PREFIX_NONE) cache->entries[entry->parent].child_count--;
  kv_page_unhold(cache->pool, entry->page);
  cache->stats.pages_held--;
  entry->page = KV_PAGE_NONE;
  entry->next = cache->free_first;
  cache->free_first = id;
}

// ---- Entries ----

static bool is_held_alone(const prefix_cache *cache, prefix_id id) {
  return kv_pool_page(cache->pool, cache->entries[id].page)->ref_count == 1;
}

// Marks entries with users and their ancestors, which cannot be evicted.
static void mark_blocked(prefix_cache *cache) {
  for (prefix_id id = 0; id < cache->place_count; id++) cache->entries[id].is_blocked = false;
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (!prefix_is_live(cache, id) || cache->entries[id].ref_count == 0) continue;
    for (prefix_id at = id; at != PREFIX_NONE && !cache->entries[at].is_blocked;
         at = cache->entries[at].parent) {
      cache->entries[at].is_blocked = true;
    }
  }
}

// Returns whether evicting the entry, after its descendants, frees its page. Call mark_blocked
// first.
static bool is_reclaimable(const prefix_cache *cache, prefix_id id) {
  return prefix_is_live(cache, id) && !cache->entries[id].is_blocked && is_held_alone(cache, id);
}

static bool follows_reclaimable(const prefix_cache *cache, prefix_id id) {
  prefix_id at = cache->entries[id].parent;
  while (at != PREFIX_NONE && !is_reclaimable(cache, at)) at = cache->entries[at].parent;
  return at != PREFIX_NONE;
}

// The idle leaves that may be evicted.
typedef enum victim_kind {
  VICTIM_ANY,
  VICTIM_FREES,    // leaves whose page becomes free
  VICTIM_UNBLOCKS  // leaves with an ancestor whose page can become free; call mark_blocked first
} victim_kind;

static bool is_victim(const prefix_cache *cache, prefix_id id, victim_kind kind) {
  const prefix_entry *entry = &cache->entries[id];
  if (!prefix_is_live(cache, id) || entry->ref_count > 0 || entry->child_count > 0) return false;
  if (kind == VICTIM_ANY) return true;
  return kind == VICTIM_FREES ? is_held_alone(cache, id) : follows_reclaimable(cache, id);
}

static prefix_id find_victim(const prefix_cache *cache, victim_kind kind) {
  prefix_id victim = PREFIX_NONE;
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (!is_victim(cache, id, kind)) continue;
    const prefix_entry *entry = &cache->entries[id];
    const prefix_entry *best = &cache->entries[victim == PREFIX_NONE ? id : victim];
    const bool is_older = entry->last_access_tick != best->last_access_tick
                              ? entry->last_access_tick < best->last_access_tick
                              : entry->insert_serial < best->insert_serial;
    if (victim == PREFIX_NONE || is_older) victim = id;
  }
  return victim;
}

static bool evict(prefix_cache *cache, victim_kind kind) {
  const prefix_id victim = find_victim(cache, kind);
  if (victim == PREFIX_NONE) return false;
  prefix_remove(cache, victim);
  cache->stats.prefixes_evicted++;
  return true;
}

bool prefix_evict(prefix_cache *cache) { return evict(cache, VICTIM_ANY); }

static wick_status make_room(prefix_cache *cache, prefix_id parent, wick_error *error) {
  const uint32_t max = cache->config.entries_max;
  if (cache->count < max) return WICK_OK;
  // the parent must not be the leaf that is evicted
  if (parent != PREFIX_NONE) cache->entries[parent].ref_count++;
  const bool has_room = max > 0 && prefix_evict(cache);
  if (parent != PREFIX_NONE) cache->entries[parent].ref_count--;
  if (has_room) return WICK_OK;
  cache->stats.insert_refused++;
  return fail_with(error, WICK_E_FULL, WICK_NO_OFFSET,
                   "the prefix cache has %u entries (limit %u) and none is idle", cache->count,
                   max);
}

static wick_status check_insert(const prefix_cache *cache, prefix_id parent, kv_page_id id,
                                wick_error *error) {
  const kv_page *page = kv_pool_page(cache->pool, id);
  const bool has_parent =
      parent == PREFIX_NONE || (prefix_is_live(cache, parent) && cache->entries[parent].is_linked);
  if (has_parent && page != NULL && page->ref_count > 0) return WICK_OK;
  return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "entry %u or page %d is not in use", parent,
                   (int)id);
}

wick_status prefix_insert(prefix_cache *cache, prefix_id parent, cache_salt salt,
                          const int32_t *tokens, kv_page_id page, prefix_id *id, bool *existed,
                          wick_error *error) {
  wick_status status = check_insert(cache, parent, page, error);
  if (status != WICK_OK) return status;
  *id = prefix_find(cache, parent, salt, tokens);
  *existed = *id != PREFIX_NONE;
  if (*existed) {
    prefix_touch(cache, *id);
    return WICK_OK;
  }
  const prefix_id place = take_place(cache);
  if (place == PREFIX_NONE) return memory_fail(cache->memory, error, "the prefix cache");
  prefix_entry *entry = &cache->entries[place];
  entry->page = KV_PAGE_NONE;
  status = make_room(cache, parent, error);
  if (status != WICK_OK) {
    entry->next = cache->free_first;
    cache->free_first = place;
    return status;
  }
  const uint32_t before = parent == PREFIX_NONE ? 0 : cache->entries[parent].token_count;
  prefix_entry_init(entry, hash_after(cache, parent, salt, tokens),
                    before + cache->config.page_tokens, page);
  entry->salt = salt;
  entry->parent = parent;
  entry->insert_serial = cache->serial++;
  memcpy(cache->tokens + (size_t)place * cache->config.page_tokens, tokens,
         cache->config.page_tokens * sizeof *tokens);
  if (parent != PREFIX_NONE) cache->entries[parent].child_count++;
  prefix_touch(cache, place);
  kv_page_hold(cache->pool, page);
  link_entry(cache, place);
  cache->count++;
  cache->stats.pages_held++;
  cache->stats.prefixes_cached++;
  cache->stats.tokens_inserted += cache->config.page_tokens;
  *id = place;
  return WICK_OK;
}

wick_status prefix_retain(prefix_cache *cache, prefix_id id) {
  if (!prefix_is_live(cache, id)) return WICK_E_RANGE;
  prefix_entry_retain(&cache->entries[id]);
  cache->tick++;
  prefix_touch(cache, id);
  return WICK_OK;
}

wick_status prefix_release(prefix_cache *cache, prefix_id id) {
  if (!prefix_is_live(cache, id)) return WICK_E_RANGE;
  prefix_entry *entry = &cache->entries[id];
  bool is_idle;
  const wick_status status = prefix_entry_release(entry, &is_idle);
  if (status == WICK_OK && is_idle && !entry->is_linked) prefix_remove(cache, id);
  return status;
}

// ---- Callbacks of the pool ----

static uint32_t count_reclaimable(void *context) {
  prefix_cache *cache = context;
  uint32_t count = 0;
  mark_blocked(cache);
  for (prefix_id id = 0; id < cache->place_count; id++) count += is_reclaimable(cache, id);
  return count;
}

// Evicts entries to free pages. A sequence may have dropped a page, or slid past it, and still have
// later pages. The entries of these later pages are evicted only if nothing else frees a page.
static void reclaim(void *context, uint32_t pages) {
  prefix_cache *cache = context;
  uint32_t freed = 0;
  mark_blocked(cache);
  while (freed < pages) {
    if (evict(cache, VICTIM_FREES)) {
      freed++;
    } else if (!evict(cache, VICTIM_UNBLOCKS)) {
      break;
    }
  }
}

static wick_status check_config(prefix_config *config, wick_error *error) {
  if (config->hash == NULL) config->hash = page_hash;
  if (config->page_tokens >= 1 && config->page_tokens <= PREFIX_PAGE_TOKENS_MAX) {
    return WICK_OK;
  }
  return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "page size is %u, must be 1 to %d",
                   config->page_tokens, (int)PREFIX_PAGE_TOKENS_MAX);
}

wick_status prefix_cache_init(memory_gate *memory, kv_pool *pool, const prefix_config *config,
                              prefix_cache **out, wick_error *error) {
  prefix_config chosen = {.entries_max = PREFIX_ENTRIES_DEFAULT, .page_tokens = KERNEL_PAGE_TOKENS};
  if (config != NULL) chosen = *config;
  const wick_status status = check_config(&chosen, error);
  if (status != WICK_OK) return status;
  prefix_cache *cache = memory_alloc_zeroed(memory, sizeof *cache);
  if (cache == NULL) return memory_fail(memory, error, "the prefix cache");
  cache->memory = memory;
  cache->pool = pool;
  cache->config = chosen;
  cache->free_first = PREFIX_NONE;
  const kv_holder holder = {cache, count_reclaimable, reclaim};
  kv_pool_set_holder(pool, &holder);
  *out = cache;
  return WICK_OK;
}

void prefix_cache_destroy(prefix_cache *cache) {
  if (cache == NULL) return;
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (prefix_is_live(cache, id)) kv_page_unhold(cache->pool, cache->entries[id].page);
  }
  kv_pool_set_holder(cache->pool, NULL);
  memory_free(cache->memory, cache->entries);
  memory_free(cache->memory, cache->tokens);
  memory_free(cache->memory, cache->buckets);
  memory_free(cache->memory, cache);
}

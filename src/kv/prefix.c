// kv/prefix.c — hashes, token lookups, sequences that take pages from the cache and add their own,
// and statistics.
#include "kv/prefix.h"

#include "base/hash.h"
#include "kv/pool_types.h"
#include "kv/prefix_types.h"

static const uint64_t HASH_BASIS = 0xcbf29ce484222325u, HASH_PRIME = 0x100000001b3u;

static uint64_t fold(uint64_t hash, uint32_t value) { return (hash ^ value) * HASH_PRIME; }

static uint64_t fold_tokens(uint64_t hash, const int32_t *tokens, size_t count) {
  for (size_t i = 0; i < count; i++) hash = fold(hash, (uint32_t)tokens[i]);
  return hash;
}

prefix_hash_t page_hash(prefix_hash_t parent, uint64_t salt, const int32_t *tokens,
                        uint32_t count) {
  uint64_t hash = fold(HASH_BASIS, (uint32_t)parent);
  hash = fold(hash, (uint32_t)(parent >> 32));
  hash = fold(hash, (uint32_t)salt);
  hash = fold(hash, (uint32_t)(salt >> 32));
  return hash_mix_u64(fold_tokens(hash, tokens, count));
}

// ---- Lookups ----

uint32_t prefix_walk(prefix_cache *cache, cache_salt salt, const int32_t *tokens, uint32_t pages,
                     prefix_id *id) {
  *id = PREFIX_NONE;
  uint32_t found = 0;
  for (; found < pages; found++) {
    const size_t at = (size_t)found * cache->config.page_tokens;
    const prefix_id child = prefix_find(cache, *id, salt, tokens + at);
    if (child == PREFIX_NONE) break;
    *id = child;
  }
  return found;
}

void prefix_count_lookup(prefix_cache *cache, prefix_id id, uint32_t count) {
  cache->stats.lookup_tokens += count;
  if (id == PREFIX_NONE) {
    cache->stats.misses++;
    return;
  }
  cache->stats.hits++;
  cache->stats.tokens_saved += cache->entries[id].token_count;
  cache->tick++;
  for (; id != PREFIX_NONE; id = cache->entries[id].parent) prefix_touch(cache, id);
}

prefix_id prefix_peek(prefix_cache *cache, cache_salt salt, const int32_t *tokens, uint32_t count) {
  prefix_id id;
  prefix_walk(cache, salt, tokens, count / cache->config.page_tokens, &id);
  return id;
}

// ---- Sequences ----

wick_status prefix_attach(prefix_cache *cache, kv_seq_id seq_id, cache_salt salt,
                          const int32_t *tokens, uint32_t count, uint32_t *tokens_hit,
                          wick_error *error) {
  kv_pool *pool = cache->pool;
  kv_seq *seq = kv_seq_find(pool, seq_id);
  if (seq == NULL) return kv_seq_unknown(seq_id, error);
  if (seq->entry_count != 0 || cache->config.page_tokens != KERNEL_PAGE_TOKENS) {
    return fail_with(error, WICK_E_BUSY, WICK_NO_OFFSET, "sequence %u already has pages", seq_id);
  }
  const uint32_t pages_max = count == 0 ? 0 : (count - 1) / KERNEL_PAGE_TOKENS;
  prefix_id id;
  const uint32_t pages = prefix_walk(cache, salt, tokens, pages_max, &id);
  const wick_status status = kv_seq_reserve_entries(pool, seq, pages, error);
  if (status != WICK_OK) return status;
  prefix_count_lookup(cache, id, count);
  for (uint32_t i = pages; i-- > 0; id = cache->entries[id].parent) {
    const kv_page_id page = cache->entries[id].page;
    kv_page_retain(pool, page);
    seq->table[i] =
        (kv_entry){.page = page, .position = i * KERNEL_PAGE_TOKENS, .last = KERNEL_PAGE_TOKENS};
  }
  seq->entry_count = pages;
  seq->token_count = pages * KERNEL_PAGE_TOKENS;
  *tokens_hit = seq->token_count;
  return WICK_OK;
}

// Returns whether entry i of a block table is the same as after a fresh prefill: all tokens of page
// i, at their original positions.
static bool is_plain(const kv_entry *entry, uint32_t i) {
  return entry->page >= 0 && entry->delta == 0 && entry->first == 0 &&
         entry->last == KERNEL_PAGE_TOKENS && entry->position == i * KERNEL_PAGE_TOKENS;
}

wick_status prefix_store(prefix_cache *cache, kv_seq_id seq_id, cache_salt salt,
                         const int32_t *tokens, uint32_t count, uint32_t *tokens_known,
                         wick_error *error) {
  const kv_seq *seq = kv_seq_find(cache->pool, seq_id);
  if (seq == NULL) return kv_seq_unknown(seq_id, error);
  if (count > seq->token_count || cache->config.page_tokens != KERNEL_PAGE_TOKENS) {
    return fail_with(error, WICK_E_RANGE, WICK_NO_OFFSET, "sequence %u holds %u tokens, not %u",
                     seq_id, seq->token_count, count);
  }
  prefix_id parent = PREFIX_NONE;
  wick_status status = WICK_OK;
  uint32_t i = 0;
  for (; i < count / KERNEL_PAGE_TOKENS && is_plain(&seq->table[i], i); i++) {
    prefix_id id;
    bool existed;
    status = prefix_insert(cache, parent, salt, tokens + (size_t)i * KERNEL_PAGE_TOKENS,
                           seq->table[i].page, &id, &existed, error);
    if (status != WICK_OK) break;
    if (!existed) prefix_release(cache, id);
    parent = id;
  }
  if (tokens_known != NULL) *tokens_known = i * KERNEL_PAGE_TOKENS;
  return status == WICK_E_FULL ? WICK_OK : status;
}

// ---- Statistics ----

uint32_t prefix_count(const prefix_cache *cache) { return cache->count; }
uint32_t prefix_capacity(const prefix_cache *cache) { return cache->config.entries_max; }

prefix_stats prefix_stats_get(const prefix_cache *cache) { return cache->stats; }

double prefix_hit_ratio(const prefix_stats *stats) {
  const uint64_t queries = stats->hits + stats->misses;
  return queries == 0 ? 0 : (double)stats->hits / (double)queries;
}
uint32_t prefix_places(const prefix_cache *cache) { return cache->place_count; }

const prefix_entry *prefix_entry_at(const prefix_cache *cache, prefix_id id) {
  return prefix_is_live(cache, id) ? &cache->entries[id] : NULL;
}

const int32_t *prefix_entry_tokens(const prefix_cache *cache, prefix_id id) {
  return cache->tokens + (size_t)id * cache->config.page_tokens;
}

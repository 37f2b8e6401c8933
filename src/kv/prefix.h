// kv/prefix.h — the prefix cache: finds whole pages of tokens that were read before, by a chain of
// hashes (as vLLM's automatic prefix caching does).
//
// An entry is one page of tokens after the page of its parent. Its hash covers the parent's hash,
// the salt (of a tenant, or of anything else that must not be mixed) and the tokens. A lookup also
// compares all three. So the entries form a radix tree of pages for each salt.
//
// The cache has a reference on each page, which seals the page. An entry without users is idle. It
// stays until pages or entries run short. Eviction takes leaves only, the least recently used one
// first. It skips an entry whose page a sequence still has, since that frees nothing; but it takes
// such an entry when this makes an ancestor a leaf whose page no sequence has. Only the thread that
// writes the pool uses the cache.
#ifndef WICK_KV_PREFIX_H
#define WICK_KV_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "kv/pool.h"

typedef uint64_t wick_prefix_hash_t;

// h = basis; for each token: h = (h ^ token) * prime, modulo 2^64. It folds whole tokens, where
// FNV-1a folds bytes.
wick_prefix_hash_t wick_prefix_hash(const int32_t *tokens, size_t count);
// The same fold over parent and salt (low halves first), then the tokens. The result is mixed
// (hash_mix_u64), so that nobody can compute a collision. The parent of a root is 0.
wick_prefix_hash_t wick_page_hash(wick_prefix_hash_t parent, uint64_t salt, const int32_t *tokens,
                                  uint32_t count);
typedef wick_prefix_hash_t wick_page_hash_function(wick_prefix_hash_t parent, uint64_t salt,
                                                   const int32_t *tokens, uint32_t count);

enum { WICK_PREFIX_ENTRIES_DEFAULT = 100, WICK_PREFIX_PAGE_TOKENS_MAX = 64 };
#define WICK_PREFIX_NONE UINT32_MAX

typedef uint32_t wick_prefix_id;  // of an entry, while it lives

typedef struct wick_prefix_entry {
  wick_prefix_hash_t hash;
  wick_salt salt;
  uint64_t last_access_tick, insert_serial;
  wick_prefix_id parent;  // WICK_PREFIX_NONE: a root
  wick_kv_page_id page;   // WICK_KV_PAGE_NONE: the place is free
  uint32_t ref_count;     // users; 0: idle
  uint32_t child_count;
  uint32_t token_count;  // of the prefix that ends here
  wick_prefix_id next;   // of the same bucket, or of the free places
  bool is_linked;        // found by lookups; false after wick_prefix_clear while it has users
  bool is_blocked;       // scratch of counting what could be reclaimed
} wick_prefix_entry;

void wick_prefix_entry_init(wick_prefix_entry *entry, wick_prefix_hash_t hash, uint32_t token_count,
                            wick_kv_page_id page);  // one user, tick 0
void wick_prefix_entry_retain(wick_prefix_entry *entry);
// *is_idle: it was the last. WICK_E_ARG when there is none.
wick_status wick_prefix_entry_release(wick_prefix_entry *entry, bool *is_idle);

typedef struct wick_prefix_stats {
  uint64_t hits, misses;                       // every lookup of tokens is one of them
  uint64_t prefixes_cached, prefixes_evicted;  // entries inserted, evicted
  uint64_t tokens_saved;                       // on hits
  uint64_t collisions;                         // equal hash, other tokens
  uint64_t lookup_tokens, tokens_inserted, insert_refused;
  uint32_t pages_held;
} wick_prefix_stats;

typedef struct wick_prefix_cache wick_prefix_cache;

typedef struct wick_prefix_config {
  uint32_t entries_max;           // 0: nothing is ever stored
  uint32_t page_tokens;           // 1..64; the pool's is KERNEL_PAGE_TOKENS
  wick_page_hash_function *hash;  // NULL: wick_page_hash (tests inject collisions)
  // Called before an entry is removed; may be NULL.
  void (*removed)(void *context, wick_prefix_id id);
  void *context;
} wick_prefix_config;

// config NULL: 100 entries of 16 tokens. The cache becomes the pool's holder; the pool must outlive
// it. It allocates as entries come. WICK_E_ARG, WICK_E_NOMEM.
wick_status wick_prefix_cache_init(wick_memory *memory, wick_kv_pool *pool,
                                   const wick_prefix_config *config, wick_prefix_cache **out,
                                   wick_error *error);
void wick_prefix_cache_destroy(wick_prefix_cache *cache);  // NULL is fine

// ---- What an engine needs ----

// Gives an empty sequence (no tokens, no pages) the longest cached prefix of the tokens, in whole
// pages and at most count - 1 tokens: the last token must be computed for its logits.
// *tokens_hit: how many tokens it has now. Counts one hit or one miss. WICK_E_SEQ, WICK_E_BUSY (not
// empty), WICK_E_NOMEM.
wick_status wick_prefix_attach(wick_prefix_cache *cache, wick_kv_seq_id seq, wick_salt salt,
                               const int32_t *tokens, uint32_t count, uint32_t *tokens_hit,
                               wick_error *error);
// Enters the whole pages of a sequence whose stored tokens are tokens[0, count), as idle entries.
// Entries that exist become the most recently used. Stops at a page that was shifted or fell out of
// a window, and when the cache is full. *tokens_known (may be NULL): how many tokens are now
// cached. WICK_E_SEQ, WICK_E_RANGE (more than is stored), WICK_E_NOMEM (entries made so far stay).
wick_status wick_prefix_store(wick_prefix_cache *cache, wick_kv_seq_id seq, wick_salt salt,
                              const int32_t *tokens, uint32_t count, uint32_t *tokens_known,
                              wick_error *error);

// Room for so many more entries (within entries_max), so that wick_prefix_store allocates nothing
// for them. WICK_E_NOMEM.
wick_status wick_prefix_reserve(wick_prefix_cache *cache, uint32_t entries, wick_error *error);

// ---- Entries ----

// The longest cached prefix, as above; *id: its last entry, WICK_PREFIX_NONE when there is none.
// Counts one hit or miss. Returns its tokens. One walk, O(count).
uint32_t wick_prefix_find_longest(wick_prefix_cache *cache, wick_salt salt, const int32_t *tokens,
                                  uint32_t count, wick_prefix_id *id);
// The last entry of the longest cached prefix in whole pages, up to all `count` tokens;
// WICK_PREFIX_NONE when there is none. Changes neither counters nor the order of use.
wick_prefix_id wick_prefix_peek(wick_prefix_cache *cache, wick_salt salt, const int32_t *tokens,
                                uint32_t count);
// The entry of exactly these tokens; WICK_PREFIX_NONE when they are not whole cached pages.
wick_prefix_id wick_prefix_lookup_tokens(wick_prefix_cache *cache, wick_salt salt,
                                         const int32_t *tokens, uint32_t count);
// By hash alone: for tests and metrics, never for reuse.
wick_prefix_id wick_prefix_lookup_hash(wick_prefix_cache *cache, wick_prefix_hash_t hash);
bool wick_prefix_contains(const wick_prefix_cache *cache, wick_prefix_hash_t hash);  // not counted
// Enters a page of tokens after `parent` (WICK_PREFIX_NONE: a root), with one user. Evicts an idle
// leaf when entries_max is reached; WICK_E_FULL when there is none. *existed: the entry was there
// and only became the most recently used. WICK_E_RANGE: parent or page is not in use. WICK_E_NOMEM.
wick_status wick_prefix_insert(wick_prefix_cache *cache, wick_prefix_id parent, wick_salt salt,
                               const int32_t *tokens, wick_kv_page_id page, wick_prefix_id *id,
                               bool *existed, wick_error *error);
// Unknown entries are WICK_E_RANGE. Releasing what has no user is WICK_E_ARG.
wick_status wick_prefix_retain(wick_prefix_cache *cache, wick_prefix_id id);
wick_status wick_prefix_release(wick_prefix_cache *cache, wick_prefix_id id);
// Evicts the least recently used idle leaf (ties: the one inserted first); false without one.
bool wick_prefix_evict(wick_prefix_cache *cache);
// Removes all entries. One with users is no longer found and is removed with its last user.
// Statistics stay.
void wick_prefix_clear(wick_prefix_cache *cache);

uint32_t wick_prefix_count(const wick_prefix_cache *cache);
bool wick_prefix_is_empty(const wick_prefix_cache *cache);
uint32_t wick_prefix_capacity(const wick_prefix_cache *cache);
double wick_prefix_used_ratio(const wick_prefix_cache *cache);  // 0 when the capacity is 0
wick_prefix_stats wick_prefix_stats_get(const wick_prefix_cache *cache);
double wick_prefix_hit_ratio(const wick_prefix_stats *stats);  // 0 without queries
uint64_t wick_prefix_tick(const wick_prefix_cache *cache);
// For loops over all ids, 0 to wick_prefix_places - 1; NULL for a free place.
uint32_t wick_prefix_places(const wick_prefix_cache *cache);
const wick_prefix_entry *wick_prefix_entry_at(const wick_prefix_cache *cache, wick_prefix_id id);
const int32_t *wick_prefix_entry_tokens(const wick_prefix_cache *cache, wick_prefix_id id);
wick_kv_pool *wick_prefix_pool(const wick_prefix_cache *cache);
uint32_t wick_prefix_page_tokens(const wick_prefix_cache *cache);
// Compares structure, counters and references with a recount; WICK_E_CORRUPT.
wick_status wick_prefix_check(const wick_prefix_cache *cache, wick_error *error);

#endif

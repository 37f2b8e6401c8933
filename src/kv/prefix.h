// kv/prefix.h — the prefix cache: finds whole pages of tokens that were processed before, by a
// chain of hashes (like vLLM's automatic prefix caching).
//
// An entry is one page of tokens after the page of its parent. Its hash covers the parent's hash,
// the salt (of a tenant, or of anything else that must be kept separate) and the tokens. A lookup
// also compares all three. So the entries form a radix tree of pages for each salt.
//
// The cache holds a reference to each page, which seals the page. An entry without users is idle.
// It is kept until pages or entries run short. Only leaves are evicted, the least recently used
// first. Eviction skips an entry whose page a sequence still uses, since that would free nothing,
// unless the eviction makes an ancestor a leaf whose page no sequence uses. Only the thread that
// writes the pool may use the cache.
#ifndef WICK_KV_PREFIX_H
#define WICK_KV_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/salt.h"
#include "base/status.h"
#include "kv/pool.h"

typedef uint64_t prefix_hash_t;

// Computes h = basis; for each value: h = (h ^ value) * prime, modulo 2^64. FNV-1a folds bytes;
// this function folds 32-bit values: parent and salt (low halves first), then the tokens. The
// result is mixed (hash_mix_u64), so collisions cannot be constructed. The parent of a root is 0.
prefix_hash_t page_hash(prefix_hash_t parent, uint64_t salt, const int32_t *tokens, uint32_t count);
typedef prefix_hash_t page_hash_function(prefix_hash_t parent, uint64_t salt, const int32_t *tokens,
                                         uint32_t count);

enum { PREFIX_ENTRIES_DEFAULT = 100, PREFIX_PAGE_TOKENS_MAX = 64 };
#define PREFIX_NONE UINT32_MAX

typedef uint32_t prefix_id;  // identifies an entry while it exists

typedef struct prefix_entry {
  prefix_hash_t hash;
  cache_salt salt;
  uint64_t last_access_tick, insert_serial;
  prefix_id parent;    // PREFIX_NONE: a root
  kv_page_id page;     // KV_PAGE_NONE: the slot is free
  uint32_t ref_count;  // users; 0: idle
  uint32_t child_count;
  uint32_t token_count;  // of the prefix that ends here
  prefix_id next;        // next entry of the same bucket, or next free slot
  bool is_linked;        // lookups find it; false if the cache was cleared while it had users
  bool is_blocked;       // scratch for counting reclaimable pages
} prefix_entry;

void prefix_entry_init(prefix_entry *entry, prefix_hash_t hash, uint32_t token_count,
                       kv_page_id page);  // one user, tick 0
void prefix_entry_retain(prefix_entry *entry);
// Removes a user. Sets *is_idle if this was the last user. WICK_E_ARG if the entry has no users.
wick_status prefix_entry_release(prefix_entry *entry, bool *is_idle);

typedef struct prefix_stats {
  uint64_t hits, misses;                       // every lookup of tokens counts as a hit or a miss
  uint64_t prefixes_cached, prefixes_evicted;  // entries inserted, evicted
  uint64_t tokens_saved;                       // on hits
  uint64_t collisions;                         // equal hash, different tokens
  uint64_t lookup_tokens, tokens_inserted, insert_refused;
  uint32_t pages_held;
} prefix_stats;

typedef struct prefix_cache prefix_cache;

// Data that may belong to an entry in addition to its page and that records of the cache include:
// parts of several kinds, each kind with a fixed size (pages of other pools, recurrent states). An
// entry need not have them.
enum { PREFIX_PARTS_MAX = 8 };
typedef struct prefix_parts {
  uint32_t kinds;
  uint64_t bytes[PREFIX_PARTS_MAX];
  uint64_t former_bytes[PREFIX_PARTS_MAX];                          // in records of 0.1.0
  const void *(*find)(void *context, prefix_id id, uint32_t kind);  // NULL: the entry has none
  // Stores a copy for a new entry if there is room.
  void (*keep)(void *context, prefix_id id, uint32_t kind, const void *bytes, bool is_former);
} prefix_parts;

typedef struct prefix_config {
  uint32_t entries_max;      // 0: nothing is ever stored
  uint32_t page_tokens;      // 1..64; a pool needs KERNEL_PAGE_TOKENS
  page_hash_function *hash;  // NULL: page_hash (tests inject collisions)
  // Called before an entry is removed; may be NULL.
  void (*removed)(void *context, prefix_id id);
  const prefix_parts *parts;  // NULL: none
  void *context;              // passed to `removed` and `parts`
} prefix_config;

// Creates a cache; config NULL: 100 entries of 16 tokens. The cache becomes the pool's holder; the
// pool must outlive it. The cache allocates memory as entries are added. WICK_E_ARG, WICK_E_NOMEM.
wick_status prefix_cache_init(memory_gate *memory, kv_pool *pool, const prefix_config *config,
                              prefix_cache **out, wick_error *error);
void prefix_cache_destroy(prefix_cache *cache);  // NULL does nothing

// ---- Functions for the engine ----

// Attaches the longest cached prefix of the tokens to an empty sequence (no tokens, no pages), in
// whole pages and at most count - 1 tokens: the last token must be computed for its logits. Sets
// *tokens_hit to the number of attached tokens. Counts one hit or one miss. WICK_E_SEQ, WICK_E_BUSY
// (not empty), WICK_E_NOMEM.
wick_status prefix_attach(prefix_cache *cache, kv_seq_id seq, cache_salt salt,
                          const int32_t *tokens, uint32_t count, uint32_t *tokens_hit,
                          wick_error *error);
// Adds the whole pages of a sequence whose stored tokens are tokens[0, count), as idle entries.
// Existing entries become the most recently used. Stops at a page that was shifted or fell out of a
// window, and when the cache is full. Sets *tokens_known (may be NULL) to the number of tokens that
// are now cached. WICK_E_SEQ, WICK_E_RANGE (more tokens than are stored), WICK_E_NOMEM (entries
// created so far are kept).
wick_status prefix_store(prefix_cache *cache, kv_seq_id seq, cache_salt salt, const int32_t *tokens,
                         uint32_t count, uint32_t *tokens_known, wick_error *error);

// Reserves memory for this many more entries (within entries_max), so that prefix_store allocates
// nothing for them. WICK_E_NOMEM.
wick_status prefix_reserve(prefix_cache *cache, uint32_t entries, wick_error *error);

// ---- Entries ----

// Returns the last entry of the longest cached prefix in whole pages, up to all `count` tokens, or
// PREFIX_NONE. Changes neither counters nor the order of use.
prefix_id prefix_peek(prefix_cache *cache, cache_salt salt, const int32_t *tokens, uint32_t count);
// Adds a page of tokens after `parent` (PREFIX_NONE: a root), with one user. Evicts an idle leaf
// when entries_max is reached; WICK_E_FULL if every leaf is in use. Sets *existed if the entry
// already existed and only became the most recently used. WICK_E_RANGE: parent or page is not in
// use. WICK_E_NOMEM.
wick_status prefix_insert(prefix_cache *cache, prefix_id parent, cache_salt salt,
                          const int32_t *tokens, kv_page_id page, prefix_id *id, bool *existed,
                          wick_error *error);
// Add a user to an entry, and remove one. An unknown entry is WICK_E_RANGE. Releasing an entry
// without users is WICK_E_ARG.
wick_status prefix_retain(prefix_cache *cache, prefix_id id);
wick_status prefix_release(prefix_cache *cache, prefix_id id);
// Evicts the least recently used idle leaf (ties: the one inserted first). Returns false if
// every leaf is in use.
bool prefix_evict(prefix_cache *cache);

uint32_t prefix_count(const prefix_cache *cache);
uint32_t prefix_capacity(const prefix_cache *cache);
prefix_stats prefix_stats_get(const prefix_cache *cache);
double prefix_hit_ratio(const prefix_stats *stats);  // 0 without lookups
// For loops over all ids, 0 to prefix_places - 1; an entry is NULL if its slot is free.
uint32_t prefix_places(const prefix_cache *cache);
const prefix_entry *prefix_entry_at(const prefix_cache *cache, prefix_id id);
const int32_t *prefix_entry_tokens(const prefix_cache *cache, prefix_id id);

#endif

// support/consistency.h — compares the structures, counters and references of page pools, prefix
// caches and stores with a recount. WICK_E_CORRUPT reports the first fault.
#ifndef WICK_TESTS_CONSISTENCY_H
#define WICK_TESTS_CONSISTENCY_H

#include "kv/pool.h"
#include "kv/prefix.h"
#include "store/store.h"

// Checks every invariant of kv/pool.h. O(pages + entries).
wick_status kv_pool_check(const kv_pool *pool, wick_error *error);
wick_status prefix_check(const prefix_cache *cache, wick_error *error);
// Also checks the store's pools and its prefix cache.
wick_status store_check(const seq_store *store, wick_error *error);

#endif

// reference/compaction.h — moves the pages of a pool together. The engine does not need this: any
// sequence can use any page wherever it is, so holes do not cost memory (docs/lab/memory.md has the
// measurement).
#ifndef WICK_REFERENCE_COMPACTION_H
#define WICK_REFERENCE_COMPACTION_H

#include "kv/pool.h"

#define KV_DEFRAG_THRESHOLD 0.3
// Returns true if the fragmentation exceeds the threshold, if more than a quarter is wasted with
// more than two holes, or if less than a tenth is free and there is a hole.
bool kv_pool_should_defrag(const kv_pool *pool, double threshold);
// Moves pages so that neighbours in a block table become neighbours in the pool: all sequences in
// the order of their ids, at most pages_moved_max pages. Call it only between steps. Returns the
// number of moved pages.
uint32_t kv_pool_defrag(kv_pool *pool, uint32_t pages_moved_max);
// Like kv_pool_defrag, for one sequence. A page moves if the slot after its neighbour is free, no
// other sequence shares the page, and the prefix cache does not contain it. *moved: number of moved
// pages. WICK_E_SEQ.
wick_status kv_seq_compact(kv_pool *pool, kv_seq_id seq, uint32_t *moved, wick_error *error);
// Returns (pairs that are neighbours in the pool) / (all pairs), or 1 if the sequence has at most
// one page or does not exist.
double kv_seq_contiguity_ratio(const kv_pool *pool, kv_seq_id seq);

#endif

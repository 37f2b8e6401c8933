// support/consistency.c — see consistency.h.
#include "consistency.h"

#include "kv/pool_types.h"
#include "kv/prefix_types.h"
#include "store/store_types.h"

// ---- A pool of pages ----

static wick_status pool_broken(wick_error *error, const char *what, uint32_t where, uint64_t found,
                               uint64_t wanted) {
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "%s %u: %llu instead of %llu", what,
                   where, (unsigned long long)found, (unsigned long long)wanted);
}

// Checks that entries are sorted and within their pages, and that no page occurs twice.
static wick_status check_table(const kv_pool *pool, uint32_t index, wick_error *error) {
  const kv_seq *seq = &pool->seqs[index];
  uint32_t end = 0;
  for (uint32_t i = 0; i < seq->entry_count; i++) {
    const kv_entry *entry = &seq->table[i];
    if (entry->first >= entry->last || entry->last > KERNEL_PAGE_TOKENS) {
      return pool_broken(error, "slots of an entry of sequence", seq->id, entry->first,
                         entry->last);
    }
    if (kv_entry_begin(entry) != end) {
      return pool_broken(error, "position in sequence", seq->id, kv_entry_begin(entry), end);
    }
    end = kv_entry_end(entry);
    if (entry->page < KV_PAGE_NONE || entry->page >= (int32_t)pool->page_count) {
      return pool_broken(error, "page of sequence", seq->id, (uint32_t)entry->page,
                         pool->page_count);
    }
    if (entry->page < 0) continue;
    if (pool->pages[entry->page].mark == index + 1) {
      return pool_broken(error, "page twice in sequence", seq->id, (uint32_t)entry->page, 0);
    }
    pool->pages[entry->page].mark = index + 1;
  }
  if (seq->token_count > end) {
    return pool_broken(error, "tokens of sequence", seq->id, seq->token_count, end);
  }
  if (seq->id == 0 || seq->id >= pool->seq_next ||
      (index > 0 && seq->id <= pool->seqs[index - 1].id)) {
    return pool_broken(error, "id of sequence", index, seq->id, pool->seq_next);
  }
  return WICK_OK;
}

static void clear_marks(const kv_pool *pool) {
  for (uint32_t i = 0; i < pool->page_count; i++) pool->pages[i].mark = 0;
}

static wick_status check_page(const kv_pool *pool, uint32_t index, wick_error *error) {
  const kv_page *page = &pool->pages[index];
  if (page->id != (kv_page_id)index)
    return pool_broken(error, "id", index, (uint32_t)page->id, index);
  const uint32_t wanted = page->mark + page->hold_count;
  if (page->ref_count != wanted) {
    return pool_broken(error, "references of page", index, page->ref_count, wanted);
  }
  if (page->fill_tokens > KERNEL_PAGE_TOKENS || (page->hold_count > 0 && !page->is_sealed)) {
    return pool_broken(error, "header of page", index, page->fill_tokens, page->hold_count);
  }
  if (page->ref_count != 0) return WICK_OK;
  if (page->fill_tokens != 0 || page->is_sealed || index < pool->free_from) {
    return pool_broken(error, "free page", index, page->fill_tokens, pool->free_from);
  }
  return WICK_OK;
}

static wick_status check_counters(const kv_pool *pool, uint32_t free_pages, uint32_t held,
                                  wick_error *error) {
  const kv_stats *stats = &pool->stats;
  const uint64_t active = stats->sequences_allocated - stats->sequences_freed;
  const uint64_t used = stats->pages_allocated - stats->pages_freed;
  if (pool->page_free != free_pages) {
    return pool_broken(error, "free pages of", pool->page_count, pool->page_free, free_pages);
  }
  if (held != stats->pages_held_prefix) {
    return pool_broken(error, "held pages of", pool->page_count, stats->pages_held_prefix, held);
  }
  if (active != pool->seq_count)
    return pool_broken(error, "sequences of", 0, active, pool->seq_count);
  if (used != pool->page_count - free_pages || used > stats->used_pages_max) {
    return pool_broken(error, "used pages of", pool->page_count, used,
                       pool->page_count - free_pages);
  }
  return WICK_OK;
}

// Returns whether both pools have the same sequences with the same token counts, and the same next
// id.
static bool pools_agree(const kv_pool *a, const kv_pool *b) {
  if (a->seq_count != b->seq_count || a->seq_next != b->seq_next) return false;
  for (uint32_t i = 0; i < a->seq_count; i++) {
    const kv_seq *first = &a->seqs[i], *second = &b->seqs[i];
    if (first->id != second->id || first->token_count != second->token_count) return false;
  }
  return true;
}

wick_status kv_pool_check(const kv_pool *pool, wick_error *error) {
  clear_marks(pool);
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    const wick_status status = check_table(pool, s, error);
    if (status != WICK_OK) return status;
  }
  clear_marks(pool);
  for (uint32_t s = 0; s < pool->seq_count; s++) {
    for (uint32_t i = 0; i < pool->seqs[s].entry_count; i++) {
      const kv_page_id page = pool->seqs[s].table[i].page;
      if (page >= 0) pool->pages[page].mark++;
    }
  }
  uint32_t free_pages = 0, held = 0;
  for (uint32_t i = 0; i < pool->page_count; i++) {
    const wick_status status = check_page(pool, i, error);
    if (status != WICK_OK) return status;
    free_pages += pool->pages[i].ref_count == 0;
    held += pool->pages[i].hold_count > 0;
  }
  return check_counters(pool, free_pages, held, error);
}

// ---- The prefix cache ----

static wick_status prefix_broken(wick_error *error, const char *what, uint32_t id) {
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "prefix cache: %s (%u)", what, id);
}

static wick_status check_entry(const prefix_cache *cache, prefix_id id, wick_error *error) {
  const prefix_entry *entry = &cache->entries[id];
  const kv_page *page = kv_pool_page(cache->pool, entry->page);
  if (page == NULL || page->hold_count == 0) return prefix_broken(error, "a page is not held", id);
  if (!entry->is_linked && entry->ref_count == 0)
    return prefix_broken(error, "entry not freed", id);
  uint32_t children = 0;
  for (prefix_id i = 0; i < cache->place_count; i++) {
    children += prefix_is_live(cache, i) && cache->entries[i].parent == id;
  }
  if (children != entry->child_count)
    return prefix_broken(error, "wrong child count of an entry", id);
  if (entry->parent != PREFIX_NONE && !prefix_is_live(cache, entry->parent)) {
    return prefix_broken(error, "missing parent of an entry", id);
  }
  return WICK_OK;
}

wick_status prefix_check(const prefix_cache *cache, wick_error *error) {
  uint32_t live = 0, linked = 0, chained = 0;
  for (prefix_id id = 0; id < cache->place_count; id++) {
    if (!prefix_is_live(cache, id)) continue;
    const wick_status status = check_entry(cache, id, error);
    if (status != WICK_OK) return status;
    live++;
    linked += cache->entries[id].is_linked;
  }
  for (uint32_t b = 0; b < cache->bucket_count; b++) {
    prefix_id id = cache->buckets[b];
    for (; id != PREFIX_NONE && chained <= live; id = cache->entries[id].next) chained++;
  }
  if (linked != cache->count || chained != linked)
    return prefix_broken(error, "entries", cache->count);
  if (live != cache->stats.pages_held) return prefix_broken(error, "wrong page count", live);
  return WICK_OK;
}

// ---- The store ----

static wick_status store_broken(wick_error *error, const char *what, uint32_t id) {
  return fail_with(error, WICK_E_CORRUPT, WICK_NO_OFFSET, "sequence store: %s (%u)", what, id);
}

// Returns the number of a pool's pages that entries of the prefix cache use.
static uint32_t entry_pages(const side_pool *side) {
  uint32_t count = 0;
  for (prefix_id id = 0; id < side->store->entry_capacity; id++) {
    count += side->entry_pages[id] != KV_PAGE_NONE;
  }
  return count;
}

// Checks that every sequence of a pool is in the others, with the same number of tokens.
static wick_status check_pools(const seq_store *store, wick_error *error) {
  wick_status status = kv_pool_check(store->pool, error);
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK; i++) {
    const side_pool *side = &store->sides[i];
    status = kv_pool_check(side->pool, error);
    if (status != WICK_OK) return status;
    const uint32_t held = kv_pool_stats(side->pool).pages_held_prefix;
    if (held != entry_pages(side)) return store_broken(error, "held pages", held);
    if (!pools_agree(store->pool, side->pool)) return store_broken(error, "sequences of a pool", i);
  }
  return status;
}

static uint32_t references_of(const seq_store *store, slot_id slot) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < store->seq_count; i++) {
    const store_seq *seq = &store->seqs[i];
    count += (seq->now == slot) + (seq->mid == slot) + (seq->next == slot);
    count += seq->rolling.slot == slot;
    for (uint32_t m = 0; m < seq->mark_count; m++) count += seq->marks[m].slot == slot;
  }
  for (uint32_t i = 0; store->entry_slots != NULL && i < store->entry_capacity; i++) {
    count += store->entry_slots[i] == slot;
  }
  return count;
}

wick_status store_check(const seq_store *store, wick_error *error) {
  wick_status status = check_pools(store, error);
  if (status == WICK_OK && store->prefix != NULL) status = prefix_check(store->prefix, error);
  if (status != WICK_OK) return status;
  uint32_t free_count = 0;
  for (uint32_t i = 0; i < store->slot_count; i++) {
    if (references_of(store, (slot_id)i) != store->slots[i].ref_count) {
      return store_broken(error, "references of a state", i);
    }
    free_count += store->slots[i].ref_count == 0;
  }
  if (free_count != store->slots_free) return store_broken(error, "free states", free_count);
  for (uint32_t i = 0; i < store->seq_count; i++) {
    const store_seq *seq = &store->seqs[i];
    if (!kv_seq_exists(store->pool, seq->id)) return store_broken(error, "no pages", seq->id);
    if (seq->position + seq->committed != store_tokens(store, seq->id)) {
      return store_broken(error, "the state's position", seq->id);
    }
  }
  return WICK_OK;
}

// store/cached.c — the prefix cache. An entry has the page of the pool that keeps all positions,
// the pages of other pools, and, for recurrent models, sometimes the state at its end.
#include <string.h>

#include "store/store_types.h"

static bool has_more(const seq_store *store) {
  return store_is_recurrent(store) || store->side_count != 0;
}

static slot_id slot_of(const seq_store *store, prefix_id id) {
  return id < store->entry_capacity ? store->entry_slots[id] : SLOT_NONE;
}

static kv_page_id page_of(const side_pool *side, prefix_id id) {
  return id < side->store->entry_capacity ? side->entry_pages[id] : KV_PAGE_NONE;
}

static void remove_state(seq_store *store, prefix_id id) {
  if (!store_is_recurrent(store) || slot_of(store, id) == SLOT_NONE) return;
  slot_release(store, &store->entry_slots[id]);
  store->entry_slot_count--;
}

static void remove_page(const side_pool *side, prefix_id id) {
  if (page_of(side, id) == KV_PAGE_NONE) return;
  kv_page_unhold(side->pool, side->entry_pages[id]);
  side->entry_pages[id] = KV_PAGE_NONE;
}

void cached_removed(void *context, prefix_id id) {
  seq_store *store = context;
  remove_state(store, id);
  for (uint32_t i = 0; i < store->side_count; i++) remove_page(&store->sides[i], id);
}

bool cached_evict_state(seq_store *store) {
  prefix_id oldest = PREFIX_NONE;
  uint64_t oldest_tick = 0;
  for (prefix_id id = 0; id < store->entry_capacity; id++) {
    if (store->entry_slots[id] == SLOT_NONE) continue;
    const uint64_t tick = prefix_entry_at(store->prefix, id)->last_access_tick;
    if (oldest != PREFIX_NONE && tick >= oldest_tick) continue;
    oldest = id;
    oldest_tick = tick;
  }
  if (oldest == PREFIX_NONE) return false;
  remove_state(store, oldest);
  return true;
}

// ---- Pages of side pools ----

// Whether only the cache has the page, so it can be evicted.
static bool is_idle(const side_pool *side, prefix_id id) {
  const kv_page_id page = page_of(side, id);
  return page != KV_PAGE_NONE && kv_pool_page(side->pool, page)->ref_count == 1;
}

uint32_t cached_reclaimable(void *context) {
  const side_pool *side = context;
  uint32_t count = 0;
  for (prefix_id id = 0; id < side->store->entry_capacity; id++) count += is_idle(side, id);
  return count;
}

// Whether `a` is evicted before `b`. Among entries that were used at the same time, a window's
// oldest tokens are evicted first, because sequences continue at their ends. Without a window, the
// last tokens are evicted first, because no entry after a missing page can be found.
static bool goes_before(const side_pool *side, const prefix_entry *a, const prefix_entry *b) {
  if (a->last_access_tick != b->last_access_tick) return a->last_access_tick < b->last_access_tick;
  const bool is_shorter = a->token_count < b->token_count;
  return kv_pool_shape(side->pool)->window != 0 ? is_shorter : a->token_count > b->token_count;
}

void cached_reclaim(void *context, uint32_t pages) {
  const side_pool *side = context;
  for (uint32_t freed = 0; freed < pages; freed++) {
    prefix_id first = PREFIX_NONE;
    for (prefix_id id = 0; id < side->store->entry_capacity; id++) {
      if (!is_idle(side, id)) continue;
      const prefix_entry *entry = prefix_entry_at(side->store->prefix, id);
      const prefix_entry *best = prefix_entry_at(side->store->prefix, first);
      if (best == NULL || goes_before(side, entry, best)) first = id;
    }
    if (first == PREFIX_NONE) return;
    remove_page(side, first);
  }
}

// ---- Finding ----

static const prefix_entry *entry_of(const seq_store *store, prefix_id id) {
  return prefix_entry_at(store->prefix, id);
}

static uint32_t tokens_of(const seq_store *store, prefix_id id) {
  return id == PREFIX_NONE ? 0 : entry_of(store, id)->token_count;
}

// Whether all pages that the token after the entry attends to are present.
static bool has_pages(const side_pool *side, prefix_id id) {
  const seq_store *store = side->store;
  const uint32_t first = window_first(kv_pool_shape(side->pool), tokens_of(store, id));
  for (; tokens_of(store, id) > first; id = entry_of(store, id)->parent) {
    if (page_of(side, id) == KV_PAGE_NONE) return false;
  }
  return true;
}

static bool is_usable(const seq_store *store, prefix_id id) {
  if (store_is_recurrent(store) && slot_of(store, id) == SLOT_NONE) return false;
  for (uint32_t i = 0; i < store->side_count; i++) {
    if (!has_pages(&store->sides[i], id)) return false;
  }
  return true;
}

// Returns the last entry of the longest cached prefix from which a sequence can continue.
static prefix_id find_usable(const seq_store *store, cache_salt salt, const int32_t *tokens,
                             uint32_t count) {
  prefix_id id = prefix_peek(store->prefix, salt, tokens, count);
  while (id != PREFIX_NONE && !is_usable(store, id)) id = entry_of(store, id)->parent;
  return id;
}

uint32_t store_cached(seq_store *store, cache_salt salt, const int32_t *tokens, uint32_t count) {
  if (store->prefix == NULL || count == 0) return 0;
  return tokens_of(store, find_usable(store, salt, tokens, count - 1));
}

// Attaches to an empty sequence the pages that the token after the entry attends to. WICK_E_NOMEM.
static wick_status attach_pages(const side_pool *side, kv_seq_id seq, prefix_id id) {
  const seq_store *store = side->store;
  const uint32_t count = tokens_of(store, id);
  const uint32_t first = window_first(kv_pool_shape(side->pool), count);
  const wick_status status = kv_seq_begin_after(side->pool, seq, count / KERNEL_PAGE_TOKENS, NULL);
  if (status != WICK_OK) return status;
  for (; tokens_of(store, id) > first; id = entry_of(store, id)->parent) {
    const uint32_t index = tokens_of(store, id) / KERNEL_PAGE_TOKENS - 1;
    kv_seq_put_page(side->pool, seq, index, page_of(side, id));
  }
  return WICK_OK;
}

uint32_t store_attach(seq_store *store, kv_seq_id seq_id, cache_salt salt, const int32_t *tokens,
                      uint32_t count) {
  if (store->prefix == NULL || count == 0) return 0;
  uint32_t hit = 0;
  if (!has_more(store)) {
    prefix_attach(store->prefix, seq_id, salt, tokens, count, &hit, NULL);
    return hit;
  }
  const prefix_id id = find_usable(store, salt, tokens, count - 1);
  const uint32_t usable = tokens_of(store, id);
  // one more token than the hit, because the last requested token is never part of it
  wick_status status = prefix_attach(store->prefix, seq_id, salt, tokens, usable + 1, &hit, NULL);
  if (status != WICK_OK || hit == 0) return 0;
  for (uint32_t i = 0; i < store->side_count && status == WICK_OK; i++) {
    status = attach_pages(&store->sides[i], seq_id, id);
  }
  if (status != WICK_OK) {
    pools_truncate(store, seq_id, 0);
    return 0;
  }
  store_seq *seq = store_find(store, seq_id);
  if (seq == NULL) return hit;
  slot_release(store, &seq->now);
  seq->now = store->entry_slots[id];
  slot_retain(store, seq->now);
  seq->position = hit;
  return hit;
}

// ---- Adding entries ----

static bool grow_pages(seq_store *store, side_pool *side, uint32_t capacity) {
  kv_page_id *pages =
      memory_resize(store->memory, side->entry_pages, capacity * sizeof *side->entry_pages);
  if (pages == NULL) return false;
  for (uint32_t i = store->entry_capacity; i < capacity; i++) pages[i] = KV_PAGE_NONE;
  side->entry_pages = pages;
  return true;
}

static bool grow_entries(seq_store *store, prefix_id id) {
  if (id < store->entry_capacity) return true;
  uint32_t capacity = store->entry_capacity == 0 ? 64 : store->entry_capacity;
  while (capacity <= id) capacity *= 2;
  for (uint32_t i = 0; i < store->side_count; i++) {
    if (!grow_pages(store, &store->sides[i], capacity)) return false;
  }
  if (store_is_recurrent(store)) {
    slot_id *slots = memory_resize(store->memory, store->entry_slots, capacity * sizeof *slots);
    if (slots == NULL) return false;
    for (uint32_t i = store->entry_capacity; i < capacity; i++) slots[i] = SLOT_NONE;
    store->entry_slots = slots;
  }
  store->entry_capacity = capacity;
  return true;
}

void cached_reserve(seq_store *store, uint32_t entries) {
  const uint32_t most = store->config.prefix_entries_max, had = prefix_places(store->prefix);
  const uint32_t places = entries < most - had ? had + entries : most;
  if (places != 0 && has_more(store)) grow_entries(store, places - 1);
}

// Whether a slot is available for the entry's state; other states are evicted for it.
static bool make_state_room(seq_store *store) {
  if (store->entry_slot_count >= store->config.checkpoints_max) cached_evict_state(store);
  return store->entry_slot_count < store->config.checkpoints_max;
}

// Adds the state at the last full page that the sequence has passed to that page's entry.
static void keep_state(seq_store *store, const store_seq *seq, cache_salt salt,
                       const int32_t *tokens, uint32_t count) {
  const state_mark mark = seq->rolling;
  if (mark.slot == SLOT_NONE || mark.position > count) return;
  const prefix_id id = prefix_peek(store->prefix, salt, tokens, mark.position);
  if (tokens_of(store, id) != mark.position || !grow_entries(store, id)) return;
  if (slot_of(store, id) != SLOT_NONE || !make_state_room(store)) return;
  slot_retain(store, mark.slot);
  store->entry_slots[id] = mark.slot;
  store->entry_slot_count++;
}

// Adds the sequence's pages to the entry and to the entries before it, if these have none.
static void keep_pages(side_pool *side, kv_seq_id seq, prefix_id id) {
  seq_store *store = side->store;
  uint32_t count;
  const kv_entry *table = kv_seq_table(side->pool, seq, &count);
  for (; id != PREFIX_NONE; id = entry_of(store, id)->parent) {
    if (!grow_entries(store, id)) return;
    const uint32_t index = tokens_of(store, id) / KERNEL_PAGE_TOKENS - 1;
    if (index >= count || table[index].page < 0 || page_of(side, id) != KV_PAGE_NONE) continue;
    kv_page_hold(side->pool, table[index].page);
    side->entry_pages[id] = table[index].page;
  }
}

void store_remember(seq_store *store, kv_seq_id id, cache_salt salt, const int32_t *tokens,
                    uint32_t count) {
  if (store->prefix == NULL) return;
  if (store_is_recurrent(store)) store_settle(store, id);
  const uint32_t stored = store_tokens(store, id);
  if (count > stored) count = stored;
  prefix_store(store->prefix, id, salt, tokens, count, NULL, NULL);
  if (store->side_count != 0) {
    const prefix_id last = prefix_peek(store->prefix, salt, tokens, count);
    for (uint32_t i = 0; i < store->side_count; i++) keep_pages(&store->sides[i], id, last);
  }
  const store_seq *seq = store_find(store, id);
  if (seq != NULL) keep_state(store, seq, salt, tokens, count);
}

// ---- Records ----

static const void *find_part(void *context, prefix_id id, uint32_t kind) {
  const seq_store *store = context;
  if (kind < store->side_count) {
    const side_pool *side = &store->sides[kind];
    const kv_page_id page = page_of(side, id);
    return page == KV_PAGE_NONE ? NULL : kv_page_bytes(side->pool, page);
  }
  const slot_id slot = slot_of(store, id);
  return slot == SLOT_NONE ? NULL : slot_bytes(store, slot);
}

static void load_state(seq_store *store, prefix_id id, const void *bytes) {
  if (!make_state_room(store)) return;
  const slot_id slot = slot_take_spare(store);
  if (slot == SLOT_NONE) return;
  memcpy(slot_bytes(store, slot), bytes, (size_t)store->config.state_bytes);
  store->entry_slots[id] = slot;
  store->entry_slot_count++;
}

static void load_page(const side_pool *side, prefix_id id, const void *bytes, bool is_former) {
  kv_page_id page;
  if (kv_page_take_held(side->pool, &page, NULL, NULL) != WICK_OK) return;
  if (state_page_put(side->pool, page, bytes, is_former) == WICK_OK) {
    side->entry_pages[id] = page;
  } else {
    kv_page_unhold(side->pool, page);
  }
}

static void keep_part(void *context, prefix_id id, uint32_t kind, const void *bytes,
                      bool is_former) {
  seq_store *store = context;
  if (!grow_entries(store, id)) return;
  if (kind < store->side_count) {
    load_page(&store->sides[kind], id, bytes, is_former);
  } else {
    load_state(store, id, bytes);
  }
}

const prefix_parts *cached_parts(seq_store *store) {
  prefix_parts *parts = &store->parts;
  *parts = (prefix_parts){.kinds = store->side_count, .find = find_part, .keep = keep_part};
  for (uint32_t i = 0; i < store->side_count; i++) {
    parts->bytes[i] = kv_pool_layout(store->sides[i].pool)->page_bytes;
    kv_layout former;
    kv_layout_former(&former, kv_pool_layout(store->sides[i].pool));
    parts->former_bytes[i] = former.page_bytes;
  }
  if (store_is_recurrent(store)) {
    parts->bytes[parts->kinds] = parts->former_bytes[parts->kinds] = store->config.state_bytes;
    parts->kinds++;
  }
  return parts->kinds == 0 ? NULL : parts;
}

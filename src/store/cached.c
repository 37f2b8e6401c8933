// store/cached.c — the prefix cache: pages found again, and for recurrent models the states that
// belong to the ends of some of them.
#include <string.h>

#include "store/store_types.h"

void cached_removed(void *context, prefix_id id) {
  seq_store *store = context;
  if (id >= store->entry_capacity || store->entry_slots[id] == SLOT_NONE) return;
  slot_release(store, &store->entry_slots[id]);
  store->entry_slot_count--;
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
  cached_removed(store, oldest);
  return true;
}

static slot_id slot_of(const seq_store *store, prefix_id id) {
  return id < store->entry_capacity ? store->entry_slots[id] : SLOT_NONE;
}

// The last entry of the longest cached beginning that a sequence can go on from.
static prefix_id find_usable(const seq_store *store, cache_salt salt, const int32_t *tokens,
                             uint32_t count) {
  prefix_id id = prefix_peek(store->prefix, salt, tokens, count);
  while (store_is_recurrent(store) && id != PREFIX_NONE && slot_of(store, id) == SLOT_NONE) {
    id = prefix_entry_at(store->prefix, id)->parent;
  }
  return id;
}

static uint32_t tokens_of(const seq_store *store, prefix_id id) {
  return id == PREFIX_NONE ? 0 : prefix_entry_at(store->prefix, id)->token_count;
}

uint32_t store_cached(seq_store *store, cache_salt salt, const int32_t *tokens, uint32_t count) {
  if (store->prefix == NULL || count == 0) return 0;
  return tokens_of(store, find_usable(store, salt, tokens, count - 1));
}

uint32_t store_attach(seq_store *store, kv_seq_id seq_id, cache_salt salt, const int32_t *tokens,
                      uint32_t count) {
  if (store->prefix == NULL || count == 0) return 0;
  uint32_t hit = 0;
  if (!store_is_recurrent(store)) {
    prefix_attach(store->prefix, seq_id, salt, tokens, count, &hit, NULL);
    return hit;
  }
  const prefix_id id = find_usable(store, salt, tokens, count - 1);
  const uint32_t usable = tokens_of(store, id);
  // one token more than the hit: the last of what is asked for is never part of it
  const wick_status status =
      prefix_attach(store->prefix, seq_id, salt, tokens, usable + 1, &hit, NULL);
  if (status != WICK_OK || hit == 0) return 0;
  store_seq *seq = store_find(store, seq_id);
  slot_release(store, &seq->now);
  seq->now = store->entry_slots[id];
  slot_retain(store, seq->now);
  seq->position = hit;
  return hit;
}

static bool grow_entries(seq_store *store, prefix_id id) {
  if (id < store->entry_capacity) return true;
  uint32_t capacity = store->entry_capacity == 0 ? 64 : store->entry_capacity;
  while (capacity <= id) capacity *= 2;
  slot_id *slots = memory_resize(store->memory, store->entry_slots, capacity * sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = store->entry_capacity; i < capacity; i++) slots[i] = SLOT_NONE;
  store->entry_slots = slots;
  store->entry_capacity = capacity;
  return true;
}

void cached_reserve(seq_store *store, uint32_t entries) {
  const uint32_t most = store->config.prefix_entries_max, had = prefix_places(store->prefix);
  const uint32_t places = entries < most - had ? had + entries : most;
  if (places != 0) grow_entries(store, places - 1);
}

// The state at the end of the whole pages that the sequence has passed last belongs to their entry.
static void keep_state(seq_store *store, const store_seq *seq, cache_salt salt,
                       const int32_t *tokens, uint32_t count) {
  const state_mark mark = seq->rolling;
  if (mark.slot == SLOT_NONE || mark.position > count) return;
  const prefix_id id = prefix_peek(store->prefix, salt, tokens, mark.position);
  if (tokens_of(store, id) != mark.position || slot_of(store, id) != SLOT_NONE) return;
  if (!grow_entries(store, id)) return;
  if (store->entry_slot_count >= store->config.checkpoints_max) cached_evict_state(store);
  if (store->entry_slot_count >= store->config.checkpoints_max) return;
  slot_retain(store, mark.slot);
  store->entry_slots[id] = mark.slot;
  store->entry_slot_count++;
}

void store_remember(seq_store *store, kv_seq_id id, cache_salt salt, const int32_t *tokens,
                    uint32_t count) {
  if (store->prefix == NULL) return;
  if (store_is_recurrent(store)) store_settle(store, id);
  const uint32_t stored = store_tokens(store, id);
  if (count > stored) count = stored;
  prefix_store(store->prefix, id, salt, tokens, count, NULL, NULL);
  const store_seq *seq = store_find(store, id);
  if (seq != NULL) keep_state(store, seq, salt, tokens, count);
}

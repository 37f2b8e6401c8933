// store/slots.c — memory for recurrent states: slots of one size, reference counts, and eviction
// when a slot is needed.
#include <string.h>

#include "store/store_types.h"

// Adds a free slot. Returns false if memory runs out.
static bool add_slot(seq_store *store) {
  if (store->slot_count == store->slot_capacity) {
    const uint32_t capacity = store->slot_capacity == 0 ? 8 : store->slot_capacity * 2;
    state_slot *slots = memory_resize(store->memory, store->slots, capacity * sizeof *slots);
    if (slots == NULL) return false;
    store->slots = slots;
    store->slot_capacity = capacity;
  }
  // Clears the memory, because blocks do not write the gaps between their parts, which are part of
  // saved states.
  uint8_t *bytes = memory_alloc_wide(store->memory, store->config.state_bytes);
  if (bytes == NULL) return false;
  memset(bytes, 0, (size_t)store->config.state_bytes);
  store->slots[store->slot_count++] = (state_slot){bytes, 0};
  store->slots_free++;
  return true;
}

static slot_id take_free(seq_store *store) {
  for (uint32_t i = 0; store->slots_free != 0 && i < store->slot_count; i++) {
    if (store->slots[i].ref_count != 0) continue;
    store->slots[i].ref_count = 1;
    store->slots_free--;
    return (slot_id)i;
  }
  return SLOT_NONE;
}

void slot_retain(seq_store *store, slot_id slot) { store->slots[slot].ref_count++; }

void slot_release(seq_store *store, slot_id *slot) {
  if (*slot == SLOT_NONE) return;
  if (--store->slots[*slot].ref_count == 0) {
    store->slots_free++;
    store->slots_freed++;
  }
  *slot = SLOT_NONE;
}

// Evicts the oldest mark of a sequence or, if no sequence has marks, a rolling mark. Returns false
// if there is none.
static bool evict_mark(seq_store *store) {
  for (uint32_t i = 0; i < store->seq_count; i++) {
    store_seq *seq = &store->seqs[i];
    if (seq->mark_count == 0) continue;
    slot_release(store, &seq->marks[0].slot);
    seq->mark_count--;
    for (uint32_t m = 0; m < seq->mark_count; m++) seq->marks[m] = seq->marks[m + 1];
    return true;
  }
  for (uint32_t i = 0; i < store->seq_count; i++) {
    if (store->seqs[i].rolling.slot == SLOT_NONE) continue;
    slot_release(store, &store->seqs[i].rolling.slot);
    return true;
  }
  return false;
}

// Evicts one checkpoint of the prefix cache or, if it has none, of a sequence. Returns false if
// there is none.
static bool evict_checkpoint(seq_store *store) {
  return cached_evict_state(store) || evict_mark(store);
}

// Takes the state within its rows from a pass that is being prepared.
static bool evict_mid(seq_store *store) {
  for (uint32_t i = 0; i < store->seq_count; i++) {
    if (store->seqs[i].mid == SLOT_NONE) continue;
    slot_release(store, &store->seqs[i].mid);
    store->seqs[i].mid_rows = 0;
    return true;
  }
  return false;
}

// Evicts checkpoints until a slot is free: dropping a reference to a shared slot frees nothing.
static void evict_until_free(seq_store *store) {
  while (store->slots_free == 0 && (evict_checkpoint(store) || evict_mid(store))) continue;
}

slot_id slot_take(seq_store *store) {
  if (store->slots_free == 0 && !add_slot(store)) evict_until_free(store);
  return take_free(store);
}

slot_id slot_take_spare(seq_store *store) {
  const uint32_t most = store->config.checkpoints_max + 2 * store->seq_count;
  if (store->slots_free == 0 && (store->slot_count >= most || !add_slot(store))) return SLOT_NONE;
  return take_free(store);
}

bool slot_reserve(seq_store *store, uint32_t count) {
  while (store->slots_free < count) {
    if (!add_slot(store) && !evict_checkpoint(store)) return false;
  }
  return true;
}

void slot_reserve_spare(seq_store *store, uint32_t count) {
  while (store->slots_free < count && add_slot(store)) continue;
}

void slots_destroy(seq_store *store) {
  for (uint32_t i = 0; i < store->slot_count; i++) {
    memory_free(store->memory, store->slots[i].bytes);
  }
  memory_free(store->memory, store->slots);
}

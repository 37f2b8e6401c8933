// grammar/work.c — chunks of memory, limits, and lists with ids.
#include "grammar/work.h"

#include <stdarg.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"

// With the address sanitizer, each piece is a separate block, so that accesses beyond its end are
// detected, and each allocation may fail.
#if defined(__has_feature) && __has_feature(address_sanitizer)
enum { CHUNK_BYTES = 0 };
#else
enum { CHUNK_BYTES = 64 << 10 };
#endif

struct work_chunk {
  work_chunk *next;
  uint64_t padding;
};

void work_begin(grammar_work *work, memory_gate *memory) {
  memset(work, 0, sizeof *work);
  work->memory = memory;
  work->limits = (grammar_limits){GRAMMAR_WORK_BYTES_MAX, GRAMMAR_WORK_STEPS_MAX};
}

void work_limit(grammar_work *work, const grammar_limits *limits, uint64_t slice_steps) {
  if (limits->bytes != 0) work->limits.bytes = limits->bytes;
  if (limits->steps != 0) work->limits.steps = limits->steps;
  work->slice_steps = slice_steps;
}

static void clear_arena(grammar_work *work, work_arena *arena) {
  while (arena->chunks != NULL) {
    work_chunk *next = arena->chunks->next;
    memory_free(work->memory, arena->chunks);
    arena->chunks = next;
  }
  *arena = (work_arena){0};
}

void work_end(grammar_work *work) {
  clear_arena(work, &work->arenas[0]);
  clear_arena(work, &work->arenas[1]);
}

void work_resume(grammar_work *work) {
  clear_arena(work, &work->arenas[0]);
  work->steps = work->lasting_steps;
  work->slice_taken = work->slice_lasting = 0;
  work->is_lasting = false;
  if (work_is_paused(work)) work->status = WICK_OK;
}

bool work_pause(grammar_work *work) {
  if (work->status != WICK_OK) return true;
  const uint64_t slice = work->slice_steps;
  // a slice must do more work than it repeats at its beginning
  if (slice == 0 || work->slice_taken < slice || work->slice_lasting < slice / 4) return false;
  work->status = WICK_E_BUSY;
  return true;
}

static void keep_all(grammar_work *work) {
  work_arena *from = &work->arenas[0], *to = &work->arenas[1];
  work->lasting_steps = work->steps;
  if (from->chunks == NULL) return;
  work_chunk **end = &from->chunks;
  while (*end != NULL) end = &(*end)->next;
  *end = to->chunks;
  from->used += to->used;
  *to = *from;
  *from = (work_arena){0};
}

bool work_keep(grammar_work *work) {
  if (work->status != WICK_OK) return true;
  if (work->slice_steps == 0 || 2 * work->slice_taken < work->slice_steps) return false;
  keep_all(work);
  work->status = WICK_E_BUSY;
  return true;
}

void work_settle(grammar_work *work) {
  keep_all(work);
  work->is_lasting = true;
}

bool work_fail(grammar_work *work, wick_status status, uint64_t offset_bytes, const char *format,
               ...) {
  if (work->status != WICK_OK) return false;
  va_list arguments;
  va_start(arguments, format);
  char message[WICK_ERROR_MESSAGE_BYTES];
  text_format_list(message, sizeof message, format, arguments);
  va_end(arguments);
  work->status = fail_with(&work->error, status, offset_bytes, "%s", message);
  return false;
}

bool work_step(grammar_work *work, uint32_t steps) {
  if (work->status != WICK_OK) return false;
  work->steps += steps;
  work->slice_taken += steps;
  if (work->is_lasting) {
    work->lasting_steps += steps;
    work->slice_lasting += steps;
  }
  if (work->steps <= work->limits.steps) return true;
  return work_fail(work, WICK_E_FULL, WICK_NO_OFFSET,
                   "the grammar takes more than %llu steps to compile",
                   (unsigned long long)work->limits.steps);
}

bool work_advance(grammar_work *work) { return work_step(work, 1) && !work_pause(work); }

static bool add_chunk(grammar_work *work, work_arena *arena, size_t size_bytes) {
  const size_t bytes = size_bytes > CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
  if (work->arenas[0].used + work->arenas[1].used + bytes > work->limits.bytes) {
    return work_fail(work, WICK_E_FULL, WICK_NO_OFFSET,
                     "the grammar takes more than %llu bytes to compile",
                     (unsigned long long)work->limits.bytes);
  }
  work_chunk *chunk = memory_alloc(work->memory, sizeof *chunk + bytes);
  if (chunk == NULL) {
    work->status = memory_fail(work->memory, &work->error, "a grammar");
    return false;
  }
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->at = (uint8_t *)(chunk + 1);
  arena->left = bytes;
  arena->used += bytes;
  return true;
}

static void *alloc(grammar_work *work, size_t count, size_t item_bytes) {
  size_t bytes;
  if (work->status != WICK_OK) return NULL;
  if (!checked_mul_size(count, item_bytes, &bytes) || bytes > work->limits.bytes) {
    work_fail(work, WICK_E_FULL, WICK_NO_OFFSET, "the grammar is too large");
    return NULL;
  }
  work_arena *arena = &work->arenas[work->is_lasting];
  bytes = align_size(bytes, 8);
  if (bytes > arena->left && !add_chunk(work, arena, bytes)) return NULL;
  void *block = arena->at;
  arena->at += bytes;
  arena->left -= bytes;
  return block;
}

void *work_alloc(grammar_work *work, size_t count, size_t item_bytes) {
  void *block = alloc(work, count, item_bytes);
  if (block != NULL) memset(block, 0, count * item_bytes);
  return block;
}

static bool grow_memos(grammar_work *work) {
  const uint32_t wanted = work->memo_slots == 0 ? 64 : work->memo_slots * 2;
  work_memo **slots = work_alloc(work, wanted, sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = 0; i < work->memo_slots; i++) {
    work_memo *memo = work->memos[i];
    uint64_t at = memo == NULL ? 0 : memo->key[0];
    while (memo != NULL && slots[at & (wanted - 1)] != NULL) at++;
    if (memo != NULL) slots[at & (wanted - 1)] = memo;
  }
  work->memos = slots;
  work->memo_slots = wanted;
  return true;
}

work_memo *work_remember(grammar_work *work, uint32_t kind, const void *key, size_t size_bytes) {
  const uint64_t hash[2] = {hash_bytes(key, size_bytes, 2 * kind),
                            hash_bytes(key, size_bytes, 2 * kind + 1)};
  const bool was_lasting = work->is_lasting;
  work->is_lasting = true;
  work_memo *made = NULL;
  if (work->memo_count * 2 < work->memo_slots || grow_memos(work)) {
    uint64_t at = hash[0];
    work_memo **slot;
    while ((slot = &work->memos[at & (work->memo_slots - 1)], *slot != NULL) &&
           ((*slot)->key[0] != hash[0] || (*slot)->key[1] != hash[1])) {
      at++;
    }
    made = *slot != NULL ? *slot : work_alloc(work, 1, sizeof *made);
    if (made != NULL && *slot == NULL) {
      *made = (work_memo){.key = {hash[0], hash[1]}};
      *slot = made;
      work->memo_count++;
    }
  }
  work->is_lasting = was_lasting;
  return work->status == WICK_OK ? made : NULL;
}

void *work_grow(grammar_work *work, const void *old, size_t count, size_t new_count,
                size_t item_bytes) {
  void *block = alloc(work, new_count, item_bytes);
  if (block != NULL && count != 0) memcpy(block, old, count * item_bytes);
  return block;
}

bool work_grow_list(grammar_work *work, void **items, uint32_t *capacity, size_t item_bytes) {
  const uint32_t wanted = *capacity == 0 ? 8 : *capacity * 2;
  void *grown = work_grow(work, *items, *capacity, wanted, item_bytes);
  if (grown == NULL) return false;
  *items = grown;
  *capacity = wanted;
  return true;
}

bool work_push(grammar_work *work, void **items, uint32_t *count, uint32_t *capacity,
               const void *item, size_t item_bytes) {
  if (*count >= *capacity && !work_grow_list(work, items, capacity, item_bytes)) return false;
  memcpy((uint8_t *)*items + *count * item_bytes, item, item_bytes);
  *count += 1;
  return true;
}

static bool grow_slots(grammar_work *work, work_sets *sets) {
  const uint32_t wanted = sets->slot_count == 0 ? 64 : sets->slot_count * 2;
  uint32_t *slots = work_alloc(work, wanted, sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = 0; i < sets->set_count; i++) {
    const uint32_t *values = sets->values.items + sets->sets[i].first;
    uint64_t at = hash_bytes(values, sets->sets[i].count * sizeof *values, 1);
    while (slots[at & (wanted - 1)] != 0) at++;
    slots[at & (wanted - 1)] = i + 1;
  }
  sets->slots = slots;
  sets->slot_count = wanted;
  return true;
}

uint32_t work_intern(grammar_work *work, work_sets *sets, const uint32_t *values, uint32_t count) {
  if (sets->set_count * 2 >= sets->slot_count && !grow_slots(work, sets)) return UINT32_MAX;
  uint64_t at = hash_bytes(values, count * sizeof *values, 1);
  for (;; at++) {
    const uint32_t found = sets->slots[at & (sets->slot_count - 1)];
    if (found == 0) break;
    if (sets->sets[found - 1].count == count &&
        (count == 0 || memcmp(sets->values.items + sets->sets[found - 1].first, values,
                              count * sizeof *values) == 0)) {
      return found - 1;
    }
  }
  if (sets->set_count == sets->set_capacity &&
      !work_grow_list(work, (void **)&sets->sets, &sets->set_capacity, sizeof *sets->sets)) {
    return UINT32_MAX;
  }
  const uint32_t first = sets->values.count;
  for (uint32_t i = 0; i < count; i++) {
    if (!WORK_PUSH(work, &sets->values, values[i])) return UINT32_MAX;
  }
  sets->sets[sets->set_count].first = first;
  sets->sets[sets->set_count].count = count;
  sets->slots[at & (sets->slot_count - 1)] = sets->set_count + 1;
  return sets->set_count++;
}

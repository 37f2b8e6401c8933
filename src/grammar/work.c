// grammar/work.c — chunks of memory, limits, and lists with ids.
#include "grammar/work.h"

#include <stdarg.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"

// The address sanitizer sees the end of a block: there each piece is one of its own, which may be
// refused by itself, too.
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
}

void work_end(grammar_work *work) {
  while (work->chunks != NULL) {
    work_chunk *next = work->chunks->next;
    memory_free(work->memory, work->chunks);
    work->chunks = next;
  }
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
  if (work->steps <= GRAMMAR_WORK_STEPS_MAX) return true;
  return work_fail(work, WICK_E_FULL, WICK_NO_OFFSET,
                   "the grammar takes more than %d steps to compile", GRAMMAR_WORK_STEPS_MAX);
}

static bool add_chunk(grammar_work *work, size_t size_bytes) {
  const size_t bytes = size_bytes > CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
  if (work->used + bytes > GRAMMAR_WORK_BYTES_MAX) {
    return work_fail(work, WICK_E_FULL, WICK_NO_OFFSET,
                     "the grammar takes more than %d bytes to compile", GRAMMAR_WORK_BYTES_MAX);
  }
  work_chunk *chunk = memory_alloc(work->memory, sizeof *chunk + bytes);
  if (chunk == NULL) {
    work->status = memory_fail(work->memory, &work->error, "a grammar");
    return false;
  }
  chunk->next = work->chunks;
  work->chunks = chunk;
  work->at = (uint8_t *)(chunk + 1);
  work->left = bytes;
  work->used += bytes;
  return true;
}

void *work_alloc(grammar_work *work, size_t count, size_t item_bytes) {
  size_t bytes;
  if (work->status != WICK_OK) return NULL;
  if (!checked_mul_size(count, item_bytes, &bytes) || bytes > GRAMMAR_WORK_BYTES_MAX) {
    work_fail(work, WICK_E_FULL, WICK_NO_OFFSET, "the grammar is too large");
    return NULL;
  }
  bytes = align_size(bytes, 8);
  if (bytes > work->left && !add_chunk(work, bytes)) return NULL;
  void *block = work->at;
  work->at += bytes;
  work->left -= bytes;
  memset(block, 0, bytes);
  return block;
}

void *work_grow(grammar_work *work, const void *old, size_t count, size_t new_count,
                size_t item_bytes) {
  void *block = work_alloc(work, new_count, item_bytes);
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

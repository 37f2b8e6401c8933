// web/web_heap.c — a first-fit allocator with a list of free blocks sorted by address, in which
// adjacent blocks are merged. Blocks in use have no header: the caller of web_heap_free passes the
// size. The memory grows only by the size that the last free block lacks, so a large block costs
// only its own size.
//
//   | stack | data | helpers' stacks | used | free | used | ... | free | <- the memory's end
//                                    first free blocks contain {size, next}
#include "web_heap.h"

#include <stdbool.h>

#include "base/checked.h"
#include "base/memory.h"

enum {
  WASM_PAGE_BYTES = 65536,
  GROW_BYTES_MIN = 4 * WASM_PAGE_BYTES  // so that several small blocks share one memory.grow
};

// End addresses are 64-bit, because the end of a full memory with 32-bit addresses is 2^32.
typedef struct free_block {
  size_t size_bytes;  // with these two words, a multiple of a cache line
  struct free_block *next;
} free_block;

static free_block *first_free;
static uint64_t end_max;  // the end of the fully grown memory

static uint64_t memory_end(void) {
  return (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE_BYTES;
}

static uint64_t block_end(const free_block *block) {
  return (uint64_t)(uintptr_t)block + block->size_bytes;
}

// Merges `block` with its successor if they touch.
static void join_next(free_block *block) {
  free_block *next = block->next;
  if (next == NULL || block_end(block) != (uintptr_t)next) return;
  block->size_bytes += next->size_bytes;
  block->next = next->next;
}

static void insert(free_block *block, size_t size_bytes) {
  free_block *before = NULL;
  free_block *after = first_free;
  while (after != NULL && (uintptr_t)after < (uintptr_t)block) {
    before = after;
    after = after->next;
  }
  block->size_bytes = size_bytes;
  block->next = after;
  join_next(block);
  if (before == NULL) {
    first_free = block;
  } else {
    before->next = block;
    join_next(before);
  }
}

void web_heap_start(uintptr_t first, uint32_t pages_max) {
  const uint64_t begin = align_size(first, CACHE_LINE_BYTES);
  first_free = NULL;
  end_max = (uint64_t)pages_max * WASM_PAGE_BYTES;
  if (begin < memory_end()) insert((free_block *)(uintptr_t)begin, (size_t)(memory_end() - begin));
}

uint64_t web_heap_bytes_left(void) {
  uint64_t left = end_max - memory_end();
  for (const free_block *block = first_free; block != NULL; block = block->next) {
    left += block->size_bytes;
  }
  return left;
}

// Returns the block that ends where the memory ends, or NULL.
static free_block *last_free(void) {
  free_block *block = first_free;
  while (block != NULL && block->next != NULL) block = block->next;
  return block != NULL && block_end(block) == memory_end() ? block : NULL;
}

static bool grow_by(uint64_t size_bytes) {
  const uint64_t end = memory_end();
  const uint64_t pages = (size_bytes + WASM_PAGE_BYTES - 1) / WASM_PAGE_BYTES;
  if (__builtin_wasm_memory_grow(0, (size_t)pages) == SIZE_MAX) return false;
  insert((free_block *)(uintptr_t)end, (size_t)(pages * WASM_PAGE_BYTES));
  return true;
}

// Takes `size_bytes` from the start of the first block that is large enough.
static void *take(size_t size_bytes) {
  free_block **link = &first_free;
  while (*link != NULL && (*link)->size_bytes < size_bytes) link = &(*link)->next;
  free_block *block = *link;
  if (block == NULL) return NULL;
  if (block->size_bytes == size_bytes) {
    *link = block->next;
    return block;
  }
  free_block *rest = (free_block *)((uintptr_t)block + size_bytes);
  rest->size_bytes = block->size_bytes - size_bytes;
  rest->next = block->next;
  *link = rest;
  return block;
}

static bool round_size(size_t size_bytes, size_t *rounded) {
  uint64_t value;
  return checked_align_u64(size_bytes == 0 ? 1 : size_bytes, CACHE_LINE_BYTES, &value) &&
         checked_to_size(value, rounded);
}

void *web_heap_alloc(size_t size_bytes) {
  size_t rounded;
  if (!round_size(size_bytes, &rounded)) return NULL;
  void *block = take(rounded);
  if (block != NULL) return block;
  const free_block *last = last_free();
  const uint64_t missing = rounded - (last == NULL ? 0 : last->size_bytes);
  const bool is_small = missing < GROW_BYTES_MIN;
  if (!(is_small && grow_by(GROW_BYTES_MIN)) && !grow_by(missing)) return NULL;
  return take(rounded);
}

void web_heap_free(void *block, size_t size_bytes) {
  size_t rounded;
  if (block != NULL && round_size(size_bytes, &rounded)) insert(block, rounded);
}

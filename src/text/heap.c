// text/heap.c — a binary min-heap in an array.
#include "text/heap.h"

enum { HEAP_KEYS_FIRST = 256 };

static bool heap_grow(key_heap *heap, memory_gate *memory) {
  const size_t wanted = heap->capacity == 0 ? HEAP_KEYS_FIRST : heap->capacity * 2;
  if (wanted > SIZE_MAX / sizeof *heap->keys) return false;
  uint64_t *keys = memory_resize(memory, heap->keys, wanted * sizeof *keys);
  if (keys == NULL) return false;
  heap->keys = keys;
  heap->capacity = wanted;
  return true;
}

bool heap_push(key_heap *heap, memory_gate *memory, uint64_t key) {
  if (heap->count == heap->capacity && !heap_grow(heap, memory)) return false;
  size_t at = heap->count++;
  while (at > 0) {
    const size_t parent = (at - 1) / 2;
    if (heap->keys[parent] <= key) break;
    heap->keys[at] = heap->keys[parent];
    at = parent;
  }
  heap->keys[at] = key;
  return true;
}

uint64_t heap_pop(key_heap *heap) {
  uint64_t *keys = heap->keys;
  const uint64_t least = keys[0];
  const size_t count = --heap->count;
  const uint64_t moved = keys[count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && keys[child + 1] < keys[child]) child++;
    if (moved <= keys[child]) break;
    keys[at] = keys[child];
    at = child;
  }
  keys[at] = moved;
  return least;
}

void heap_free(key_heap *heap, memory_gate *memory) { memory_free(memory, heap->keys); }

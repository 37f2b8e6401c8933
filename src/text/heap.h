// text/heap.h — a growing min-heap of 64-bit keys, for merges and for special tokens.
#ifndef WICK_TEXT_HEAP_H
#define WICK_TEXT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

// A struct of all zeros is an empty heap.
typedef struct key_heap {
  uint64_t *keys;
  size_t count;
  size_t capacity;
} key_heap;

// Adds a key in O(log n). Returns false if memory runs out; the heap is then unchanged.
bool heap_push(key_heap *heap, memory_gate *memory, uint64_t key);
// Removes the smallest key and returns it. The heap must not be empty. O(log n).
uint64_t heap_pop(key_heap *heap);
void heap_free(key_heap *heap, memory_gate *memory);

#endif

// web/web_heap.h — the allocator of the web and WASI builds, based on memory.grow. Only the
// engine's thread calls it.
#ifndef WICK_WEB_HEAP_H
#define WICK_WEB_HEAP_H

#include <stddef.h>
#include <stdint.h>

// Starts the allocator. The heap begins at `first` (the end of data and of the helpers' stacks),
// and the memory can grow to `pages_max` pages of WebAssembly. Must be called once, before the
// other functions.
void web_heap_start(uintptr_t first, uint32_t pages_max);
// Returns the number of free bytes plus the amount by which the memory can still grow.
uint64_t web_heap_bytes_left(void);

// Returns a block that is 64-byte aligned and not zeroed; NULL if the memory cannot grow enough.
void *web_heap_alloc(size_t size_bytes);
// Frees a block. `size_bytes` is the size that was passed to web_heap_alloc.
void web_heap_free(void *block, size_t size_bytes);

#endif

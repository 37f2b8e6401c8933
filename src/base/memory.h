// base/memory.h — the only allocator of the engine. It counts allocations, enforces a budget, and
// fails at the k-th call if a test requests that. The host supplies the memory (platform.h).
#ifndef WICK_BASE_MEMORY_H
#define WICK_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CACHE_LINE_BYTES = 64, CACHE_LINE_FLOATS = 16 };

typedef struct memory_gate {
  uint64_t budget_bytes;  // 0: no limit
  uint64_t bytes_now;     // bytes allocated now, including headers
  uint64_t bytes_peak;
  uint64_t calls;           // allocations since creation; decode must not change it
  uint64_t blocks_now;      // allocations not yet freed; 0 after everything was closed
  uint64_t refused_bytes;   // size of the last failed call
  uint64_t fail_at_call;    // 0: never; k: the k-th call since creation fails
  uint64_t fail_from_call;  // k: the k-th call and all later calls fail; 0: none
  void *(*host_alloc)(size_t size_bytes);  // 64-byte aligned, not zeroed, or NULL
  void (*host_free)(void *block, size_t size_bytes);
  const wick_host *host;  // provides the memory instead; NULL: host_alloc and host_free do
  uint8_t *reserve;       // memory_use_reserve; NULL: none
  size_t reserve_bytes, reserve_used_bytes;
} memory_gate;

// Initialises the gate. The caller passes the host's functions (platform_alloc, platform_free), so
// base does not include platform.
void memory_init(memory_gate *memory, uint64_t budget_bytes, void *(*host_alloc)(size_t),
                 void (*host_free)(void *, size_t));

// Called before the first block: memory then comes from `host`, if it provides any. NULL does
// nothing.
void memory_use_host(memory_gate *memory, const wick_host *host);

// Allocates a 64-byte aligned block that is not zeroed. NULL: the host has no memory, or the budget
// would be exceeded. Size 0 returns a valid pointer. Takes O(1) time in addition to that of the
// host.
void *memory_alloc(memory_gate *memory, size_t size_bytes);
void *memory_alloc_zeroed(memory_gate *memory, size_t size_bytes);
// Like memory_alloc, for a size that the host may be unable to address.
void *memory_alloc_wide(memory_gate *memory, uint64_t size_bytes);
// Allocates count * item_bytes; the product is checked.
void *memory_alloc_array(memory_gate *memory, size_t count, size_t item_bytes);
// Resizes a block and keeps its first min(old, new) bytes. NULL: the old block is unchanged.
void *memory_resize(memory_gate *memory, void *block, size_t size_bytes);
void *memory_resize_array(memory_gate *memory, void *block, size_t count, size_t item_bytes);
void memory_free(memory_gate *memory, void *block);  // NULL does nothing

// Until memory_end_reserve, all blocks come from `reserve`, which the caller allocated from the
// gate earlier, and none from the host. This is for short operations that must not allocate. The
// blocks are not counted, and all of them must be freed before memory_end_reserve. NULL: the
// reserve is used up.
void memory_use_reserve(memory_gate *memory, void *reserve, size_t size_bytes);
void memory_end_reserve(memory_gate *memory);

// Reports a NULL from the functions above: "out of memory: N bytes for <what> (M in use, budget
// B)". The gate has recorded the size.
wick_status memory_fail(const memory_gate *memory, wick_error *error, const char *what);

#endif

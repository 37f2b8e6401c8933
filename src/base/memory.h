// base/memory.h — the one gate through which all memory comes. It counts, keeps the budget, and can
// be told to fail at the k-th call (tests). Everything below the gate is the host's (platform.h).
#ifndef WICK_BASE_MEMORY_H
#define WICK_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { WICK_CACHE_LINE_BYTES = 64, WICK_CACHE_LINE_FLOATS = 16 };

typedef struct wick_memory {
  uint64_t budget_bytes;  // 0: none
  uint64_t bytes_now;     // held by callers now, headers included
  uint64_t bytes_peak;
  uint64_t calls;         // allocations asked for since creation; decoding must not move it
  uint64_t blocks_now;    // allocations not yet freed; 0 after everything was closed
  uint64_t fail_at_call;  // 0: never; k: the k-th call from creation answers NULL
  void *(*host_alloc)(size_t size_bytes);  // 64-byte aligned, not zeroed, or NULL
  void (*host_free)(void *block, size_t size_bytes);
} wick_memory;

// The host's functions are handed in (platform_alloc, platform_free), so that base needs no
// platform.
void memory_init(wick_memory *memory, uint64_t budget_bytes, void *(*host_alloc)(size_t),
                 void (*host_free)(void *, size_t));

// 64-byte aligned and not zeroed. NULL when the host refuses or the budget would be passed.
// Size 0 answers a valid pointer. O(1) beside the host's own cost.
void *memory_alloc(wick_memory *memory, size_t size_bytes);
void *memory_alloc_zeroed(wick_memory *memory, size_t size_bytes);
// count * item_bytes with the product checked.
void *memory_alloc_array(wick_memory *memory, size_t count, size_t item_bytes);
// Keeps the first min(old, new) bytes; on NULL the old block is untouched.
void *memory_resize(wick_memory *memory, void *block, size_t size_bytes);
void memory_free(wick_memory *memory, void *block);  // NULL is fine

// A status for a NULL of the above: "out of memory: <what> needs N bytes (M in use, budget B)".
wick_status memory_fail(const wick_memory *memory, wick_error *error, const char *what,
                        uint64_t size_bytes);

#endif

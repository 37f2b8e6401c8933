// emscripten/platform_emscripten.c — platform.h on Emscripten's C library, for programs that link
// libwick.a. Random numbers and threads are those of src/platform/getentropy.c, pthreads.c and
// no_threads.c. The rest of the archives is compiled like the web builds.
#define _GNU_SOURCE
#include <emscripten/console.h>
#include <emscripten/emscripten.h>
#include <emscripten/heap.h>
#include <emscripten/threading.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "platform/platform.h"

void *platform_alloc(size_t size_bytes) {
  return aligned_alloc(CACHE_LINE_BYTES, align_size(size_bytes, CACHE_LINE_BYTES));
}

void platform_free(void *block, size_t size_bytes) {
  (void)size_bytes;
  free(block);
}

// The amount by which the program's memory may still grow, not counting free blocks of its
// allocator.
uint64_t platform_memory_bytes_max(void) {
  const uintptr_t end = (uintptr_t)sbrk(0);
  const size_t end_max = emscripten_get_heap_max();
  return end < end_max ? end_max - end : 0;
}

uint64_t platform_now_us(void) { return (uint64_t)(emscripten_get_now() * 1000); }

void platform_log(const char *line) { emscripten_err(line); }

#if WICK_THREADS

// Emscripten's own wait: a page's main thread, which may not sleep, spins there.
void platform_wait32(const uint32_t *address, uint32_t expected, uint64_t timeout_us) {
  emscripten_futex_wait((volatile void *)(uintptr_t)address, expected, (double)timeout_us / 1000);
}

void platform_wake32(const uint32_t *address, uint32_t count) {
  emscripten_futex_wake((volatile void *)(uintptr_t)address,
                        count > INT_MAX ? INT_MAX : (int)count);
}

#endif

// emscripten/platform_emscripten.c — platform.h on Emscripten's C library and pthreads, for
// programs that link libwick.a. The rest of their archives is compiled as the web builds are.
#define _GNU_SOURCE
#include <emscripten/console.h>
#include <emscripten/emscripten.h>
#include <emscripten/heap.h>
#include <emscripten/threading.h>
#include <limits.h>
#include <pthread.h>
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

// What the program's memory may still grow by; what its allocator has free is not counted.
uint64_t platform_memory_bytes_max(void) {
  const uintptr_t end = (uintptr_t)sbrk(0);
  const size_t end_max = emscripten_get_heap_max();
  return end < end_max ? end_max - end : 0;
}

uint64_t platform_now_us(void) { return (uint64_t)(emscripten_get_now() * 1000); }

void platform_log(const char *line) { emscripten_err(line); }

void platform_random(void *out, size_t size_bytes) {
  enum { GETENTROPY_BYTES_MAX = 256 };
  uint8_t *bytes = out;
  while (size_bytes > 0) {
    const size_t piece = size_bytes < GETENTROPY_BYTES_MAX ? size_bytes : GETENTROPY_BYTES_MAX;
    if (getentropy(bytes, piece) != 0) abort();
    bytes += piece;
    size_bytes -= piece;
  }
}

#if WICK_THREADS

// Emscripten's own wait: a page's main thread, which may not sleep, spins there.
void platform_wait32(const uint32_t *address, uint32_t expected, uint64_t timeout_us) {
  emscripten_futex_wait((volatile void *)(uintptr_t)address, expected, (double)timeout_us / 1000);
}

void platform_wake32(const uint32_t *address, uint32_t count) {
  emscripten_futex_wake((volatile void *)(uintptr_t)address,
                        count > INT_MAX ? INT_MAX : (int)count);
}

typedef struct thread_start {
  void (*entry)(void *);
  void *argument;
} thread_start;

static void *run_thread(void *start) {
  const thread_start copy = *(thread_start *)start;
  free(start);
  copy.entry(copy.argument);
  return NULL;
}

// A helper runs in a worker of Emscripten's pool (-sPTHREAD_POOL_SIZE).
bool platform_thread_start(void (*entry)(void *), void *argument, uintptr_t *handle) {
  thread_start *start = malloc(sizeof *start);
  if (start == NULL) return false;
  *start = (thread_start){entry, argument};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_thread, start) != 0) {
    free(start);
    return false;
  }
  *handle = (uintptr_t)thread;
  return true;
}

void platform_thread_join(uintptr_t handle) { pthread_join((pthread_t)handle, NULL); }

#else

void platform_wait32(const uint32_t *address, uint32_t expected, uint64_t timeout_us) {
  (void)address;
  (void)expected;
  (void)timeout_us;
}

void platform_wake32(const uint32_t *address, uint32_t count) {
  (void)address;
  (void)count;
}

bool platform_thread_start(void (*entry)(void *), void *argument, uintptr_t *handle) {
  (void)entry;
  (void)argument;
  (void)handle;
  return false;
}

void platform_thread_join(uintptr_t handle) { (void)handle; }

#endif

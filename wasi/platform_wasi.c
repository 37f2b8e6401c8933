// wasi/platform_wasi.c — platform.h on WASI preview 1 (wasi-libc). There is one thread: no helper
// can start, and nobody can wake the caller.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../web/web_heap.h"
#include "platform/platform.h"

// wasi-libc's allocator gives no block of 2 GiB or more, since its sbrk takes a signed size. It
// serves the C library; the engine's heap is what this one grows the memory by.
static void start_heap(void) {
  enum { PAGE_BYTES = 65536, PAGES_MAX = 65536 };
  static bool has_started;
  if (has_started) return;
  has_started = true;
  // at its first call wasi-libc takes all the memory that there is by then
  void *volatile first = malloc(1);
  free(first);
  web_heap_start(__builtin_wasm_memory_size(0) * PAGE_BYTES, PAGES_MAX);
}

void *platform_alloc(size_t size_bytes) {
  start_heap();
  return web_heap_alloc(size_bytes);
}

void platform_free(void *block, size_t size_bytes) { web_heap_free(block, size_bytes); }

// A runtime may allow less.
uint64_t platform_memory_bytes_max(void) {
  start_heap();
  return web_heap_bytes_left();
}

uint64_t platform_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void platform_log(const char *line) { fprintf(stderr, "%s\n", line); }

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

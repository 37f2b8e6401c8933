// wasi/platform_wasi.c — platform.h on WASI preview 1 (wasi-libc). Random numbers are those of
// src/platform/getentropy.c; there is one thread (src/platform/no_threads.c).
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../web/web_heap.h"
#include "platform/platform.h"

// wasi-libc's allocator cannot return a block of 2 GiB or more, because its sbrk takes a signed
// size. So only the C library uses it, and the engine has a separate heap in the memory added
// later.
static void start_heap(void) {
  enum { PAGE_BYTES = 65536, PAGES_MAX = 65536 };
  static bool has_started;
  if (has_started) return;
  has_started = true;
  // wasi-libc's first malloc claims all the memory present at that time; malloc.c's returns NULL
  void *volatile first = malloc(1);
  free(first);
  web_heap_start(__builtin_wasm_memory_size(0) * PAGE_BYTES, PAGES_MAX);
}

void *platform_alloc(size_t size_bytes) {
  start_heap();
  return web_heap_alloc(size_bytes);
}

void platform_free(void *block, size_t size_bytes) { web_heap_free(block, size_bytes); }

// The runtime may allow less.
uint64_t platform_memory_bytes_max(void) {
  start_heap();
  return web_heap_bytes_left();
}

uint64_t platform_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void platform_log(const char *line) {
  const struct iovec pieces[] = {{(void *)line, strlen(line)}, {"\n", 1}};
  const ssize_t written = writev(STDERR_FILENO, pieces, 2);
  (void)written;  // a failure cannot be reported anywhere else
}

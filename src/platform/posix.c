// platform/posix.c — implements platform.h on POSIX systems (native builds: tests, sanitizers).
// Threads are in pthreads.c.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
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

uint64_t platform_memory_bytes_max(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

uint64_t platform_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void platform_log(const char *line) { fprintf(stderr, "%s\n", line); }

void platform_random(void *out, size_t size_bytes) {
  uint8_t *bytes = out;
  while (size_bytes > 0) {
    const ssize_t got = getrandom(bytes, size_bytes, 0);
    if (got < 0 && errno != EINTR) abort();
    if (got > 0) {
      bytes += got;
      size_bytes -= (size_t)got;
    }
  }
}

void platform_wait32(const uint32_t *address, uint32_t expected, uint64_t timeout_us) {
  const struct timespec timeout = {(time_t)(timeout_us / 1000000u),
                                   (long)(timeout_us % 1000000u * 1000u)};
  syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, expected, &timeout, NULL, 0);
}

void platform_wake32(const uint32_t *address, uint32_t count) {
  syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

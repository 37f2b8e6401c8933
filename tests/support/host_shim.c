// tests/support/host_shim.c — a library for LD_PRELOAD that makes a host difficult: the clock runs on by
// SHIM_CLOCK_MS with each look at it, and call number SHIM_CALLOC_FAILS of calloc finds no memory. With
// SHIM_CALLOC_COUNT the number of those calls is written to that file in the end.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_calloc(size_t count, size_t size_bytes);

static unsigned long calls;

static unsigned long setting(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : strtoul(text, NULL, 10);
}

void *calloc(size_t count, size_t size_bytes) {
  const unsigned long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (call == setting("SHIM_CALLOC_FAILS")) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_calloc(count, size_bytes);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static unsigned long ahead_ms;
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  const unsigned long ms =
      __atomic_add_fetch(&ahead_ms, setting("SHIM_CLOCK_MS"), __ATOMIC_RELAXED);
  now->tv_sec += (time_t)(ms / 1000);
  now->tv_nsec += (long)(ms % 1000) * 1000000;
  if (now->tv_nsec >= 1000000000) {
    now->tv_nsec -= 1000000000;
    now->tv_sec++;
  }
  return result;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("SHIM_CALLOC_COUNT");
  FILE *file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%lu", calls);
  fclose(file);
}

// lab/serve_clock.c — see serve_clock.h. WASI has a clock for the CPU time of a thread, which its C
// library does not provide.
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L  // clock_gettime, nanosleep
#endif
#include "lab/serve_clock.h"

#include <time.h>

#include "platform/platform.h"

#if defined(__wasi__)
#include <wasi/api.h>
static bool read_cpu_us(uint64_t *now_us) {
  __wasi_timestamp_t now_ns = 0;
  if (__wasi_clock_time_get(__WASI_CLOCKID_THREAD_CPUTIME_ID, 1000, &now_ns) != 0) return false;
  *now_us = now_ns / 1000;
  return true;
}
#else
static bool read_cpu_us(uint64_t *now_us) {
  struct timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return false;
  *now_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
  return true;
}
#endif

static bool read_us(uint32_t kind, uint64_t *now_us) {
  if (kind == SERVE_CPU) return read_cpu_us(now_us);
  *now_us = platform_now_us();
  return true;
}

bool serve_clock_start(serve_clock *clock, uint32_t kind) {
  *clock = (serve_clock){.kind = kind};
  return read_us(kind, &clock->start_us);
}

uint64_t serve_clock_now_us(const serve_clock *clock) {
  uint64_t now_us = clock->start_us;
  read_us(clock->kind, &now_us);
  return now_us - clock->start_us + clock->skipped_us;
}

void serve_clock_wait(serve_clock *clock, uint64_t wait_us) {
  if (clock->kind == SERVE_CPU) {
    clock->skipped_us += wait_us;
    return;
  }
  nanosleep(&(struct timespec){.tv_sec = (time_t)(wait_us / 1000000),
                               .tv_nsec = (long)(wait_us % 1000000) * 1000},
            NULL);
}

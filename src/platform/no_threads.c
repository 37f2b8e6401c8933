// platform/no_threads.c — platform.h's threads for single-threaded builds: no helper can start, and
// no other thread can wake the caller.
#include "platform/platform.h"

#if !WICK_THREADS

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

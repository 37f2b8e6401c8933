// platform/platform.h — everything that the engine needs from a host. Each host has one
// implementation: src/platform/posix.c (native), wasi/platform_wasi.c, web/platform_web.c,
// emscripten/platform_emscripten.c. No other file in src/ refers to a host.
#ifndef WICK_PLATFORM_H
#define WICK_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

// Allocates a block that is 64-byte aligned and not zeroed; NULL if the host is out of memory. The
// size is passed to free.
void *platform_alloc(size_t size_bytes);
void platform_free(void *block, size_t size_bytes);

// Returns the number of bytes that the host can still provide: physical memory, or the rest of the
// address space. 0: unknown.
uint64_t platform_memory_bytes_max(void);

// Reads a monotonic clock with an arbitrary start. The cost is a system call or a call into
// JavaScript.
uint64_t platform_now_us(void);

// Logs one line of text for developers, without a newline.
void platform_log(const char *line);

// Fills a buffer from the host's entropy source (for seeds that the caller did not choose).
void platform_random(void *out, size_t size_bytes);

// Sleeps while *address == expected, at most timeout_us; may wake early. Builds without threads
// return immediately.
void platform_wait32(const uint32_t *address, uint32_t expected, uint64_t timeout_us);
void platform_wake32(const uint32_t *address, uint32_t count);

// Starts a helper thread that runs entry(argument) and ends. Returns false if the host has no
// threads or cannot start one. On the web, JavaScript starts the helpers before the engine requests
// them, and the helpers enter through web/thread_web.c.
bool platform_thread_start(void (*entry)(void *), void *argument, uintptr_t *handle);
void platform_thread_join(uintptr_t handle);

#endif

// web/platform_web.c — implements platform.h with JavaScript as the host (js/wasm/wasm_module.js
// supplies the imports). Threads are in thread_web.c.
#include "platform/platform.h"
#include "web_heap.h"

#define WEB_IMPORT(name) __attribute__((import_module("env"), import_name(name)))

WEB_IMPORT("now_us") double web_now_us(void);
WEB_IMPORT("log") void web_log(const char *line, size_t size_bytes);
WEB_IMPORT("random") void web_random(void *out, size_t size_bytes);

void *platform_alloc(size_t size_bytes) { return web_heap_alloc(size_bytes); }

void platform_free(void *block, size_t size_bytes) { web_heap_free(block, size_bytes); }

uint64_t platform_memory_bytes_max(void) { return web_heap_bytes_left(); }

uint64_t platform_now_us(void) { return (uint64_t)web_now_us(); }

void platform_log(const char *line) { web_log(line, __builtin_strlen(line)); }

void platform_random(void *out, size_t size_bytes) { web_random(out, size_bytes); }

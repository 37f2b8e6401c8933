// model/arena.c — see arena.h.
#include "model/arena.h"

// Under the address sanitizer, which detects reads and writes outside the allocated buffers, each
// buffer is followed by an unused cache line.
#if defined(__has_feature) && __has_feature(address_sanitizer)
void __asan_unpoison_memory_region(const volatile void *from, size_t size_bytes);
void __asan_poison_memory_region(const volatile void *from, size_t size_bytes);
enum { GAP_BYTES = CACHE_LINE_BYTES };
static void allow(const uint8_t *from, uint64_t size_bytes) {
  __asan_unpoison_memory_region(from, (size_t)size_bytes);
}
static void forbid(const uint8_t *from, uint64_t size_bytes) {
  __asan_poison_memory_region(from, (size_t)size_bytes);
}
#else
enum { GAP_BYTES = 0 };
static void allow(const uint8_t *from, uint64_t size_bytes) { (void)from, (void)size_bytes; }
static void forbid(const uint8_t *from, uint64_t size_bytes) { (void)from, (void)size_bytes; }
#endif

void arena_begin(scratch_arena *arena, uint8_t *base, uint64_t size_bytes) {
  arena->base = base;
  forbid(base + arena->used_bytes, size_bytes - arena->used_bytes);
}

void *arena_take_bytes(scratch_arena *arena, uint64_t size_bytes) {
  uint8_t *at = arena->base == NULL ? NULL : arena->base + arena->used_bytes;
  const uint64_t line = CACHE_LINE_BYTES, taken_bytes = (size_bytes + line - 1) / line * line;
  arena->used_bytes += taken_bytes + GAP_BYTES;
  if (arena->used_bytes > arena->peak_bytes) arena->peak_bytes = arena->used_bytes;
  if (at != NULL) allow(at, taken_bytes);
  return at;
}

void arena_release(scratch_arena *arena, uint64_t mark) {
  if (arena->base != NULL) forbid(arena->base + mark, arena->used_bytes - mark);
  arena->used_bytes = mark;
}

float *arena_take_floats(scratch_arena *arena, uint64_t count) {
  return arena_take_bytes(arena, count * sizeof(float));
}

uint8_t *arena_take_act(scratch_arena *arena, uint64_t rows, uint32_t cols) {
  const uint32_t blocks = (cols + 31) / 32;
  return arena_take_bytes(arena, rows * arena->kernels->act_bytes(KERNEL_ACT_Q8, blocks * 32));
}

void arena_reserve_act(scratch_arena *arena, uint64_t rows, uint32_t cols) {
  const uint64_t begin = arena_mark(arena);
  arena_take_act(arena, rows, cols);
  arena_release(arena, begin);
}

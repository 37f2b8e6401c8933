// model/arena.c — see arena.h.
#include "model/arena.h"

void *arena_take_bytes(scratch_arena *arena, uint64_t size_bytes) {
  uint8_t *at = arena->base == NULL ? NULL : arena->base + arena->used_bytes;
  const uint64_t line = CACHE_LINE_BYTES;
  arena->used_bytes += (size_bytes + line - 1) / line * line;
  if (arena->used_bytes > arena->peak_bytes) arena->peak_bytes = arena->used_bytes;
  return at;
}

float *arena_take_floats(scratch_arena *arena, uint64_t count) {
  return arena_take_bytes(arena, count * sizeof(float));
}

uint8_t *arena_take_act(scratch_arena *arena, uint64_t rows, uint32_t cols) {
  const uint32_t blocks = (cols + 31) / 32;
  return arena_take_bytes(arena, rows * arena->kernels->act_bytes(KERNEL_ACT_Q8, blocks * 32));
}

// model/arena.h — the scratch of a pass. A block takes its buffers one behind the other and gives
// them back in reverse order (arena_mark, arena_release), so what does not live at the same time
// shares its place. Without memory the same calls measure: peak_bytes is what they need.
#ifndef WICK_MODEL_ARENA_H
#define WICK_MODEL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/memory.h"
#include "kernels/kernels.h"

typedef struct scratch_arena {
  const kernel_table *kernels;
  uint32_t batch_tokens;  // rows of a pass at most
  uint32_t threads;       // that may run at most
  uint8_t *base;          // NULL: sizes alone are wanted
  uint64_t used_bytes, peak_bytes;
} scratch_arena;

// Whole cache lines of at least `count` floats: the stride of a row that is also an activation.
static inline uint32_t arena_line_floats(uint32_t count) {
  return (uint32_t)align_size(count, CACHE_LINE_FLOATS);
}

// Room for so many bytes on a cache line; NULL while measuring.
static inline void *arena_take_bytes(scratch_arena *arena, uint64_t size_bytes) {
  uint8_t *at = arena->base == NULL ? NULL : arena->base + arena->used_bytes;
  const uint64_t line = CACHE_LINE_BYTES;
  arena->used_bytes += (size_bytes + line - 1) / line * line;
  if (arena->used_bytes > arena->peak_bytes) arena->peak_bytes = arena->used_bytes;
  return at;
}

static inline float *arena_take_floats(scratch_arena *arena, uint64_t count) {
  return arena_take_bytes(arena, count * sizeof(float));
}

// Activations of `rows` rows of `cols` values in the quantised form. Rows whose length is no
// multiple of 32 have none, but take the room of one that is.
static inline uint8_t *arena_take_act(scratch_arena *arena, uint64_t rows, uint32_t cols) {
  const uint32_t blocks = (cols + 31) / 32;
  return arena_take_bytes(arena, rows * arena->kernels->act_bytes(KERNEL_ACT_Q8, blocks * 32));
}

static inline uint64_t arena_mark(const scratch_arena *arena) { return arena->used_bytes; }
static inline void arena_release(scratch_arena *arena, uint64_t mark) { arena->used_bytes = mark; }

#endif

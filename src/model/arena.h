// model/arena.h — the scratch of a pass. A block takes its buffers one after the other and releases
// them in reverse order (arena_mark, arena_release), so buffers that are not used at the same time
// share memory. Without memory, the same calls only measure: peak_bytes is the required size.
#ifndef WICK_MODEL_ARENA_H
#define WICK_MODEL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/memory.h"
#include "kernels/kernels.h"

typedef struct scratch_arena {
  const kernel_table *kernels;
  uint32_t batch_tokens;  // maximum rows of a pass
  uint32_t threads;       // maximum number of running threads
  uint8_t *base;          // NULL: only measures sizes
  uint64_t used_bytes, peak_bytes;
} scratch_arena;

// Rounds up to whole cache lines of floats: the stride of a row that is also an activation.
static inline uint32_t arena_line_floats(uint32_t count) {
  return (uint32_t)align_size(count, CACHE_LINE_FLOATS);
}

// Sets the memory of an arena, including the part that it has already counted as used.
void arena_begin(scratch_arena *arena, uint8_t *base, uint64_t size_bytes);

// Takes this many bytes, aligned to a cache line. Returns NULL while measuring.
void *arena_take_bytes(scratch_arena *arena, uint64_t size_bytes);
float *arena_take_floats(scratch_arena *arena, uint64_t count);

// Takes memory for the activations of `rows` rows of `cols` values in quantised form. Rows whose
// length is not a multiple of 32 have no quantised form, but take as much memory as rows rounded up
// to a multiple of 32.
uint8_t *arena_take_act(scratch_arena *arena, uint64_t rows, uint32_t cols);

// Takes such memory and releases it: the arena can hold it at this point.
void arena_reserve_act(scratch_arena *arena, uint64_t rows, uint32_t cols);

static inline uint64_t arena_mark(const scratch_arena *arena) { return arena->used_bytes; }
void arena_release(scratch_arena *arena, uint64_t mark);

#endif

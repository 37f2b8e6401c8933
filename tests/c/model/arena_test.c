// Scratch memory of a pass: buffers are taken, measured and released.
#include "model/arena.h"

#include <string.h>

#include "check.h"

enum { COLS_MAX = 4500, ROWS = 3 };

// Returns the overhead per buffer, which is 0 except with the address sanitizer.
static uint64_t gap_bytes(void) {
  scratch_arena arena = {.kernels = kernels_bind()};
  arena_take_bytes(&arena, 0);
  return arena.used_bytes;
}

static uint64_t lines(uint64_t bytes) {
  return bytes % CACHE_LINE_BYTES == 0 ? bytes : bytes - bytes % CACHE_LINE_BYTES + 64;
}

TEST(buffers_are_contiguous_whole_cache_lines) {
  scratch_arena arena = {.kernels = kernels_bind()};
  const uint64_t gap = gap_bytes();
  uint64_t used = 0;
  for (uint64_t bytes = 0; bytes < 200; bytes++) {
    CHECK(arena_take_bytes(&arena, bytes) == NULL);
    used += lines(bytes) + gap;
    CHECK_EQ_UINT(arena.used_bytes, used);
    arena_take_floats(&arena, bytes);
    used += lines(4 * bytes) + gap;
    CHECK_EQ_UINT(arena.used_bytes, used);
  }
}

// Rows of every length get space for the next multiple of 32 values.
TEST(activations_have_space_for_whole_blocks) {
  const kernel_table *kernels = kernels_bind();
  const uint64_t gap = gap_bytes();
  uint32_t wrong = 0;
  for (uint32_t cols = 1; cols <= COLS_MAX; cols++) {
    scratch_arena arena = {.kernels = kernels};
    const uint32_t whole = cols % 32 == 0 ? cols : cols - cols % 32 + 32;
    arena_take_act(&arena, ROWS, cols);
    const uint64_t wanted = lines(ROWS * kernels->act_bytes(KERNEL_ACT_Q8, whole)) + gap;
    wrong += arena.used_bytes != wanted;
  }
  CHECK_EQ_UINT(wrong, 0);
}

TEST(released_buffers_are_reused_and_the_peak_is_recorded) {
  static _Alignas(CACHE_LINE_BYTES) uint8_t room[4096];
  scratch_arena plan = {.kernels = kernels_bind()}, arena = plan;
  arena_begin(&arena, room, sizeof room);
  const uint64_t mark = arena_mark(&arena);
  uint8_t *first = arena_take_bytes(&arena, 100);
  CHECK(first == room);
  memset(first, 1, 100);
  const uint64_t after = arena_mark(&arena);
  uint8_t *second = arena_take_bytes(&arena, 1000);
  CHECK(second >= first + 128);
  memset(second, 2, 1000);
  const uint64_t peak = arena.peak_bytes;
  CHECK_EQ_UINT(peak, arena.used_bytes);
  arena_release(&arena, after);
  CHECK(arena_take_bytes(&arena, 10) == second);
  CHECK_EQ_UINT(arena.peak_bytes, peak);
  arena_release(&arena, mark);
  CHECK_EQ_UINT(arena.used_bytes, 0);
  CHECK_EQ_UINT(arena.peak_bytes, peak);
  arena_begin(&arena, room, 0);  // from here on no part of `room` is reserved
}

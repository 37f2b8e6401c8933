// The memory gate (counts, budget, injected failures, resizing) and checked arithmetic.
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "check.h"
#include "platform/platform.h"

static memory_gate memory;

static void gate_open(uint64_t budget_bytes) {
  memory_init(&memory, budget_bytes, platform_alloc, platform_free);
}

static bool is_aligned(const void *block) {
  return block != NULL && (uintptr_t)block % CACHE_LINE_BYTES == 0;
}

TEST(blocks_are_aligned_and_counted) {
  gate_open(0);
  void *blocks[40];
  uint64_t held = 0;
  for (size_t i = 0; i < 40; i++) {
    const uint64_t before = memory.bytes_now;
    blocks[i] = memory_alloc(&memory, i * 37);
    REQUIRE(is_aligned(blocks[i]));
    memset(blocks[i], 0xaa, i * 37);
    CHECK(memory.bytes_now - before >= i * 37);
    CHECK(memory.bytes_now - before <= i * 37 + 2 * CACHE_LINE_BYTES);
    held = memory.bytes_now;
    CHECK_EQ_UINT(memory.calls, i + 1);
    CHECK_EQ_UINT(memory.blocks_now, i + 1);
  }
  for (size_t i = 0; i < 40; i++) memory_free(&memory, blocks[i]);
  CHECK_EQ_UINT(memory.bytes_now, 0);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_UINT(memory.bytes_peak, held);
  CHECK_EQ_UINT(memory.calls, 40);
  memory_free(&memory, NULL);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

TEST(zeroed_blocks_are_zero) {
  gate_open(0);
  for (int round = 0; round < 3; round++) {
    uint8_t *block = memory_alloc_zeroed(&memory, 1000);
    REQUIRE(is_aligned(block));
    uint8_t any = 0;
    for (int i = 0; i < 1000; i++) any |= block[i];
    CHECK_EQ_UINT(any, 0);
    memset(block, 0xff, 1000);
    memory_free(&memory, block);
  }
}

TEST(an_array_whose_size_overflows_is_rejected) {
  gate_open(0);
  CHECK(memory_alloc_array(&memory, SIZE_MAX / 4, 8) == NULL);
  CHECK(memory_alloc_array(&memory, SIZE_MAX, SIZE_MAX) == NULL);
  CHECK(memory_alloc(&memory, SIZE_MAX) == NULL);
  CHECK(memory_alloc(&memory, SIZE_MAX - CACHE_LINE_BYTES) == NULL);
  CHECK_EQ_UINT(memory.bytes_now, 0);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  uint32_t *array = memory_alloc_array(&memory, 100, sizeof *array);
  REQUIRE(is_aligned(array));
  for (uint32_t i = 0; i < 100; i++) array[i] = i;
  memory_free(&memory, array);
  void *empty = memory_alloc_array(&memory, 0, 8);
  CHECK(is_aligned(empty));
  memory_free(&memory, empty);
}

TEST(the_budget_is_enforced) {
  gate_open(10000);
  void *first = memory_alloc(&memory, 6000);
  REQUIRE(first != NULL);
  CHECK(memory_alloc(&memory, 6000) == NULL);
  CHECK_EQ_UINT(memory.blocks_now, 1);
  CHECK_EQ_UINT(memory.calls, 2);
  memory_free(&memory, first);
  void *second = memory_alloc(&memory, 9000);
  CHECK(second != NULL);
  memory_free(&memory, second);
  CHECK(memory_alloc(&memory, 20000) == NULL);
  CHECK(memory_alloc_zeroed(&memory, 20000) == NULL);
  CHECK(memory.bytes_peak <= 10000);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

TEST(the_budget_can_be_used_to_the_last_byte) {
  gate_open(0);
  void *block = memory_alloc(&memory, 5000);
  const uint64_t cost = memory.bytes_now;
  memory_free(&memory, block);
  gate_open(cost);
  block = memory_alloc(&memory, 5000);
  CHECK(block != NULL);
  memory_free(&memory, block);
  gate_open(cost - 1);
  CHECK(memory_alloc(&memory, 5000) == NULL);
}

TEST(only_the_chosen_call_fails) {
  for (uint64_t fail_at = 1; fail_at <= 5; fail_at++) {
    gate_open(0);
    memory.fail_at_call = fail_at;
    void *blocks[5];
    for (uint64_t i = 0; i < 5; i++) {
      blocks[i] = memory_alloc(&memory, 10);
      CHECK((blocks[i] == NULL) == (i + 1 == fail_at));
    }
    CHECK_EQ_UINT(memory.blocks_now, 4);
    for (int i = 0; i < 5; i++) memory_free(&memory, blocks[i]);
    CHECK_EQ_UINT(memory.bytes_now, 0);
  }
}

TEST(resizing_keeps_the_contents) {
  gate_open(0);
  uint8_t *block = memory_resize(&memory, NULL, 100);
  REQUIRE(is_aligned(block));
  for (int i = 0; i < 100; i++) block[i] = (uint8_t)i;
  block = memory_resize(&memory, block, 5000);
  REQUIRE(is_aligned(block));
  bool kept = true;
  for (int i = 0; i < 100; i++) kept &= block[i] == i;
  CHECK(kept);
  memset(block + 100, 0xee, 4900);
  block = memory_resize(&memory, block, 50);
  REQUIRE(is_aligned(block));
  for (int i = 0; i < 50; i++) kept &= block[i] == i;
  CHECK(kept);
  CHECK_EQ_UINT(memory.blocks_now, 1);
  CHECK(memory.bytes_now <= 50 + 2 * CACHE_LINE_BYTES);
  memory.fail_at_call = memory.calls + 1;
  CHECK(memory_resize(&memory, block, 500) == NULL);
  for (int i = 0; i < 50; i++) kept &= block[i] == i;
  CHECK(kept);
  CHECK_EQ_UINT(memory.blocks_now, 1);
  memory_free(&memory, block);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

static size_t freed_bytes;

static void *refuse(size_t size_bytes) {
  (void)size_bytes;
  return NULL;
}

static void note_free(void *block, size_t size_bytes) {
  freed_bytes += size_bytes;
  platform_free(block, size_bytes);
}

TEST(host_allocation_may_fail_and_free_receives_the_size) {
  memory_init(&memory, 0, refuse, platform_free);
  CHECK(memory_alloc(&memory, 1) == NULL);
  CHECK(memory_alloc_zeroed(&memory, 1) == NULL);
  CHECK_EQ_UINT(memory.bytes_now, 0);
  CHECK_EQ_UINT(memory.calls, 2);
  memory_init(&memory, 0, platform_alloc, note_free);
  void *block = memory_alloc(&memory, 1000);
  const uint64_t held = memory.bytes_now;
  memory_free(&memory, block);
  CHECK_EQ_UINT(freed_bytes, held);
}

static void expect_failed_size(const char *bytes) {
  wick_error error = {0};
  char message[160];
  CHECK_EQ_INT(memory_fail(&memory, &error, "KV pages"), WICK_E_NOMEM);
  snprintf(message, sizeof message, "out of memory: %s bytes for KV pages (0 in use, budget 4096)",
           bytes);
  CHECK_EQ_STR(error.message, message);
}

// The caller of memory_fail passes no size, so that it cannot report the wrong one.
TEST(an_allocation_error_contains_purpose_and_size) {
  gate_open(4096);
  void *block = memory_alloc(&memory, 1000);
  CHECK(memory_alloc(&memory, 123456789) == NULL);
  wick_error error = {0};
  CHECK_EQ_INT(memory_fail(&memory, &error, "KV pages"), WICK_E_NOMEM);
  CHECK_EQ_INT(error.status, WICK_E_NOMEM);
  CHECK_EQ_UINT(error.offset_bytes, WICK_NO_OFFSET);
  CHECK_EQ_STR(error.message,
               "out of memory: 123456789 bytes for KV pages (1088 in use, budget 4096)");
  CHECK_EQ_UINT(error.numbers[0], 123456789 + 1088);
  CHECK_EQ_UINT(error.numbers[1], 4096);
  memory_free(&memory, block);
  gate_open(0);
  memory.fail_at_call = 1;
  CHECK(memory_alloc(&memory, 70) == NULL);
  CHECK_EQ_INT(memory_fail(&memory, &error, "KV pages"), WICK_E_NOMEM);
  CHECK_EQ_STR(error.message, "out of memory: 70 bytes for KV pages (0 in use)");
}

TEST(every_allocation_function_records_the_failed_size) {
  gate_open(4096);
  CHECK(memory_alloc_zeroed(&memory, 5001) == NULL);
  expect_failed_size("5001");
  CHECK(memory_alloc_wide(&memory, 5002) == NULL);
  expect_failed_size("5002");
  CHECK(memory_alloc_array(&memory, 1001, 5) == NULL);
  expect_failed_size("5005");
  CHECK(memory_resize(&memory, NULL, 5006) == NULL);
  expect_failed_size("5006");
  CHECK(memory_resize_array(&memory, NULL, 1001, 7) == NULL);
  expect_failed_size("7007");
  CHECK(memory_alloc_array(&memory, SIZE_MAX, SIZE_MAX) == NULL);
  // the product if it fits in 64 bits, otherwise the maximum
  expect_failed_size(SIZE_MAX == UINT32_MAX ? "18446744065119617025" : "18446744073709551615");
  memory.fail_from_call = 1;
  CHECK(memory_alloc(&memory, 9) == NULL);
  expect_failed_size("9");
  memory.fail_from_call = 0;
  void *reserve = memory_alloc(&memory, 256);
  memory_use_reserve(&memory, reserve, 256);
  CHECK(memory_alloc(&memory, 300) == NULL);
  memory_end_reserve(&memory);
  memory_free(&memory, reserve);
  expect_failed_size("300");
}

TEST(sizes_beyond_the_address_space_never_reach_the_host) {
  gate_open(0);
  CHECK(memory_alloc_array(&memory, SIZE_MAX, 2) == NULL);
  CHECK(memory_resize_array(&memory, NULL, SIZE_MAX, 2) == NULL);
  void *block = memory_alloc_array(&memory, 4, 8);
  memset(block, 7, 32);
  block = memory_resize_array(&memory, block, 100, 8);
  CHECK(block != NULL);
  CHECK_EQ_UINT(((const uint8_t *)block)[31], 7);
  CHECK(memory_resize_array(&memory, block, SIZE_MAX, 8) == NULL);  // the block is unchanged
  memory_free(&memory, block);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// ---- checked arithmetic ----

TEST(sums_and_products_do_not_wrap) {
  uint64_t wide = 7;
  CHECK(checked_add_u64(UINT64_MAX - 5, 5, &wide) && wide == UINT64_MAX);
  CHECK(!checked_add_u64(UINT64_MAX - 5, 6, &wide) && wide == UINT64_MAX);
  CHECK(checked_mul_u64(1ull << 32, (1ull << 32) - 1, &wide) && wide == 0xffffffff00000000u);
  CHECK(!checked_mul_u64(1ull << 32, 1ull << 32, &wide) && wide == 0xffffffff00000000u);
  CHECK(checked_mul_u64(0, UINT64_MAX, &wide) && wide == 0);
  CHECK(checked_mul_u64(UINT64_MAX, 0, &wide) && wide == 0);
  CHECK(checked_mul_u64(UINT64_MAX, 1, &wide) && wide == UINT64_MAX);
  size_t size = 7;
  CHECK(checked_add_size(SIZE_MAX, 0, &size) && size == SIZE_MAX);
  CHECK(!checked_add_size(SIZE_MAX, 1, &size) && size == SIZE_MAX);
  CHECK(checked_mul_size(SIZE_MAX / 3, 3, &size) && size == SIZE_MAX / 3 * 3);
  CHECK(!checked_mul_size(SIZE_MAX / 3 + 1, 3, &size));
  CHECK(checked_to_size(SIZE_MAX, &size) && size == SIZE_MAX);
  CHECK(checked_to_size(UINT64_MAX, &size) == (sizeof(size_t) == 8));
}

TEST(aligning_rounds_up) {
  uint64_t wide;
  CHECK(checked_align_u64(0, 32, &wide) && wide == 0);
  CHECK(checked_align_u64(1, 32, &wide) && wide == 32);
  CHECK(checked_align_u64(64, 32, &wide) && wide == 64);
  CHECK(checked_align_u64(UINT64_MAX - 31, 32, &wide) && wide == UINT64_MAX - 31);
  CHECK(!checked_align_u64(UINT64_MAX - 30, 32, &wide));
  CHECK_EQ_UINT(align_size(65, 64), 128);
  CHECK_EQ_UINT(align_size(0, 64), 0);
  CHECK_EQ_UINT(ceil_div_u32(0, 16), 0);
  CHECK_EQ_UINT(ceil_div_u32(17, 16), 2);
  CHECK_EQ_UINT(ceil_div_u32(UINT32_MAX, 1), UINT32_MAX);
  CHECK_EQ_UINT(ceil_div_u32(UINT32_MAX, 2), 0x80000000u);
}

// A reserve hands out consecutive blocks until it is used up and does not change the gate's counts.
TEST(a_reserve_returns_its_blocks_each_time) {
  enum { RESERVE_BYTES = 4096, BLOCKS_MAX = 40 };
  gate_open(0);
  uint8_t *reserve = memory_alloc(&memory, RESERVE_BYTES);
  REQUIRE(reserve != NULL);
  const uint64_t calls = memory.calls, bytes = memory.bytes_now, peak = memory.bytes_peak;
  uint32_t counts[3] = {0};
  for (uint32_t round = 0; round < 3; round++) {
    uint8_t *blocks[BLOCKS_MAX];
    uint32_t count = 0;
    memory_use_reserve(&memory, reserve, RESERVE_BYTES);
    CHECK(memory_alloc(&memory, RESERVE_BYTES) == NULL);
    CHECK(memory_alloc(&memory, SIZE_MAX) == NULL);
    while (count < BLOCKS_MAX && (blocks[count] = memory_alloc(&memory, 100)) != NULL) {
      CHECK_EQ_UINT((uintptr_t)blocks[count] % 64, 0);
      CHECK(blocks[count] > reserve && blocks[count] + 100 <= reserve + RESERVE_BYTES);
      CHECK(count == 0 || blocks[count] >= blocks[count - 1] + 100);
      memset(blocks[count], (int)count + 1, 100);
      count++;
    }
    counts[round] = count;
    for (uint32_t i = 0; i < count; i++) {
      CHECK_EQ_INT(blocks[i][0], (int)i + 1);
      CHECK_EQ_INT(blocks[i][99], (int)i + 1);
      memory_free(&memory, blocks[i]);
    }
    CHECK(memory_alloc(&memory, 100) == NULL);  // freed blocks are not reused
    memory_end_reserve(&memory);
    CHECK_EQ_UINT(memory.calls, calls);
    CHECK_EQ_UINT(memory.bytes_now, bytes);
    CHECK_EQ_UINT(memory.bytes_peak, peak);
    CHECK_EQ_UINT(memory.blocks_now, 1);
  }
  CHECK(counts[0] >= RESERVE_BYTES / 256 && counts[0] < RESERVE_BYTES / 100);
  CHECK_EQ_UINT(counts[1], counts[0]);
  CHECK_EQ_UINT(counts[2], counts[0]);
  // all blocks take the same number of bytes: that many are enough for one, one byte less is not
  const size_t one = RESERVE_BYTES / counts[0] / 64 * 64;
  memory_use_reserve(&memory, reserve, one);
  CHECK(memory_alloc(&memory, 100) != NULL);
  CHECK(memory_alloc(&memory, 0) == NULL);
  memory_end_reserve(&memory);
  memory_use_reserve(&memory, reserve, one - 1);
  CHECK(memory_alloc(&memory, 100) == NULL);
  memory_end_reserve(&memory);
  uint8_t *outside = memory_alloc(&memory, 100);
  CHECK(outside != NULL && memory.calls == calls + 1 && memory.blocks_now == 2);
  memory_free(&memory, outside);
  memory_free(&memory, reserve);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

// A reserve does not change how other blocks are freed, wherever they are.
TEST(blocks_outside_a_reserve_are_freed_while_it_is_used) {
  enum { BYTES = 512 };
  gate_open(0);
  uint8_t *blocks[3];
  for (size_t i = 0; i < 3; i++) {
    blocks[i] = memory_alloc(&memory, BYTES);
    REQUIRE(blocks[i] != NULL);
    for (size_t at = i; at > 0 && blocks[at] < blocks[at - 1]; at--) {
      uint8_t *higher = blocks[at - 1];
      blocks[at - 1] = blocks[at];
      blocks[at] = higher;
    }
  }
  memory_use_reserve(&memory, blocks[1], BYTES);
  memory_free(&memory, blocks[0]);
  memory_free(&memory, blocks[2]);
  CHECK_EQ_UINT(memory.blocks_now, 1);
  memory_end_reserve(&memory);
  memory_free(&memory, blocks[1]);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

typedef struct own_host {
  uint32_t taken, given_back, off_bytes;
  size_t size_bytes;  // size of the last block
  void *block;
} own_host;

static void *take_own(void *context, size_t size_bytes) {
  own_host *own = context;
  uint8_t *block = platform_alloc(size_bytes + own->off_bytes);
  own->taken++;
  own->size_bytes = size_bytes;
  own->block = block == NULL ? NULL : block + own->off_bytes;
  return own->block;
}

static void free_own(void *context, void *block, size_t size_bytes) {
  own_host *own = context;
  own->given_back++;
  CHECK(block == own->block);
  CHECK_EQ_UINT(size_bytes, own->size_bytes);
  platform_free((uint8_t *)block - own->off_bytes, size_bytes + own->off_bytes);
}

TEST(host_blocks_are_returned_to_the_host) {
  own_host own = {0};
  const wick_host host = {.context = &own, .alloc = take_own, .free = free_own};
  const wick_host without = {.context = &own, .free = free_own};
  gate_open(0);
  memory_use_host(&memory, NULL);
  memory_use_host(&memory, &without);
  void *block = memory_alloc(&memory, 100);
  CHECK(is_aligned(block) && own.taken == 0);
  memory_free(&memory, block);
  memory_use_host(&memory, &host);
  block = memory_alloc(&memory, 100);
  CHECK(is_aligned(block) && own.taken == 1 && own.size_bytes >= 100);
  memory_free(&memory, block);
  CHECK_EQ_UINT(own.given_back, 1);
  // an unaligned block is useless and is returned immediately
  static const uint32_t OFF_BYTES[] = {1, 2, 8, 32, 63};
  for (size_t i = 0; i < sizeof OFF_BYTES / sizeof *OFF_BYTES; i++) {
    own = (own_host){.off_bytes = OFF_BYTES[i]};
    CHECK(memory_alloc(&memory, 100) == NULL);
    CHECK_EQ_UINT(own.taken, 1);
    CHECK_EQ_UINT(own.given_back, 1);
    CHECK_EQ_UINT(memory.blocks_now, 0);
  }
}

TEST(all_calls_fail_from_a_chosen_call_on) {
  for (uint64_t from = 1; from < 5; from++) {
    gate_open(0);
    memory.fail_from_call = from;
    for (uint64_t call = 1; call < 7; call++) {
      void *block = memory_alloc(&memory, 10);
      CHECK((block != NULL) == (call < from));
      memory_free(&memory, block);
    }
  }
}

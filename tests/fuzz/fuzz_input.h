// Reads a fuzzer's input as numbers, and defines the assertion that stops the fuzzer.
#ifndef WICK_TESTS_FUZZ_INPUT_H
#define WICK_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

// Bytes beyond the end are 0.
typedef struct input {
  const uint8_t *at;
  size_t left;
} input;

static inline uint32_t next_u8(input *in) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++;
}

static inline uint32_t next_u16(input *in) {
  const uint32_t low = next_u8(in);
  return low | next_u8(in) << 8;
}

static inline uint32_t next_u32(input *in) {
  const uint32_t low = next_u16(in);
  return low | next_u16(in) << 16;
}

// Returns a boundary value or a number from the input.
static inline uint64_t choose_number(input *in) {
  static const uint64_t EDGES[] = {0,          1,          2,          3,           31,
                                   32,         64,         255,        1023,        1024,
                                   65535,      65536,      0x7fffffff, 0x80000000u, 0xffffffffu,
                                   1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX};
  const uint32_t choice = next_u8(in);
  if (choice < sizeof EDGES / sizeof *EDGES) return EDGES[choice];
  return choice < 128 ? next_u16(in) : next_u32(in);
}

#endif

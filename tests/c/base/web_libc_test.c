// The web build's replacements for libc and the compiler library, renamed so that they can be
// linked with this host's libc.
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define memcpy web_memcpy
#define memmove web_memmove
#define memset web_memset
#define memcmp web_memcmp
#define strlen web_strlen
#define __multi3 web_multi3
#include "../../../web/libc/string.h"
// The web header is included first; the <string.h> that string.c includes is this host's, which is
// already included above.
#include "../../../web/libc/compiler.c"
#include "../../../web/libc/string.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen

enum { BUFFER_BYTES = 96 };

TEST(memcpy_copies_every_size_and_nothing_else) {
  uint8_t from[BUFFER_BYTES], to[BUFFER_BYTES];
  for (size_t i = 0; i < BUFFER_BYTES; i++) from[i] = (uint8_t)(i + 1);
  for (size_t size = 0; size < BUFFER_BYTES - 2; size++) {
    memset(to, 0, sizeof to);
    CHECK(web_memcpy(to + 1, from + 2, size) == to + 1);
    CHECK_EQ_INT(memcmp(to + 1, from + 2, size), 0);
    CHECK(to[0] == 0 && to[size + 1] == 0);
  }
}

TEST(memmove_handles_overlap_in_both_directions) {
  for (size_t from = 0; from < 40; from++) {
    for (size_t to = 0; to < 40; to++) {
      uint8_t bytes[BUFFER_BYTES], wanted[BUFFER_BYTES];
      for (size_t i = 0; i < BUFFER_BYTES; i++) bytes[i] = wanted[i] = (uint8_t)(i + 1);
      memmove(wanted + to, wanted + from, 50);
      web_memmove(bytes + to, bytes + from, 50);
      REQUIRE(CHECK_EQ_INT(memcmp(bytes, wanted, sizeof bytes), 0));
    }
  }
}

TEST(memset_fills_every_size_and_nothing_else) {
  uint8_t to[BUFFER_BYTES], wanted[BUFFER_BYTES];
  for (size_t size = 0; size < BUFFER_BYTES - 1; size++) {
    memset(to, 1, sizeof to);
    memset(wanted, 1, sizeof wanted);
    memset(wanted + 1, 0x1f3 & 0xff, size);
    CHECK(web_memset(to + 1, 0x1f3, size) == to + 1);
    CHECK_EQ_INT(memcmp(to, wanted, sizeof to), 0);
  }
}

TEST(memcmp_compares_unsigned_bytes) {
  CHECK(web_memcmp("\x80", "\x7f", 1) > 0);
  CHECK(web_memcmp("ab", "ac", 2) < 0);
  CHECK_EQ_INT(web_memcmp("ab", "ac", 1), 0);
  CHECK_EQ_INT(web_memcmp("a", "b", 0), 0);
}

TEST(strlen_counts_up_to_the_first_zero) {
  CHECK_EQ_UINT(web_strlen(""), 0);
  CHECK_EQ_UINT(web_strlen("wick"), 4);
  CHECK_EQ_UINT(web_strlen("wi\0ck"), 2);
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

TEST(multiplies_128_bits) {
  __extension__ typedef unsigned __int128 wide;
  const uint64_t edges[] = {0, 1, 2, 0xffffffff, 0x100000000, UINT64_MAX - 1, UINT64_MAX};
  enum { EDGES = sizeof edges / sizeof edges[0], ROUNDS = 10000 };
  uint64_t state = 88172645463325252;
  for (unsigned i = 0; i < ROUNDS; i++) {
    uint64_t word[4];
    for (unsigned j = 0; j < 4; j++) {
      const uint64_t random = next_random(&state);
      word[j] = random % 3 == 0 ? edges[random / 3 % EDGES] : random;
    }
    const wide a = (wide)word[1] << 64 | word[0];
    const wide b = (wide)word[3] << 64 | word[2];
    const wide wanted = a * b;
    uint64_t product[2];
    web_multi3(product, word[0], word[1], word[2], word[3]);
    REQUIRE(CHECK_EQ_UINT(product[0], (uint64_t)wanted));
    REQUIRE(CHECK_EQ_UINT(product[1], (uint64_t)(wanted >> 64)));
  }
}

// tests/c/web_libc_test.c — the web build's replacements for libc and compiler library, under other
// names beside this host's own.
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define memcpy web_memcpy
#define memmove web_memmove
#define memset web_memset
#define memcmp web_memcmp
#define strlen web_strlen
#define __multi3 web_multi3
#include "../../web/libc/string.h"
// The header comes first: string.c finds this host's <string.h> read already.
#include "../../web/libc/compiler.c"
#include "../../web/libc/string.c"
#undef memcmp
#undef strlen

TEST(compares_bytes_as_unsigned) {
  CHECK(web_memcmp("\x80", "\x7f", 1) > 0);
  CHECK(web_memcmp("ab", "ac", 2) < 0);
  CHECK_EQ_INT(web_memcmp("ab", "ac", 1), 0);
  CHECK_EQ_INT(web_memcmp("a", "b", 0), 0);
}

TEST(counts_up_to_the_first_zero) {
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

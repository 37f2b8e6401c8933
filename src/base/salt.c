// base/salt.c — SHA-256 (FIPS 180-4). A salt is its first 128 bits.
#include "base/salt.h"

#include <string.h>

enum { BLOCK_BYTES = 64, LENGTH_BYTES = 8, ROUNDS = 64 };

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t ROUND_CONSTANTS[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static const uint32_t INITIAL[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t rotate_right(uint32_t x, unsigned bits) { return x >> bits | x << (32 - bits); }

static uint32_t read_big_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void expand(const uint8_t *block, uint32_t *words) {
  for (size_t i = 0; i < 16; i++) words[i] = read_big_endian(block + 4 * i);
  for (size_t i = 16; i < ROUNDS; i++) {
    const uint32_t near = words[i - 2], far = words[i - 15];
    words[i] = words[i - 16] + words[i - 7] +
               (rotate_right(far, 7) ^ rotate_right(far, 18) ^ far >> 3) +
               (rotate_right(near, 17) ^ rotate_right(near, 19) ^ near >> 10);
  }
}

static void compress(uint32_t *state, const uint8_t *block) {
  uint32_t words[ROUNDS], s[8];
  expand(block, words);
  memcpy(s, state, sizeof s);
  for (size_t i = 0; i < ROUNDS; i++) {
    const uint32_t sum_e = rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25);
    const uint32_t chosen = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const uint32_t first = s[7] + sum_e + chosen + ROUND_CONSTANTS[i] + words[i];
    const uint32_t sum_a = rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22);
    const uint32_t most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += first;
    s[0] = first + sum_a + most;
  }
  for (size_t i = 0; i < 8; i++) state[i] += s[i];
}

// Processes the rest of the name, a 1 bit, zeros, and the length in bits.
static void compress_end(uint32_t *state, const uint8_t *rest, size_t rest_bytes,
                         uint64_t size_bytes) {
  uint8_t block[BLOCK_BYTES] = {0};
  memcpy(block, rest, rest_bytes);
  block[rest_bytes] = 0x80;
  if (rest_bytes + 1 > BLOCK_BYTES - LENGTH_BYTES) {
    compress(state, block);
    memset(block, 0, sizeof block);
  }
  for (size_t i = 0; i < LENGTH_BYTES; i++) {
    block[BLOCK_BYTES - 1 - i] = (uint8_t)(size_bytes * 8 >> 8 * i);
  }
  compress(state, block);
}

cache_salt salt_of(const void *name, size_t size_bytes) {
  if (size_bytes == 0) return (cache_salt){0};
  const uint8_t *at = name;
  uint32_t state[8];
  memcpy(state, INITIAL, sizeof state);
  size_t left = size_bytes;
  for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES, at += BLOCK_BYTES) compress(state, at);
  compress_end(state, at, left, size_bytes);
  return (cache_salt){(uint64_t)state[0] << 32 | state[1], (uint64_t)state[2] << 32 | state[3]};
}

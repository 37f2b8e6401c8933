// load/fingerprint.c — computes the fingerprint that the header defines. Words are read in the
// host's byte order: every host of this engine is little-endian.
#include "load/fingerprint.h"

#include <string.h>

#include "base/hash.h"

enum { LINE_BYTES = 64, LINE_WORDS = LINE_BYTES / 4 };

// Fractional bits of the square roots of the first 16 primes, made odd.
static const uint32_t FACTORS[LINE_WORDS] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b, 0x510e527f, 0x9b05688d, 0x1f83d9ab, 0x5be0cd19,
    0xcbbb9d5d, 0x629a292b, 0x9159015b, 0x152fecd9, 0x67332667, 0x8eb44a87, 0xdb0c2e0d, 0x47b5481d};

static void add_line(load_fingerprint *fingerprint, uint64_t line_key, const uint8_t *line) {
  uint32_t words[LINE_WORDS];
  memcpy(words, line, sizeof words);
  uint64_t sum = 0;
  for (int i = 0; i < LINE_WORDS; i++) sum += (uint64_t)words[i] * FACTORS[i];
  const uint64_t key = hash_mix_u64(line_key);
  fingerprint->sums[0] += sum * (key | 1);
  fingerprint->sums[1] += sum * (hash_mix_u64(key) | 1);
}

void fingerprint_add(load_fingerprint *fingerprint, uint32_t file, uint64_t offset_bytes,
                     const uint8_t *bytes, size_t size_bytes) {
  const uint64_t file_key = hash_mix_u64(file + UINT64_C(1));
  uint64_t line_key = file_key + offset_bytes / LINE_BYTES;
  size_t in_line = (size_t)(offset_bytes % LINE_BYTES);
  while (size_bytes > 0) {
    const size_t room = LINE_BYTES - in_line;
    const size_t step = size_bytes < room ? size_bytes : room;
    if (step == LINE_BYTES) {
      add_line(fingerprint, line_key, bytes);
    } else {
      uint8_t line[LINE_BYTES] = {0};
      memcpy(line + in_line, bytes, step);
      add_line(fingerprint, line_key, line);
    }
    bytes += step;
    size_bytes -= step;
    line_key++;
    in_line = 0;
  }
}

uint64_t fingerprint_value(const load_fingerprint *fingerprint) {
  return hash_mix_u64(fingerprint->sums[0] ^ hash_mix_u64(fingerprint->sums[1]));
}

// load/fingerprint.h — a 64-bit fingerprint of (file, offset, byte) triples. It does not depend on
// how the bytes are split into pieces or on their order. It is not cryptographic: it distinguishes
// models and detects accidental damage, but does not resist an attacker.
//
// A file consists of lines of 64 bytes at multiples of 64. The 16 unsigned 32-bit words of a line
// are summed with fixed odd factors. The sum is weighted with two keys that depend on the file and
// the line, and added modulo 2^64 (multilinear hashing, Carter and Wegman 1979; Lemire and Kaser
// 2014). All of this is linear in the bytes, so the parts of a line may arrive separately.
#ifndef WICK_LOAD_FINGERPRINT_H
#define WICK_LOAD_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

typedef struct load_fingerprint {
  uint64_t sums[2];  // zero at the beginning
} load_fingerprint;

// Adds bytes; each byte is added once. Cost: 20 multiplications per line.
void fingerprint_add(load_fingerprint *fingerprint, uint32_t file, uint64_t offset_bytes,
                     const uint8_t *bytes, size_t size_bytes);
uint64_t fingerprint_value(const load_fingerprint *fingerprint);

#endif

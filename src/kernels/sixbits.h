// kernels/sixbits.h — four times 16 values of 6 bits in 3 x 16 bytes: byte j of vector v has value
// v of lane j in its low 6 bits; its high 2 bits are bits 2v and 2v + 1 of the fourth value.
#ifndef WICK_KERNELS_SIXBITS_H
#define WICK_KERNELS_SIXBITS_H

#include <stdint.h>

typedef uint8_t sixbits[3][16];

// Replaces a value; the bits of the other values stay unchanged.
static inline void sixbits_store(sixbits subs, uint32_t byte, uint32_t index, uint8_t value) {
  if (index < 3) {
    subs[index][byte] = (uint8_t)((subs[index][byte] & 0xc0) | value);
    return;
  }
  for (uint32_t v = 0; v < 3; v++) {
    subs[v][byte] = (uint8_t)((subs[v][byte] & 63) | (value >> (2 * v) & 3) << 6);
  }
}

static inline uint32_t sixbits_load(const sixbits subs, uint32_t byte, uint32_t index) {
  if (index < 3) return subs[index][byte] & 63;
  return (uint32_t)(subs[0][byte] >> 6 | subs[1][byte] >> 6 << 2 | subs[2][byte] >> 6 << 4);
}

#endif

// web/libc/compiler.c — functions that the compiler calls implicitly. The compiler's own library
// cannot be linked: it is built without atomics, which the linker requires of every object in a
// module with shared memory.
#include <stdint.h>

void __multi3(uint64_t *product, uint64_t a_low, uint64_t a_high, uint64_t b_low, uint64_t b_high);

// Computes a 128-bit product modulo 2^128, least significant word first. clang calls it to check
// whether a 64-bit product overflows (base/checked.h), no matter how the check is written.
void __multi3(uint64_t *product, uint64_t a_low, uint64_t a_high, uint64_t b_low, uint64_t b_high) {
  const uint64_t half = 0xffffffff;
  const uint64_t low = (a_low & half) * (b_low & half);
  const uint64_t cross = (a_low >> 32) * (b_low & half) + (low >> 32);
  const uint64_t middle = (a_low & half) * (b_low >> 32) + (cross & half);
  product[0] = (middle << 32) | (low & half);
  product[1] = (a_low >> 32) * (b_low >> 32) + (cross >> 32) + (middle >> 32) + a_high * b_low +
               a_low * b_high;
}

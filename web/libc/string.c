// web/libc/string.c — <string.h> for the freestanding web build and the WASI builds.
//
// Copies and fills are loops. memory.copy and memory.fill would call the host's C library.
// Many C libraries use 512-bit vectors, after which the processor lowers its clock by 13% for a
// millisecond (docs/lab/kernels.md).
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// From this size on, memory.copy or memory.fill are used: copies this large happen only when no
// matrix products are pending.
enum { BULK_BYTES = 1 << 16 };

// 16 bytes at an unaligned address.
typedef uint8_t vector __attribute__((vector_size(16), aligned(1), may_alias));

void *memcpy(void *restrict target, const void *restrict source, size_t size_bytes) {
  return memmove(target, source, size_bytes);
}

void *memmove(void *target, const void *source, size_t size_bytes) {
  const bool is_forward = (uintptr_t)target - (uintptr_t)source >= size_bytes;
  if (!is_forward || size_bytes >= BULK_BYTES) {
    return __builtin_memmove(target, source, size_bytes);
  }
  uint8_t *to = target;
  const uint8_t *from = source;
  for (; size_bytes >= sizeof(vector); size_bytes -= sizeof(vector)) {
    *(vector *)to = *(const vector *)from;
    to += sizeof(vector);
    from += sizeof(vector);
  }
  for (; size_bytes > 0; size_bytes--) *to++ = *from++;
  return target;
}

void *memset(void *target, int value, size_t size_bytes) {
  if (size_bytes >= BULK_BYTES) return __builtin_memset(target, value, size_bytes);
  const vector values = (vector){0} + (uint8_t)value;
  uint8_t *to = target;
  for (; size_bytes >= sizeof(vector); size_bytes -= sizeof(vector), to += sizeof(vector)) {
    *(vector *)to = values;
  }
  for (; size_bytes > 0; size_bytes--) *to++ = (uint8_t)value;
  return target;
}

int memcmp(const void *left, const void *right, size_t size_bytes) {
  const unsigned char *a = left;
  const unsigned char *b = right;
  for (size_t i = 0; i < size_bytes; i++) {
    if (a[i] != b[i]) {
      return a[i] < b[i] ? -1 : 1;
    }
  }
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != '\0') {
    length++;
  }
  return length;
}

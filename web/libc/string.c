// web/libc/string.c — <string.h> for the freestanding web build. Bulk memory turns the first three
// into one instruction each, so the builtins below do not call themselves.
#include <stddef.h>
#include <string.h>

void *memcpy(void *restrict target, const void *restrict source, size_t size_bytes) {
  return __builtin_memcpy(target, source, size_bytes);
}

void *memmove(void *target, const void *source, size_t size_bytes) {
  return __builtin_memmove(target, source, size_bytes);
}

void *memset(void *target, int value, size_t size_bytes) {
  return __builtin_memset(target, value, size_bytes);
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

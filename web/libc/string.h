// web/libc/string.h — the five functions of <string.h> that the engine may use. The web build has
// no other C library (string.c).
#ifndef WICK_WEB_LIBC_STRING_H
#define WICK_WEB_LIBC_STRING_H

#include <stddef.h>

void *memcpy(void *restrict target, const void *restrict source, size_t size_bytes);
void *memmove(void *target, const void *source, size_t size_bytes);
void *memset(void *target, int value, size_t size_bytes);
int memcmp(const void *left, const void *right, size_t size_bytes);
size_t strlen(const char *text);

#endif

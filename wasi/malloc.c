// wasi/malloc.c — the C library's allocator in the command-line programs: the engine's heap,
// which exists anyway and is 4 KB smaller than wasi-libc's own. A block's size is stored before it.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "platform/platform.h"

enum { HEADER_BYTES = 16 };  // also the alignment of malloc's blocks
_Static_assert(HEADER_BYTES >= sizeof(size_t), "a header holds the block's size");

static size_t *header_of(void *block) { return (size_t *)((uintptr_t)block - HEADER_BYTES); }

void *malloc(size_t size_bytes) {
  size_t whole_bytes;
  const bool fits = checked_add_size(size_bytes, HEADER_BYTES, &whole_bytes);
  void *whole = fits ? platform_alloc(whole_bytes) : NULL;
  if (whole == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  void *block = (void *)((uintptr_t)whole + HEADER_BYTES);
  *header_of(block) = size_bytes;
  return block;
}

void free(void *block) {
  if (block == NULL) return;
  size_t *header = header_of(block);
  platform_free(header, *header + HEADER_BYTES);
}

void *calloc(size_t count, size_t item_bytes) {
  size_t size_bytes;
  if (!checked_mul_size(count, item_bytes, &size_bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  void *block = malloc(size_bytes);
  return block == NULL ? NULL : memset(block, 0, size_bytes);
}

void *realloc(void *block, size_t size_bytes) {
  void *moved = malloc(size_bytes);
  if (moved == NULL || block == NULL) return moved;
  const size_t kept_bytes = *header_of(block);
  memcpy(moved, block, kept_bytes < size_bytes ? kept_bytes : size_bytes);
  free(block);
  return moved;
}

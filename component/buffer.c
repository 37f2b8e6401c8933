// component/buffer.c — an array of bytes that grows at its end.
#include "buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 256 };

static bool make_room(buffer *to, size_t size_bytes) {
  if (to->has_failed) return false;
  if (size_bytes <= to->capacity - to->size_bytes) return true;
  size_t capacity = to->capacity < CAPACITY_MIN ? CAPACITY_MIN : to->capacity;
  while (capacity - to->size_bytes < size_bytes && capacity <= SIZE_MAX / 2) capacity *= 2;
  char *grown =
      capacity - to->size_bytes < size_bytes ? NULL : (char *)realloc(to->bytes, capacity);
  if (grown == NULL) {
    to->has_failed = true;
    return false;
  }
  to->bytes = grown;
  to->capacity = capacity;
  return true;
}

void buffer_put(void *to, const char *bytes, size_t size_bytes) {
  buffer *grown = to;
  if (size_bytes == 0 || !make_room(grown, size_bytes)) return;
  memcpy(grown->bytes + grown->size_bytes, bytes, size_bytes);
  grown->size_bytes += size_bytes;
}

void buffer_put_text(buffer *to, const char *text) { buffer_put(to, text, strlen(text)); }

char *buffer_reserve(buffer *to, size_t size_bytes) {
  return make_room(to, size_bytes) ? to->bytes + to->size_bytes : NULL;
}

void buffer_grow(buffer *to, size_t size_bytes) { to->size_bytes += size_bytes; }

void buffer_clear(buffer *held) { held->size_bytes = 0; }

void buffer_free(buffer *held) {
  free(held->bytes);
  *held = (buffer){0};
}

// component/buffer.h — a byte array that grows at its end.
#ifndef WICK_COMPONENT_BUFFER_H
#define WICK_COMPONENT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct buffer {
  char *bytes;
  size_t size_bytes, capacity;
  bool has_failed;  // memory ran out; later bytes are dropped
} buffer;

// Appends bytes. This is also a wick_text_sink and a json_sink, whose context is the buffer.
void buffer_put(void *to, const char *bytes, size_t size_bytes);
void buffer_put_text(buffer *to, const char *text);
// Reserves space for this many bytes after the buffer's content, to be added with buffer_grow.
// Returns NULL if memory runs out.
char *buffer_reserve(buffer *to, size_t size_bytes);
void buffer_grow(buffer *to, size_t size_bytes);
// Removes the content but keeps the memory.
void buffer_clear(buffer *held);
void buffer_free(buffer *held);

#endif

// Helpers for the GGUF directory tests: one directory at a time with a separate allocator, which is
// fed in chunks, and the last error.
#ifndef WICK_TESTS_GGUF_RIG_H
#define WICK_TESTS_GGUF_RIG_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "format/gguf.h"
#include "gguf_files.h"
#include "platform/platform.h"

static memory_gate memory;
static wick_error error;

static gguf_directory *open_directory(void) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memset(&error, 0, sizeof error);
  gguf_directory *directory = NULL;
  CHECK_EQ_INT(gguf_directory_create(&memory, &directory, &error), WICK_OK);
  return directory;
}

static void close_directory(gguf_directory *directory) {
  gguf_directory_destroy(directory);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

// Feeds a file in chunks and then its end. Sets *used to the number of bytes of the directory.
static wick_status feed_all(gguf_directory *directory, const memory_file *file, size_t chunk,
                            size_t *used) {
  *used = 0;
  for (size_t at = 0; at < file->size_bytes; at += chunk) {
    const size_t left = file->size_bytes - at;
    const size_t size_bytes = left < chunk ? left : chunk;
    // a copy of exactly this size, so that the sanitizer detects any read past its end
    uint8_t *copy = malloc(size_bytes);
    if (copy == NULL) abort();
    memcpy(copy, file->bytes + at, size_bytes);
    size_t step = 0;
    const wick_status status = gguf_directory_feed(directory, copy, size_bytes, &step, &error);
    free(copy);
    *used += step;
    if (status != WICK_OK) return status;
    if (gguf_directory_is_complete(directory)) break;
  }
  return gguf_directory_finish(directory, &error);
}

static gguf_directory *parse(const memory_file *file) {
  gguf_directory *directory = open_directory();
  size_t used;
  const wick_status status = feed_all(directory, file, file->size_bytes, &used);
  CHECK_EQ_STR(status == WICK_OK ? "" : error.message, "");
  return directory;
}

#endif

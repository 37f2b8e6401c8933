// Helpers for the loader tests: one loader at a time over a load_sink, with a separate allocator,
// which is fed in any pieces, and the last error.
#ifndef WICK_TESTS_LOAD_RIG_H
#define WICK_TESTS_LOAD_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "load/load.h"
#include "load_sink.h"
#include "platform/platform.h"

static memory_gate memory;
static wick_error error;
static load_sink sink;

static loader *open_loader(uint64_t unwanted) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  memset(&error, 0, sizeof error);
  sink = (load_sink){.unwanted = unwanted};
  const loader_sink calls = sink_calls(&sink);
  loader *made = NULL;
  CHECK_EQ_INT(loader_create(&memory, &calls, false, &made, &error), WICK_OK);
  sink.loader = made;
  return made;
}

static void close_loader(loader *loader) {
  loader_destroy(loader);
  sink_free(&sink);
  CHECK_EQ_UINT(memory.blocks_now, 0);
  CHECK_EQ_UINT(memory.bytes_now, 0);
}

// Feeds [first, end) of a file from a copy of exactly that size.
static wick_status feed(loader *loader, uint32_t number, const memory_file *file, uint64_t first,
                        uint64_t end) {
  uint8_t *copy = malloc((size_t)(end - first) + (end == first));
  if (copy == NULL) abort();
  memcpy(copy, file->bytes + first, (size_t)(end - first));
  const wick_status status =
      loader_feed(loader, number, first, copy, (size_t)(end - first), &error);
  free(copy);
  return status;
}

static wick_status feed_in_order(loader *loader, const memory_file *file, uint64_t first,
                                 uint64_t chunk) {
  for (uint64_t at = first; at < file->size_bytes; at += chunk) {
    const uint64_t left = file->size_bytes - at;
    const wick_status status = feed(loader, 0, file, at, at + (left < chunk ? left : chunk));
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

// Feeds the requested bytes until none are requested.
static wick_status feed_as_asked(loader *loader, const memory_file *files) {
  for (;;) {
    uint32_t file;
    uint64_t offset, length;
    loader_next_range(loader, &file, &offset, &length);
    if (length == 0) return WICK_OK;
    const uint64_t size = files[file].size_bytes;
    if (!CHECK(offset < size)) return WICK_E_RANGE;
    const wick_status status =
        feed(loader, file, &files[file], offset, offset + length < size ? offset + length : size);
    if (status != WICK_OK) return status;
  }
}

static void check_loaded(loader *loader, const memory_file *files, const char *what) {
  if (!CHECK_EQ_STR(sink_check(&sink, files), NULL) || !CHECK(loader_is_complete(loader))) {
    printf("#   %s\n", what);
  }
  CHECK_EQ_UINT(loader_bytes_placed(loader), loader_bytes_wanted(loader));
}

static uint64_t directory_end(const memory_file *file) {
  loader *loader = open_loader(UINT64_MAX);
  CHECK_EQ_INT(feed(loader, 0, file, 0, file->size_bytes), WICK_OK);
  const uint64_t end = gguf_directory_bytes(loader_directory(loader));
  close_loader(loader);
  return end;
}

#endif

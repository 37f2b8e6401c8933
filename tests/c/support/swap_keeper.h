// A host that keeps the pages of requests in memory (wick_config.swap).
#ifndef WICK_TESTS_SWAP_KEEPER_H
#define WICK_TESTS_SWAP_KEEPER_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wick.h"

enum { KEEPER_IDS = 4096 };  // request ids start at 0

typedef struct kept_record {
  uint8_t *bytes;
  uint64_t size_bytes;
} kept_record;

static kept_record kept[KEEPER_IDS];
static uint32_t kept_count;  // records that are open and not dropped

static bool keep_open(void *context, uint32_t id, uint64_t size_bytes) {
  (void)context;
  if (!CHECK(id < KEEPER_IDS && kept[id].bytes == NULL)) return false;
  kept[id] = (kept_record){malloc((size_t)size_bytes), size_bytes};
  kept_count++;
  return true;
}

static bool keep_write(void *context, uint32_t id, uint64_t offset_bytes, const void *bytes,
                       size_t size_bytes) {
  (void)context;
  if (!CHECK(offset_bytes + size_bytes <= kept[id].size_bytes)) return false;
  memcpy(kept[id].bytes + offset_bytes, bytes, size_bytes);
  return true;
}

static bool keep_read(void *context, uint32_t id, uint64_t offset_bytes, void *bytes,
                      size_t size_bytes) {
  (void)context;
  if (!CHECK(offset_bytes + size_bytes <= kept[id].size_bytes)) return false;
  memcpy(bytes, kept[id].bytes + offset_bytes, size_bytes);
  return true;
}

static void keep_drop(void *context, uint32_t id) {
  (void)context;
  free(kept[id].bytes);
  kept[id].bytes = NULL;
  kept_count--;
}

static const wick_swap_host KEEPER = {NULL, keep_open, keep_write, keep_read, keep_drop, true};

#endif

// A saved state in memory, written by a wick_state_sink and read by a wick_state_source.
#ifndef WICK_TESTS_KEPT_RECORD_H
#define WICK_TESTS_KEPT_RECORD_H

#include <string.h>

#include "check.h"

enum { RECORD_BYTES_MAX = 1 << 18 };

typedef struct record {
  uint8_t bytes[RECORD_BYTES_MAX];
  size_t size_bytes, at;
} record;

static bool write_record(void *context, const void *bytes, size_t size_bytes) {
  record *r = context;
  if (!CHECK(r->size_bytes + size_bytes <= sizeof r->bytes)) return false;
  memcpy(r->bytes + r->size_bytes, bytes, size_bytes);
  r->size_bytes += size_bytes;
  return true;
}

static bool read_record(void *context, void *bytes, size_t size_bytes) {
  record *r = context;
  if (r->at + size_bytes > r->size_bytes) return false;
  memcpy(bytes, r->bytes + r->at, size_bytes);
  r->at += size_bytes;
  return true;
}

#endif

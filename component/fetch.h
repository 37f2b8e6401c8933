// component/fetch.h — fetches a part of the file at a URL over outgoing HTTP, with wasi:http 0.2
// (fetch_p2.c) or 0.3 (fetch_p3.c).
#ifndef WICK_COMPONENT_FETCH_H
#define WICK_COMPONENT_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/platform.h"

enum { FETCH_AUTHORITY_BYTES = 256, FETCH_PATH_BYTES = 4096, FETCH_VALUE_BYTES = 128 };
enum { FETCH_BODY_TIMEOUTS = 12 };  // total time limit of a body, as a multiple of the timeout

typedef struct fetch_url {
  bool is_https;
  char authority[FETCH_AUTHORITY_BYTES], path[FETCH_PATH_BYTES];  // the path with its query
  uint32_t timeout_ms;  // limit for connecting, for the first byte, and between bytes
} fetch_url;

// Missing headers are "", and long ones are truncated.
typedef struct fetch_answer {
  uint16_t status;
  char content_range[FETCH_VALUE_BYTES], etag[FETCH_VALUE_BYTES];
  char location[FETCH_PATH_BYTES];
} fetch_answer;

// Returns the deadline of a body that begins now, on the clock of platform_now_us.
static inline uint64_t fetch_end_us(const fetch_url *url) {
  return platform_now_us() + (uint64_t)url->timeout_ms * 1000 * FETCH_BODY_TIMEOUTS;
}

// Sends a GET request with this Range header, such as "bytes=0-99". Reads the body's first bytes,
// at most `size_bytes`, and sets *count. Blocks until they have arrived; in the meantime, no other
// request is served. Returns false if the request fails or times out, or if the body ends early.
bool fetch_get(const fetch_url *url, const char *range, void *bytes, size_t size_bytes,
               size_t *count, fetch_answer *out);

#endif

// platform/getentropy.c — platform.h's random numbers for C libraries with getentropy: WASI and
// Emscripten.
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "platform/platform.h"

void platform_random(void *out, size_t size_bytes) {
  enum { GETENTROPY_BYTES_MAX = 256 };
  uint8_t *bytes = out;
  while (size_bytes > 0) {
    const size_t piece = size_bytes < GETENTROPY_BYTES_MAX ? size_bytes : GETENTROPY_BYTES_MAX;
    if (getentropy(bytes, piece) != 0) abort();
    bytes += piece;
    size_bytes -= piece;
  }
}

// base/status.h — statuses and errors. A function that can fail returns a wick_status and fills the
// caller's wick_error with a message and a place. Base includes no other room.
#ifndef WICK_BASE_STATUS_H
#define WICK_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum wick_status {
  WICK_OK = 0,
  WICK_E_ARG = 1,           // the caller broke the contract: null, zero, unknown id or enum
  WICK_E_PAGES = 2,         // KV pool short of pages
  WICK_E_SEQ = 3,           // no such sequence
  WICK_E_RANGE = 4,         // position or offset outside of what is reserved
  WICK_E_CORRUPT = 5,       // an invariant of the engine is broken
  WICK_E_OVERFLOW = 6,      // arithmetic on sizes does not fit
  WICK_E_NOMEM = 7,         // allocation or growth refused, or over the budget
  WICK_E_SHAPE = 8,         // dimensions, bytes and type do not agree
  WICK_E_NONFINITE = 9,     // NaN or Inf where numbers were expected
  WICK_E_FULL = 10,         // capacity reached (context, queue, table)
  WICK_E_BUSY = 11,         // referenced or in use
  WICK_E_NODATA = 12,       // nothing there yet
  WICK_E_MISMATCH = 13,     // saved for another model or version
  WICK_E_IO = 14,           // storage or stream failed
  WICK_E_FORMAT = 15,       // the file is not what its format promises
  WICK_E_UNSUPPORTED = 16,  // well formed, but not something this build runs
  WICK_E_TRUNCATED = 17,    // the file ended early
  WICK_E_ABORTED = 18,      // the caller asked to stop
  WICK_STATUS_COUNT = 19
} wick_status;

enum { WICK_ERROR_MESSAGE_BYTES = 256 };

#define WICK_NO_OFFSET UINT64_MAX

// The function that fails fills it; success leaves it unchanged. `offset_bytes` is the place of the
// fault in the file, or WICK_NO_OFFSET. `message` is UTF-8 and always terminated.
typedef struct wick_error {
  wick_status status;
  uint64_t offset_bytes;
  char message[WICK_ERROR_MESSAGE_BYTES];
} wick_error;

// The name of a status as it stands above, e.g. "WICK_E_FORMAT"; "WICK_E_?" when out of range.
const char *wick_status_name(wick_status status);

// Sets *error (may be NULL) and returns `status`. A function fails in one line:
//   return wick_fail(err, WICK_E_FORMAT, offset, "tensor '%s' has %u dimensions", name, n);
// Formats %s %.*s %d %u %zu %lld %llu %x %llx %c %g %% (base/text.h), truncating at a character.
wick_status wick_fail(wick_error *error, wick_status status, uint64_t offset_bytes,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif

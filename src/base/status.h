// base/status.h — statuses and errors. A function that can fail returns a wick_status and fills the
// caller's wick_error (include/wick.h) with a message and a position. Files in base include no
// files of other folders.
#ifndef WICK_BASE_STATUS_H
#define WICK_BASE_STATUS_H

#include "wick.h"

// Sets *error (may be NULL) and returns `status`, so a function can fail in one line:
//   return fail_with(err, WICK_E_FORMAT, offset, "tensor '%s' has %u dimensions", name, n);
// Formats %s %.*s %d %u %zu %lld %llu %x %llx %c %g %% (base/text.h), truncating at a character
// boundary. The error does not refer to a setting.
wick_status fail_with(wick_error *error, wick_status status, uint64_t offset_bytes,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

// Adds the setting that caused the error, and its numbers, to *error, and returns `status`:
//   return status_about(fail_with(error, ...), error, WICK_SUBJECT_BATCH, asked, limit);
wick_status status_about(wick_status status, wick_error *error, wick_subject subject,
                         uint64_t first, uint64_t second);

// Returns WICK_E_ARG unless the array `reserved` of a caller's struct is 0, because later versions
// of the header may define fields there.
#define STATUS_CHECK_RESERVED(name, reserved, error) \
  status_check_reserved(name, reserved, sizeof(reserved) / sizeof *(reserved), error)
wick_status status_check_reserved(const char *name, const uint64_t *reserved, size_t count,
                                  wick_error *error);

#endif

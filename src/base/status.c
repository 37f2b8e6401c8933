// base/status.c — names of statuses, and the function that reports a failure in one line.
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>

#include "base/text.h"

static const char *const NAMES[WICK_STATUS_COUNT] = {
    "WICK_OK",          "WICK_E_ARG",         "WICK_E_PAGES",
    "WICK_E_SEQ",       "WICK_E_RANGE",       "WICK_E_CORRUPT",
    "WICK_E_OVERFLOW",  "WICK_E_NOMEM",       "WICK_E_SHAPE",
    "WICK_E_NONFINITE", "WICK_E_FULL",        "WICK_E_BUSY",
    "WICK_E_NODATA",    "WICK_E_MISMATCH",    "WICK_E_IO",
    "WICK_E_FORMAT",    "WICK_E_UNSUPPORTED", "WICK_E_TRUNCATED",
    "WICK_E_ABORTED",
};

const char *wick_status_name(wick_status status) {
  if ((unsigned)status >= WICK_STATUS_COUNT) return "WICK_E_?";
  return NAMES[status];
}

wick_status wick_fail(wick_error *error, wick_status status, uint64_t offset_bytes,
                      const char *format, ...) {
  if (error != NULL) {
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    error->offset_bytes = offset_bytes;
    text_format_list(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

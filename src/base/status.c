// base/status.c — names of statuses, and the function that reports a failure in one line.
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>

#include "base/options.h"
#include "base/text.h"

static const char *const NAMES[] = {
    "WICK_OK",          "WICK_E_ARG",         "WICK_E_PAGES",
    "WICK_E_SEQ",       "WICK_E_RANGE",       "WICK_E_CORRUPT",
    "WICK_E_OVERFLOW",  "WICK_E_NOMEM",       "WICK_E_SHAPE",
    "WICK_E_NONFINITE", "WICK_E_FULL",        "WICK_E_BUSY",
    "WICK_E_NODATA",    "WICK_E_MISMATCH",    "WICK_E_IO",
    "WICK_E_FORMAT",    "WICK_E_UNSUPPORTED", "WICK_E_TRUNCATED",
    "WICK_E_ABORTED",
};
_Static_assert(sizeof NAMES / sizeof *NAMES == WICK_STATUS_COUNT, "one name per value");

const char *wick_status_name(wick_status status) {
  if ((unsigned)status >= WICK_STATUS_COUNT) return "WICK_E_?";
  return NAMES[status];
}

static const char *const SUBJECTS[] = {SUBJECT_NAMES};
_Static_assert(sizeof SUBJECTS / sizeof *SUBJECTS == WICK_SUBJECT_COUNT, "one name per value");

const char *wick_subject_name(wick_subject subject) {
  return (unsigned)subject < WICK_SUBJECT_COUNT ? SUBJECTS[subject] : "";
}

wick_status fail_with(wick_error *error, wick_status status, uint64_t offset_bytes,
                      const char *format, ...) {
  if (error != NULL) {
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    error->subject = WICK_SUBJECT_NONE;
    error->offset_bytes = offset_bytes;
    for (int i = 0; i < WICK_ERROR_NUMBERS; i++) error->numbers[i] = 0;
    text_format_list(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

wick_status status_about(wick_status status, wick_error *error, wick_subject subject,
                         uint64_t first, uint64_t second) {
  if (error != NULL) {
    error->subject = subject;
    error->numbers[0] = first;
    error->numbers[1] = second;
  }
  return status;
}

wick_status status_check_reserved(const char *name, const uint64_t *reserved, size_t count,
                                  wick_error *error) {
  for (size_t i = 0; i < count; i++) {
    if (reserved[i] == 0) continue;
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
                     "%s: reserved[%zu] is not 0. Begin with zeros or the defaults", name, i);
  }
  return WICK_OK;
}

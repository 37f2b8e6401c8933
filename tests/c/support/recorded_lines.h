// A test records its results, line by line, and compares them with a file next to it. To accept an
// intended change, replace that file with the one of the same name that the test writes to
// $WICK_TMP.
#ifndef WICK_TESTS_RECORDED_LINES_H
#define WICK_TESTS_RECORDED_LINES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { RECORDED_BYTES_MAX = 1 << 20 };

// Recorded at the end of a line whose result was not computed (level_step).
#define RECORDED_ANYTHING "?"

static char recorded[RECORDED_BYTES_MAX];
static size_t recorded_size;

__attribute__((format(printf, 1, 2))) static void record_line(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t left = sizeof recorded - recorded_size;
  const int written = vsnprintf(recorded + recorded_size, left, format, arguments);
  va_end(arguments);
  if (CHECK(written >= 0 && (size_t)written < left)) recorded_size += (size_t)written;
}

static size_t recorded_line_bytes(const char *text, const char *end) {
  const char *line_end = memchr(text, '\n', (size_t)(end - text));
  return line_end == NULL ? (size_t)(end - text) : (size_t)(line_end - text);
}

static bool recorded_is_same(const char *found, size_t size, const char *wanted,
                             size_t wanted_size) {
  if (size > 0 && found[size - 1] == *RECORDED_ANYTHING) {
    return wanted_size >= size && memcmp(found, wanted, size - 1) == 0;
  }
  return size == wanted_size && memcmp(found, wanted, size) == 0;
}

// Reports the first line that differs.
static void recorded_compare(const char *name, const char *file, size_t file_bytes,
                             const char *found_path) {
  const char *at = recorded, *end = recorded + recorded_size, *wanted = file,
             *last = file + file_bytes;
  for (int line = 1; at < end || wanted < last; line++) {
    const size_t size = recorded_line_bytes(at, end),
                 wanted_size = recorded_line_bytes(wanted, last);
    if (!CHECK(recorded_is_same(at, size, wanted, wanted_size))) {
      printf("#   %s, line %d (all results: %s)\n#   found:    %.*s\n#   expected: %.*s\n", name,
             line, found_path, (int)size, at, (int)wanted_size, wanted);
      return;
    }
    at += at < end ? size + 1 : 0;
    wanted += wanted < last ? wanted_size + 1 : 0;
  }
}

// Checks that the recorded lines equal tests/c/`name`, a path such as "reply/reply_records.txt".
static void recorded_check(const char *name) {
  char path[256];
  size_t file_bytes;
  const char *base = strrchr(name, '/');
  const char *found_path = check_temporary(base ? base + 1 : name);
  FILE *out = fopen(found_path, "w");
  if (out != NULL) {
    fwrite(recorded, 1, recorded_size, out);
    fclose(out);
  }
  snprintf(path, sizeof path, "tests/c/%s", name);
  uint8_t *file = check_read_file(check_repository(path), &file_bytes);
  if (CHECK(file != NULL)) recorded_compare(name, (const char *)file, file_bytes, found_path);
  free(file);
}

#endif

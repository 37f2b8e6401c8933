// cli/report.c — messages and their exit codes.
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"

void replace_controls(char *text) {
  for (; *text != '\0'; text++) {
    if ((uint8_t)*text < 0x20 || *text == 0x7f) *text = '?';
  }
}

void report(const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  text_format_list(line, sizeof line, format, arguments);
  va_end(arguments);
  replace_controls(line);
  output_flush(OUTPUT_TEXT);
  output_format(OUTPUT_LOG, "%s: %s\n", PROGRAM_NAME, line);
  output_flush(OUTPUT_LOG);
}

static exit_code exit_code_of(wick_status status) {
  switch (status) {
    case WICK_OK:
      return EXIT_DONE;
    case WICK_E_ARG:
    case WICK_E_FULL:
      return EXIT_USAGE;
    case WICK_E_NOMEM:
    case WICK_E_PAGES:
      return EXIT_MEMORY;
    case WICK_E_OVERFLOW:
    case WICK_E_SHAPE:
    case WICK_E_NONFINITE:
    case WICK_E_NODATA:
    case WICK_E_MISMATCH:
    case WICK_E_IO:
    case WICK_E_FORMAT:
    case WICK_E_UNSUPPORTED:
    case WICK_E_TRUNCATED:
      return EXIT_FILE;
    default:
      return EXIT_INTERNAL;
  }
}

exit_code report_error(const char *subject, const wick_error *error) {
  char place[48] = "";
  if (error->offset_bytes != WICK_NO_OFFSET) {
    text_format(place, sizeof place, " at byte %llu", (unsigned long long)error->offset_bytes);
  }
  report("%s: %s (%s%s)", subject, error->message, wick_status_name(error->status), place);
  return exit_code_of(error->status);
}

exit_code output_end(void) {
  output_flush(OUTPUT_TEXT);
  if (output_failure() == 0) return EXIT_DONE;
  report("cannot write to standard output: %s", strerror(output_failure()));
  return EXIT_FILE;
}

exit_code output_file_check(const output_file *file) {
  if (file->failed_errno == 0 || file->failed_errno == EPIPE) return EXIT_DONE;
  const bool is_made = file->is_made || strcmp(file->path, "-") == 0;
  report("cannot %s %s: %s", is_made ? "write" : "create", file->path,
         strerror(file->failed_errno));
  return EXIT_FILE;
}

exit_code output_file_end(output_file *file, exit_code code) {
  output_file_close(file);
  return code == EXIT_DONE ? output_file_check(file) : code;
}

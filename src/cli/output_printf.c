// cli/output_printf.c — text with widths and decimals, for commands that print tables.
#include <stdarg.h>
#include <stdio.h>

#include "cli/output.h"

void output_printf(output_stream to, const char *format, ...) {
  char text[OUTPUT_FORMAT_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (size > 0) output_put(to, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

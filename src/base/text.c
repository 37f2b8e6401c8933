// base/text.c — the formatter and UTF-8.
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

typedef struct text_sink {
  char *out;
  size_t room_bytes;  // without the terminator
  size_t used_bytes;
  bool is_full;  // something did not fit, so nothing more is written
} text_sink;

int utf8_decode(const uint8_t *bytes, size_t size_bytes, uint32_t *code_point) {
  if (size_bytes == 0) return -1;
  const uint8_t lead = bytes[0];
  if (lead < 0x80) {
    *code_point = lead;
    return 1;
  }
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const int length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t value = lead & (0xffu >> (length + 1));
  for (int i = 1; i < length; i++) {
    if ((size_t)i >= size_bytes) return -1;
    const uint8_t next = bytes[i];
    uint8_t low = 0x80, high = 0xbf;
    if (i == 1) {  // table 3-7 of the Unicode standard
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    }
    if (next < low || next > high) return 0;
    value = value << 6 | (next & 0x3fu);
  }
  *code_point = value;
  return length;
}

bool utf8_is_valid(const char *bytes, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes;) {
    uint32_t code_point;
    const int length = utf8_decode((const uint8_t *)bytes + at, size_bytes - at, &code_point);
    if (length <= 0) return false;
    at += (size_t)length;
  }
  return true;
}

size_t utf8_encode(uint32_t code_point, uint8_t out[4]) {
  if (code_point < 0x80) {
    out[0] = (uint8_t)code_point;
    return 1;
  }
  if (code_point < 0x800) {
    out[0] = (uint8_t)(0xc0 | code_point >> 6);
    out[1] = (uint8_t)(0x80 | (code_point & 0x3f));
    return 2;
  }
  if (code_point < 0x10000) {
    if (code_point >= 0xd800 && code_point < 0xe000) return 0;
    out[0] = (uint8_t)(0xe0 | code_point >> 12);
    out[1] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code_point & 0x3f));
    return 3;
  }
  if (code_point > 0x10ffff) return 0;
  out[0] = (uint8_t)(0xf0 | code_point >> 18);
  out[1] = (uint8_t)(0x80 | (code_point >> 12 & 0x3f));
  out[2] = (uint8_t)(0x80 | (code_point >> 6 & 0x3f));
  out[3] = (uint8_t)(0x80 | (code_point & 0x3f));
  return 4;
}

// Counts the bytes of `text` that fit into `room` without cutting a character.
static size_t whole_characters(const char *text, size_t size_bytes, size_t room) {
  if (size_bytes <= room) return size_bytes;
  size_t end = room;
  while (end > 0 && ((uint8_t)text[end] & 0xc0) == 0x80) end--;
  return end;
}

static void sink_write(text_sink *sink, const char *text, size_t size_bytes) {
  if (sink->is_full) return;
  const size_t room = sink->room_bytes - sink->used_bytes;
  const size_t fits = whole_characters(text, size_bytes, room);
  memcpy(sink->out + sink->used_bytes, text, fits);
  sink->used_bytes += fits;
  sink->is_full = fits < size_bytes;
}

static void sink_unsigned(text_sink *sink, uint64_t value, unsigned base) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  sink_write(sink, digits + at, sizeof digits - at);
}

static void sink_signed(text_sink *sink, int64_t value) {
  uint64_t magnitude = (uint64_t)value;
  if (value < 0) {
    sink_write(sink, "-", 1);
    magnitude = 0 - magnitude;
  }
  sink_unsigned(sink, magnitude, 10);
}

// Computes six significant digits and the decimal exponent: value = digits / 1e5 * 10^exponent.
static uint32_t six_digits(double value, int *exponent) {
  int e = 0;
  while (value >= 10.0) {
    value /= 10.0;
    e++;
  }
  while (value < 1.0) {
    value *= 10.0;
    e--;
  }
  uint32_t digits = (uint32_t)(value * 1e5 + 0.5);
  if (digits >= 1000000) {
    digits /= 10;
    e++;
  }
  *exponent = e;
  return digits;
}

static void sink_fixed(text_sink *sink, uint32_t digits, int exponent) {
  char text[24];
  size_t used = 0;
  if (exponent < 0) {
    text[used++] = '0';
    text[used++] = '.';
    for (int i = -1; i > exponent; i--) text[used++] = '0';
  }
  uint32_t unit = 100000;
  for (int place = exponent; unit != 0; place--, unit /= 10) {
    if (place == -1 && exponent >= 0) text[used++] = '.';
    text[used++] = (char)('0' + digits / unit % 10);
  }
  if (exponent < 5) {
    while (text[used - 1] == '0') used--;
    if (text[used - 1] == '.') used--;
  }
  sink_write(sink, text, used);
}

static void sink_double(text_sink *sink, double value) {
  if (value != value) {
    sink_write(sink, "nan", 3);
    return;
  }
  if (value < 0) {
    sink_write(sink, "-", 1);
    value = -value;
  }
  if (value > 1.7976931348623157e308) {
    sink_write(sink, "inf", 3);
  } else if (value == 0) {
    sink_write(sink, "0", 1);
  } else {
    int exponent;
    const uint32_t digits = six_digits(value, &exponent);
    if (exponent >= -5 && exponent <= 5) {
      sink_fixed(sink, digits, exponent);
    } else {
      sink_fixed(sink, digits, 0);
      sink_write(sink, "e", 1);
      sink_signed(sink, exponent);
    }
  }
}

typedef struct text_spec {
  int precision;  // -1: none
  enum { LENGTH_INT, LENGTH_LONG, LENGTH_LONG_LONG, LENGTH_SIZE } length;
  char kind;
} text_spec;

// Reads the part of a format that follows '%', and returns its end.
static const char *read_spec(const char *format, text_spec *spec, int star_value) {
  spec->precision = -1;
  spec->length = LENGTH_INT;
  if (*format == '.') {
    format++;
    if (*format == '*') {
      spec->precision = star_value < 0 ? 0 : star_value;
      format++;
    } else {
      spec->precision = 0;
      while (*format >= '0' && *format <= '9') {
        spec->precision = spec->precision * 10 + (*format++ - '0');
      }
    }
  }
  if (*format == 'z') {
    spec->length = LENGTH_SIZE;
    format++;
  } else if (*format == 'l') {
    spec->length = LENGTH_LONG;
    format++;
    if (*format == 'l') {
      spec->length = LENGTH_LONG_LONG;
      format++;
    }
  }
  spec->kind = *format;
  return *format == '\0' ? format : format + 1;
}

static size_t bounded_length(const char *text, int precision) {
  if (precision < 0) return strlen(text);
  size_t length = 0;
  while (length < (size_t)precision && text[length] != '\0') length++;
  return length;
}

size_t text_format_list(char *out, size_t size_bytes, const char *format, va_list arguments) {
  if (size_bytes == 0) return 0;
  text_sink sink = {out, size_bytes - 1, 0, false};
  while (*format != '\0') {
    const char *run = format;
    while (*format != '\0' && *format != '%') format++;
    sink_write(&sink, run, (size_t)(format - run));
    if (*format == '\0') break;
    format++;
    text_spec spec;
    const bool has_star = format[0] == '.' && format[1] == '*';
    const int star = has_star ? va_arg(arguments, int) : 0;
    format = read_spec(format, &spec, star);
    if (spec.kind == 's') {
      const char *text = va_arg(arguments, const char *);
      if (text == NULL) text = "(null)";
      sink_write(&sink, text, bounded_length(text, spec.precision));
    } else if (spec.kind == 'c') {
      const char c = (char)va_arg(arguments, int);
      sink_write(&sink, &c, 1);
    } else if (spec.kind == 'd' || spec.kind == 'i') {
      const int64_t value = spec.length == LENGTH_INT         ? va_arg(arguments, int)
                            : spec.length == LENGTH_LONG      ? va_arg(arguments, long)
                            : spec.length == LENGTH_LONG_LONG ? va_arg(arguments, long long)
                                                              : va_arg(arguments, ptrdiff_t);
      sink_signed(&sink, value);
    } else if (spec.kind == 'u' || spec.kind == 'x') {
      const uint64_t value = spec.length == LENGTH_INT    ? va_arg(arguments, unsigned)
                             : spec.length == LENGTH_LONG ? va_arg(arguments, unsigned long)
                             : spec.length == LENGTH_LONG_LONG
                                 ? va_arg(arguments, unsigned long long)
                                 : va_arg(arguments, size_t);
      sink_unsigned(&sink, value, spec.kind == 'x' ? 16 : 10);
    } else if (spec.kind == 'g') {
      sink_double(&sink, va_arg(arguments, double));
    } else {
      sink_write(&sink, "%", 1);
    }
  }
  out[sink.used_bytes] = '\0';
  return sink.used_bytes;
}

size_t text_format(char *out, size_t size_bytes, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t used = text_format_list(out, size_bytes, format, arguments);
  va_end(arguments);
  return used;
}

uint32_t text_hex_value(uint8_t c) {
  const uint8_t lower = c | 32;
  if (c >= '0' && c <= '9') return c - '0';
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10u : 16;
}

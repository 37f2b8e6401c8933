// base/json.c — the JSON writer.
#include "base/json.h"

#include <string.h>

#include "base/text.h"

enum { F32_DIGITS_MAX = 9, F64_DIGITS_MAX = 15 };

void json_room_put(void *room, const char *bytes, size_t size_bytes) {
  json_room *to = room;
  if (to->bytes != NULL) memcpy(to->bytes + to->size_bytes, bytes, size_bytes);
  to->size_bytes += size_bytes;
}

void json_begin(json_writer *writer, json_sink sink, void *context) {
  *writer = (json_writer){.sink = sink, .context = context};
}

static void write_raw(json_writer *writer, const char *bytes, size_t size_bytes) {
  if (size_bytes > 0) writer->sink(writer->context, bytes, size_bytes);
}

// Counts the leading bytes that need no escape in a JSON string.
static size_t plain_run(const char *bytes, size_t size_bytes) {
  size_t run = 0;
  while (run < size_bytes) {
    const uint8_t c = (uint8_t)bytes[run];
    if (c < 0x20 || c == '"' || c == '\\') break;
    uint32_t code_point;
    const int length = utf8_decode((const uint8_t *)bytes + run, size_bytes - run, &code_point);
    if (length <= 0) break;
    run += (size_t)length;
  }
  return run;
}

// Writes one byte that needs an escape.
static void write_escape(json_writer *writer, uint8_t c) {
  static const char hex[] = "0123456789abcdef";
  if (c >= 0x80) {
    write_raw(writer, "\xef\xbf\xbd", 3);
  } else if (c == '"' || c == '\\') {
    const char escape[2] = {'\\', (char)c};
    write_raw(writer, escape, sizeof escape);
  } else if (c == '\n') {
    write_raw(writer, "\\n", 2);
  } else {
    const char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    write_raw(writer, escape, sizeof escape);
  }
}

static void write_quoted(json_writer *writer, const char *bytes, size_t size_bytes) {
  write_raw(writer, "\"", 1);
  for (size_t at = 0; at < size_bytes;) {
    const size_t run = plain_run(bytes + at, size_bytes - at);
    write_raw(writer, bytes + at, run);
    at += run;
    if (at < size_bytes) write_escape(writer, (uint8_t)bytes[at++]);
  }
  write_raw(writer, "\"", 1);
}

void json_member(json_writer *writer, const char *key) {
  if (writer->needs_comma) write_raw(writer, ",", 1);
  writer->needs_comma = true;
  if (key == NULL) return;
  write_quoted(writer, key, strlen(key));
  write_raw(writer, ":", 1);
}

void json_open(json_writer *writer, const char *key, char bracket) {
  json_member(writer, key);
  write_raw(writer, &bracket, 1);
  writer->needs_comma = false;
}

void json_close(json_writer *writer, char bracket) {
  write_raw(writer, bracket == '{' ? "}" : "]", 1);
  writer->needs_comma = true;
}

void json_string(json_writer *writer, const char *key, const char *bytes, size_t size_bytes) {
  json_member(writer, key);
  write_quoted(writer, bytes, size_bytes);
}

void json_text(json_writer *writer, const char *key, const char *text) {
  json_member(writer, key);
  if (text == NULL) {
    write_raw(writer, "null", 4);
  } else {
    write_quoted(writer, text, strlen(text));
  }
}

void json_u64(json_writer *writer, const char *key, uint64_t value) {
  char text[JSON_NUMBER_BYTES];
  json_member(writer, key);
  write_raw(writer, text, text_format(text, sizeof text, "%llu", (unsigned long long)value));
}

void json_i64(json_writer *writer, const char *key, int64_t value) {
  char text[JSON_NUMBER_BYTES];
  json_member(writer, key);
  write_raw(writer, text, text_format(text, sizeof text, "%lld", (long long)value));
}

void json_bool(json_writer *writer, const char *key, bool value) {
  json_member(writer, key);
  write_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

// ---- decimals ----

static double power_of_ten(int exponent) {  // exact up to 10^22
  double power = 1.0;
  for (int i = 0; i < exponent; i++) power *= 10.0;
  return power;
}

static double scale_by_ten(double value, int exponent) {
  return exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
}

// Returns the exponent of the leading decimal digit; value > 0.
static int leading_exponent(double value) {
  int exponent = 0;
  for (; scale_by_ten(value, -exponent) >= 10.0; exponent++) continue;
  for (; scale_by_ten(value, -exponent) < 1.0; exponent--) continue;
  return exponent;
}

// Rounds value > 0 to `count` digits: value is about digits * 10^(exponent - count + 1).
static uint64_t round_to_digits(double value, int count, int *exponent) {
  *exponent = leading_exponent(value);
  uint64_t digits = (uint64_t)(scale_by_ten(value, count - 1 - *exponent) + 0.5);
  if ((double)digits >= power_of_ten(count)) {
    digits /= 10;
    ++*exponent;
  }
  return digits;
}

// Writes `count` digits, with the decimal point placed by the exponent.
static size_t place_digits(char *out, uint64_t digits, int count, int exponent) {
  char text[24];
  text_format(text, sizeof text, "%llu", (unsigned long long)digits);
  char *to = out;
  if (exponent < -7 || exponent >= F64_DIGITS_MAX) {
    *to++ = text[0];
    if (count > 1) *to++ = '.';
    for (int i = 1; i < count; i++) *to++ = text[i];
    to += text_format(to, 8, "e%d", exponent);
    return (size_t)(to - out);
  }
  if (exponent < 0) {
    *to++ = '0';
    *to++ = '.';
    for (int i = exponent + 1; i < 0; i++) *to++ = '0';
  }
  for (int i = 0; i < count || i <= exponent; i++) {
    *to++ = i < count ? text[i] : '0';
    if (i == exponent && i + 1 < count) *to++ = '.';
  }
  return (size_t)(to - out);
}

static size_t format_shortest(char *out, double value, bool is_f32) {
  char *to = out;
  if (value < 0) {
    *to++ = '-';
    value = -value;
  }
  if (value < 1e-290) {
    *to++ = '0';
  } else {
    const int count_max = is_f32 ? F32_DIGITS_MAX : F64_DIGITS_MAX;
    int count = 0, exponent;
    uint64_t digits;
    bool is_same;
    do {
      digits = round_to_digits(value, ++count, &exponent);
      const double back = scale_by_ten((double)digits, exponent - count + 1);
      is_same = is_f32 ? (float)back == (float)value : back == value;
    } while (!is_same && count < count_max);
    to += place_digits(to, digits, count, exponent);
  }
  *to = '\0';
  return (size_t)(to - out);
}

static size_t format_number(char out[JSON_NUMBER_BYTES], double value, bool is_f32) {
  if (value - value != 0) return text_format(out, JSON_NUMBER_BYTES, "null");
  return format_shortest(out, value, is_f32);
}

size_t json_format_f32(char out[JSON_NUMBER_BYTES], float value) {
  return format_number(out, (double)value, true);
}

size_t json_format_f64(char out[JSON_NUMBER_BYTES], double value) {
  return format_number(out, value, false);
}

void json_f32(json_writer *writer, const char *key, float value) {
  char text[JSON_NUMBER_BYTES];
  json_member(writer, key);
  write_raw(writer, text, json_format_f32(text, value));
}

void json_f64(json_writer *writer, const char *key, double value) {
  char text[JSON_NUMBER_BYTES];
  json_member(writer, key);
  write_raw(writer, text, json_format_f64(text, value));
}

// base/json.h — writes JSON into a sink, piece by piece, without allocating. The JSON is
// valid for any strings: they are escaped, and bytes that are not UTF-8 become U+FFFD.
#ifndef WICK_BASE_JSON_H
#define WICK_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*json_sink)(void *context, const char *bytes, size_t size_bytes);

typedef struct json_writer {
  json_sink sink;
  void *context;
  bool needs_comma;
} json_writer;

void json_begin(json_writer *writer, json_sink sink, void *context);

// Opens an object or an array: `bracket` is '{' or '['. `key` names a member of an object; NULL for
// items of an array and for the outermost value. Pass the same bracket to json_close as to
// json_open.
void json_open(json_writer *writer, const char *key, char bracket);
void json_close(json_writer *writer, char bracket);
void json_string(json_writer *writer, const char *key, const char *bytes, size_t size_bytes);
void json_text(json_writer *writer, const char *key, const char *text);  // NULL writes null
// Writes only the key: the caller writes the complete value to the sink.
void json_member(json_writer *writer, const char *key);
void json_u64(json_writer *writer, const char *key, uint64_t value);
void json_i64(json_writer *writer, const char *key, int64_t value);
void json_bool(json_writer *writer, const char *key, bool value);
// Writes the shortest decimal that parses back to the same number (for doubles: at most 15 digits);
// null for NaN and infinities, 0 for magnitudes below 1e-290.
void json_f32(json_writer *writer, const char *key, float value);
void json_f64(json_writer *writer, const char *key, double value);

// A sink for JSON that is written twice: the first time, `bytes` is NULL and the JSON is only
// measured; the second time, `bytes` is a buffer of the measured size.
typedef struct json_room {
  char *bytes;
  size_t size_bytes;
} json_room;
void json_room_put(void *room, const char *bytes, size_t size_bytes);

// Writes the same decimal as json_f32 and json_f64, as NUL-terminated text of at most
// JSON_NUMBER_BYTES, for tables.
enum { JSON_NUMBER_BYTES = 32 };
size_t json_format_f32(char out[JSON_NUMBER_BYTES], float value);
size_t json_format_f64(char out[JSON_NUMBER_BYTES], double value);

// Whether a byte is white space between JSON tokens (RFC 8259).
static inline bool json_is_space(uint8_t byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

#endif

// component/shape.c — see shape.h.
#include "shape.h"

#include <stdarg.h>
#include <string.h>

#include "base/json.h"

static wick_text text_of(const buffer *held) { return (wick_text){held->bytes, held->size_bytes}; }

static void put_bytes(json_writer *json, wick_text text) {
  json_open(json, NULL, '[');
  for (size_t i = 0; i < text.size_bytes; i++) json_u64(json, NULL, (uint8_t)text.bytes[i]);
  json_close(json, '[');
}

// Returns the text of a value; bytes NULL: the value is not a text.
static wick_text take_text(char kind, va_list *values) {
  if (kind == 't' || kind == 'T' || kind == 'y') return va_arg(*values, wick_text);
  if (kind == 'b' || kind == 'j') return text_of(va_arg(*values, const buffer *));
  if (kind != 's' && kind != 'r') return (wick_text){0};
  const char *text = va_arg(*values, const char *);
  return (wick_text){text, text == NULL ? 0 : strlen(text)};
}

static void put_value(buffer *out, char kind, va_list *values) {
  const wick_text text = take_text(kind, values);
  json_writer json;
  json_begin(&json, buffer_put, out);
  switch (kind) {
    case 's':
      if (text.bytes == NULL) {
        json_text(&json, NULL, NULL);
        break;
      }
      json_string(&json, NULL, text.bytes, text.size_bytes);
      break;
    case 't':
    case 'b':
      json_string(&json, NULL, text.bytes, text.size_bytes);
      break;
    case 'y':
      put_bytes(&json, text);
      break;
    case 'u':
      json_u64(&json, NULL, va_arg(*values, uint32_t));
      break;
    case 'U':
      json_u64(&json, NULL, va_arg(*values, uint64_t));
      break;
    case 'd':
      json_i64(&json, NULL, va_arg(*values, int32_t));
      break;
    case 'D':
      json_i64(&json, NULL, va_arg(*values, int64_t));
      break;
    case 'f':
      json_f64(&json, NULL, va_arg(*values, double));
      break;
    case 'g':
      json_f32(&json, NULL, (float)va_arg(*values, double));
      break;
    case '?':
      json_bool(&json, NULL, va_arg(*values, int) != 0);
      break;
    default:  // JSON
      buffer_put(out, text.bytes, text.size_bytes);
  }
}

void shape_put(buffer *out, const char *shape, ...) {
  va_list values;
  va_start(values, shape);
  for (const char *at = shape; *at != '\0';) {
    const size_t plain = strcspn(at, "'%");
    buffer_put(out, at, plain);
    at += plain;
    if (*at == '\'') buffer_put(out, "\"", 1);
    if (*at == '%') put_value(out, *++at, &values);
    if (*at != '\0') at++;
  }
  va_end(values);
}

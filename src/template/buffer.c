// template/buffer.c — growable strings with marks, and values as Python writes them.
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "template/run.h"
#include "text/unicode.h"

enum { BUFFER_BYTES_FIRST = 16 };

static bool reserve(jinja_run *run, jinja_buffer *buffer, size_t added_bytes) {
  if (!jinja_step_bytes(run, added_bytes)) return false;
  if (added_bytes > run->output_bytes_max - buffer->size_bytes) {
    jinja_fail(run, WICK_E_FULL, "a string would have more than %u bytes", run->output_bytes_max);
    return false;
  }
  const uint32_t needed = buffer->size_bytes + (uint32_t)added_bytes;
  if (needed <= buffer->capacity) return true;
  uint32_t capacity = 2 * buffer->capacity;
  if (capacity < needed) capacity = needed + BUFFER_BYTES_FIRST;
  // bytes and marks are in one block
  char *bytes = jinja_arena_take(run->arena, 2 * (size_t)capacity);
  if (bytes == NULL) {
    jinja_fail_memory(run);
    return false;
  }
  uint8_t *marks = (uint8_t *)bytes + capacity;
  if (buffer->size_bytes > 0) {
    memcpy(bytes, buffer->bytes, buffer->size_bytes);
    memcpy(marks, buffer->marks, buffer->size_bytes);
  }
  buffer->bytes = bytes;
  buffer->marks = marks;
  buffer->capacity = capacity;
  return true;
}

void jinja_write(jinja_run *run, jinja_buffer *buffer, const char *bytes, size_t size_bytes,
                 uint8_t mark) {
  if (size_bytes == 0 || !reserve(run, buffer, size_bytes)) return;
  memcpy(buffer->bytes + buffer->size_bytes, bytes, size_bytes);
  memset(buffer->marks + buffer->size_bytes, mark, size_bytes);
  buffer->size_bytes += (uint32_t)size_bytes;
  buffer->seen |= (uint8_t)(1u << mark);
}

void jinja_write_text(jinja_run *run, jinja_buffer *buffer, const char *text, uint8_t mark) {
  jinja_write(run, buffer, text, strlen(text), mark);
}

void jinja_write_part(jinja_run *run, jinja_buffer *buffer, const jinja_string *string,
                      uint32_t from, uint32_t to) {
  if (string->is_used != NULL) *string->is_used = true;
  if (from >= to) return;
  if (string->marks == NULL) {
    jinja_write(run, buffer, string->bytes + from, to - from, string->mark);
    return;
  }
  if (!reserve(run, buffer, to - from)) return;
  memcpy(buffer->bytes + buffer->size_bytes, string->bytes + from, to - from);
  memcpy(buffer->marks + buffer->size_bytes, string->marks + from, to - from);
  buffer->size_bytes += to - from;
  buffer->seen = 3;
}

void jinja_write_string(jinja_run *run, jinja_buffer *buffer, const jinja_string *string) {
  jinja_write_part(run, buffer, string, 0, string->size_bytes);
}

jinja_value jinja_buffer_value(jinja_run *run, const jinja_buffer *buffer) {
  jinja_string *string = jinja_take(run, sizeof *string);
  if (string == NULL) return JINJA_NOTHING;
  *string = (jinja_string){.bytes = buffer->size_bytes > 0 ? buffer->bytes : "",
                           .size_bytes = buffer->size_bytes,
                           .mark = buffer->seen == 2 ? JINJA_MARK_CONTENT : JINJA_MARK_TEMPLATE};
  if (buffer->seen == 3) string->marks = buffer->marks;
  return jinja_of_string(string);
}

jinja_buffer *jinja_begin_append(jinja_run *run, const jinja_string *begin) {
  if (begin->owner != NULL && begin->owner->size_bytes == begin->size_bytes) return begin->owner;
  jinja_buffer *buffer = jinja_take(run, sizeof *buffer);
  if (buffer == NULL) return NULL;
  *buffer = (jinja_buffer){0};
  jinja_write_string(run, buffer, begin);
  return buffer;
}

jinja_value jinja_end_append(jinja_run *run, jinja_buffer *buffer) {
  if (buffer == NULL) return JINJA_NOTHING;
  const jinja_value value = jinja_buffer_value(run, buffer);
  if (value.kind == JINJA_STRING) ((jinja_string *)value.string)->owner = buffer;
  return value;
}

// ---- Python's representation of values ----

size_t jinja_escape_named(char out[16], uint32_t code, const char *names) {
  for (; *names != 0; names += 2) {
    if ((uint8_t)*names != code) continue;
    out[0] = '\\';
    out[1] = names[1];
    return 2;
  }
  return 0;
}

size_t jinja_escape_hex(char out[16], uint32_t code, char letter, uint32_t digits) {
  out[0] = '\\';
  out[1] = letter;
  for (uint32_t i = 0; i < digits; i++) {
    out[2 + i] = "0123456789abcdef"[code >> 4 * (digits - 1 - i) & 15];
  }
  return 2 + digits;
}

// Writes a string like Python's repr.
static size_t escape_repr(char out[16], uint32_t code, uint32_t quote) {
  const char own[] = {(char)quote, (char)quote, 0};
  size_t named = jinja_escape_named(out, code, "\nn\rr\tt\\\\");
  if (named == 0) named = jinja_escape_named(out, code, own);
  const uint8_t unprintable = UNICODE_UNASSIGNED | UNICODE_SPACE | UNICODE_CONTROL;
  if (named > 0 || code == ' ' || (unicode_class(code) & unprintable) == 0) return named;
  if (code < 0x100) return jinja_escape_hex(out, code, 'x', 2);
  return code < 0x10000 ? jinja_escape_hex(out, code, 'u', 4) : jinja_escape_hex(out, code, 'U', 8);
}

void jinja_write_quoted(jinja_run *run, jinja_buffer *buffer, const jinja_string *string,
                        char quote, jinja_escape_character *escape, uint32_t style) {
  jinja_write(run, buffer, &quote, 1, JINJA_MARK_CONTENT);
  uint32_t from = 0;
  for (uint32_t at = 0; at < string->size_bytes && run->status == WICK_OK;) {
    char escaped[16];
    uint32_t code = 0;
    const int bytes =
        utf8_decode((const uint8_t *)string->bytes + at, string->size_bytes - at, &code);
    const uint32_t next = at + (bytes > 0 ? (uint32_t)bytes : 1);
    const size_t size = escape(escaped, code, style);
    if (size > 0) {
      jinja_write_part(run, buffer, string, from, at);
      jinja_write(run, buffer, escaped, size, jinja_string_mark(string, at));
      from = next;
    }
    at = next;
  }
  jinja_write_part(run, buffer, string, from, string->size_bytes);
  jinja_write(run, buffer, &quote, 1, JINJA_MARK_CONTENT);
}

static void write_number(jinja_run *run, jinja_buffer *buffer, jinja_value value) {
  if (value.kind == JINJA_FLOAT && !jinja_step_float(run, value.real)) return;
  char text[DECIMAL_BYTES];
  const size_t size = value.kind == JINJA_FLOAT
                          ? decimal_write_f64(text, value.real)
                          : text_format(text, sizeof text, "%lld", (long long)value.integer);
  jinja_write(run, buffer, text, size, JINJA_MARK_TEMPLATE);
}

static void write_repr_string(jinja_run *run, jinja_buffer *buffer, const jinja_string *string) {
  const bool has_single = jinja_find_byte(string->bytes, '\'', string->size_bytes) != NULL;
  const bool has_double = jinja_find_byte(string->bytes, '"', string->size_bytes) != NULL;
  const char quote = has_single && !has_double ? '"' : '\'';
  jinja_write_quoted(run, buffer, string, quote, escape_repr, (uint32_t)quote);
}

static void write_repr_list(jinja_run *run, jinja_buffer *buffer, jinja_value value) {
  const bool is_tuple = value.kind == JINJA_TUPLE;
  jinja_write(run, buffer, is_tuple ? "(" : "[", 1, JINJA_MARK_CONTENT);
  for (uint32_t i = 0; i < value.list->count && run->status == WICK_OK; i++) {
    if (i > 0) jinja_write(run, buffer, ", ", 2, JINJA_MARK_CONTENT);
    jinja_write_repr(run, buffer, value.list->items[i]);
  }
  if (is_tuple && value.list->count == 1) jinja_write(run, buffer, ",", 1, JINJA_MARK_CONTENT);
  jinja_write(run, buffer, is_tuple ? ")" : "]", 1, JINJA_MARK_CONTENT);
}

static void write_range(jinja_run *run, jinja_buffer *buffer, const jinja_list *list) {
  const jinja_value *bounds = list->items + list->count;
  jinja_write_text(run, buffer, "range(", JINJA_MARK_CONTENT);
  for (int i = 0; i < (bounds[2].integer == 1 ? 2 : 3); i++) {
    if (i > 0) jinja_write_text(run, buffer, ", ", JINJA_MARK_CONTENT);
    write_number(run, buffer, bounds[i]);
  }
  jinja_write_text(run, buffer, ")", JINJA_MARK_CONTENT);
}

static void write_repr_dict(jinja_run *run, jinja_buffer *buffer, const jinja_dict *dict) {
  if (dict->is_arguments) run->prints_arguments = true;
  jinja_write(run, buffer, "{", 1, JINJA_MARK_CONTENT);
  for (uint32_t i = 0; i < dict->count && run->status == WICK_OK; i++) {
    if (i > 0) jinja_write(run, buffer, ", ", 2, JINJA_MARK_CONTENT);
    jinja_write_repr(run, buffer, dict->entries[i].key);
    jinja_write(run, buffer, ": ", 2, JINJA_MARK_CONTENT);
    jinja_write_repr(run, buffer, dict->entries[i].value);
  }
  jinja_write(run, buffer, "}", 1, JINJA_MARK_CONTENT);
}

enum { REPR_DEPTH_MAX = 100 };

void jinja_write_repr(jinja_run *run, jinja_buffer *buffer, jinja_value value) {
  if (!jinja_step(run, 1)) return;
  if (run->depth >= REPR_DEPTH_MAX) {
    jinja_fail(run, WICK_E_FULL, "nested too deeply");
    return;
  }
  run->depth++;
  switch (value.kind) {
    case JINJA_UNDEFINED:
      jinja_write_text(run, buffer, "Undefined", JINJA_MARK_TEMPLATE);
      break;
    case JINJA_NONE:
      jinja_write_text(run, buffer, "None", JINJA_MARK_TEMPLATE);
      break;
    case JINJA_BOOL:
      jinja_write_text(run, buffer, value.truth ? "True" : "False", JINJA_MARK_TEMPLATE);
      break;
    case JINJA_INT:
    case JINJA_FLOAT:
      write_number(run, buffer, value);
      break;
    case JINJA_BIG:
      jinja_write_string(run, buffer, value.string);
      break;
    case JINJA_STRING:
      write_repr_string(run, buffer, value.string);
      break;
    case JINJA_LIST:
    case JINJA_TUPLE:
      write_repr_list(run, buffer, value);
      break;
    case JINJA_RANGE:
      write_range(run, buffer, value.list);
      break;
    case JINJA_DICT:
      write_repr_dict(run, buffer, value.dict);
      break;
    default:
      jinja_fail(run, WICK_E_FORMAT, "a loop, macro, namespace or function cannot be printed");
  }
  run->depth--;
}

void jinja_write_value(jinja_run *run, jinja_buffer *buffer, jinja_value value) {
  if (value.kind == JINJA_STRING) {
    jinja_write_string(run, buffer, value.string);
  } else if (value.kind != JINJA_UNDEFINED) {
    jinja_write_repr(run, buffer, value);
  }
}

const jinja_string *jinja_text_of(jinja_run *run, jinja_value value) {
  static const jinja_string empty = {.bytes = ""};
  if (value.kind == JINJA_STRING) return value.string;
  jinja_buffer buffer = {0};
  jinja_write_value(run, &buffer, value);
  const jinja_value text = jinja_buffer_value(run, &buffer);
  return text.kind == JINJA_STRING ? text.string : &empty;
}

jinja_value jinja_text_value(jinja_run *run, const char *text) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  const jinja_string *string =
      jinja_string_copy(run->arena, text, strlen(text), JINJA_MARK_TEMPLATE);
  return string == NULL ? jinja_fail_memory(run) : jinja_of_string(string);
}

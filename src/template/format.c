// template/format.c — format strings: `'%s' % x` and `'{}'.format(x)`. Source: Python's
// documentation, "printf-style String Formatting" and "Format String Syntax"; the latter is limited
// to names, numbers, !s and !r, without widths.
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "template/run.h"

// ---- % ----

typedef struct percent_spec {
  bool is_left, has_zeros;
  char sign;  // before nonnegative numbers: '+', ' ' or none
  bool has_precision;
  uint32_t width, precision;  // WIDTH_MAX + 1: more than WIDTH_MAX
  char kind;
} percent_spec;

enum { WIDTH_MAX = 1000, PLACES_DEFAULT = 6 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static uint32_t read_width(const jinja_string *format, uint32_t *at) {
  uint32_t width = 0;
  while (*at < format->size_bytes && is_digit(format->bytes[*at])) {
    width = width * 10 + (uint32_t)(format->bytes[(*at)++] - '0');
    if (width > WIDTH_MAX) width = WIDTH_MAX + 1;
  }
  return width;
}

static percent_spec read_spec(const jinja_string *format, uint32_t *at) {
  percent_spec spec = {0};
  for (; *at < format->size_bytes; ++*at) {
    const char c = format->bytes[*at];
    if (c == '-') {
      spec.is_left = true;
    } else if (c == '0') {
      spec.has_zeros = true;
    } else if (c == '+' || c == ' ') {
      if (spec.sign != '+') spec.sign = c;
    } else {
      break;
    }
  }
  spec.width = read_width(format, at);
  if (*at < format->size_bytes && format->bytes[*at] == '.') {
    ++*at;
    spec.has_precision = true;
    spec.precision = read_width(format, at);
  }
  if (*at < format->size_bytes) spec.kind = format->bytes[(*at)++];
  return spec;
}

static size_t put_number(jinja_run *run, const percent_spec *spec, jinja_value value,
                         char out[DECIMAL_FIXED_BYTES]) {
  if (!jinja_is_number(value)) {
    jinja_fail(run, WICK_E_FORMAT, "%%%c of a value that is not a number", spec->kind);
    return 0;
  }
  size_t size = 0;
  if (spec->sign != 0 && jinja_real_of(value) >= 0) out[size++] = spec->sign;
  if (spec->kind == 'f' || spec->kind == 'F') {
    jinja_step_float(run, jinja_real_of(value));
    const uint32_t places = spec->has_precision ? spec->precision : PLACES_DEFAULT;
    return size + decimal_write_fixed(out + size, jinja_real_of(value), (int)places);
  }
  if (value.kind == JINJA_BIG && spec->kind != 'x') {
    memcpy(out + size, value.string->bytes, value.string->size_bytes);
    return size + value.string->size_bytes;
  }
  const double real = jinja_real_of(value);
  if (!(real > -9e18 && real < 9e18) || (spec->kind == 'x' && value.kind == JINJA_FLOAT)) {
    jinja_fail(run, WICK_E_FORMAT, "%%%c of a value that is not a whole number", spec->kind);
    return 0;
  }
  const int64_t integer = value.kind != JINJA_FLOAT ? jinja_int_of(value) : (int64_t)real;
  if (spec->kind == 'x') {
    if (integer < 0) out[size++] = '-';
    const uint64_t magnitude = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    return size + text_format(out + size, 32, "%llx", (unsigned long long)magnitude);
  }
  return size + text_format(out + size, 32, "%lld", (long long)integer);
}

static void put_padded(jinja_run *run, jinja_buffer *buffer, const percent_spec *spec,
                       const jinja_string *text) {
  const uint32_t length = jinja_string_length(text);
  uint32_t padding = spec->width > length ? spec->width - length : 0;
  const bool has_zeros = spec->has_zeros && spec->kind != 's' && spec->kind != 'r';
  uint32_t from = 0;
  if (has_zeros && !spec->is_left && text->size_bytes > 0 &&
      (text->bytes[0] == '-' || text->bytes[0] == '+' || text->bytes[0] == ' ')) {
    jinja_write_part(run, buffer, text, from++, 1);
  }
  for (; padding > 0 && !spec->is_left; padding--) {
    jinja_write(run, buffer, has_zeros ? "0" : " ", 1, JINJA_MARK_TEMPLATE);
  }
  jinja_write_part(run, buffer, text, from, text->size_bytes);
  for (; padding > 0; padding--) jinja_write(run, buffer, " ", 1, JINJA_MARK_TEMPLATE);
}

// Returns the size in bytes of the first `characters` characters of a string.
static uint32_t bytes_of_characters(const jinja_string *text, uint32_t characters) {
  uint32_t bytes = 0;
  for (; bytes < text->size_bytes; bytes++) {
    if (((uint8_t)text->bytes[bytes] & 0xc0) != 0x80 && characters-- == 0) break;
  }
  return bytes;
}

static void put_text(jinja_run *run, jinja_buffer *buffer, const percent_spec *spec,
                     jinja_value whole) {
  if (whole.kind == JINJA_STRING && spec->has_precision) {
    whole = jinja_part(run, whole.string, 0, bytes_of_characters(whole.string, spec->precision));
  }
  if (whole.kind == JINJA_STRING) put_padded(run, buffer, spec, whole.string);
}

static bool is_within_limits(jinja_run *run, const percent_spec *spec) {
  const bool is_text = spec->kind == 's' || spec->kind == 'r';
  if (spec->width > WIDTH_MAX || spec->precision > WIDTH_MAX) {
    jinja_fail(run, WICK_E_FULL, "a format's width and precision are at most %d", (int)WIDTH_MAX);
  } else if (!is_text && spec->has_precision && spec->precision > DECIMAL_PLACES_MAX) {
    jinja_fail(run, WICK_E_FULL, "a number is formatted with at most %d places",
               (int)DECIMAL_PLACES_MAX);
  }
  return run->status == WICK_OK;
}

static void put_percent(jinja_run *run, jinja_buffer *buffer, const percent_spec *spec,
                        jinja_value value) {
  if (!is_within_limits(run, spec)) return;
  if (spec->kind == 's' || spec->kind == 'r') {
    jinja_buffer text = {0};
    if (spec->kind == 's') {
      jinja_write_value(run, &text, value);
    } else {
      jinja_write_repr(run, &text, value);
    }
    put_text(run, buffer, spec, jinja_buffer_value(run, &text));
    return;
  }
  if (!jinja_is_one_of(spec->kind, "diufFx")) {
    jinja_fail(run, WICK_E_UNSUPPORTED, "an unknown %% format");
    return;
  }
  char text[DECIMAL_FIXED_BYTES + 1];
  const size_t size = put_number(run, spec, value, text);
  const jinja_string number = {.bytes = text, .size_bytes = (uint32_t)size};
  put_padded(run, buffer, spec, &number);
}

// Looks up the value that `%(name)s` refers to; moves past the bracket.
static jinja_value named_value(jinja_run *run, const jinja_string *format, uint32_t *at,
                               jinja_value values) {
  const uint32_t begin = *at + 1;
  while (*at < format->size_bytes && format->bytes[*at] != ')') ++*at;
  const jinja_string name = {.bytes = format->bytes + begin, .size_bytes = *at - begin};
  if (*at < format->size_bytes) ++*at;
  const jinja_entry *entry =
      values.kind == JINJA_DICT ? jinja_dict_find(values.dict, jinja_of_string(&name)) : NULL;
  if (entry != NULL) return entry->value;
  return jinja_fail(run, WICK_E_FORMAT, "a format names a value that does not exist");
}

jinja_value jinja_format_percent(jinja_run *run, const jinja_string *format, jinja_value values) {
  jinja_buffer buffer = {0};
  uint32_t used = 0;
  jinja_step_bytes(run, format->size_bytes);
  for (uint32_t at = 0; at < format->size_bytes && run->status == WICK_OK;) {
    const uint32_t begin = at;
    while (at < format->size_bytes && format->bytes[at] != '%') at++;
    jinja_write_part(run, &buffer, format, begin, at);
    if (at++ >= format->size_bytes) break;
    if (at < format->size_bytes && format->bytes[at] == '%') {
      jinja_write_part(run, &buffer, format, at, at + 1);
      at++;
      continue;
    }
    const bool is_named = at < format->size_bytes && format->bytes[at] == '(';
    jinja_value value = is_named ? named_value(run, format, &at, values) : values;
    const percent_spec spec = read_spec(format, &at);
    if (!is_named && values.kind == JINJA_TUPLE) {
      if (used >= values.list->count)
        return jinja_fail(run, WICK_E_FORMAT, "a format needs more values");
      value = values.list->items[used++];
    } else if (!is_named && used++ > 0) {
      return jinja_fail(run, WICK_E_FORMAT, "a format needs more values");
    }
    if (run->status == WICK_OK) put_percent(run, &buffer, &spec, value);
  }
  // Python ignores unused lists and dicts, whose items may be requested by name
  const bool is_single =
      values.kind == JINJA_STRING || jinja_is_number(values) || values.kind == JINJA_NONE;
  if ((values.kind == JINJA_TUPLE && used < values.list->count) || (is_single && used == 0)) {
    return jinja_fail(run, WICK_E_FORMAT, "a format leaves values unused");
  }
  return jinja_buffer_value(run, &buffer);
}

// ---- {} ----

// Looks up the value of a field between brackets: nothing, a number or a name.
static jinja_value field_value(jinja_run *run, const jinja_string *field, uint32_t *automatic,
                               const jinja_arguments *arguments) {
  uint64_t index = 0;
  bool is_number = true;
  for (uint32_t i = 0; i < field->size_bytes && is_number; i++) {
    is_number = is_digit(field->bytes[i]) && index < 1000;
    index = index * 10 + (uint64_t)(field->bytes[i] - '0');
  }
  if (field->size_bytes == 0) index = (*automatic)++;
  if (is_number && index < arguments->plain_count) return arguments->plain[index];
  for (uint32_t i = 0; i < arguments->named_count; i++) {
    if (jinja_string_equal(arguments->names[i], field)) return arguments->named[i];
  }
  return jinja_fail(run, WICK_E_FORMAT, "a format names a value that does not exist");
}

static void put_field(jinja_run *run, jinja_buffer *buffer, const jinja_string *whole,
                      uint32_t *automatic, const jinja_arguments *arguments) {
  jinja_string field = *whole;
  const char *mark = jinja_find_byte(field.bytes, '!', field.size_bytes);
  const char *colon = jinja_find_byte(field.bytes, ':', field.size_bytes);
  const bool is_repr = mark != NULL && mark + 2 == field.bytes + field.size_bytes && mark[1] == 'r';
  if (mark != NULL) field.size_bytes = (uint32_t)(mark - field.bytes);
  percent_spec spec = {.kind = 's'};
  if (colon != NULL && mark == NULL) {
    uint32_t at = (uint32_t)(colon - field.bytes) + 1;
    spec = read_spec(&field, &at);
    if (spec.kind == '\0') spec.kind = 's';
    if (spec.kind == 'd') spec.kind = 'i';
    field.size_bytes = (uint32_t)(colon - field.bytes);
  }
  const jinja_value value = field_value(run, &field, automatic, arguments);
  if (is_repr) spec.kind = 'r';
  if (run->status == WICK_OK) put_percent(run, buffer, &spec, value);
}

jinja_value jinja_format_braces(jinja_run *run, const jinja_string *format,
                                const jinja_arguments *arguments) {
  jinja_buffer buffer = {0};
  uint32_t automatic = 0;
  jinja_step_bytes(run, format->size_bytes);
  for (uint32_t at = 0; at < format->size_bytes && run->status == WICK_OK;) {
    const char c = format->bytes[at];
    const bool is_double = at + 1 < format->size_bytes && format->bytes[at + 1] == c;
    if (c != '{' && c != '}') {
      const uint32_t begin = at;
      while (at < format->size_bytes && format->bytes[at] != '{' && format->bytes[at] != '}') at++;
      jinja_write_part(run, &buffer, format, begin, at);
    } else if (is_double) {
      jinja_write_part(run, &buffer, format, at, at + 1);
      at += 2;
    } else {
      const uint32_t begin = ++at;
      while (at < format->size_bytes && format->bytes[at] != '}') at++;
      if (c == '}' || at >= format->size_bytes) {
        return jinja_fail(run, WICK_E_FORMAT, "a bracket of a format is not closed");
      }
      jinja_string field = {.bytes = format->bytes + begin, .size_bytes = at++ - begin};
      put_field(run, &buffer, &field, &automatic, arguments);
    }
  }
  return jinja_buffer_value(run, &buffer);
}

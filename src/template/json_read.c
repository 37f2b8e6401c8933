// template/json_read.c — parses JSON (RFC 8259). Invalid UTF-8 and unpaired surrogates become
// U+FFFD.
#include <string.h>

#include "base/decimal.h"
#include "base/text.h"
#include "template/run.h"

enum { JSON_DEPTH_MAX = 96, BIG_BYTES_MAX = 48 };

typedef struct json_input {
  jinja_run *run;
  const char *bytes;
  size_t size_bytes, at;
  uint8_t mark;
} json_input;

static jinja_value fail(json_input *input, const char *problem) {
  return jinja_fail(input->run, WICK_E_FORMAT, "JSON, byte %zu: %s", input->at, problem);
}

static void skip_space(json_input *input) {
  while (input->at < input->size_bytes && jinja_is_one_of(input->bytes[input->at], " \t\n\r")) {
    input->at++;
  }
}

static bool take(json_input *input, char c) {
  if (input->at >= input->size_bytes || input->bytes[input->at] != c) return false;
  input->at++;
  return true;
}

// ---- strings ----

static bool read_hex(json_input *input, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++) {
    if (input->at >= input->size_bytes) return false;
    const uint32_t digit = text_hex_value((uint8_t)input->bytes[input->at++]);
    if (digit == 16) return false;
    *code = *code * 16 + digit;
  }
  return true;
}

// Reads the digits after \u. A surrogate pair is one character.
static bool read_unit(json_input *input, uint32_t *code) {
  if (!read_hex(input, code)) return false;
  if (*code < 0xd800 || *code > 0xdfff) return true;
  const size_t after = input->at;
  uint32_t low;
  if (*code < 0xdc00 && take(input, '\\') && take(input, 'u') && read_hex(input, &low) &&
      low >= 0xdc00 && low <= 0xdfff) {
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
  }
  input->at = after;
  *code = 0xfffd;
  return true;
}

static bool read_escape(json_input *input, char *out, uint32_t *size_bytes) {
  static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
  if (input->at >= input->size_bytes) return false;
  const char c = input->bytes[input->at++];
  for (size_t i = 0; i + 1 < sizeof names; i += 2) {
    if (names[i] != c) continue;
    out[(*size_bytes)++] = names[i + 1];
    return true;
  }
  uint32_t code;
  if (c != 'u' || !read_unit(input, &code)) return false;
  *size_bytes += (uint32_t)utf8_encode(code, (uint8_t *)out + *size_bytes);
  return true;
}

// Copies one character that is not escaped; valid UTF-8 is unchanged.
static void copy_character(json_input *input, char *out, uint32_t *size_bytes) {
  uint32_t code;
  const int bytes =
      utf8_decode((const uint8_t *)input->bytes + input->at, input->size_bytes - input->at, &code);
  if (bytes <= 0) {
    *size_bytes += (uint32_t)utf8_encode(0xfffd, (uint8_t *)out + *size_bytes);
    input->at++;
    return;
  }
  memcpy(out + *size_bytes, input->bytes + input->at, (size_t)bytes);
  *size_bytes += (uint32_t)bytes;
  input->at += (size_t)bytes;
}

// Finds the end of the string that begins here, and the maximum size of its decoded form.
static size_t find_string_end(const json_input *input, size_t *room) {
  size_t at = input->at;
  *room = 0;
  for (; at < input->size_bytes && input->bytes[at] != '"'; at++) {
    *room += (uint8_t)input->bytes[at] >= 0x80 ? 3 : 1;
    if (input->bytes[at] == '\\') {
      at++;
      ++*room;
    }
  }
  return at;
}

static jinja_value read_string(json_input *input) {
  size_t room;
  const size_t end = find_string_end(input, &room);
  if (end >= input->size_bytes) return fail(input, "unterminated string");
  if (room > UINT32_MAX) return jinja_fail_memory(input->run);
  char *out = jinja_take(input->run, room);
  jinja_string *string = jinja_take(input->run, sizeof *string);
  if (out == NULL || string == NULL) return JINJA_NOTHING;
  uint32_t size_bytes = 0;
  while (input->at < end) {
    const char c = input->bytes[input->at];
    if (c == '\\') {
      input->at++;
      if (!read_escape(input, out, &size_bytes)) return fail(input, "an unknown escape");
    } else if ((uint8_t)c < 0x20) {
      return fail(input, "a control character in a string");
    } else {
      copy_character(input, out, &size_bytes);
    }
  }
  input->at = end + 1;
  *string = (jinja_string){.bytes = out, .size_bytes = size_bytes, .mark = input->mark};
  return jinja_of_string(string);
}

// ---- numbers ----

// Whether a digit follows the point, if there is a point.
static bool has_fraction(const char *bytes, size_t size_bytes) {
  const char *point = jinja_find_byte(bytes, '.', (uint32_t)size_bytes);
  const char *const end = bytes + size_bytes;
  return point == NULL || (point + 1 < end && point[1] >= '0' && point[1] <= '9');
}

static jinja_value read_number(json_input *input) {
  const size_t begin = input->at;
  bool is_whole = true;
  for (; input->at < input->size_bytes; input->at++) {
    const char c = input->bytes[input->at];
    if (c == '.' || c == 'e' || c == 'E' || (c == '+' && input->at > begin)) is_whole = false;
    if ((c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E') break;
  }
  const char *bytes = input->bytes + begin;
  const size_t size_bytes = input->at - begin;
  double real;
  const size_t first = size_bytes > 0 && bytes[0] == '-';
  const bool begins = first < size_bytes && bytes[first] >= '0' && bytes[first] <= '9';
  const bool has_zero = begins && bytes[first] == '0' && first + 1 < size_bytes &&
                        bytes[first + 1] >= '0' && bytes[first + 1] <= '9';
  if (!begins || has_zero || !has_fraction(bytes, size_bytes) ||
      !decimal_read_f64(bytes, size_bytes, &real)) {
    return fail(input, "not a JSON value");
  }
  if (!is_whole || size_bytes > BIG_BYTES_MAX) {
    return jinja_step_float(input->run, real) ? jinja_float(real) : JINJA_NOTHING;
  }
  const uint64_t most = (uint64_t)INT64_MAX + first;
  uint64_t magnitude = 0;
  for (size_t i = first; i < size_bytes; i++) {
    const uint64_t digit = (uint64_t)(bytes[i] - '0');
    if (magnitude > (most - digit) / 10) return jinja_big(input->run, bytes, size_bytes);
    magnitude = magnitude * 10 + digit;
  }
  return jinja_int((int64_t)(first != 0 ? 0 - magnitude : magnitude));
}

// ---- values ----

static jinja_value read_value(json_input *input, uint32_t depth);

static jinja_value read_list(json_input *input, uint32_t depth) {
  jinja_list *list = jinja_new_list(input->run, 0);
  skip_space(input);
  if (take(input, ']')) return jinja_list_value(list);
  while (input->run->status == WICK_OK) {
    jinja_add_item(input->run, list, read_value(input, depth + 1));
    skip_space(input);
    if (take(input, ']')) return jinja_list_value(list);
    if (!take(input, ',')) return fail(input, "unterminated list");
  }
  return JINJA_NOTHING;
}

static jinja_value read_dict(json_input *input, uint32_t depth) {
  jinja_dict *dict = jinja_new_dict(input->run);
  const jinja_value value = {.kind = JINJA_DICT, .dict = dict};
  skip_space(input);
  if (take(input, '}')) return dict == NULL ? JINJA_NOTHING : value;
  while (input->run->status == WICK_OK) {
    skip_space(input);
    if (!take(input, '"')) return fail(input, "a key is missing");
    const jinja_value key = read_string(input);
    skip_space(input);
    if (!take(input, ':')) return fail(input, "a key has no value");
    const jinja_value item = read_value(input, depth + 1);
    if (input->run->status == WICK_OK) jinja_put(input->run, dict, key, item);
    skip_space(input);
    if (take(input, '}')) return value;
    if (!take(input, ',')) return fail(input, "unterminated object");
  }
  return JINJA_NOTHING;
}

static bool take_word(json_input *input, const char *word) {
  const size_t size_bytes = strlen(word);
  if (size_bytes > input->size_bytes - input->at) return false;
  if (memcmp(input->bytes + input->at, word, size_bytes) != 0) return false;
  input->at += size_bytes;
  return true;
}

static jinja_value read_value(json_input *input, uint32_t depth) {
  if (!jinja_step(input->run, 1)) return JINJA_NOTHING;
  if (depth > JSON_DEPTH_MAX) return fail(input, "nested too deeply");
  skip_space(input);
  if (take(input, '"')) return read_string(input);
  if (take(input, '{')) return read_dict(input, depth);
  if (take(input, '[')) return read_list(input, depth);
  if (take_word(input, "true")) return jinja_bool(true);
  if (take_word(input, "false")) return jinja_bool(false);
  if (take_word(input, "null")) return jinja_none();
  return read_number(input);
}

jinja_value jinja_read_json(jinja_run *run, const char *bytes, size_t size_bytes, uint8_t mark) {
  json_input input = {run, bytes, size_bytes, 0, mark};
  jinja_step_bytes(run, size_bytes);
  const jinja_value value = read_value(&input, 0);
  skip_space(&input);
  if (run->status == WICK_OK && input.at < size_bytes) return fail(&input, "more than one value");
  return run->status == WICK_OK ? value : JINJA_NOTHING;
}

// template/strings.c — string operations of templates. Parts of a string, and strings built from
// them, keep the marks of their original bytes. Source: Python's documentation of str.
#include <string.h>

#include "base/text.h"
#include "template/run.h"
#include "text/unicode.h"

jinja_value jinja_markup(jinja_run *run, jinja_value text) {
  jinja_string *markup = jinja_take(run, sizeof *markup);
  if (markup == NULL || text.kind != JINJA_STRING) return JINJA_NOTHING;
  *markup = *text.string;
  markup->is_markup = true;
  return jinja_of_string(markup);
}

// Returns a result of the same kind: markup stays markup.
static jinja_value finish(jinja_run *run, const jinja_buffer *buffer, const jinja_string *like) {
  const jinja_value value = jinja_buffer_value(run, buffer);
  return like->is_markup ? jinja_markup(run, value) : value;
}

jinja_value jinja_part(jinja_run *run, const jinja_string *string, uint32_t from, uint32_t to) {
  if (!jinja_step(run, 1)) return JINJA_NOTHING;
  if (from > to) from = to;
  const jinja_string *view = jinja_string_view(run->arena, string, from, to - from);
  return view == NULL ? jinja_fail_memory(run) : jinja_of_string(view);
}

// ---- searching: compared bytes are counted in groups ----

enum { COUNTED_BYTES = 4096 };

static bool lies_at(jinja_run *run, const jinja_string *string, const jinja_string *part,
                    uint32_t at, uint64_t *compared) {
  uint32_t i = 0;
  while (i < part->size_bytes && string->bytes[at + i] == part->bytes[i]) i++;
  *compared += i + 1;
  if (*compared > COUNTED_BYTES) {
    jinja_step_bytes(run, *compared);
    *compared = 0;
  }
  return i == part->size_bytes;
}

uint32_t jinja_find_part(jinja_run *run, const jinja_string *string, const jinja_string *part,
                         uint32_t from) {
  uint64_t compared = 0;
  uint32_t found = UINT32_MAX;
  for (uint32_t at = from; run->status == WICK_OK && part->size_bytes <= string->size_bytes &&
                           at <= string->size_bytes - part->size_bytes;
       at++) {
    if (!lies_at(run, string, part, at, &compared)) continue;
    found = at;
    break;
  }
  jinja_step_bytes(run, compared);
  return found;
}

uint32_t jinja_find_last(jinja_run *run, const jinja_string *string, const jinja_string *part,
                         uint32_t end) {
  uint64_t compared = 0;
  uint32_t found = UINT32_MAX;
  if (part->size_bytes <= end) {
    for (uint32_t at = end - part->size_bytes + 1; run->status == WICK_OK && at-- > 0;) {
      if (!lies_at(run, string, part, at, &compared)) continue;
      found = at;
      break;
    }
  }
  jinja_step_bytes(run, compared);
  return found;
}

// ---- stripping ----

static uint32_t code_at(const jinja_string *string, uint32_t at, uint32_t *size_bytes) {
  uint32_t code = 0;
  const int size = utf8_decode((const uint8_t *)string->bytes + at, string->size_bytes - at, &code);
  *size_bytes = size > 0 ? (uint32_t)size : 1;
  return code;
}

bool jinja_is_space_at(const jinja_string *string, uint32_t at, uint32_t *size_bytes) {
  const uint32_t code = code_at(string, at, size_bytes);
  if (code >= 0x1c && code <= 0x1f) return true;  // Python's str.isspace also includes these
  return unicode_class(code) == UNICODE_SPACE;
}

static bool is_stripped(const jinja_string *string, uint32_t at, const jinja_string *set,
                        uint32_t *size_bytes) {
  if (set == NULL) return jinja_is_space_at(string, at, size_bytes);
  const uint32_t code = code_at(string, at, size_bytes);
  uint32_t member_bytes;
  for (uint32_t i = 0; i < set->size_bytes; i += member_bytes) {
    if (code_at(set, i, &member_bytes) == code) return true;
  }
  return false;
}

jinja_value jinja_strip(jinja_run *run, const jinja_string *string, const jinja_string *set,
                        bool left, bool right) {
  uint32_t from = 0, to = string->size_bytes, size_bytes;
  const uint64_t cost = set == NULL ? 1 : set->size_bytes;
  while (left && from < to && jinja_step_bytes(run, cost) &&
         is_stripped(string, from, set, &size_bytes)) {
    from += size_bytes;
  }
  while (right && to > from && jinja_step_bytes(run, cost)) {
    uint32_t begin = to - 1;
    while (begin > from && ((uint8_t)string->bytes[begin] & 0xc0) == 0x80) begin--;
    if (!is_stripped(string, begin, set, &size_bytes)) break;
    to = begin;
  }
  return jinja_part(run, string, from, to);
}

// ---- replacing ----

jinja_value jinja_replace(jinja_run *run, const jinja_string *string, const jinja_string *from,
                          const jinja_string *to, int64_t count_max) {
  jinja_buffer buffer = {0};
  uint32_t at = 0;
  int64_t count = 0;
  while (run->status == WICK_OK && (count_max < 0 || count < count_max)) {
    if (from->size_bytes == 0) {  // insert before each character and at the end
      jinja_write_string(run, &buffer, to);
      if (at >= string->size_bytes) break;
      const uint32_t size_bytes = jinja_char_bytes(string, at);
      jinja_write_part(run, &buffer, string, at, at + size_bytes);
      at += size_bytes;
    } else {
      const uint32_t found = jinja_find_part(run, string, from, at);
      if (found == UINT32_MAX) break;
      jinja_write_part(run, &buffer, string, at, found);
      jinja_write_string(run, &buffer, to);
      at = found + from->size_bytes;
    }
    count++;
  }
  if (at == 0 && buffer.size_bytes == 0) return jinja_of_string(string);
  jinja_write_part(run, &buffer, string, at, string->size_bytes);
  return finish(run, &buffer, string);
}

// ---- upper and lower case ----

// Returns the capital of a letter by simple mappings: ASCII, Latin-1, Greek and Cyrillic capitals
// are at a fixed distance. The capital of any other letter is the adjacent character whose lower
// case it is. Some letters of living languages are exceptions: micro sign, y with diaeresis,
// dotless i, final sigma, and letters of African and Azerbaijani alphabets.
static uint32_t upper_of(uint32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  static const uint16_t elsewhere[][2] = {
      {0xb5, 0x39c},  {0xff, 0x178},  {0x131, 'I'},   {0x17f, 'S'},
      {0x1dd, 0x18e}, {0x253, 0x181}, {0x254, 0x186}, {0x256, 0x189},
      {0x257, 0x18a}, {0x259, 0x18f}, {0x25b, 0x190}, {0x263, 0x194},
      {0x269, 0x196}, {0x272, 0x19d}, {0x28b, 0x1b2}, {0x3c2, 0x3a3},
  };
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
    if (elsewhere[i][0] == code) return elsewhere[i][1];
  }
  static const uint8_t distances[] = {32, 1, 80, 48, 37, 38, 63, 64, 8};
  for (size_t i = 0; i < sizeof distances; i++) {
    const uint32_t upper = code - distances[i];
    if (unicode_lower(upper) == code && upper != code) return upper;
  }
  return code;
}

static bool is_letter(uint32_t code) { return unicode_class(code) == UNICODE_LETTER; }

jinja_value jinja_change_case(jinja_run *run, const jinja_string *string, jinja_case kind) {
  jinja_buffer buffer = {0};
  bool is_inside = false;  // inside a word, for title; after the first character, for capitalize
  uint32_t size_bytes;
  for (uint32_t at = 0; at < string->size_bytes && run->status == WICK_OK; at += size_bytes) {
    const uint32_t code = code_at(string, at, &size_bytes);
    const bool is_upper = kind == CASE_UPPER || (kind >= CASE_TITLE && !is_inside);
    const uint32_t changed = is_upper ? upper_of(code) : unicode_lower(code);
    uint8_t encoded[4];
    size_t encoded_bytes = utf8_encode(changed, encoded);
    if (is_upper && code == 0xdf) {  // sharp s has no common capital
      encoded[0] = 'S';
      encoded[1] = kind == CASE_UPPER ? 'S' : 's';
      encoded_bytes = 2;
    }
    jinja_write(run, &buffer, (const char *)encoded, encoded_bytes, jinja_string_mark(string, at));
    is_inside = kind == CASE_CAPITAL || is_letter(code);
  }
  return finish(run, &buffer, string);
}

// ---- markup ----

jinja_value jinja_escape(jinja_run *run, jinja_value value) {
  static const struct {
    char c;
    const char *name;
  } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  const jinja_string *string = jinja_text_of(run, value);
  if (string->is_markup) return jinja_of_string(string);
  jinja_buffer buffer = {0};
  for (uint32_t at = 0; at < string->size_bytes && run->status == WICK_OK; at++) {
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && name == NULL; i++) {
      if (names[i].c == string->bytes[at]) name = names[i].name;
    }
    if (name != NULL) {
      jinja_write_text(run, &buffer, name, jinja_string_mark(string, at));
    } else {
      jinja_write_part(run, &buffer, string, at, at + 1);
    }
  }
  const jinja_string markup = {.is_markup = true};
  return finish(run, &buffer, &markup);
}

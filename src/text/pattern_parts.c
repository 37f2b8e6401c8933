// text/pattern_parts.c — see pattern_parts.h.
#include "text/pattern_parts.h"

#include "text/patterns.h"

size_t pattern_skip_class(const uint8_t *text, size_t at, size_t end, int classes) {
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if ((c.kind & classes) == 0) return at;
    at += c.size_bytes;
  }
}

size_t pattern_skip_digits(const uint8_t *text, size_t at, size_t end, unsigned count_max) {
  for (unsigned count = 0; count < count_max; count++) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.kind != UNICODE_NUMBER) break;
    at += c.size_bytes;
  }
  return at;
}

size_t pattern_skip_any_of(const uint8_t *text, size_t at, size_t end, const char *set) {
  for (; at < end; at++) {
    const char *p = set;
    while (*p != '\0' && (uint8_t)*p != text[at]) p++;
    if (*p == '\0') break;
  }
  return at;
}

static char lower_ascii(uint8_t byte) {
  return (char)(byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
}

size_t pattern_match_contraction(const uint8_t *text, size_t at, size_t end, bool ignore_case) {
  if (end - at < 2 || text[at] != '\'') return 0;
  const char a = ignore_case ? lower_ascii(text[at + 1]) : (char)text[at + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (end - at < 3) return 0;
  const char b = ignore_case ? lower_ascii(text[at + 2]) : (char)text[at + 2];
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

size_t pattern_match_spaces(const uint8_t *text, size_t at, size_t end) {
  size_t last = at, after = at;
  for (;;) {
    const unicode_char c = unicode_at(text, after, end);
    if (c.kind != UNICODE_SPACE) break;
    last = after;
    after += c.size_bytes;
  }
  return after < end && last > at ? last : after;
}

size_t pattern_match_newlines(const uint8_t *text, size_t at, size_t end) {
  size_t newline_end = at;
  for (;;) {
    const unicode_char c = unicode_at(text, at, end);
    if (c.kind != UNICODE_SPACE) return newline_end;
    at += c.size_bytes;
    if (pattern_is_newline(c)) newline_end = at;
  }
}

size_t pattern_match_after_space(const uint8_t *text, size_t at, size_t end, int classes) {
  const size_t begin = at < end && text[at] == ' ' ? at + 1 : at;
  const size_t after = pattern_skip_class(text, begin, end, classes);
  return after > begin ? after : at;
}

size_t pattern_match_led_letters(const uint8_t *text, size_t at, size_t end, int letters) {
  const unicode_char c = unicode_at(text, at, end);
  if ((c.kind & letters) != 0) return pattern_skip_class(text, at, end, letters);
  if (pattern_is_newline(c) || c.kind == UNICODE_NUMBER) return at;
  const size_t begin = at + c.size_bytes;
  const size_t after = pattern_skip_class(text, begin, end, letters);
  return after > begin ? after : at;
}

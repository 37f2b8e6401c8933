// text/unicode.c — lookup in the generated class runs, and UTF-8 validation.
#include "text/unicode.h"

#include <string.h>

#include "base/text.h"
#include "text/unicode_tables.h"

enum { RUN_CLASS_BITS = 3, RUN_CLASS_MASK = 7, RUN_IS_LONG = 31 };

// Bits of the public enum by class number in the runs.
static const uint8_t CLASS_BIT[8] = {
    UNICODE_UNASSIGNED, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_PUNCTUATION,
    UNICODE_SYMBOL,     UNICODE_MARK,   UNICODE_SPACE,  UNICODE_CONTROL,
};

static uint8_t class_of_ascii(uint32_t code) {
  if ((code | 32) >= 'a' && (code | 32) <= 'z') return UNICODE_LETTER;
  if (code >= '0' && code <= '9') return UNICODE_NUMBER;
  if (code == ' ' || (code >= '\t' && code <= '\r')) return UNICODE_SPACE;
  if (code < ' ' || code == 127) return UNICODE_CONTROL;
  switch (code) {
    case '$':
    case '+':
    case '<':
    case '=':
    case '>':
    case '^':
    case '`':
    case '|':
    case '~':
      return UNICODE_SYMBOL;
    default:
      return UNICODE_PUNCTUATION;
  }
}

uint8_t unicode_class(uint32_t code_point) {
  if (code_point < 128) return class_of_ascii(code_point);
  if (code_point > 0x10ffff) return UNICODE_UNASSIGNED;
  size_t low = 0, high = UNICODE_STEPS;  // the last step that starts at or before the code point
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    if (UNICODE_STEP_START[middle] <= code_point) {
      low = middle;
    } else {
      high = middle;
    }
  }
  uint32_t start = UNICODE_STEP_START[low];
  const uint8_t *run = UNICODE_RUNS + UNICODE_STEP_OFFSET[low];
  for (;;) {
    const uint8_t kind = *run & RUN_CLASS_MASK;
    uint32_t length = *run++ >> RUN_CLASS_BITS;
    if (length == RUN_IS_LONG) {
      length = (uint32_t)(run[0] | run[1] << 8);
      run += 2;
    }
    if (code_point - start < length) return CLASS_BIT[kind];
    start += length;
  }
}

// Reads a variable-length integer, 7 bits per byte (LEB128).
static uint32_t read_number(const uint8_t **at) {
  uint32_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = *(*at)++;
    number |= (uint32_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
}

// Looks up a code point in groups sorted by their first code point.
static uint32_t map_code_point(const uint8_t *groups, const uint8_t *groups_end,
                               const unicode_map_step *steps, size_t step_count, uint32_t code) {
  if (code < steps[0].first) return code;
  size_t low = 0, high = step_count;
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    if (steps[middle].first <= code) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint8_t *at = groups + steps[low].offset;
  uint32_t first = steps[low].last_first, value = steps[low].last_value;
  uint32_t mapped = code;
  while (at < groups_end) {
    const uint32_t head = read_number(&at);
    first += head >> 2;
    if (first > code) break;
    const uint32_t count = read_number(&at) + 1;
    const uint32_t change = read_number(&at);
    value += (change & 1) != 0 ? 0u - (change + 1) / 2 : change / 2;
    const uint32_t stride = (head & 3) == 2 ? 2 : 1;
    const uint32_t distance = code - first;
    const bool is_member = distance % stride == 0 && distance / stride < count;
    mapped = !is_member ? code : (head & 3) == 0 ? value : value + distance;
  }
  return mapped;
}

uint32_t unicode_lower(uint32_t code_point) {
  return map_code_point(UNICODE_LOWER, UNICODE_LOWER + sizeof UNICODE_LOWER, UNICODE_LOWER_STEPS,
                        UNICODE_LOWER_STEP_COUNT, code_point);
}

uint32_t unicode_base(uint32_t code_point) {
  return map_code_point(UNICODE_BASE, UNICODE_BASE + sizeof UNICODE_BASE, UNICODE_BASE_STEPS,
                        UNICODE_BASE_STEP_COUNT, code_point);
}

// Gets the vowel and the last consonant of a Hangul syllable (Unicode, chapter 3.12).
static size_t hangul_tail(uint32_t code_point, uint32_t tail[2]) {
  enum { FIRST = 0xac00, VOWELS = 21, LASTS = 28, VOWEL_FIRST = 0x1161, LAST_BEFORE = 0x11a7 };
  const uint32_t index = code_point - FIRST, last = index % LASTS;
  tail[0] = VOWEL_FIRST + index / LASTS % VOWELS;
  tail[1] = LAST_BEFORE + last;
  return last > 0 ? 2 : 1;
}

size_t unicode_tail(uint32_t code_point, uint32_t tail[2]) {
  if (code_point >= 0xac00 && code_point <= 0xd7a3) return hangul_tail(code_point, tail);
  size_t low = 0, high = UNICODE_TAIL_COUNT;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (UNICODE_TAILS[middle][0] < code_point) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == UNICODE_TAIL_COUNT || UNICODE_TAILS[low][0] != code_point) return 0;
  tail[0] = UNICODE_TAILS[low][1];
  tail[1] = UNICODE_TAILS[low][2];
  return tail[1] != 0 ? 2 : 1;
}

bool unicode_is_spacing_mark(uint32_t code_point) {
  const uint8_t *at = UNICODE_SPACING_MARKS;
  const uint8_t *end = at + sizeof UNICODE_SPACING_MARKS;
  for (uint32_t first = 0; at < end;) {
    first += read_number(&at);
    if (code_point < first) break;
    const uint32_t length = read_number(&at);
    if (code_point - first < length) return true;
    first += length;
  }
  return false;
}

unicode_char unicode_at(const uint8_t *text, size_t at, size_t end) {
  if (at >= end) return (unicode_char){0};
  const uint8_t *p = text + at;
  if (p[0] < 0x80) return (unicode_char){p[0], class_of_ascii(p[0]), 1};
  if (p[0] < 0xe0) {
    const uint32_t code = (uint32_t)((p[0] & 0x1f) << 6 | (p[1] & 0x3f));
    return (unicode_char){code, unicode_class(code), 2};
  }
  if (p[0] < 0xf0) {
    const uint32_t code = (uint32_t)((p[0] & 0x0f) << 12 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f));
    return (unicode_char){code, unicode_class(code), 3};
  }
  const uint32_t code =
      (uint32_t)((p[0] & 0x07) << 18 | (p[1] & 0x3f) << 12 | (p[2] & 0x3f) << 6 | (p[3] & 0x3f));
  return (unicode_char){code, unicode_class(code), 4};
}

size_t unicode_valid_bytes(const uint8_t *text, size_t size_bytes) {
  size_t at = 0;
  while (at < size_bytes) {
    if (text[at] < 0x80) {
      at++;
      continue;
    }
    uint32_t code;
    const int length = utf8_decode(text + at, size_bytes - at, &code);
    if (length <= 0) break;
    at += (size_t)length;
  }
  return at;
}

size_t unicode_repair(const uint8_t *text, size_t size_bytes, uint8_t *out) {
  size_t at = 0, used = 0;
  while (at < size_bytes) {
    const size_t valid = unicode_valid_bytes(text + at, size_bytes - at);
    memcpy(out + used, text + at, valid);
    used += valid;
    at += valid;
    if (at == size_bytes) break;
    at++;
    used += utf8_encode(0xfffd, out + used);
  }
  return used;
}

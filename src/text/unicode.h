// text/unicode.h — classes of code points (Unicode 15.1, the version of the reference tokenizers),
// and UTF-8. It does not depend on tokens.
#ifndef WICK_TEXT_UNICODE_H
#define WICK_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each code point has exactly one of these.
enum {
  UNICODE_UNASSIGNED = 1,
  UNICODE_LETTER = 2,
  UNICODE_NUMBER = 4,
  UNICODE_PUNCTUATION = 8,
  UNICODE_SYMBOL = 16,
  UNICODE_MARK = 32,
  UNICODE_SPACE = 64,     // white space, including the controls \t \n \v \f \r and U+0085
  UNICODE_CONTROL = 128,  // category C, except unassigned code points
  UNICODE_ANY = 255
};

// Returns the class of a code point. O(1) for ASCII, O(log n) beyond. Values above U+10FFFF are
// unassigned.
uint8_t unicode_class(uint32_t code_point);

// Return the first code point of a character's lower-case form, and of its canonical decomposition
// (the letter without its accents; the leading consonant of a Hangul syllable). O(log n).
uint32_t unicode_lower(uint32_t code_point);
uint32_t unicode_base(uint32_t code_point);
// Writes the code points of a character's canonical decomposition, without the first one and
// without accents (non-spacing marks). Most characters have no such code points; the maximum is
// two. Returns their number.
size_t unicode_tail(uint32_t code_point, uint32_t tail[2]);
// Whether a mark is spacing, like Indic vowel signs, and not an accent (categories Mc, Me).
bool unicode_is_spacing_mark(uint32_t code_point);

// A character of the text; class 0 and size 0 mean the end.
typedef struct unicode_char {
  uint32_t code;
  uint8_t kind;  // its class
  uint8_t size_bytes;
} unicode_char;

// Returns the character at `at`, which is at most `end`. The text must be valid UTF-8.
unicode_char unicode_at(const uint8_t *text, size_t at, size_t end);

// Returns the number of bytes at the beginning that are valid UTF-8.
size_t unicode_valid_bytes(const uint8_t *text, size_t size_bytes);

// Copies the text with U+FFFD in place of each byte that is not part of a valid character. `out`
// must have 3 * size_bytes bytes. Returns the number of bytes written.
size_t unicode_repair(const uint8_t *text, size_t size_bytes, uint8_t *out);

#endif

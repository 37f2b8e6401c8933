// text/pattern_parts.h — common parts of the patterns: runs of classes, contractions, white
// space. Each takes text[at, end) and returns where its match ends; `at` if there is none.
// Internal to text/.
#ifndef WICK_TEXT_PATTERN_PARTS_H
#define WICK_TEXT_PATTERN_PARTS_H

#include "text/unicode.h"

// All but white space, letters and numbers: [^\s\p{L}\p{N}]
enum { PATTERN_OTHERS = UNICODE_ANY & ~(UNICODE_SPACE | UNICODE_LETTER | UNICODE_NUMBER) };

size_t pattern_skip_class(const uint8_t *text, size_t at, size_t end, int classes);
// At most count_max numbers.
size_t pattern_skip_digits(const uint8_t *text, size_t at, size_t end, unsigned count_max);
// Bytes of a set of ASCII characters.
size_t pattern_skip_any_of(const uint8_t *text, size_t at, size_t end, const char *set);
// 's|'t|'re|'ve|'m|'ll|'d: bytes of the one that begins at `at`, or 0.
size_t pattern_match_contraction(const uint8_t *text, size_t at, size_t end, bool ignore_case);
// \s+(?!\S)|\s+ : white space except for the last one when something follows it.
size_t pattern_match_spaces(const uint8_t *text, size_t at, size_t end);
// \s*[\r\n]+ : white space up to its last newline.
size_t pattern_match_newlines(const uint8_t *text, size_t at, size_t end);
// ' ?' and then a run of classes.
size_t pattern_match_after_space(const uint8_t *text, size_t at, size_t end, int classes);
// [^\r\n\p{L}\p{N}]? and then letters.
size_t pattern_match_led_letters(const uint8_t *text, size_t at, size_t end, int letters);

#endif

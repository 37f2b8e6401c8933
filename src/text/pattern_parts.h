// text/pattern_parts.h — common parts of the patterns: runs of classes, contractions, white space.
// Unless noted otherwise, each function examines text[at, end) and returns the end of its match, or
// `at` if there is no match. Internal to text/.
#ifndef WICK_TEXT_PATTERN_PARTS_H
#define WICK_TEXT_PATTERN_PARTS_H

#include "text/unicode.h"

// Everything except white space, letters and numbers: [^\s\p{L}\p{N}]
enum { PATTERN_OTHERS = UNICODE_ANY & ~(UNICODE_SPACE | UNICODE_LETTER | UNICODE_NUMBER) };

size_t pattern_skip_class(const uint8_t *text, size_t at, size_t end, int classes);
// Skips up to count_max numbers.
size_t pattern_skip_digits(const uint8_t *text, size_t at, size_t end, unsigned count_max);
// Skips characters from a set of ASCII characters.
size_t pattern_skip_any_of(const uint8_t *text, size_t at, size_t end, const char *set);
// 's|'t|'re|'ve|'m|'ll|'d: returns the size of the contraction at `at`, or 0.
size_t pattern_match_contraction(const uint8_t *text, size_t at, size_t end, bool ignore_case);
// \s+(?!\S)|\s+ : white space, except its last character if something follows.
size_t pattern_match_spaces(const uint8_t *text, size_t at, size_t end);
// \s*[\r\n]+ : white space up to its last newline.
size_t pattern_match_newlines(const uint8_t *text, size_t at, size_t end);
// ' ?' followed by a run of classes.
size_t pattern_match_after_space(const uint8_t *text, size_t at, size_t end, int classes);
// [^\r\n\p{L}\p{N}]? followed by letters.
size_t pattern_match_led_letters(const uint8_t *text, size_t at, size_t end, int letters);

#endif

// base/text.h — a small formatter. Web builds have no printf.
#ifndef WICK_BASE_TEXT_H
#define WICK_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Writes at most `size_bytes` - 1 bytes and a terminator; returns the number of bytes without the
// terminator. A UTF-8 character is never cut in two. Supports %s %.*s %.Ns %c, %d %i %u %x (also
// with l, ll and z), %g (6 significant digits) and %%, but no widths or flags.
size_t text_format_list(char *out, size_t size_bytes, const char *format, va_list arguments);
size_t text_format(char *out, size_t size_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Returns the length in bytes (1..4) of the UTF-8 sequence that starts at `bytes`, 0 if it is not a
// valid sequence (RFC 3629: no overlong forms, no surrogates), -1 if the bytes begin a valid
// sequence but end before it is complete. Writes the code point if the sequence is complete.
int utf8_decode(const uint8_t *bytes, size_t size_bytes, uint32_t *code_point);

// Returns whether the bytes are complete UTF-8 characters; true if size_bytes is 0.
bool utf8_is_valid(const char *bytes, size_t size_bytes);

// Writes 1 to 4 bytes and returns their number; 0 for surrogates and values above U+10FFFF.
size_t utf8_encode(uint32_t code_point, uint8_t out[4]);

// Returns the value of a hexadecimal digit in either case; 16 for other bytes.
uint32_t text_hex_value(uint8_t c);

#endif

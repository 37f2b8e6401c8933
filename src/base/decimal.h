// base/decimal.h — doubles as decimals and back, the same on every host. Web builds have neither
// strtod nor printf.
#ifndef WICK_BASE_DECIMAL_H
#define WICK_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

// Parses all of the bytes as [sign] digits [. digits] [e [sign] digits]. The result is the nearest
// double, ties to even; with more than 64 significant digits, a tie may be rounded the other way.
// Returns false if the text has a different form; a number that is too large becomes infinity.
bool decimal_read_f64(const char *bytes, size_t size_bytes, double *out);

enum { DECIMAL_BYTES = 32 };
// Writes the fewest digits that parse back to the same double, in the form of Python's repr (1.0,
// 0.1, 1e-05, 1e+16, inf, nan), NUL-terminated; returns the size without the terminator.
size_t decimal_write_f64(char out[DECIMAL_BYTES], double value);
// Like decimal_write_f64, with `places` (0 to 20) digits after the point, rounded from the exact
// value, half to even. Magnitudes of 1e21 or more are written in the form of decimal_write_f64.
enum { DECIMAL_PLACES_MAX = 20, DECIMAL_FIXED_BYTES = 64 };
size_t decimal_write_fixed(char out[DECIMAL_FIXED_BYTES], double value, int places);

#endif

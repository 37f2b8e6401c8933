// base/decimal.h — doubles as decimals and back, the same on every host. Web builds have neither
// strtod nor printf.
#ifndef WICK_BASE_DECIMAL_H
#define WICK_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

// Reads [sign] digits [. digits] [e [sign] digits], all of the bytes. The nearest double, ties to
// even; beyond 64 significant digits it may be the other neighbour of a tie. Returns false if the
// text is something else; the result is infinity if it is too large.
bool decimal_read_f64(const char *bytes, size_t size_bytes, double *out);

enum { DECIMAL_BYTES = 32 };
// Writes the fewest digits that are read back as the same double, in the form of Python's repr
// (1.0, 0.1, 1e-05, 1e+16, inf, nan), terminated; returns the bytes without the terminator.
size_t decimal_write_f64(char out[DECIMAL_BYTES], double value);
// With `places` digits after the point, 0 to 20, rounded from the exact value, half to even; for
// magnitudes below 1e21; others are written as above.
enum { DECIMAL_PLACES_MAX = 20, DECIMAL_FIXED_BYTES = 64 };
size_t decimal_write_fixed(char out[DECIMAL_FIXED_BYTES], double value, int places);

#endif

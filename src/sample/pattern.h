// sample/pattern.h — searches a stream of bytes for a string, with the automaton of Knuth, Morris
// and Pratt (1977): its state is the length of the longest prefix of the string that is a suffix of
// the stream.
#ifndef WICK_SAMPLE_PATTERN_H
#define WICK_SAMPLE_PATTERN_H

#include <stdint.h>

typedef struct byte_pattern {
  const char *bytes;
  uint16_t *borders;  // [size] the longest proper border of each prefix of 1..size bytes
  uint32_t size_bytes;
  uint32_t matched;  // number of matched bytes
} byte_pattern;

// Computes the borders and resets the match.
void pattern_begin(byte_pattern *pattern);
// Feeds one byte. Requires matched < size_bytes.
void pattern_advance(byte_pattern *pattern, char byte);

#endif

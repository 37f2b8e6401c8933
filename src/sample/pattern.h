// sample/pattern.h — searches a stream of bytes for a string, with the automaton of Knuth, Morris
// and Pratt (1977): its state is the length of the longest prefix of the string with which the
// stream ends.
#ifndef WICK_SAMPLE_PATTERN_H
#define WICK_SAMPLE_PATTERN_H

#include <stdint.h>

typedef struct byte_pattern {
  const char *bytes;
  uint16_t *borders;  // [size] longest proper border of each prefix of 1..size bytes
  uint32_t size_bytes;
  uint32_t matched;  // bytes
} byte_pattern;

// Sets the borders; nothing is matched.
void pattern_begin(byte_pattern *pattern);
// Takes a byte; less than the whole string was matched before.
void pattern_advance(byte_pattern *pattern, char byte);

#endif

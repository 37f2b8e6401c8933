// sample/pattern.c — the automaton's borders and its step.
#include "sample/pattern.h"

void pattern_begin(byte_pattern *pattern) {
  pattern->borders[0] = 0;
  pattern->matched = 0;
  // the borders result from matching the string against itself, starting at its second byte
  for (uint32_t i = 1; i < pattern->size_bytes; i++) {
    pattern_advance(pattern, pattern->bytes[i]);
    pattern->borders[i] = (uint16_t)pattern->matched;
  }
  pattern->matched = 0;
}

void pattern_advance(byte_pattern *pattern, char byte) {
  uint32_t matched = pattern->matched;
  while (matched > 0 && pattern->bytes[matched] != byte) matched = pattern->borders[matched - 1];
  if (pattern->bytes[matched] == byte) matched++;
  pattern->matched = matched;
}

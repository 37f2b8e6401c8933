// grammar/free.h — free text that may contain markers; the grammar applies to the text after a
// marker.
#ifndef WICK_GRAMMAR_FREE_H
#define WICK_GRAMMAR_FREE_H

#include "grammar/program.h"

typedef struct free_mark {
  const uint8_t *bytes;
  uint32_t size_bytes;
  uint32_t to;  // the state after the marker
} free_mark;

// If several markers end at the same byte, the first one counts; if one is a prefix of another, the
// shorter one counts. `starts` are recognised only at the beginning of the text. White space and
// semicolons may precede them, and white space may follow the brackets and colons inside them.
typedef struct free_text {
  const free_mark *marks, *starts;
  uint32_t mark_count, start_count;
  uint32_t within;  // the state for the rest of the text, without starts; 0: none
  uint32_t end;     // the state after the text, which may end anywhere; 0: it must not end
} free_text;

// Adds arbitrary bytes after a state (Aho and Corasick 1975: one automaton for all markers).
void free_build(program_builder *builder, uint32_t from, free_text text);

#endif

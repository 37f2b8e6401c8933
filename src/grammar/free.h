// grammar/free.h — free text that may contain marks; the grammar applies to the text after a mark.
#ifndef WICK_GRAMMAR_FREE_H
#define WICK_GRAMMAR_FREE_H

#include "grammar/program.h"

typedef struct free_mark {
  const uint8_t *bytes;
  uint32_t size_bytes;
  uint32_t to;  // the place after it
} free_mark;

// If several marks end with the same byte, the first one counts; if one is the beginning of
// another, the shorter one counts. `starts` count only at the beginning of the text, with white
// space and semicolons before them, and white space after brackets and colons within.
typedef struct free_text {
  const free_mark *marks, *starts;
  uint32_t mark_count, start_count;
  uint32_t within;  // a place after some text, where starts do not count; 0: none
  uint32_t end;     // the text may end at any place, and this is the place after it; 0: it may not
} free_text;

// Adds any bytes from a place on (Aho and Corasick 1975: one automaton for all marks).
void free_build(program_builder *builder, uint32_t from, free_text text);

#endif

// text/special.h — finds special tokens in a text. Internal to text/.
#ifndef WICK_TEXT_SPECIAL_H
#define WICK_TEXT_SPECIAL_H

#include "text/heap.h"
#include "text/vocabulary.h"

// A token found in the text, with the white space next to it that it removes.
typedef struct special_match {
  uint32_t begin;
  uint32_t end;
  int32_t token;
} special_match;

// All zero is an empty one.
typedef struct special_search {
  special_match *matches;
  size_t count;
  size_t capacity;
  key_heap heap;
  uint64_t steps;  // states tried and candidates looked at; the time is proportional to them
} special_search;

// The text that is searched. In the spans of a conversation's content, and over their borders, only
// user-defined tokens count, and of these only the ones that are not guarded (tokenizer_guard).
typedef struct special_text {
  const uint8_t *bytes;
  uint32_t size_bytes;
  const wick_span *spans;  // [span_count], covering the text; NULL: none of it is content
  size_t span_count;
} special_text;

// Finds user-defined tokens, and all special tokens if `controls`, as llama.cpp does: first the
// longest token anywhere in the text, then the next longest in the rest. Cost for any vocabulary:
// at most 2 steps a byte, 2 for each place where a special token begins, and a heap of these
// places. With spans, a search by halving for each place, and 16 steps more.
wick_status special_find(special_search *search, const tokenizer *tokenizer,
                         const special_text *text, bool controls, wick_error *error);
// The next match from left to right; false at the end.
bool special_next(special_search *search, special_match *out);
void special_free(special_search *search, memory_gate *memory);

#endif

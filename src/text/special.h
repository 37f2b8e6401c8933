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

// It is initialised with zeros.
typedef struct special_search {
  special_match *matches;
  size_t count;
  size_t capacity;
  key_heap heap;
  uint64_t
      steps;  // number of tried states and examined candidates, to which the time is proportional
} special_search;

// The text that is searched. In the spans of a conversation's content, and across their borders,
// only user-defined tokens count, and of these only those that are not guarded (tokenizer_guard).
typedef struct special_text {
  const uint8_t *bytes;
  uint32_t size_bytes;
  const wick_span *spans;  // [span_count], covering the text; NULL: none of it is content
  size_t span_count;
} special_text;

// Finds user-defined tokens, and all special tokens if `controls` is set, like llama.cpp: first the
// longest token anywhere in the text, then the next longest in the rest. Cost for any vocabulary:
// at most 2 steps per byte, 2 for each place where a special token begins, and a heap of these
// places. With spans, also a binary search for each place, and 16 more steps.
wick_status special_find(special_search *search, const tokenizer *tokenizer,
                         const special_text *text, bool controls, wick_error *error);
// The next match from left to right; false at the end.
bool special_next(special_search *search, special_match *out);
void special_free(special_search *search, memory_gate *memory);

#endif

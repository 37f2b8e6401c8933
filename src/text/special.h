// text/special.h — finds special tokens in text. Internal to text/.
#ifndef WICK_TEXT_SPECIAL_H
#define WICK_TEXT_SPECIAL_H

#include "text/heap.h"
#include "text/vocabulary.h"

// A token found in the text, including the adjacent white space that it strips.
typedef struct special_match {
  uint32_t begin;
  uint32_t end;
  int32_t token;
} special_match;

// Must be initialised with zeros.
typedef struct special_search {
  special_match *matches;
  size_t count;
  size_t capacity;
  key_heap heap;
  uint64_t steps;  // number of tried states and examined candidates; the time is proportional to it
} special_search;

// The text to search. Within the spans of message content, and across their boundaries, only
// user-defined tokens that are not guarded (tokenizer_guard) are recognised.
typedef struct special_text {
  const uint8_t *bytes;
  uint32_t size_bytes;
  const wick_span *spans;  // [span_count], covering the text; NULL: there is no content
  size_t span_count;
} special_text;

// Finds user-defined tokens, and all special tokens if `controls` is set, like llama.cpp: first the
// longest token anywhere in the text, then the next longest in the rest. The cost for any
// vocabulary is at most 2 steps per byte, 2 per position where a special token begins, and a heap
// of these positions. With spans, it is also a binary search and 16 more steps per position.
wick_status special_find(special_search *search, const tokenizer *tokenizer,
                         const special_text *text, bool controls, wick_error *error);
// Gets the next match from left to right; false at the end.
bool special_next(special_search *search, special_match *out);
void special_free(special_search *search, memory_gate *memory);

#endif

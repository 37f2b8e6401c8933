// text/special.h — special tokens that stand in a text. Internal to text/.
#ifndef WICK_TEXT_SPECIAL_H
#define WICK_TEXT_SPECIAL_H

#include "text/heap.h"
#include "text/vocabulary.h"

// A token found in the text, with the white space that it swallows.
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
  uint64_t steps;  // states tried and candidates looked at, what the time is proportional to
} special_search;

// Finds user-defined tokens, and all special ones if `controls`, as llama.cpp does: the longest
// token first, wherever it stands, then the next in what is left. At most 2 steps for a byte, 2 for
// each place where a special token begins, and a heap of those places, whatever the vocabulary.
wick_status special_find(special_search *search, const tokenizer *tokenizer, const uint8_t *text,
                         uint32_t size_bytes, bool controls, wick_error *error);
// The next match from left to right; false at the end.
bool special_next(special_search *search, special_match *out);
void special_free(special_search *search, wick_memory *memory);

#endif

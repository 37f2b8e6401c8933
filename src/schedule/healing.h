// schedule/healing.h — token healing (Lundberg 2023, guidance): the end of a prompt is sampled
// again together with the output, so that a prompt that ends inside a word continues like a prompt
// with the whole word.
#ifndef WICK_SCHEDULE_HEALING_H
#define WICK_SCHEDULE_HEALING_H

#include "text/tokenizer.h"

enum { HEALING_TOKENS_MAX = 4, HEALING_BYTES_MAX = 64 };

typedef struct healing {
  uint32_t tokens;  // number of removed tokens; 0: none
  char text[HEALING_BYTES_MAX];
  size_t text_bytes;
} healing;

// Returns the number of trailing tokens to remove: the fewest whose bytes are whole characters.
// Returns 0 if these tokens exceed the limits above or are all of `tokens` [count], or after a
// control token.
healing healing_find(const tokenizer *tokenizer, const int32_t *tokens, uint32_t count,
                     uint8_t *scratch);

#endif

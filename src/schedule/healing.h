// schedule/healing.h — token healing (Lundberg 2023, guidance): the end of a prompt is sampled
// again with what follows, so that a prompt that ends inside of a word continues as the whole word
// would.
#ifndef WICK_SCHEDULE_HEALING_H
#define WICK_SCHEDULE_HEALING_H

#include "text/tokenizer.h"

enum { HEALING_TOKENS_MAX = 4, HEALING_BYTES_MAX = 64 };

typedef struct healing {
  uint32_t tokens;  // taken back; 0: none
  char text[HEALING_BYTES_MAX];
  size_t text_bytes;
} healing;

// The number of last tokens that are taken back: the fewest whose bytes are whole characters. None
// where that takes more than the maxima above or all of `tokens` [count], and after a control
// token.
healing healing_find(const tokenizer *tokenizer, const int32_t *tokens, uint32_t count,
                     uint8_t *scratch);

#endif

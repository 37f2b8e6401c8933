// sample/dry.h — DRY ("don't repeat yourself", P. E. Weidmann 2024): the longer the repetition that
// a token would continue, the more its logit is lowered. No repetition extends past the end of a
// sequence breaker, and a token that contains a whole breaker is not penalized. Breakers are
// searched for in the bytes of the tokens, so it does not matter how the text was split into
// tokens.
#ifndef WICK_SAMPLE_DRY_H
#define WICK_SAMPLE_DRY_H

#include <stddef.h>
#include <stdint.h>

#include "sample/pattern.h"
#include "sample/penalty.h"

// Returns the bytes of a token, valid until the next call.
typedef size_t (*dry_text)(void *context, int32_t token, const uint8_t **bytes);

typedef struct dry_state {
  double multiplier, base;
  uint32_t allowed_length;
  int32_t *ring;           // [capacity] the last tokens
  uint32_t *repeats;       // [capacity] scratch
  penalty_slot *slots;     // [penalty_slot_count(capacity)] scratch
  uint32_t capacity;       // 0: off
  uint32_t held, next;     // number of tokens in the ring, and the next index
  uint32_t since_break;    // tokens since the last end of a breaker, or since the beginning
  byte_pattern *breakers;  // after a match, matching continues with the border
  uint32_t breaker_count;
  dry_text text;  // NULL: no breakers
  void *text_context;
} dry_state;

void dry_accept(dry_state *dry, int32_t token);
// Lowers the logits of tokens that would continue a repetition; they remain finite. The cost is
// O(capacity), plus the bytes of these tokens.
void dry_apply(dry_state *dry, const logit_set *set);

#endif

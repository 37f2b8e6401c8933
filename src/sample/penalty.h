// sample/penalty.h — penalties for tokens that occurred before: a window of the last tokens, and
// the count of each token in it.
#ifndef WICK_SAMPLE_PENALTY_H
#define WICK_SAMPLE_PENALTY_H

#include <stddef.h>
#include <stdint.h>

typedef struct penalty_slot {
  int32_t token;  // -1: free
  uint32_t count;
} penalty_slot;

typedef struct penalty_window {
  int32_t *ring;        // [capacity]
  penalty_slot *slots;  // [penalty_slot_count(capacity)]
  uint32_t capacity, held, next;
} penalty_window;

// Returns a power of two, at least twice the capacity.
uint32_t penalty_slot_count(uint32_t capacity);
void penalty_push(penalty_window *window, int32_t token);

typedef struct penalty_strength {
  float repeat;     // 1: off. Divides positive logits and multiplies others (Keskar et al. 2019)
  float frequency;  // 0: off. Subtracted for each occurrence (OpenAI)
  float presence;   // 0: off. Subtracted once for each token in the window
} penalty_strength;

// Logits by token.
typedef struct logit_set {
  float *logits;       // [count]
  const int32_t *ids;  // [count], ascending; NULL: 0, 1, 2, ...
  uint32_t count;
} logit_set;

// Returns the logit of this token; NULL if the set does not contain the token. O(log count).
float *logit_set_find(const logit_set *set, int32_t token);

// Returns the token's slot, which is created if necessary; `slots` [slot_count, a power of two]
// must have a free slot.
penalty_slot *penalty_find_slot(penalty_slot *slots, uint32_t slot_count, int32_t token);

// Changes the logits of the tokens in the window. O(capacity).
void penalty_apply(penalty_window *window, const penalty_strength *strength, const logit_set *set);

#endif

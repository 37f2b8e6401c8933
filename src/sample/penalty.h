// sample/penalty.h — penalties for tokens that occurred before: a window of the last tokens, and
// how often each token is in it.
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

// A power of two, at least twice the capacity.
uint32_t penalty_slot_count(uint32_t capacity);
void penalty_push(penalty_window *window, int32_t token);

typedef struct penalty_strength {
  float
      repeat;  // 1: off. A positive logit is divided by it, another multiplied (Keskar et al. 2019)
  float frequency;  // 0: off. Times the count, subtracted (OpenAI)
  float presence;   // 0: off. Subtracted once
} penalty_strength;

// Changes logits [vocab] in place. Every token pushed must be below vocab. Cost: O(capacity).
void penalty_apply(penalty_window *window, const penalty_strength *strength, float *logits);

#endif

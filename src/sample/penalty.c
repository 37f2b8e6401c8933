// sample/penalty.c — counts the window again for each token: 64 tokens cost less than a count for
// each token of the vocabulary.
#include "sample/penalty.h"

#include "base/hash.h"

uint32_t penalty_slot_count(uint32_t capacity) {
  uint32_t count = 1;
  while (count < 2 * capacity) count *= 2;
  return count;
}

void penalty_push(penalty_window *window, int32_t token) {
  if (window->capacity == 0) return;
  window->ring[window->next] = token;
  window->next = window->next + 1 < window->capacity ? window->next + 1 : 0;
  if (window->held < window->capacity) window->held++;
}

static void count_token(penalty_slot *slots, uint32_t slot_count, int32_t token) {
  uint32_t at = (uint32_t)hash_mix_u64((uint64_t)token) & (slot_count - 1);
  while (slots[at].token >= 0 && slots[at].token != token) at = (at + 1) & (slot_count - 1);
  slots[at].token = token;
  slots[at].count++;
}

void penalty_apply(penalty_window *window, const penalty_strength *strength, float *logits) {
  const uint32_t slot_count = penalty_slot_count(window->capacity);
  for (uint32_t i = 0; i < slot_count; i++) window->slots[i] = (penalty_slot){-1, 0};
  for (uint32_t i = 0; i < window->held; i++) {
    count_token(window->slots, slot_count, window->ring[i]);
  }
  for (uint32_t i = 0; i < slot_count; i++) {
    const penalty_slot *slot = &window->slots[i];
    if (slot->token < 0) continue;
    float logit = logits[slot->token];
    logit = logit > 0 ? logit / strength->repeat : logit * strength->repeat;
    logit -= (float)slot->count * strength->frequency + strength->presence;
    logits[slot->token] = logit;
  }
}

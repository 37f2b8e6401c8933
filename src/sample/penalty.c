// sample/penalty.c — recounts the window for each token: counting 64 tokens costs less than keeping
// a count for each token of the vocabulary.
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

float *logit_set_find(const logit_set *set, int32_t token) {
  if (set->ids == NULL) return (uint32_t)token < set->count ? &set->logits[token] : NULL;
  uint32_t low = 0, high = set->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (set->ids[middle] < token) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < set->count && set->ids[low] == token ? &set->logits[low] : NULL;
}

penalty_slot *penalty_find_slot(penalty_slot *slots, uint32_t slot_count, int32_t token) {
  uint32_t at = (uint32_t)hash_mix_u64((uint64_t)token) & (slot_count - 1);
  while (slots[at].token >= 0 && slots[at].token != token) at = (at + 1) & (slot_count - 1);
  slots[at].token = token;
  return &slots[at];
}

void penalty_apply(penalty_window *window, const penalty_strength *strength, const logit_set *set) {
  const uint32_t slot_count = penalty_slot_count(window->capacity);
  for (uint32_t i = 0; i < slot_count; i++) window->slots[i] = (penalty_slot){-1, 0};
  for (uint32_t i = 0; i < window->held; i++) {
    penalty_find_slot(window->slots, slot_count, window->ring[i])->count++;
  }
  for (uint32_t i = 0; i < slot_count; i++) {
    const penalty_slot *slot = &window->slots[i];
    float *at = slot->token < 0 ? NULL : logit_set_find(set, slot->token);
    if (at == NULL) continue;
    const float logit = *at > 0 ? *at / strength->repeat : *at * strength->repeat;
    *at = logit - ((float)slot->count * strength->frequency + strength->presence);
  }
}

// sample/scan.c — the only loop over all logits that every token needs, in a separate file so that
// it is optimised for speed.
#include "sample/truncate.h"

logit_range logit_scan(const float *logits, uint32_t count, float *block_max) {
  logit_range range = {INT32_MAX, INT32_MIN};
  for (uint32_t first = 0; first < count; first += LOGIT_BLOCK) {
    const uint32_t size = count - first < LOGIT_BLOCK ? count - first : LOGIT_BLOCK;
    int32_t most = INT32_MIN;
    for (uint32_t i = first; i < first + size; i++) {
      const int32_t key = logit_key(logits[i]);
      range.least = key < range.least ? key : range.least;
      most = key > most ? key : most;
    }
    block_max[first / LOGIT_BLOCK] = logit_of_key(most);
    range.most = most > range.most ? most : range.most;
  }
  return range;
}

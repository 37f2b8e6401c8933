// sample/truncate.c — radix selection on the bits of the logits (11 + 11 + 10), by count for top-k
// and by weight for top-p. Logits that cannot be chosen are skipped first: for top-k the blocks
// whose largest logit is below the k-th largest block maximum, for top-p the far tail.
#include "sample/truncate.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// The logits to select from.
typedef struct selection {
  const int32_t *ids;  // NULL: 0, 1, 2, ...
  const float *keys;   // sort keys
  const float *logits;
  const float *weights;  // NULL: all weights are 1
  uint32_t count;
  const float *block_max;  // NULL: no block is skipped
  float least;             // blocks whose largest logit is below this are skipped
} selection;

static uint32_t block_end(const selection *from, uint32_t first) {
  return from->count - first < LOGIT_BLOCK ? from->count : first + LOGIT_BLOCK;
}

static bool is_passed_over(const selection *from, uint32_t first) {
  return from->block_max != NULL && from->block_max[first / LOGIT_BLOCK] < from->least;
}

static double weight_of(const selection *from, uint32_t i) {
  return from->weights == NULL ? 1.0 : (double)from->weights[i];
}

// Maps a key to an unsigned number of the same order.
static uint32_t digits_of(float logit) { return (uint32_t)logit_key(logit) ^ 0x80000000u; }

static void count_digits(const selection *from, uint32_t known, uint32_t prefix, uint32_t shift,
                         uint32_t digit_mask, double *buckets) {
  memset(buckets, 0, TRUNCATE_BUCKETS * sizeof *buckets);
  for (uint32_t first = 0; first < from->count; first += LOGIT_BLOCK) {
    if (is_passed_over(from, first)) continue;
    for (uint32_t i = first; i < block_end(from, first); i++) {
      const uint32_t digits = digits_of(from->keys[i]);
      if ((digits & known) == prefix) buckets[digits >> shift & digit_mask] += weight_of(from, i);
    }
  }
}

typedef struct threshold {
  uint32_t digits;  // digits of the smallest kept key
  double above;     // weight of all larger keys
} threshold;

// Finds the point at which the weights, summed from the largest logit down, reach `target`.
static threshold find_threshold(const selection *from, double target, double *buckets) {
  static const uint32_t shifts[] = {21, 10, 0};
  threshold found = {0, 0};
  uint32_t known = 0;  // the bits that are already determined
  for (int level = 0; level < 3; level++) {
    const uint32_t digit_mask = level < 2 ? 2047 : 1023;
    count_digits(from, known, found.digits, shifts[level], digit_mask, buckets);
    uint32_t digit = digit_mask;
    while (digit > 0 && found.above + buckets[digit] < target) found.above += buckets[digit--];
    found.digits |= digit << shifts[level];
    known |= digit_mask << shifts[level];
  }
  return found;
}

// Gathers the logits above the threshold, and those equal to it until `target` is reached. Each
// candidate is written, and the count increases only if it is kept: a branch would be mispredicted
// too often, here and in the functions below. At most `room` candidates are kept.
static void keep_above(candidates *kept, uint32_t room, const selection *from, threshold limit,
                       double target) {
  uint32_t used = 0;
  double sum = limit.above;
  for (uint32_t first = 0; first < from->count; first += LOGIT_BLOCK) {
    if (is_passed_over(from, first)) continue;
    for (uint32_t i = first; i < block_end(from, first) && used < room; i++) {
      const uint32_t digits = digits_of(from->keys[i]);
      bool stays = digits > limit.digits;
      if (digits == limit.digits && sum < target) {
        sum += weight_of(from, i);
        stays = true;
      }
      kept->ids[used] = from->ids == NULL ? (int32_t)i : from->ids[i];
      kept->logits[used] = from->logits[i];
      used += stays ? 1 : 0;
    }
  }
  kept->count = used;
}

void truncate_top_k(candidates *kept, const float *logits, uint32_t count, const float *block_max,
                    uint32_t k) {
  const double target = (double)k;
  selection from = {.keys = logits, .logits = logits, .count = count};
  const uint32_t blocks = count / LOGIT_BLOCK + (count % LOGIT_BLOCK != 0);
  if (k < blocks) {
    const selection maxima = {.keys = block_max, .count = blocks};
    const threshold limit = find_threshold(&maxima, target, kept->buckets);
    from.block_max = block_max;
    from.least = logit_of_key((int32_t)(limit.digits ^ 0x80000000u));
  }
  const threshold limit = find_threshold(&from, target, kept->buckets);
  keep_above(kept, k, &from, limit, target);
}

// Skips the tail: all logits below `least` together weigh less than half of the weight that top-p
// drops.
static void drop_tail(candidates *kept, float max, double total, double mass) {
  const double least = (double)max + math_log((1.0 - mass) * total / (2.0 * (double)kept->count));
  uint32_t used = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    const float logit = kept->logits[i];
    kept->ids[used] = kept->ids[i];
    kept->weights[used] = kept->weights[i];
    kept->logits[used] = logit;
    used += (double)logit < least ? 0 : 1;
  }
  kept->count = used;
}

void truncate_by_keys(candidates *kept, const float *keys, const float *weights, double target) {
  const selection from = {.ids = kept->ids,
                          .keys = keys,
                          .logits = kept->logits,
                          .weights = weights,
                          .count = kept->count};
  const threshold limit = find_threshold(&from, target, kept->buckets);
  keep_above(kept, kept->count, &from, limit, target);
}

void truncate_top_p(candidates *kept, float max, double mass) {
  double total = 0;
  for (uint32_t i = 0; i < kept->count; i++) total += (double)kept->weights[i];
  drop_tail(kept, max, total, mass);
  truncate_by_keys(kept, kept->logits, kept->weights, total * mass);
}

void truncate_at_least(candidates *kept, double least) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    const float logit = kept->logits[i];
    kept->ids[used] = kept->ids[i];
    kept->logits[used] = logit;
    used += (double)logit < least ? 0 : 1;
  }
  kept->count = used;
}

void truncate_min_p(candidates *kept, float max, double ratio) {
  truncate_at_least(kept, (double)max + math_log(ratio));
}

// schedule/speculation.c — prompt lookup, and how much of it pays.
#include "schedule/speculation.h"

#include <string.h>

enum { REST_TOKENS_FIRST = 32, REST_TOKENS_MAX = 512 };

// Where nothing is known: of proposals, and of a row's cost beside the first one.
static const float RATE_FIRST = 0.5f, ROW_COST_FIRST = 0.3f;
static const float RATE_WEIGHT = 0.2f, COST_WEIGHT = 0.2f;
// Below this gain the measured costs' own noise would decide.
static const float GAIN_MIN = 1.05f;

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us) {
  if (rows == 0 || rows > SPECULATION_ROWS_MAX) return;
  float *cost = &costs->us[rows];
  const float took = (float)us;
  // A pass that something else held up says little: it counts as twice the usual at the most.
  const float most = 2.0f * *cost;
  *cost = *cost == 0.0f ? took : *cost + COST_WEIGHT * ((took < most ? took : most) - *cost);
}

// Of a pass of so many rows, in passes of one.
static float cost_of(const speculation_costs *costs, uint32_t rows) {
  if (costs->us[1] > 0.0f && costs->us[rows] > 0.0f) return costs->us[rows] / costs->us[1];
  return 1.0f + ROW_COST_FIRST * (float)(rows - 1);
}

uint32_t speculation_look_up(const int32_t *tokens, uint32_t count, uint32_t most, int32_t *out) {
  if (count <= SPECULATION_MATCH_MIN || most == 0) return 0;
  const int32_t *last = tokens + count - 1;
  uint32_t best_match = 0, best_at = 0;
  // `at`: the place of the first token after the match
  for (uint32_t at = count - 1; at >= SPECULATION_MATCH_MIN; at--) {
    uint32_t match = 0;
    while (match < SPECULATION_MATCH_MAX && match < at &&
           tokens[at - 1 - match] == last[-(int32_t)match]) {
      match++;
    }
    if (match < SPECULATION_MATCH_MIN || match <= best_match) continue;
    best_match = match;
    best_at = at;
    if (match == SPECULATION_MATCH_MAX) break;
  }
  if (best_match == 0) return 0;
  const uint32_t period = count - best_at;
  for (uint32_t i = 0; i < most; i++) out[i] = i < period ? tokens[best_at + i] : out[i - period];
  return most;
}

// The number of proposals that yields the most tokens for the time; 0: none does better than a pass
// of one row. With a rate r, k proposals yield 1 + r + ... + r^k tokens.
static uint32_t best_count(const speculation *speculation, const speculation_costs *costs,
                           uint32_t most) {
  float best_gain = GAIN_MIN, power = 1.0f, tokens = 1.0f;
  uint32_t best = 0;
  for (uint32_t k = 1; k <= most; k++) {
    power *= speculation->rate;
    tokens += power;
    const float gain = tokens / cost_of(costs, k + 1);
    if (gain <= best_gain) continue;
    best_gain = gain;
    best = k;
  }
  return best;
}

void speculation_propose(speculation *speculation, const speculation_costs *costs,
                         const int32_t *tokens, uint32_t count, uint32_t most) {
  speculation->count = speculation->accepted = 0;
  if (most > SPECULATION_TOKENS_MAX) most = SPECULATION_TOKENS_MAX;
  if (most == 0) return;
  if (speculation->rest_tokens > 0) {
    speculation->rest_tokens--;
    return;
  }
  if (speculation->rate == 0.0f) {
    speculation->rate = RATE_FIRST;
    speculation->rest_tokens_next = REST_TOKENS_FIRST;
  }
  int32_t found[SPECULATION_TOKENS_MAX];
  const uint32_t found_count = speculation_look_up(tokens, count, most, found);
  if (found_count == 0) return;
  const uint32_t best = best_count(speculation, costs, found_count);
  if (best == 0) {
    speculation->rest_tokens = speculation->rest_tokens_next;
    if (speculation->rest_tokens_next < REST_TOKENS_MAX) speculation->rest_tokens_next *= 2;
    speculation->rate = RATE_FIRST;  // tried again then
    return;
  }
  memcpy(speculation->proposed, found, best * sizeof *found);
  speculation->count = best;
}

void speculation_learn(speculation *speculation) {
  const uint32_t accepted = speculation->accepted, count = speculation->count;
  if (count == 0) return;
  for (uint32_t i = 0; i < accepted; i++) {
    speculation->rate += RATE_WEIGHT * (1.0f - speculation->rate);
  }
  if (accepted < count) speculation->rate -= RATE_WEIGHT * speculation->rate;
  if (accepted == count) speculation->rest_tokens_next = REST_TOKENS_FIRST;
  speculation->count = speculation->accepted = 0;
}

// schedule/speculation.c — prompt lookup, and how much of it pays.
#include "schedule/speculation.h"

enum { REST_TOKENS_FIRST = 32, REST_TOKENS_MAX = 512 };

// Where nothing is known: of proposals, and of a row's cost beside the first one.
static const float RATE_FIRST = 0.8f, ROW_COST_FIRST = 0.5f;
// A failure weighs more: what it costs is lost, what a success saves comes again.
static const float RATE_WEIGHT = 0.2f, RATE_WEIGHT_FAILED = 0.35f, COST_WEIGHT = 0.2f;
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
  uint32_t least = SPECULATION_MATCH_MIN;
  if (count > SPECULATION_LOOK_BACK) least = count - SPECULATION_LOOK_BACK;
  // `at`: the place of the first token after the match
  for (uint32_t at = count - 1; at >= least; at--) {
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

bool speculation_is_awake(speculation *speculation, speculation_source source) {
  speculation_trust *trust = &speculation->trust[source];
  if (trust->rest_tokens == 0) return true;
  trust->rest_tokens--;
  return false;
}

// With a rate r, k proposals yield 1 + r + ... + r^k tokens.
static uint32_t best_count(float rate, const speculation_costs *costs, uint32_t most,
                           float proposal_us) {
  const float proposal = costs->us[1] > 0.0f ? proposal_us / costs->us[1] : 0.0f;
  float best_gain = GAIN_MIN, power = 1.0f, tokens = 1.0f;
  uint32_t best = 0;
  for (uint32_t k = 1; k <= most; k++) {
    power *= rate;
    tokens += power;
    const float gain = tokens / (cost_of(costs, k + 1) + (float)k * proposal);
    if (gain <= best_gain) continue;
    best_gain = gain;
    best = k;
  }
  return best;
}

uint32_t speculation_wanted(speculation *speculation, const speculation_costs *costs,
                            speculation_source source, uint32_t most, float proposal_us) {
  speculation_trust *trust = &speculation->trust[source];
  if (trust->rate == 0.0f) {
    *trust = (speculation_trust){.rate = RATE_FIRST, .rest_tokens_next = REST_TOKENS_FIRST};
  }
  if (most > SPECULATION_TOKENS_MAX) most = SPECULATION_TOKENS_MAX;
  const uint32_t best = best_count(trust->rate, costs, most, proposal_us);
  if (best != 0 || most == 0) return best;
  trust->rest_tokens = trust->rest_tokens_next;
  if (trust->rest_tokens_next < REST_TOKENS_MAX) trust->rest_tokens_next *= 2;
  trust->rate = RATE_FIRST;  // tried again then
  return 0;
}

void speculation_learn(speculation *speculation) {
  const uint32_t accepted = speculation->accepted, count = speculation->count;
  speculation_trust *trust = &speculation->trust[speculation->source];
  if (count == 0) return;
  for (uint32_t i = 0; i < accepted; i++) trust->rate += RATE_WEIGHT * (1.0f - trust->rate);
  if (accepted < count) trust->rate -= RATE_WEIGHT_FAILED * trust->rate;
  if (accepted == count) trust->rest_tokens_next = REST_TOKENS_FIRST;
  speculation->count = speculation->accepted = 0;
}

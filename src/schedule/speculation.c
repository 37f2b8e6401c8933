// schedule/speculation.c — prompt lookup, and how much of it pays.
#include "schedule/speculation.h"

enum { REST_TOKENS_FIRST = 32, REST_TOKENS_MAX = 512 };
// So many misses bring one more token of rest.
enum { MISSES_PER_REST = 16, MISS_REST_MAX = 7 };

// Where nothing is known: of a draft's proposals, and of a row's cost beside the first one.
static const float RATE_FIRST = 0.8f, ROW_COST_FIRST = 0.5f;
// Of the text's own, by how much agrees before them, as if so many had been seen: near the best for
// edited code, changed JSON and prose in the tokens of a 0.5B model, whether a pass of 8 rows takes
// 5.3 of one or 1.4.
static const float MATCH_RIGHT_FIRST[SPECULATION_MATCH_CLASSES] = {0.5f, 0.7f, 0.85f, 0.95f, 0.99f};
static const float MATCH_SEEN_FIRST = 4.0f, MATCH_KEPT = 0.95f;
// A failure weighs more: what it costs is lost, what a success saves comes again.
static const float RATE_WEIGHT = 0.2f, RATE_WEIGHT_FAILED = 0.35f;
// What passes of some rows took changes what is known of the others, too: the machine may have
// become slower or faster. One row is the measure of all, so what it took moves them as much; many
// rows, only when they were measured so often that they tell of the machine and not of themselves.
enum { COST_SEEN_ENOUGH = 8 };
static const float COST_WEIGHT = 0.2f, COST_WEIGHT_OTHERS = 0.1f;
// What is not measured for long seems cheaper with each pass, until it is tried again.
static const float COST_KEPT = 0.999f;
// Of what was expected, the most that the first pass of so many rows counts for.
static const float COST_FIRST_MOST = 1.5f;
// Below this gain the measured costs' own noise would decide.
static const float GAIN_MIN = 1.05f;

// ---- Costs ----

// Measured, or between and beyond what was; 0: nothing was.
static float cost_us(const speculation_costs *costs, uint32_t rows) {
  const float *us = costs->us;
  if (us[rows] > 0.0f || us[1] == 0.0f) return us[rows];
  uint32_t below = rows - 1, above = rows + 1;
  while (us[below] == 0.0f) below--;
  while (above <= SPECULATION_ROWS_MAX && us[above] == 0.0f) above++;
  float row_us = ROW_COST_FIRST * us[1];
  if (above <= SPECULATION_ROWS_MAX) {
    row_us = (us[above] - us[below]) / (float)(above - below);
  } else if (below > 1) {
    row_us = (us[below] - us[1]) / (float)(below - 1);
  }
  return us[below] + row_us * (float)(rows - below);
}

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us) {
  if (rows == 0 || rows > SPECULATION_ROWS_MAX) return;
  const float expected = cost_us(costs, rows), took = (float)us;
  if (costs->us[rows] == 0.0f) {
    const float most = COST_FIRST_MOST * expected;
    costs->us[rows] = expected > 0.0f && took > most ? most : took;
    return;
  }
  // A pass that something else held up says little: it counts as twice the usual at the most.
  const float change = (took < 2.0f * expected ? took : 2.0f * expected) / expected - 1.0f;
  float others = 1.0f;
  if (rows == 1) {
    others += COST_WEIGHT * change;
  } else if (costs->seen[rows] >= COST_SEEN_ENOUGH) {
    others += COST_WEIGHT_OTHERS * change;
  } else {
    costs->seen[rows]++;
  }
  for (uint32_t i = 1; i <= SPECULATION_ROWS_MAX; i++) {
    if (i != rows) costs->us[i] *= i == 1 ? others : others * COST_KEPT;
  }
  costs->us[rows] *= 1.0f + COST_WEIGHT * change;
}

// Of a pass of so many rows, in passes of one.
static float cost_of(const speculation_costs *costs, uint32_t rows) {
  if (costs->us[1] == 0.0f) return 1.0f + ROW_COST_FIRST * (float)(rows - 1);
  return cost_us(costs, rows) / costs->us[1];
}

// ---- Prompt lookup ----

typedef struct earlier_place {
  uint32_t at, match;  // the first token after the match; 0 tokens agree: there is none
} earlier_place;

static earlier_place find_earlier(const int32_t *tokens, uint32_t count) {
  const int32_t *last = tokens + count - 1;
  earlier_place best = {0, 0};
  if (count <= SPECULATION_MATCH_MIN) return best;
  uint32_t least = SPECULATION_MATCH_MIN;
  if (count > SPECULATION_LOOK_BACK) least = count - SPECULATION_LOOK_BACK;
  for (uint32_t at = count - 1; at >= least; at--) {
    uint32_t match = 0;
    while (match < SPECULATION_MATCH_MAX && match < at &&
           tokens[at - 1 - match] == last[-(int32_t)match]) {
      match++;
    }
    if (match < SPECULATION_MATCH_MIN || match <= best.match) continue;
    best = (earlier_place){at, match};
    if (match == SPECULATION_MATCH_MAX) break;
  }
  return best;
}

static void note_miss(speculation *speculation) {
  speculation->misses++;
  const uint32_t rest = speculation->misses / MISSES_PER_REST;
  speculation->lookup_rest = rest < MISS_REST_MAX ? rest : MISS_REST_MAX;
}

void speculation_look_up(speculation *speculation, const int32_t *tokens, uint32_t count,
                         uint32_t most) {
  int32_t *out = speculation->proposed;
  const earlier_place place = find_earlier(tokens, count);
  if (place.match == 0) {
    note_miss(speculation);
    return;
  }
  speculation->misses = 0;
  speculation->match = place.match;
  speculation->found = most < SPECULATION_TOKENS_MAX ? most : SPECULATION_TOKENS_MAX;
  const uint32_t period = count - place.at;
  for (uint32_t i = 0; i < speculation->found; i++) {
    out[i] = i < period ? tokens[place.at + i] : out[i - period];
  }
}

// ---- Trust ----

static speculation_trust *trust_of(speculation *speculation, uint32_t match) {
  static const uint32_t ends[SPECULATION_MATCH_CLASSES - 1] = {3, 5, 9, 15};
  uint32_t kind = 0;
  while (kind < SPECULATION_MATCH_CLASSES - 1 && match > ends[kind]) kind++;
  speculation_trust *trust = &speculation->by_match[kind];
  if (trust->seen == 0.0f) {
    *trust = (speculation_trust){MATCH_RIGHT_FIRST[kind] * MATCH_SEEN_FIRST, MATCH_SEEN_FIRST};
  }
  return trust;
}

// That the next proposal is right when the `before` ones were.
static float rate_of(speculation *speculation, speculation_source source, uint32_t before) {
  if (source == SPECULATION_DRAFT) return speculation->draft_rate;
  const speculation_trust *trust = trust_of(speculation, speculation->match + before);
  return trust->right / trust->seen;
}

static void learn(speculation *speculation, bool is_right) {
  if (speculation->source == SPECULATION_LOOKUP) {
    speculation_trust *trust = trust_of(speculation, speculation->match + speculation->seen);
    trust->right = trust->right * MATCH_KEPT + (is_right ? 1.0f : 0.0f);
    trust->seen = trust->seen * MATCH_KEPT + 1.0f;
    return;
  }
  float *rate = &speculation->draft_rate;
  *rate += is_right ? RATE_WEIGHT * (1.0f - *rate) : -RATE_WEIGHT_FAILED * *rate;
  if (is_right && speculation->seen + 1 == speculation->count) {
    speculation->draft_rest_next = REST_TOKENS_FIRST;
  }
}

bool speculation_accepts(speculation *speculation, int32_t token) {
  const uint32_t row = speculation->seen;
  if (row >= speculation->found) return false;
  const bool is_right = speculation->proposed[row] == token;
  learn(speculation, is_right);
  speculation->seen = is_right ? row + 1 : speculation->found;
  if (!is_right || row >= speculation->count) return false;
  speculation->accepted++;
  return true;
}

// ---- How much pays ----

bool speculation_is_awake(speculation *speculation, speculation_source source) {
  uint32_t *rest =
      source == SPECULATION_DRAFT ? &speculation->draft_rest : &speculation->lookup_rest;
  if (*rest == 0) return true;
  (*rest)--;
  return false;
}

static void rest_draft(speculation *speculation) {
  speculation->draft_rest = speculation->draft_rest_next;
  if (speculation->draft_rest_next < REST_TOKENS_MAX) speculation->draft_rest_next *= 2;
  speculation->draft_rate = RATE_FIRST;  // tried again then
}

uint32_t speculation_wanted(speculation *speculation, const speculation_costs *costs,
                            speculation_source source, uint32_t most, uint32_t rows,
                            float proposal_us) {
  if (speculation->draft_rate == 0.0f) {
    speculation->draft_rate = RATE_FIRST;
    speculation->draft_rest_next = REST_TOKENS_FIRST;
  }
  if (most > SPECULATION_ROWS_MAX - rows) most = SPECULATION_ROWS_MAX - rows;
  const float proposal = costs->us[1] > 0.0f ? proposal_us / costs->us[1] : 0.0f;
  const float plain = cost_of(costs, rows) / (float)rows;  // a token's
  float best_gain = GAIN_MIN, power = 1.0f, tokens = (float)rows;
  uint32_t best = 0;
  for (uint32_t k = 1; k <= most; k++) {
    power *= rate_of(speculation, source, k - 1);
    tokens += power;
    const float gain = tokens * plain / (cost_of(costs, rows + k) + (float)k * proposal);
    if (gain <= best_gain) continue;
    best_gain = gain;
    best = k;
  }
  if (source == SPECULATION_DRAFT && best == 0 && most != 0) rest_draft(speculation);
  return best;
}

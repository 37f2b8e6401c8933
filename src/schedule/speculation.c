// schedule/speculation.c — prompt lookup, and the best number of proposals.
#include "schedule/speculation.h"

enum { REST_TOKENS_FIRST = 32, REST_TOKENS_MAX = 512 };
// After MISSES_PER_REST more misses, the pause between lookups grows by one token.
enum { MISSES_PER_REST = 16, MISS_REST_MAX = 7 };
// A change has at most CHANGE_TOKENS_MAX tokens, and replaces at most CHANGE_TOKENS_MORE more
// tokens than it has.
enum { CHANGE_TOKENS_MAX = 8, CHANGE_TOKENS_MORE = 2 };
// Whether other positions with the same tokens confirm a proposal.
enum { OTHERS_NONE, OTHERS_AGREE, OTHERS_DISAGREE };
// KIND_UNSEEN: no token before the proposal agrees.
enum { MATCH_CLASSES = 5, KIND_UNSEEN = 3 * MATCH_CLASSES };

// Initial values, before anything is measured: the acceptance rate of a draft, and the cost of an
// additional row.
static const float RATE_FIRST = 0.8f, ROW_COST_FIRST = 0.6f, ROW_COST_LEAST = 0.01f;
// Initial acceptance rates of prompt lookup by kind, as if this many proposals had been seen. The
// values are close to optimal for edited code, a changed table, JSON, YAML and prose, tokenized for
// a 0.5B model on a machine where a pass of 16 rows takes as long as 9 passes of one row.
static const float RIGHT_FIRST[SPECULATION_KINDS] = {
    0.5f,  0.7f,  0.85f,  0.95f,  0.99f,   // no other position
    0.75f, 0.85f, 0.925f, 0.975f, 0.995f,  // other positions continue in the same way
    0.25f, 0.35f, 0.43f,  0.48f,  0.5f,    // another position does not
    0.5f,  0.6f,  0.7f};                   // after a changed token
static const float SEEN_FIRST = 4.0f, SEEN_KEPT = 0.95f;
// A wrong proposal has more weight: its cost is lost, while the gain from a correct one will recur.
static const float RATE_WEIGHT = 0.2f, RATE_WEIGHT_FAILED = 0.35f;
// The first row of a pass waits for memory, and additional rows wait for the processor. So a pass
// of one row is evidence about all passes, and a pass of several rows about all passes of several
// rows. The fewer the rows, the weaker the evidence about the linear model.
static const float COST_WEIGHT = 0.2f, COST_ROWS_HALF = 2.0f, COST_WEIGHT_UNLIKE = 0.05f;
enum { COST_SEEN_MAX = 4 };  // until then, all passes of several rows have equal weight
// The limit on a pass's time, as a multiple of the expected time. A longer pass may have been
// delayed, or may be the first with this many rows.
static const float COST_MOST = 1.5f;
// If the text is this predictable, the costs of row counts that are not chosen move a little
// towards the other costs each time. If no proposals are chosen, all costs fall a little until a
// pass with proposals is tried.
static const float COST_SURE_RATE = 0.9f, COST_UNLIKE_KEPT = 0.99f, COST_DOUBT = 0.002f;
// Smaller gains are below the noise of the measured costs.
static const float GAIN_MIN = 1.05f;

// ---- Costs ----

// Returns the cost of a pass of this many rows, in passes of one row.
static float cost_of(const speculation_costs *costs, uint32_t rows) {
  const float row = costs->one_us > 0.0f ? costs->row * (1.0f - costs->doubt) : ROW_COST_FIRST;
  const float unlike = costs->unlike[rows] > 0.0f ? costs->unlike[rows] : 1.0f;
  return rows == 1 ? 1.0f : (1.0f + row * (float)(rows - 1)) * unlike;
}

float speculation_cost_us(const speculation_costs *costs, uint32_t rows) {
  return rows == 1 || costs->unlike[rows] > 0.0f ? cost_of(costs, rows) * costs->one_us : 0.0f;
}

void speculation_costs_took(speculation_costs *costs, uint32_t rows, uint64_t us) {
  if (rows == 0 || rows > SPECULATION_ROWS_MAX) return;
  if (costs->one_us == 0.0f) {
    costs->one_us = (float)us / cost_of(costs, rows);
    costs->row = ROW_COST_FIRST;
    return;
  }
  if (rows > 1) costs->doubt = 0.0f;
  const float expected = cost_of(costs, rows);
  float took = (float)us / costs->one_us;
  if (took > COST_MOST * expected) took = COST_MOST * expected;
  if (rows == 1) {
    costs->one_us *= 1.0f + COST_WEIGHT * (took - 1.0f);
    return;
  }
  if (costs->unlike[rows] == 0.0f) costs->unlike[rows] = 1.0f;
  const float others = (float)(rows - 1);
  float weight = costs->seen < COST_SEEN_MAX ? 1.0f / (float)(1 + costs->seen++) : COST_WEIGHT;
  weight *= others / (others + COST_ROWS_HALF);
  costs->row += weight * (took - expected) / (costs->unlike[rows] * others);
  if (costs->row < ROW_COST_LEAST) costs->row = ROW_COST_LEAST;
  costs->unlike[rows] *= 1.0f + COST_WEIGHT_UNLIKE * (took / cost_of(costs, rows) - 1.0f);
}

// ---- Prompt lookup ----

typedef struct earlier_place {
  uint32_t at, match;  // the first token after the match
} earlier_place;

// Collects positions, sorted by the number of agreeing tokens in descending order. If several are
// equal, the latest position comes first.
typedef struct earlier_places {
  earlier_place list[SPECULATION_PLACES];
  uint32_t count;
} earlier_places;

static uint32_t match_before(const int32_t *tokens, uint32_t count, uint32_t at) {
  uint32_t match = 0;
  while (match < SPECULATION_MATCH_MAX && match < at &&
         tokens[at - 1 - match] == tokens[count - 1 - match]) {
    match++;
  }
  return match;
}

static void keep_place(earlier_places *places, earlier_place place) {
  uint32_t i = places->count;
  while (i > 0 && places->list[i - 1].match < place.match) i--;
  if (i == SPECULATION_PLACES) return;
  if (places->count < SPECULATION_PLACES) places->count++;
  for (uint32_t j = places->count - 1; j > i; j--) places->list[j] = places->list[j - 1];
  places->list[i] = place;
}

static earlier_places find_earlier(const int32_t *tokens, uint32_t count) {
  earlier_places places = {.count = 0};
  const earlier_place *last = &places.list[SPECULATION_PLACES - 1];
  if (count <= SPECULATION_MATCH_MIN) return places;
  uint32_t least = SPECULATION_MATCH_MIN;
  if (count > SPECULATION_LOOK_BACK) least = count - SPECULATION_LOOK_BACK;
  for (uint32_t at = count - 1; at >= least; at--) {
    const uint32_t match = match_before(tokens, count, at);
    if (match < SPECULATION_MATCH_MIN) continue;
    keep_place(&places, (earlier_place){at, match});
    if (places.count == SPECULATION_PLACES && last->match == SPECULATION_MATCH_MAX) break;
  }
  return places;
}

// Finds positions after a rejected proposal. The followed text is likely to continue soon: at the
// position of the newest token in it or, if the newest token is the changed token, at the next
// token.
static earlier_places find_after_change(const speculation *speculation, const int32_t *tokens,
                                        uint32_t count) {
  earlier_places places = {.count = 0};
  if (speculation->changed == 0) return places;
  const uint32_t place = speculation->changed_place, since = count - speculation->changed;
  if (since > CHANGE_TOKENS_MAX) return places;
  for (uint32_t at = place + since + CHANGE_TOKENS_MORE; at > place; at--) {
    const uint32_t match = at < count ? match_before(tokens, count, at) : 0;
    if (match != 0) keep_place(&places, (earlier_place){at, match});
  }
  if (places.count == 0 && since == 1 && place + 1 < count) {
    keep_place(&places, (earlier_place){place + 1, 0});
  }
  if (places.count > 1) places.count = 1;
  return places;
}

static void note_miss(speculation *speculation) {
  speculation->misses++;
  const uint32_t rest = speculation->misses / MISSES_PER_REST;
  speculation->lookup_rest = rest < MISS_REST_MAX ? rest : MISS_REST_MAX;
}

static uint8_t kind_of(uint32_t match, uint32_t others) {
  static const uint32_t ends[MATCH_CLASSES - 1] = {3, 5, 9, 15};
  if (match < SPECULATION_MATCH_MIN) return (uint8_t)(KIND_UNSEEN + match);
  uint32_t kind = 0;
  while (kind < MATCH_CLASSES - 1 && match > ends[kind]) kind++;
  return (uint8_t)(kind + others * MATCH_CLASSES);
}

// Returns a token after a position. Beyond the end of the text, these are the first proposals.
static int32_t token_after(const speculation *speculation, const int32_t *tokens, uint32_t at,
                           uint32_t i) {
  const uint32_t period = speculation->start - at;
  return i < period ? tokens[at + i] : speculation->proposed[i - period];
}

// Proposes the tokens after the first position. Compares these tokens with those at the other
// positions, as long as the latter continue in the same way.
static void follow(speculation *speculation, const int32_t *tokens, earlier_places *places) {
  for (uint32_t i = 0; i < speculation->found; i++) {
    const int32_t token = token_after(speculation, tokens, speculation->place, i);
    uint32_t others = OTHERS_NONE, kept = 1;
    for (uint32_t j = 1; j < places->count; j++) {
      if (token_after(speculation, tokens, places->list[j].at, i) != token) {
        others = OTHERS_DISAGREE;
        continue;
      }
      if (others == OTHERS_NONE) others = OTHERS_AGREE;
      places->list[kept++] = places->list[j];
    }
    places->count = kept;
    speculation->proposed[i] = token;
    speculation->kinds[i] = kind_of(places->list[0].match + i, others);
  }
}

void speculation_look_up(speculation *speculation, const int32_t *tokens, uint32_t count,
                         uint32_t most) {
  earlier_places places = find_earlier(tokens, count);
  if (places.count == 0) places = find_after_change(speculation, tokens, count);
  if (places.count == 0) {
    note_miss(speculation);
    return;
  }
  speculation->misses = 0;
  speculation->found = most < SPECULATION_TOKENS_MAX ? most : SPECULATION_TOKENS_MAX;
  speculation->place = places.list[0].at;
  speculation->start = count;
  follow(speculation, tokens, &places);
}

// ---- Acceptance rates ----

static speculation_trust *trust_of(speculation *speculation, uint32_t proposal) {
  const uint8_t kind = speculation->kinds[proposal];
  speculation_trust *trust = &speculation->by_kind[kind];
  if (trust->seen == 0.0f) {
    *trust = (speculation_trust){RIGHT_FIRST[kind] * SEEN_FIRST, SEEN_FIRST};
  }
  return trust;
}

// Returns the probability that a proposal is correct if all proposals before it were.
static float rate_of(speculation *speculation, speculation_source source, uint32_t proposal) {
  if (source == SPECULATION_DRAFT) return speculation->draft_rate;
  const speculation_trust *trust = trust_of(speculation, proposal);
  return trust->right / trust->seen;
}

static void learn(speculation *speculation, bool is_right) {
  const uint32_t row = speculation->seen;
  if (speculation->source == SPECULATION_LOOKUP) {
    speculation_trust *trust = trust_of(speculation, row);
    trust->right = trust->right * SEEN_KEPT + (is_right ? 1.0f : 0.0f);
    trust->seen = trust->seen * SEEN_KEPT + 1.0f;
    if (!is_right && speculation->kinds[row] == KIND_UNSEEN) return;  // the change continues
    speculation->changed_place = is_right ? 0 : speculation->place + row;
    speculation->changed = is_right ? 0 : speculation->start + row;
    return;
  }
  float *rate = &speculation->draft_rate;
  *rate += is_right ? RATE_WEIGHT * (1.0f - *rate) : -RATE_WEIGHT_FAILED * *rate;
  if (is_right && row + 1 == speculation->count) {
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

// ---- The number of proposals ----

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
  speculation->draft_rate = RATE_FIRST;  // for the next attempt
}

static void doubt_costs(speculation_costs *costs, uint32_t rows, uint32_t chosen) {
  if (chosen == 0) costs->doubt += COST_DOUBT * (1.0f - costs->doubt);
  for (uint32_t i = 2; i <= SPECULATION_ROWS_MAX; i++) {
    if (i == rows + chosen || costs->unlike[i] == 0.0f) continue;
    costs->unlike[i] = 1.0f + (costs->unlike[i] - 1.0f) * COST_UNLIKE_KEPT;
  }
}

uint32_t speculation_wanted(speculation *speculation, speculation_costs *costs,
                            speculation_source source, uint32_t most, uint32_t rows,
                            float proposal_us) {
  if (speculation->draft_rate == 0.0f) {
    speculation->draft_rate = RATE_FIRST;
    speculation->draft_rest_next = REST_TOKENS_FIRST;
  }
  if (rows == 1 && costs->one_us == 0.0f) return 0;  // a pass of one row must be measured first
  if (most > SPECULATION_ROWS_MAX - rows) most = SPECULATION_ROWS_MAX - rows;
  const float proposal = costs->one_us > 0.0f ? proposal_us / costs->one_us : 0.0f;
  const float plain = cost_of(costs, rows) / (float)rows;  // cost per token
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
  if (most == 0) return 0;
  if (rate_of(speculation, source, 0) > COST_SURE_RATE) doubt_costs(costs, rows, best);
  if (source == SPECULATION_DRAFT && best == 0) rest_draft(speculation);
  return best;
}

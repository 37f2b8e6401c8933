// sample/distribution.c — entropies are computed in double from exponentials in float, with a fixed
// summation order.
#include "sample/distribution.h"

#include "base/math.h"
#include "sample/softmax.h"

enum { MIROSTAT_LARGEST = 100 };

static const double LN2 = 0.6931471805599453;

double candidates_weigh(candidates *kept, float max, float temperature) {
  double total = 0;
  softmax_weights(kept->logits, kept->count, max, temperature, kept->weights);
  for (uint32_t i = 0; i < kept->count; i++) total += (double)kept->weights[i];
  return total;
}

void truncate_to_largest(candidates *kept, float max) {
  truncate_at_least(kept, (double)max);
  kept->count = 1;
}

void truncate_to_count(candidates *kept, uint32_t k) {
  if (k < kept->count) truncate_by_keys(kept, kept->logits, NULL, (double)k);
}

// Computes the entropy in nats; the weights have this sum.
static double entropy_of(const candidates *kept, float max, double total) {
  double sum = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    sum += (double)kept->weights[i] * ((double)kept->logits[i] - (double)max);
  }
  return math_log(total) - sum / total;
}

void truncate_typical(candidates *kept, float max, double mass, float *keys) {
  const double total = candidates_weigh(kept, max, 1.0f);
  // the surprise of a logit is level - logit
  const double level = (double)max + math_log(total);
  const double entropy = entropy_of(kept, max, total);
  for (uint32_t i = 0; i < kept->count; i++) {
    keys[i] = (float)-__builtin_fabs(level - (double)kept->logits[i] - entropy);
  }
  truncate_by_keys(kept, keys, kept->weights, total * mass);
}

void truncate_top_n_sigma(candidates *kept, float max, double n) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < kept->count; i++) sum += (double)kept->logits[i];
  const double mean = sum / (double)kept->count;
  for (uint32_t i = 0; i < kept->count; i++) {
    const double distance = (double)kept->logits[i] - mean;
    squares += distance * distance;
  }
  truncate_at_least(kept, (double)max - n * __builtin_sqrt(squares / (double)kept->count));
}

void truncate_xtc(candidates *kept, float max, double threshold) {
  const double least = candidates_weigh(kept, max, 1.0f) * threshold;
  uint32_t top = 0, last = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    if ((double)kept->weights[i] < least) continue;
    if (top == 0 || kept->logits[i] <= kept->logits[last]) last = i;
    top++;
  }
  if (top < 2) return;
  uint32_t used = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    if ((double)kept->weights[i] >= least && i != last) continue;
    kept->ids[used] = kept->ids[i];
    kept->logits[used++] = kept->logits[i];
  }
  kept->count = used;
}

double dynamic_temperature(candidates *kept, float max, double low, double high, double exponent) {
  const double total = candidates_weigh(kept, max, 1.0f);
  const double share = entropy_of(kept, max, total) / math_log((double)kept->count);
  if (exponent == 0) return high;
  return share > 0 ? low + (high - low) * math_pow(share, exponent) : low;
}

// ---- Mirostat ----

// Collects the largest logits [MIROSTAT_LARGEST] in descending order; returns their number.
static uint32_t find_largest(const candidates *kept, float *largest) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kept->count; i++) {
    const float logit = kept->logits[i];
    if (count == MIROSTAT_LARGEST && logit <= largest[count - 1]) continue;
    uint32_t at = count < MIROSTAT_LARGEST ? count++ : count - 1;
    for (; at > 0 && largest[at - 1] < logit; at--) largest[at] = largest[at - 1];
    largest[at] = logit;
  }
  return count;
}

void mirostat_truncate_1(const mirostat_state *state, candidates *kept, uint32_t vocab) {
  float largest[MIROSTAT_LARGEST];
  const uint32_t count = find_largest(kept, largest);
  if (count < 2) return;
  double products = 0, squares = 0;
  for (uint32_t i = 0; i + 1 < count; i++) {
    const double t = math_log((double)(i + 2) / (double)(i + 1));
    products += t * ((double)largest[i] - (double)largest[i + 1]);
    squares += t * t;
  }
  const double s = products / squares, epsilon = s - 1;
  const double ratio = epsilon / (1 - math_exp(-epsilon * math_log((double)vocab)));
  const double k = math_exp((math_log(ratio) + state->mu * LN2) / s);
  // if k is not a number (equal logits, or an exponent of exactly 1), all candidates are kept
  if (k < (double)kept->count) truncate_to_count(kept, k < 1 ? 1 : (uint32_t)k);
}

void mirostat_truncate_2(const mirostat_state *state, candidates *kept, float max) {
  const double level = (double)max + math_log(candidates_weigh(kept, max, 1.0f));
  const double least = level - state->mu * LN2;
  if (least <= (double)max) {
    truncate_at_least(kept, least);
  } else {
    truncate_to_largest(kept, max);
  }
}

void mirostat_learn(mirostat_state *state, double probability) {
  state->mu -= state->eta * (-math_log(probability) / LN2 - state->tau);
}

// ---- adaptive-p ----

static const double ADAPTIVE_WIDTH = 0.3, ADAPTIVE_SHARPNESS = 10;

void adaptive_begin(adaptive_state *state, double target, double decay) {
  *state = (adaptive_state){target, decay, target / (1 - decay), 1 / (1 - decay)};
}

// Returns the logit for a probability, which is 0 for the target. llama.cpp adds 5, which has no
// effect.
static double adaptive_logit(double probability, double target) {
  const double distance = __builtin_fabs(probability - target) / ADAPTIVE_WIDTH;
  return -ADAPTIVE_SHARPNESS * distance * distance / (1 + distance);
}

double adaptive_weigh(const adaptive_state *state, candidates *kept, double total, float *keys) {
  double target = 2 * state->target - state->sum / state->weight;
  target = target < 0 ? 0 : target > 1 ? 1 : target;
  candidates transformed = *kept;
  transformed.logits = kept->weights;
  float most = -1e30f;
  for (uint32_t i = 0; i < kept->count; i++) {
    const float weight = kept->weights[i];
    const float logit = (float)adaptive_logit((double)weight / total, target);
    keys[i] = weight;
    transformed.logits[i] = logit;
    most = logit > most ? logit : most;
  }
  return candidates_weigh(&transformed, most, 1.0f);
}

void adaptive_learn(adaptive_state *state, double probability) {
  state->sum = probability + state->decay * state->sum;
  state->weight = 1 + state->decay * state->weight;
}

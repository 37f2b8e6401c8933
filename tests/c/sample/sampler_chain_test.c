// Compares llama.cpp's less common samplers, in any order, with direct implementations of their
// definitions in double: the whole remaining distribution and the token sampled from it. Then tests
// edge cases of each.
#include <stdlib.h>
#include <string.h>

#include "sample/settings.h"
#include "sampler_rig.h"

enum { WORDS_MAX = 20, HISTORY_MAX = 64 };

static const char LETTERS[] = "edskypmxta";
static const double NEAR = 1e-5;  // closer decisions may fall either way in float

// ---- the definitions ----

typedef struct plain {
  wick_sampling config;
  uint32_t vocab;
  double logit[WORDS_MAX];
  bool stays[WORDS_MAX];
  int32_t history[HISTORY_MAX];
  uint32_t held;
  rng source;
  double mu, mean_sum, mean_weight;
  bool is_near;  // a decision was too close to call
} plain;

static void plain_begin(plain *p, const wick_sampling *config, uint32_t vocab) {
  memset(p, 0, sizeof *p);
  p->config = *config;
  p->vocab = vocab;
  p->mu = 2 * (double)config->mirostat_tau;
  p->mean_weight = 1 / (1 - (double)config->adaptive_decay);
  p->mean_sum = (double)config->adaptive_target * p->mean_weight;
  rng_seed(&p->source, config->seed);
}

static void plain_accept(plain *p, int32_t token) {
  if (p->held == HISTORY_MAX) {
    memmove(p->history, p->history + 1, (HISTORY_MAX - 1) * sizeof *p->history);
    p->held--;
  }
  p->history[p->held++] = token;
}

static uint32_t plain_count(const plain *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->vocab; i++) count += p->stays[i] ? 1 : 0;
  return count;
}

static int plain_largest(const plain *p) {
  int largest = -1;
  for (int i = 0; i < (int)p->vocab; i++) {
    if (p->stays[i] && (largest < 0 || p->logit[i] > p->logit[largest])) largest = i;
  }
  return largest;
}

static void plain_softmax(const plain *p, double *probability) {
  const double max = p->logit[plain_largest(p)];
  double total = 0;
  for (uint32_t i = 0; i < p->vocab; i++) {
    probability[i] = p->stays[i] ? exp(p->logit[i] - max) : 0;
    total += probability[i];
  }
  for (uint32_t i = 0; i < p->vocab; i++) probability[i] /= total;
}

static double plain_entropy(const plain *p) {
  double probability[WORDS_MAX], entropy = 0;
  plain_softmax(p, probability);
  for (uint32_t i = 0; i < p->vocab; i++) {
    if (probability[i] > 0) entropy -= probability[i] * log(probability[i]);
  }
  return fmax(0, entropy);
}

static bool too_near(plain *p, double a, double b) {
  if (fabs(a - b) < NEAR) p->is_near = true;
  return p->is_near;
}

static void plain_penalties(plain *p) {
  const wick_sampling *c = &p->config;
  const uint32_t last = c->penalty_last;
  for (uint32_t i = 0; i < p->vocab; i++) {
    uint32_t uses = 0;
    for (uint32_t j = 0; j < p->held && j < last; j++) {
      uses += p->history[p->held - 1 - j] == (int32_t)i ? 1 : 0;
    }
    if (uses == 0) continue;
    const double repeat = (double)c->repeat_penalty;
    p->logit[i] = p->logit[i] > 0 ? p->logit[i] / repeat : p->logit[i] * repeat;
    p->logit[i] -= uses * (double)c->frequency_penalty + (double)c->presence_penalty;
  }
}

// Returns the largest n for which the last n tokens also precede an earlier `token` in the window.
static int plain_repetition(const plain *p, int32_t token) {
  const wick_sampling *c = &p->config;
  const uint32_t first = p->held > c->dry_penalty_last ? p->held - c->dry_penalty_last : 0;
  int longest = -1;
  for (uint32_t at = first + 1; at < p->held; at++) {
    if (p->history[at] != token) continue;
    int n = 0;
    while (at - first > (uint32_t)n &&
           p->history[at - 1 - (uint32_t)n] == p->history[p->held - 1 - (uint32_t)n]) {
      n++;
    }
    longest = n > longest ? n : longest;
  }
  return longest;
}

static void plain_dry(plain *p) {
  const wick_sampling *c = &p->config;
  const uint32_t window = p->held < c->dry_penalty_last ? p->held : c->dry_penalty_last;
  if (window <= c->dry_allowed_length) return;
  for (int i = 0; i < (int)p->vocab; i++) {
    const int n = plain_repetition(p, i);
    if (n < (int)c->dry_allowed_length) continue;
    p->logit[i] -=
        (double)c->dry_multiplier * pow((double)c->dry_base, n - (double)c->dry_allowed_length);
  }
}

static void plain_top_n_sigma(plain *p) {
  const double count = plain_count(p), max = p->logit[plain_largest(p)];
  double mean = 0, variance = 0;
  for (uint32_t i = 0; i < p->vocab; i++) mean += p->stays[i] ? p->logit[i] / count : 0;
  for (uint32_t i = 0; i < p->vocab; i++) {
    if (p->stays[i]) variance += (p->logit[i] - mean) * (p->logit[i] - mean) / count;
  }
  const double least = max - (double)p->config.top_n_sigma * sqrt(variance);
  for (uint32_t i = 0; i < p->vocab; i++) {
    if (!p->stays[i] || too_near(p, p->logit[i], least)) continue;
    p->stays[i] = p->logit[i] >= least;
  }
}

static void plain_top_k(plain *p, double k) {
  bool stood[WORDS_MAX];
  memcpy(stood, p->stays, sizeof stood);
  for (uint32_t i = 0; i < p->vocab; i++) {
    uint32_t larger = 0;
    if (!p->stays[i]) continue;
    for (uint32_t j = 0; j < p->vocab; j++) {
      if (j == i || !stood[j]) continue;
      if (fabs(p->logit[i] - p->logit[j]) < NEAR && p->logit[i] != p->logit[j]) p->is_near = true;
      larger += p->logit[j] > p->logit[i] || (p->logit[j] == p->logit[i] && j < i) ? 1 : 0;
    }
    if (larger >= k) p->stays[i] = false;
  }
}

// Keeps the candidates with the lowest cost until their probabilities add up to `mass`.
static void plain_fewest(plain *p, const double *cost, const double *probability, double mass) {
  bool taken[WORDS_MAX] = {false};
  double sum = 0;
  while (sum < mass) {
    int best = -1;
    for (int i = 0; i < (int)p->vocab; i++) {
      if (!p->stays[i] || taken[i]) continue;
      if (best >= 0 && cost[i] != cost[best] && too_near(p, cost[i], cost[best])) return;
      if (best < 0 || cost[i] < cost[best]) best = i;
    }
    if (best < 0) break;
    taken[best] = true;
    sum += probability[best];
    if (too_near(p, sum, mass)) return;
  }
  memcpy(p->stays, taken, sizeof taken);
}

static void plain_typical(plain *p) {
  double probability[WORDS_MAX], cost[WORDS_MAX] = {0};
  const double entropy = plain_entropy(p);
  plain_softmax(p, probability);
  for (uint32_t i = 0; i < p->vocab; i++) {
    if (p->stays[i]) cost[i] = fabs(-log(probability[i]) - entropy);
  }
  plain_fewest(p, cost, probability, (double)p->config.typical_p);
}

static void plain_top_p(plain *p) {
  double probability[WORDS_MAX], cost[WORDS_MAX];
  plain_softmax(p, probability);
  for (uint32_t i = 0; i < p->vocab; i++) cost[i] = -p->logit[i];
  plain_fewest(p, cost, probability, (double)p->config.top_p);
}

static void plain_min_p(plain *p) {
  double probability[WORDS_MAX];
  plain_softmax(p, probability);
  const double least = probability[plain_largest(p)] * (double)p->config.min_p;
  for (uint32_t i = 0; i < p->vocab; i++) {
    if (!p->stays[i] || too_near(p, probability[i], least)) continue;
    p->stays[i] = probability[i] >= least;
  }
}

static void plain_xtc(plain *p) {
  double probability[WORDS_MAX];
  if (plain_count(p) < 2) return;
  if (rng_uniform(&p->source) >= (double)p->config.xtc_probability) return;
  plain_softmax(p, probability);
  int least = -1;
  uint32_t top = 0;
  for (int i = 0; i < (int)p->vocab; i++) {
    if (!p->stays[i] || too_near(p, probability[i], (double)p->config.xtc_threshold)) continue;
    if (probability[i] < (double)p->config.xtc_threshold) continue;
    top++;
    if (least >= 0 && p->logit[i] != p->logit[least] && too_near(p, p->logit[i], p->logit[least])) {
      return;
    }
    if (least < 0 || p->logit[i] <= p->logit[least]) least = i;
  }
  for (int i = 0; i < (int)p->vocab && top > 1; i++) {
    if (i != least && probability[i] >= (double)p->config.xtc_threshold) p->stays[i] = false;
  }
}

static void plain_temperature(plain *p) {
  const wick_sampling *c = &p->config;
  double temperature = (double)c->temperature;
  if (c->mirostat == 0 && c->dynatemp_range > 0) {
    const double count = plain_count(p), reach = (double)c->dynatemp_range;
    if (count < 2) return;
    const double low = fmax(0, temperature - reach), high = temperature + reach;
    temperature =
        low + (high - low) * pow(plain_entropy(p) / log(count), (double)c->dynatemp_exponent);
  }
  if (temperature > 0 && temperature < 1e-10) p->is_near = true;
  if (temperature < 1e-10) {
    const int largest = plain_largest(p);
    for (int i = 0; i < (int)p->vocab; i++) {
      if (i == largest || !p->stays[i]) continue;
      if (p->logit[i] != p->logit[largest]) too_near(p, p->logit[i], p->logit[largest]);
      p->stays[i] = false;
    }
    return;
  }
  for (uint32_t i = 0; i < p->vocab; i++) p->logit[i] /= temperature;
}

// Algorithm 1 of Basu et al. 2021, on the candidates sorted by decreasing probability.
static void plain_mirostat_1(plain *p) {
  double sorted[WORDS_MAX];
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->vocab; i++) {
    uint32_t at = count;
    if (!p->stays[i]) continue;
    for (; at > 0 && sorted[at - 1] < p->logit[i]; at--) sorted[at] = sorted[at - 1];
    sorted[at] = p->logit[i];
    count++;
  }
  if (count < 2) return;
  double above = 0, below_line = 0;
  for (uint32_t i = 0; i + 1 < count; i++) {
    const double t = log((i + 2.0) / (i + 1.0));
    above += t * (sorted[i] - sorted[i + 1]);
    below_line += t * t;
  }
  const double s = above / below_line, epsilon = s - 1;
  const double k = pow(epsilon * pow(2, p->mu) / (1 - pow(p->vocab, -epsilon)), 1 / s);
  if (fabs(k - round(k)) < 1e-3 * k || fabs(epsilon) < 1e-3 || s < 1e-3) p->is_near = true;
  plain_top_k(p, fmax(1, floor(k)));
}

static void plain_mirostat_2(plain *p) {
  double probability[WORDS_MAX];
  const int largest = plain_largest(p);
  plain_softmax(p, probability);
  for (int i = 0; i < (int)p->vocab; i++) {
    if (!p->stays[i] || i == largest) continue;
    if (too_near(p, -log2(probability[i]), p->mu)) return;
    p->stays[i] = -log2(probability[i]) <= p->mu;
  }
}

static void plain_step(plain *p, char letter) {
  const wick_sampling *c = &p->config;
  if (letter == 'e') plain_penalties(p);
  if (letter == 'd' && c->dry_multiplier > 0) plain_dry(p);
  if (letter == 's' && c->top_n_sigma > 0) plain_top_n_sigma(p);
  if (letter == 'k' && c->top_k > 0) plain_top_k(p, c->top_k);
  if (letter == 'y' && c->typical_p < 1) plain_typical(p);
  if (letter == 'p' && c->top_p < 1) plain_top_p(p);
  if (letter == 'm' && c->min_p > 0) plain_min_p(p);
  if (letter == 'x' && c->xtc_probability > 0 && c->xtc_threshold <= 0.5f) plain_xtc(p);
  if (letter == 't') plain_temperature(p);
}

// Sets the distribution that the token is sampled from, and `original` to the one before
// adaptive-p.
static void plain_distribution(plain *p, const float *raw, uint32_t mask, double *probability,
                               double *original) {
  const wick_sampling *c = &p->config;
  const char *order = c->mirostat != 0 ? "t" : c->samplers != NULL ? c->samplers : LETTERS;
  bool adapts = false;
  for (uint32_t i = 0; i < p->vocab; i++) {
    p->logit[i] = (double)raw[i];
    p->stays[i] = raw[i] > -INFINITY && (mask >> i & 1) != 0;
    if (!p->stays[i]) p->logit[i] = -(double)INFINITY;
  }
  for (; *order != 0; order++) {
    plain_step(p, *order);
    if (*order == 'a' && c->adaptive_target >= 0) adapts = true;
  }
  if (c->mirostat == 1) plain_mirostat_1(p);
  if (c->mirostat == 2) plain_mirostat_2(p);
  plain_softmax(p, original);
  memcpy(probability, original, WORDS_MAX * sizeof *probability);
  if (!adapts) return;
  const double target =
      fmin(1, fmax(0, 2 * (double)c->adaptive_target - p->mean_sum / p->mean_weight));
  double total = 0;
  for (uint32_t i = 0; i < p->vocab; i++) {
    const double distance = fabs(original[i] - target) / 0.3;
    probability[i] = p->stays[i] ? exp(5 - 10 * distance * distance / (1 + distance)) : 0;
    total += probability[i];
  }
  for (uint32_t i = 0; i < p->vocab; i++) probability[i] /= total;
}

static void plain_learn(plain *p, const double *probability, const double *original,
                        int32_t token) {
  const wick_sampling *c = &p->config;
  p->mu -= (double)c->mirostat_eta * (-log2(probability[token]) - (double)c->mirostat_tau);
  p->mean_sum = original[token] + (double)c->adaptive_decay * p->mean_sum;
  p->mean_weight = 1 + (double)c->adaptive_decay * p->mean_weight;
}

// Returns the token that the next random number selects, or -1 if it is too close to call.
static int32_t plain_draw(plain *p, const double *probability) {
  const double point = rng_uniform(&p->source);
  double sum = 0;
  for (int32_t i = 0; i < (int32_t)p->vocab; i++) {
    sum += probability[i];
    if (fabs(sum - point) < NEAR) return -1;
    if (sum > point) return i;
  }
  return -1;
}

// ---- the samplers against the definitions ----

static uint32_t mask_word;

static void set_mask_word(void *context, const float *of_model, uint32_t *bits, uint32_t vocab) {
  (void)context, (void)of_model, (void)vocab;
  bits[0] &= mask_word;
}

static float share(rng *source) { return (float)rng_uniform(source); }

static void random_samplers(rng *source, wick_sampling *c, char *order, uint32_t vocab) {
  wick_bias none[4];
  random_config(source, c, none, vocab);
  c->bias = NULL;
  c->bias_count = 0;
  if (below(source, 3) == 0) c->top_n_sigma = 0.3f + 2 * share(source);
  if (below(source, 3) == 0) c->typical_p = 0.05f + 0.9f * share(source);
  if (below(source, 3) == 0) c->xtc_probability = below(source, 3) == 0 ? 1 : share(source);
  c->xtc_threshold = 0.6f * share(source);
  if (below(source, 3) == 0) c->dynatemp_range = share(source) * 2;
  c->dynatemp_exponent = 0.2f + share(source) * 2;
  if (below(source, 2) == 0) c->dry_multiplier = share(source) * 2;
  c->dry_base = 1 + share(source);
  c->dry_allowed_length = below(source, 4);
  c->dry_penalty_last = below(source, HISTORY_MAX);
  if (below(source, 4) == 0) c->mirostat = 1 + below(source, 2);
  c->mirostat_tau = share(source) * 4;
  c->mirostat_eta = share(source);
  if (below(source, 3) == 0) c->adaptive_target = share(source);
  c->adaptive_decay = 0.99f * share(source);
  if (below(source, 3) == 0) return;
  const uint32_t count = below(source, WICK_SAMPLERS_MAX + 1);
  for (uint32_t i = 0; i < count; i++) order[i] = LETTERS[below(source, sizeof LETTERS - 1)];
  order[count] = 0;
  c->samplers = order;
}

// Compares one choice; returns false if it was too close to call.
static bool compare_choice(sampler *s, plain *p, const float *raw, uint32_t round) {
  double probability[WORDS_MAX], original[WORDS_MAX];
  sampler_choice choice;
  plain_distribution(p, raw, mask_word, probability, original);
  if (!CHECK_EQ_INT(sampler_choose(s, raw, &choice, NULL), WICK_OK)) return false;
  if (p->is_near) return false;
  uint32_t possible = 0;
  for (uint32_t i = 0; i < p->vocab; i++) {
    possible += probability[i] > 1e-25 ? 1 : 0;
    // in float, such a weight may be 0
    if (probability[i] <= 1e-25 && probability[i] > 1e-50) return false;
  }
  if (!CHECK_EQ_UINT(choice.top_count, possible)) {
    printf("#   round %u, order %s\n", round, p->config.samplers ? p->config.samplers : "-");
  }
  for (uint32_t i = 0; i < choice.top_count; i++) {
    const double found = exp((double)choice.top_logprobs[i]);
    CHECK_NEAR(found, probability[choice.top_tokens[i]], 2e-5);
    CHECK(i == 0 || choice.top_logprobs[i - 1] >= choice.top_logprobs[i]);
  }
  CHECK_NEAR(exp((double)choice.logprob), probability[choice.token], 2e-5);
  const int32_t wanted = plain_draw(p, probability);
  if (wanted < 0) return possible == 1;
  if (!CHECK_EQ_INT(choice.token, wanted)) {
    printf("#   round %u, order %s\n", round, p->config.samplers ? p->config.samplers : "-");
  }
  plain_learn(p, probability, original, choice.token);
  plain_accept(p, choice.token);
  return true;
}

TEST(samplers_in_any_order_match_their_definitions) {
  static plain p;
  rng source;
  rng_seed(&source, 21);
  uint32_t compared = 0;
  for (uint32_t round = 0; round < 3000; round++) {
    wick_sampling config;
    char order[WICK_SAMPLERS_MAX + 1];
    const uint32_t vocab = 1 + below(&source, WORDS_MAX);
    random_samplers(&source, &config, order, vocab);
    config.logprob = config.logprobs_after = true;
    config.logprobs = WICK_LOGPROBS_MAX;
    // greedy choices use no random number, which the definitions do not model
    if (config.temperature == 0) config.temperature = 0.7f;
    plain_begin(&p, &config, vocab);
    sampler *s = sampler_open(&config, vocab);
    REQUIRE(s != NULL);
    sampler_set_mask(s, set_mask_word, NULL);
    const uint32_t words = 1 + below(&source, 3);  // few words, so that many repeat
    for (uint32_t i = below(&source, 40); i > 0; i--) {
      const int32_t token = (int32_t)(below(&source, words) % vocab);
      sampler_accept(s, token);
      plain_accept(&p, token);
    }
    bool goes_on = true;
    for (int turn = 0; turn < 8 && goes_on; turn++) {
      fill_logits(&source, logits, vocab, 2, turn % 4 == 3 ? 1 : 1e6);
      if (below(&source, 3) == 0 && vocab > 1) logits[below(&source, vocab)] = -INFINITY;
      mask_word = below(&source, 2) == 0 ? UINT32_MAX : (uint32_t)rng_next(&source);
      bool may_go = false;
      for (uint32_t i = 0; i < vocab; i++) {
        may_go = may_go || (logits[i] > -INFINITY && (mask_word >> i & 1) != 0);
      }
      if (!may_go) logits[0] = 1, mask_word |= 1;
      goes_on = compare_choice(s, &p, logits, round);
      compared += goes_on ? 1 : 0;
    }
    CHECK_EQ_UINT(memory.calls, 1);  // choosing allocates nothing
    sampler_close(s);
  }
  printf("# %u choices compared\n", compared);
  CHECK(compared > 12000);
}

TEST(disabled_samplers_leave_the_results_bit_identical) {
  rng source;
  rng_seed(&source, 22);
  for (uint32_t round = 0; round < 200; round++) {
    wick_sampling config, off;
    wick_bias bias[4];
    const uint32_t vocab = 8 + below(&source, 2000);
    random_config(&source, &config, bias, vocab);
    config.logprobs = 3;
    off = config;
    off.samplers = LETTERS;
    off.top_n_sigma = round % 2 == 0 ? -1 : 0;
    off.xtc_probability = round % 2 == 0 ? 1 : 0;
    off.xtc_threshold = 0.51f;
    off.dynatemp_exponent = 3;
    off.dry_multiplier = round % 3 == 0 ? 1 : 0;
    off.dry_penalty_last = round % 3 == 0 ? 0 : 50;
    off.mirostat_tau = 1;
    off.adaptive_target = -0.5f;
    sampler *s = sampler_open(&config, vocab);
    memory_gate other;
    memory_init(&other, 0, platform_alloc, platform_free);
    sampler *same = NULL;
    REQUIRE(s != NULL && sampler_create(&other, &off, vocab, &same, NULL) == WICK_OK);
    for (int turn = 0; turn < 20; turn++) {
      sampler_choice a, b;
      memset(&a, 0, sizeof a), memset(&b, 0, sizeof b);
      fill_logits(&source, logits, vocab, 3, 1e6);
      logits[below(&source, vocab)] = -INFINITY;
      CHECK_EQ_INT(sampler_choose(s, logits, &a, NULL), sampler_choose(same, logits, &b, NULL));
      CHECK_EQ_MEM(&a, &b, sizeof a);
    }
    sampler_destroy(same);
    sampler_close(s);
  }
}

TEST(samplers_choose_the_same_on_every_host) {
  static const struct {
    const char *samplers;
    uint32_t mirostat;
    float adaptive_target, dynatemp_range;
    int32_t wanted[10];
  } cases[] = {
      {NULL, 0, -1, 0, {653, 2957, 2624, 370, 587, 2186, 2703, 2033, 1663, 564}},
      {"yptedk", 0, 0.3f, 0.5f, {2106, 725, 2576, 2957, 2971, 2641, 87, 227, 1035, 291}},
      {NULL, 1, -1, 0, {1754, 403, 2594, 2957, 2971, 2712, 3, 53, 773, 250}},
      {NULL, 2, -1, 0, {1907, 500, 2526, 2957, 2971, 2703, 3, 87, 773, 250}},
  };
  enum { VOCAB = 3000 };
  rng source;
  rng_seed(&source, 99);
  fill_logits(&source, logits, VOCAB, 2, 1e6);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wick_sampling config;
    sampler_set_defaults(&config);
    config.temperature = 0.9f;
    config.top_k = 200;
    config.top_p = 0.98f;
    config.min_p = 0.01f;
    config.repeat_penalty = 1.1f;
    config.typical_p = 0.9f;
    config.top_n_sigma = 3;
    config.xtc_probability = 0.5f;
    config.xtc_threshold = 0.02f;
    config.dry_multiplier = 0.8f;
    config.dry_penalty_last = 100;
    config.seed = 7;
    config.samplers = cases[i].samplers;
    config.mirostat = cases[i].mirostat;
    config.adaptive_target = cases[i].adaptive_target;
    config.dynatemp_range = cases[i].dynatemp_range;
    sampler *s = sampler_open(&config, VOCAB);
    REQUIRE(s != NULL);
    for (int turn = 0; turn < 10; turn++) {
      const int32_t found = choose(s, logits);
      if (!CHECK_EQ_INT(found, cases[i].wanted[turn])) printf("#   %zu %d: %d\n", i, turn, found);
    }
    sampler_close(s);
  }
}

// ---- edges ----

// Enables every sampler with the settings that drop the most.
static wick_sampling sharp_samplers(void) {
  wick_sampling c;
  sampler_set_defaults(&c);
  c.temperature = 0.5f;
  c.top_k = 1, c.top_p = 1e-6f, c.min_p = 1;
  c.typical_p = 1e-6f, c.top_n_sigma = 1e-6f;
  c.xtc_probability = 1, c.xtc_threshold = 0;
  c.repeat_penalty = 3, c.frequency_penalty = 100, c.presence_penalty = 100;
  c.dry_multiplier = 1e30f, c.dry_base = 1e30f, c.dry_allowed_length = 0, c.dry_penalty_last = 9;
  c.adaptive_target = 0.5f;
  return c;
}

TEST(top_p_and_typical_p_of_0_keep_one_token) {
  const float few[4] = {1, 3, 3, 2};
  for (int i = 0; i < 2; i++) {
    wick_sampling c;
    sampler_set_defaults(&c);
    c.temperature = 1;
    *(i == 0 ? &c.top_p : &c.typical_p) = 0;
    sampler *s = sampler_open(&c, 4);
    REQUIRE(s != NULL);
    const int32_t first = choose(s, few);
    for (int turn = 0; turn < 50; turn++) CHECK_EQ_INT(choose(s, few), first);
    sampler_close(s);
  }
}

TEST(a_single_candidate_is_chosen_whatever_the_samplers) {
  for (uint32_t mirostat = 0; mirostat < 3; mirostat++) {
    for (const char *letter = LETTERS; *letter != 0; letter++) {
      const char alone[] = {*letter, 0};
      wick_sampling config = sharp_samplers();
      config.samplers = mirostat != 0 ? NULL : alone;
      config.mirostat = mirostat;
      sampler *s = sampler_open(&config, 4);
      REQUIRE(s != NULL);
      const float values[] = {5, -INFINITY, 6, 7};
      sampler_set_mask(s, set_mask_word, NULL);
      mask_word = 3;  // 1 is forbidden by its logit
      for (int turn = 0; turn < 30; turn++) CHECK_EQ_INT(choose(s, values), 0);
      mask_word = 2;
      sampler_choice choice;
      CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_E_NONFINITE);
      mask_word = 8;
      CHECK_EQ_INT(choose(s, values), 3);
      sampler_close(s);
    }
  }
}

TEST(all_samplers_at_their_strictest_leave_a_token) {
  wick_sampling config = sharp_samplers();
  rng source;
  rng_seed(&source, 23);
  sampler *s = sampler_open(&config, WORDS_MAX);
  REQUIRE(s != NULL);
  for (int turn = 0; turn < 500; turn++) {
    fill_logits(&source, logits, WORDS_MAX, 4, turn % 2 == 0 ? 1 : 1e6);
    const int32_t token = choose(s, logits);
    CHECK(token >= 0 && token < WORDS_MAX);
  }
  logits[3] = NAN;
  sampler_choice choice;
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_E_NONFINITE);
  sampler_close(s);
}

TEST(greedy_chains_choose_the_largest_logit_unless_a_sampler_drops_it) {
  const float values[] = {1, 9, 8.5f, -3};
  static const struct {
    const char *samplers;
    int32_t wanted;
  } cases[] = {{NULL, 2}, {"tx", 1}, {"kpmst", 1}, {"xt", 2}, {"kxt", 2}, {"txk", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wick_sampling config;
    sampler_set_defaults(&config);
    config.xtc_probability = 1;
    config.top_k = 3;
    config.min_p = 0.01f;
    config.samplers = cases[i].samplers;
    config.logprobs = 5;
    config.logprobs_after = true;
    sampler *s = sampler_open(&config, 4);
    REQUIRE(s != NULL);
    sampler_choice choice;
    CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
    CHECK_EQ_INT(choice.token, cases[i].wanted);
    CHECK_EQ_UINT(choice.top_count, 1);
    CHECK_EQ_INT(choice.top_tokens[0], choice.token);
    CHECK_EQ_F32(choice.logprob, 0.0f);
    sampler_close(s);
  }
}

// ---- the plan ----

static sampler_plan plan_of(const wick_sampling *config, uint32_t vocab) {
  sampler_plan plan;
  memset(&plan, 0xff, sizeof plan);
  settings_plan(config, vocab, &plan);
  return plan;
}

// Checks the steps of a plan, the maximum number of candidates, and whether it is greedy.
static void check_plan(const wick_sampling *config, const char *steps, uint32_t kept_max) {
  const sampler_plan plan = plan_of(config, 100);
  char found[WICK_SAMPLERS_MAX + 1] = {0};
  memcpy(found, plan.steps, plan.step_count);
  CHECK_EQ_STR(found, steps);
  CHECK_EQ_UINT(plan.kept_max, kept_max);
  CHECK(plan.is_greedy == (kept_max == 0));
}

TEST(a_plan_contains_only_enabled_samplers) {
  wick_sampling off, c;
  sampler_set_defaults(&off);
  check_plan(&off, "", 0);
  off.temperature = 1;
  check_plan(&off, "", 100);
  c = off, c.repeat_penalty = 1.1f;
  check_plan(&c, "e", 100);
  c = off, c.frequency_penalty = -0.5f;
  check_plan(&c, "e", 100);
  c = off, c.presence_penalty = 0.5f;
  check_plan(&c, "e", 100);
  CHECK_EQ_UINT(plan_of(&c, 100).penalty_last, 64);
  c.penalty_last = 5;
  CHECK_EQ_UINT(plan_of(&c, 100).penalty_last, 5);
  c.penalty_last = 0;
  check_plan(&c, "", 100);
  c = off, c.dry_multiplier = 0.5f, c.dry_penalty_last = 1;
  check_plan(&c, "d", 100);
  CHECK_EQ_UINT(plan_of(&c, 100).dry_last, 1);
  CHECK_EQ_UINT(plan_of(&c, 100).penalty_last, 0);
  c.dry_penalty_last = 0;
  check_plan(&c, "", 100);
  c = off, c.top_n_sigma = 0.1f;
  check_plan(&c, "s", 100);
  c.top_n_sigma = -1;
  check_plan(&c, "", 100);
  c = off, c.top_k = 1;
  check_plan(&c, "k", 1);
  c.top_k = 99;
  check_plan(&c, "k", 99);
  c.top_k = 100;
  check_plan(&c, "", 100);
  c = off, c.typical_p = 0.99f;
  check_plan(&c, "y", 100);
  CHECK(plan_of(&c, 100).has_keys);
  c = off, c.top_p = 0.99f;
  check_plan(&c, "p", 100);
  CHECK(!plan_of(&c, 100).has_keys);
  c = off, c.min_p = 0.01f;
  check_plan(&c, "m", 100);
  c = off, c.xtc_probability = 0.1f, c.xtc_threshold = 0.5f;
  check_plan(&c, "x", 100);
  c.xtc_threshold = 0.51f;
  check_plan(&c, "", 100);
  c = off, c.dynatemp_range = 0.5f;
  check_plan(&c, "t", 100);
  CHECK(plan_of(&c, 100).has_dynatemp);
  c = off, c.adaptive_target = 0;
  check_plan(&c, "", 100);
  CHECK(plan_of(&c, 100).has_adaptive && plan_of(&c, 100).has_keys);
  c.adaptive_target = -0.1f;
  CHECK(!plan_of(&c, 100).has_adaptive && !plan_of(&c, 100).has_keys);
}

TEST(the_last_temperature_is_not_a_step_and_greedy_plans_only_change_logits) {
  wick_sampling all = sharp_samplers(), c;
  all.top_k = 40, all.typical_p = 0.9f, all.dry_penalty_last = 16;
  all.dry_multiplier = 1, all.repeat_penalty = 1.5f, all.dynatemp_range = 0;
  all.temperature = 0.5f, all.mirostat = 0;
  // a temperature at the end is applied by the choice itself
  c = all, c.samplers = "kt";
  check_plan(&c, "k", 40);
  CHECK_EQ_F32(plan_of(&c, 100).temperature, 0.5f);
  c.samplers = "tk";
  check_plan(&c, "tk", 100);
  CHECK_EQ_F32(plan_of(&c, 100).temperature, 1.0f);
  c.samplers = "ktt";
  check_plan(&c, "kt", 40);
  CHECK_EQ_F32(plan_of(&c, 100).temperature, 0.5f);
  c.samplers = "kt", c.dynatemp_range = 1;
  check_plan(&c, "kt", 40);
  CHECK_EQ_F32(plan_of(&c, 100).temperature, 1.0f);
  // at temperature 0 the largest logit is chosen, after the samplers that change logits
  c = all, c.temperature = 0, c.samplers = "edkpt";
  check_plan(&c, "ed", 0);
  c.samplers = "de";
  check_plan(&c, "de", 100);  // without its letter, the temperature is disabled
  c.samplers = "ktx";
  check_plan(&c, "", 0);
  c.samplers = "kxt";
  check_plan(&c, "kxt", 40);
  c.samplers = "yt";
  check_plan(&c, "yt", 100);
  c.samplers = "ket";
  check_plan(&c, "ket", 40);
  c.samplers = "kdt";
  check_plan(&c, "kdt", 40);
  c.samplers = "kt", c.dynatemp_range = 1;
  check_plan(&c, "kt", 40);
  // top-k limits the candidates only if it is the first sampler that drops any
  c = all, c.samplers = "edk";
  check_plan(&c, "edk", 40);
  c.samplers = "ekd";
  check_plan(&c, "ekd", 40);
  c.samplers = "pk";
  check_plan(&c, "pk", 100);
  c.samplers = "ed";
  check_plan(&c, "ed", 100);
  // mirostat is combined only with the temperature
  c = all, c.mirostat = 2;
  check_plan(&c, "t", 100);
  CHECK_EQ_F32(plan_of(&c, 100).temperature, 1.0f);
  c.dynatemp_range = 1;
  CHECK(!plan_of(&c, 100).has_dynatemp);
  c.temperature = 1;
  check_plan(&c, "", 100);
  c.temperature = 0;
  check_plan(&c, "", 0);
}

TEST(samplers_missing_from_the_list_are_disabled) {
  wick_sampling config = sharp_samplers();
  config.samplers = "";
  config.logprobs_after = true;
  config.logprobs = 3;
  sampler *s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  const float values[] = {0, 1, 2};
  sampler_choice choice;
  CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
  CHECK_EQ_UINT(choice.top_count, 3);  // temperature 1 and nothing else
  CHECK_NEAR((double)choice.top_logprobs[0], -log(1 + exp(-1) + exp(-2)), 1e-6);
  sampler_close(s);
}

TEST(forced_tokens_have_probability_1_after_the_samplers) {
  wick_sampling config;
  sampler_set_defaults(&config);
  config.logprobs_after = true;
  const float values[] = {0, 1, 2};
  for (uint32_t logprobs = 0; logprobs < 3; logprobs++) {
    config.logprobs = logprobs;
    sampler *s = sampler_open(&config, 3);
    REQUIRE(s != NULL);
    sampler_choice choice;
    CHECK_EQ_INT(sampler_tell(s, values, 1, &choice, NULL), WICK_OK);
    CHECK_EQ_INT(choice.token, 1);
    CHECK_EQ_UINT(choice.top_count, logprobs > 0);
    if (logprobs > 0) CHECK_EQ_INT(choice.top_tokens[0], 1);
    CHECK_EQ_F32(choice.top_logprobs[0], 0.0f);
    sampler_close(s);
  }
}

TEST(xtc_drops_top_tokens_with_its_probability) {
  wick_sampling config;
  sampler_set_defaults(&config);
  config.temperature = 1;
  config.xtc_probability = 0.3f;
  config.seed = 5;
  sampler *s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  const float values[] = {2, 2, 1};  // 0.42, 0.42, 0.16: all above 0.1
  uint32_t counts[3] = {0};
  const int turns = 20000;
  for (int turn = 0; turn < turns; turn++) counts[choose(s, values)]++;
  const double p = 1 / (2 + exp(-1)), wanted[3] = {0.7 * p, 0.7 * p, 0.3 + 0.7 * (1 - 2 * p)};
  double chi_square = 0;
  for (int i = 0; i < 3; i++) {
    const double difference = counts[i] - wanted[i] * turns;
    chi_square += difference * difference / (wanted[i] * turns);
  }
  CHECK(chi_square < 13.8);  // 2 degrees of freedom: p = 0.001
  sampler_close(s);
}

// Samples tokens from a Zipf distribution; measures their mean surprise in bits and their mean
// probability among the first `count` tokens.
static void measure(const wick_sampling *config, int count, double *bits, double *probability) {
  const int vocab = 1000, turns = 3000;
  double total = 0;
  for (int i = 0; i < count; i++) total += pow(i + 1, -1.1);
  for (int i = 0; i < vocab; i++) logits[i] = (float)(-1.1 * log(i + 1));
  sampler *s = sampler_open(config, (uint32_t)vocab);
  *bits = *probability = 0;
  for (int turn = 0; turn < turns; turn++) {
    sampler_choice choice;
    CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_OK);
    *bits -= (double)choice.logprob / log(2) / turns;
    *probability += pow(choice.token + 1, -1.1) / total / turns;
  }
  sampler_close(s);
}

TEST(mirostat_controls_the_surprise_and_adaptive_p_the_probability) {
  wick_sampling config;
  double bits, probability;
  sampler_set_defaults(&config);
  config.temperature = 1;
  config.logprob = config.logprobs_after = true;
  for (uint32_t version = 1; version < 3; version++) {
    for (float tau = 2; tau < 6; tau += 1) {
      config.mirostat = version;
      config.mirostat_tau = tau;
      measure(&config, 1000, &bits, &probability);
      CHECK_NEAR(bits, (double)tau, 0.1);
    }
  }
  config.mirostat = 0;
  config.top_k = 15;
  config.samplers = "ka";
  for (int i = 0; i < 3; i++) {
    config.adaptive_target = 0.1f + 0.1f * (float)i;
    measure(&config, 15, &bits, &probability);
    CHECK_NEAR(probability, (double)config.adaptive_target, 0.05);
  }
}

// ---- DRY and its breakers ----

static const char *const texts[] = {"a", "b", "c", "\n", "x", "y:z", "ab", " en", "d "};
enum { TEXTS = 9 };

static size_t text_of(void *context, int32_t token, const uint8_t **bytes) {
  (void)context;
  *bytes = (const uint8_t *)texts[token];
  return strlen(texts[token]);
}

// Returns how much the penalty lowers the logit of `token` after these tokens.
static float fall_after(const wick_sampling *config, const int32_t *tokens, int32_t token) {
  float values[TEXTS];
  sampler_choice choice;
  wick_sampling after = *config;
  after.temperature = 1;
  after.logprobs = TEXTS;
  after.logprobs_after = true;
  after.samplers = "d";
  for (int i = 0; i < TEXTS; i++) values[i] = 0;
  sampler *s = sampler_open(&after, TEXTS);
  sampler_set_text(s, text_of, NULL);
  for (; *tokens >= 0; tokens++) sampler_accept(s, *tokens);
  CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
  CHECK_EQ_UINT(choice.top_count, TEXTS);
  float fall = 0;
  for (uint32_t i = 0; i < choice.top_count; i++) {
    if (choice.top_tokens[i] == token) fall = choice.top_logprobs[0] - choice.top_logprobs[i];
  }
  sampler_close(s);
  return fall;
}

TEST(dry_matches_end_at_sequence_breakers) {
  wick_sampling config;
  sampler_set_defaults(&config);
  config.dry_multiplier = 1;
  config.dry_base = 2;
  config.dry_penalty_last = 50;
  const int32_t plain_text[] = {0, 1, 2, 4, 0, 1, 2, -1};             // a b c x a b c
  CHECK_NEAR((double)fall_after(&config, plain_text, 4), 2.0, 1e-5);  // 2^(3 - 2)
  CHECK_NEAR((double)fall_after(&config, plain_text, 0), 0.0, 1e-5);
  config.dry_penalty_last = 6;  // the first a is out of the window
  CHECK_NEAR((double)fall_after(&config, plain_text, 4), 1.0, 1e-5);
  config.dry_penalty_last = 50;
  const int32_t line[] = {0, 1, 3, 2, 1, 4, 0, 1, 3, 2, 1, -1};  // a b \n c b x a b \n c b
  CHECK_NEAR((double)fall_after(&config, line, 4), 1.0, 1e-5);   // only c b counts
  const int32_t colon[] = {0, 5, 1, 2, 4, 0, 5, 1, 2, -1};
  CHECK_NEAR((double)fall_after(&config, colon, 4), 1.0, 1e-5);
  const int32_t breaker_next[] = {0, 1, 5, 2,
                                  0, 1, -1};  // a b y:z c a b: a breaker is not penalized
  CHECK_NEAR((double)fall_after(&config, breaker_next, 5), 0.0, 1e-5);

  const char *const own[] = {"bc", "d en"};
  const size_t own_bytes[] = {2, 4};
  config.dry_sequence_breakers = own;
  config.dry_breaker_bytes = own_bytes;
  config.dry_breaker_count = 2;
  CHECK_NEAR((double)fall_after(&config, line, 4), 8.0, 1e-5);  // all five tokens count
  // a breaker that spans two tokens, and one that starts inside a token
  CHECK_NEAR((double)fall_after(&config, plain_text, 4), 0.0, 1e-5);
  const int32_t split[] = {4, 6, 2, 1, 1, 4, 4, 6, 2, 1, 1, -1};  // x ab c b b x x ab c b b
  CHECK_NEAR((double)fall_after(&config, split, 4), 1.0, 1e-5);
  config.dry_breaker_count = 0;
  CHECK_NEAR((double)fall_after(&config, split, 4), 8.0, 1e-5);
}

TEST(dry_keeps_the_only_token_possible) {
  wick_sampling config;
  sampler_set_defaults(&config);
  config.dry_multiplier = 3e38f;
  config.dry_base = 3e38f;
  config.dry_penalty_last = 30;
  sampler *s = sampler_open(&config, 1);
  REQUIRE(s != NULL);
  const float only[] = {-2};
  for (int turn = 0; turn < 60; turn++) CHECK_EQ_INT(choose(s, only), 0);
  sampler_close(s);
}

// ---- settings ----

static void check_refused(const wick_sampling *config, wick_subject subject, const char *message) {
  wick_error error = {0};
  sampler *s = NULL;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(sampler_create(&memory, config, 100, &s, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, message);
  CHECK_EQ_UINT(error.subject, subject);
  CHECK_EQ_UINT(memory.calls, 0);
}

TEST(out_of_range_sampler_settings_are_rejected_by_name) {
  wick_sampling good, c;
  sampler_set_defaults(&good);
  c = good, c.typical_p = -0.1f;
  check_refused(&c, WICK_SUBJECT_TYPICAL_P, "typical_p is -0.1, not 0 to 1");
  c = good, c.top_n_sigma = NAN;
  check_refused(&c, WICK_SUBJECT_TOP_N_SIGMA, "top_n_sigma is nan, not finite and at least -1");
  c = good, c.xtc_probability = 1.5f;
  check_refused(&c, WICK_SUBJECT_XTC_PROBABILITY, "xtc_probability is 1.5, not 0 to 1");
  c = good, c.xtc_threshold = NAN;
  check_refused(&c, WICK_SUBJECT_XTC_THRESHOLD, "xtc_threshold is nan, not 0 to 1");
  c = good, c.dynatemp_range = -1;
  check_refused(&c, WICK_SUBJECT_DYNATEMP_RANGE, "dynatemp_range is -1, not finite and at least 0");
  c = good, c.dynatemp_exponent = INFINITY;
  check_refused(&c, WICK_SUBJECT_DYNATEMP_EXPONENT,
                "dynatemp_exponent is inf, not finite and at least 0");
  c = good, c.dry_multiplier = -1;
  check_refused(&c, WICK_SUBJECT_DRY_MULTIPLIER, "dry_multiplier is -1, not finite and at least 0");
  c = good, c.dry_base = 0.5f;
  check_refused(&c, WICK_SUBJECT_DRY_BASE, "dry_base is 0.5, not finite and at least 1");
  c = good, c.dry_multiplier = 1;
  check_refused(&c, WICK_SUBJECT_DRY_PENALTY_LAST,
                "dry_penalty_last is 4294967295, not at most 1048576");
  c = good, c.mirostat = 3;
  check_refused(&c, WICK_SUBJECT_MIROSTAT, "mirostat is 3, not at most 2");
  c = good, c.mirostat_tau = NAN;
  check_refused(&c, WICK_SUBJECT_MIROSTAT_TAU, "mirostat_tau is nan, not finite and at least 0");
  c = good, c.mirostat_eta = -1;
  check_refused(&c, WICK_SUBJECT_MIROSTAT_ETA, "mirostat_eta is -1, not finite and at least 0");
  c = good, c.adaptive_target = 1.5f;
  check_refused(&c, WICK_SUBJECT_ADAPTIVE_TARGET, "adaptive_target is 1.5, not -1 to 1");
  c = good, c.adaptive_decay = 1;
  check_refused(&c, WICK_SUBJECT_ADAPTIVE_DECAY, "adaptive_decay is 1, not 0 to 0.99");
  c = good, c.samplers = "kz";
  check_refused(&c, WICK_SUBJECT_SAMPLERS,
                "samplers: letter 1 is not one of \"edskypmxta\", or over 16");
  c.samplers = "kkkkkkkkkkkkkkkkk";
  check_refused(&c, WICK_SUBJECT_SAMPLERS,
                "samplers: letter 16 is not one of \"edskypmxta\", or over 16");
  const char *const breakers[WICK_DRY_BREAKERS_MAX + 1] = {"ab", ""};
  size_t sizes[WICK_DRY_BREAKERS_MAX + 1] = {2, 0};
  c = good, c.dry_sequence_breakers = breakers, c.dry_breaker_bytes = sizes;
  c.dry_breaker_count = 2;
  check_refused(&c, WICK_SUBJECT_DRY_SEQUENCE_BREAKERS,
                "dry_sequence_breakers: number 1 has 0 bytes, not 1 to 40, or is over 16");
  sizes[1] = 41;
  check_refused(&c, WICK_SUBJECT_DRY_SEQUENCE_BREAKERS,
                "dry_sequence_breakers: number 1 has 41 bytes, not 1 to 40, or is over 16");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) sizes[i] = 2;
  c.dry_breaker_count = WICK_DRY_BREAKERS_MAX + 1;
  check_refused(&c, WICK_SUBJECT_DRY_SEQUENCE_BREAKERS,
                "dry_sequence_breakers: number 16 has 2 bytes, not 1 to 40, or is over 16");
}

BENCH(samplers_of_a_large_vocabulary) {
  static const char *const cases[] = {"k", "sk", "ky", "y", "x", "dk", "a", "ka"};
  rng source;
  rng_seed(&source, 1);
  fill_logits(&source, logits, QWEN_VOCAB, 3, 1e6);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wick_sampling config = sharp_samplers();
    config.top_k = 40, config.typical_p = 0.9f, config.top_n_sigma = 1;
    config.dry_penalty_last = 4096;
    config.samplers = cases[i];
    sampler *s = sampler_open(&config, QWEN_VOCAB);
    REQUIRE(s != NULL);
    for (int32_t token = 0; token < 4096; token++) sampler_accept(s, token % 7);
    uint64_t best_us = UINT64_MAX;
    for (int round = 0; round < 50; round++) {
      const uint64_t start_us = platform_now_us();
      choose(s, logits);
      const uint64_t spent_us = platform_now_us() - start_us;
      best_us = spent_us < best_us ? spent_us : best_us;
    }
    printf("# %-8s %5u us, %8u bytes\n", cases[i], (unsigned)best_us,
           (unsigned)sampler_plan_bytes(&config, QWEN_VOCAB));
    sampler_close(s);
  }
}

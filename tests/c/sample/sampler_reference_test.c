// Compares truncation with sorting, and the sampler chain with a simple reference in double; tests
// the distribution of samples and the log-probabilities.
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "sample/softmax.h"
#include "sample/truncate.h"
#include "sampler_rig.h"

// ---- truncation ----

static float work[VOCAB_MAX], weights[VOCAB_MAX], maxima[VOCAB_MAX];
static int32_t ids[VOCAB_MAX];
static double buckets[TRUNCATE_BUCKETS];
static candidates kept = {ids, work, weights, buckets, 0};

static const float *order_logits;

// Sorts by decreasing logit, then by increasing id.
static int compare_ids(const void *a, const void *b) {
  const int32_t i = *(const int32_t *)a;
  const int32_t j = *(const int32_t *)b;
  if (order_logits[i] != order_logits[j]) return order_logits[i] > order_logits[j] ? -1 : 1;
  return i < j ? -1 : 1;
}

static int compare_ints(const void *a, const void *b) {
  const int32_t i = *(const int32_t *)a;
  const int32_t j = *(const int32_t *)b;
  return i < j ? -1 : i > j;
}

static void order_all(const float *values, uint32_t count, int32_t *order) {
  for (uint32_t i = 0; i < count; i++) order[i] = (int32_t)i;
  order_logits = values;
  qsort(order, count, sizeof *order, compare_ids);
}

static bool kept_is(const int32_t *wanted, uint32_t count, const float *values) {
  if (kept.count != count) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (kept.ids[i] != wanted[i] || kept.logits[i] != values[wanted[i]]) return false;
  }
  return true;
}

TEST(top_k_keeps_the_same_tokens_as_sorting) {
  static int32_t order[VOCAB_MAX];
  rng source;
  rng_seed(&source, 1);
  for (uint32_t round = 0; round < 600; round++) {
    const uint32_t count = round < 300 ? 1 + round : 300 + below(&source, VOCAB_MAX - 300);
    fill_logits(&source, logits, count, 4, round % 3 == 0 ? 1 : round % 3 == 1 ? 16 : 1e6);
    if (round % 5 == 0) logits[below(&source, count)] = -INFINITY;
    const uint32_t k = 1 + below(&source, round % 2 == 0 ? count : count < 50 ? count : 50);
    logit_scan(logits, count, maxima);
    truncate_top_k(&kept, logits, count, maxima, k);
    order_all(logits, count, order);
    qsort(order, k, sizeof *order, compare_ints);
    if (!CHECK(kept_is(order, k, logits))) printf("#   round %u: k %u of %u\n", round, k, count);
  }
}

TEST(top_k_treats_zeros_of_both_signs_as_equal) {
  const float zeros[] = {-1.0f, -0.0f, 0.0f, -0.0f, 0.0f};
  const int32_t wanted[] = {1, 2, 3};
  logit_scan(zeros, 5, maxima);
  truncate_top_k(&kept, zeros, 5, maxima, 3);
  CHECK(kept_is(wanted, 3, zeros));
}

// Whether the first `n` sorted weights are the fewest that sum to mass * total, up to rounding.
static bool is_nucleus(const int32_t *order, uint32_t count, const float *values, double mass,
                       uint32_t n) {
  const double slack = 1e-6;
  double total = 0, sum = 0;
  for (uint32_t i = 0; i < count; i++) total += exp((double)values[i] - (double)values[order[0]]);
  for (uint32_t i = 0; i + 1 < n; i++)
    sum += exp((double)values[order[i]] - (double)values[order[0]]);
  const double last = exp((double)values[order[n - 1]] - (double)values[order[0]]);
  return (n == 1 || sum < (mass + slack) * total) && sum + last >= (mass - slack) * total;
}

TEST(top_p_keeps_the_nucleus) {
  static int32_t order[VOCAB_MAX];
  rng source;
  rng_seed(&source, 2);
  for (uint32_t round = 0; round < 600; round++) {
    const uint32_t count = 1 + below(&source, round < 300 ? 40 : VOCAB_MAX);
    const double spread = round % 4 == 0 ? 0.1 : 3;
    fill_logits(&source, logits, count, spread, round % 3 == 0 ? 2 : 1e6);
    const double mass = round % 7 == 0 ? 1e-9 : round % 7 == 1 ? 0.999999 : rng_uniform(&source);
    order_all(logits, count, order);
    const float max = logits[order[0]];
    memcpy(work, logits, count * sizeof *work);
    for (uint32_t i = 0; i < count; i++) ids[i] = (int32_t)i;
    kept.count = count;
    softmax_weights(work, count, max, 1.0f, weights);
    truncate_top_p(&kept, max, mass);
    REQUIRE(kept.count >= 1 && kept.count <= count);
    if (!CHECK(is_nucleus(order, count, logits, mass, kept.count))) {
      printf("#   round %u: %u of %u at %g\n", round, kept.count, count, mass);
    }
    qsort(order, kept.count, sizeof *order, compare_ints);
    CHECK(kept_is(order, kept.count, logits));
  }
}

TEST(min_p_compares_with_the_largest_probability) {
  const float values[] = {0.0f, 3.0f, 0.7f, -INFINITY, 3.0f};
  const int32_t wanted[] = {1, 2, 4};
  memcpy(work, values, sizeof values);
  for (int32_t i = 0; i < 5; i++) ids[i] = i;
  kept.count = 5;
  truncate_min_p(&kept, 3.0f, 0.1);  // e^-2.3 = 0.1003, e^-3 = 0.0498
  CHECK(kept_is(wanted, 3, values));
  truncate_min_p(&kept, 3.0f, 1.0);
  CHECK_EQ_UINT(kept.count, 2);
}

// ---- the chain against a reference ----

typedef struct reference {
  wick_sampling config;
  uint32_t vocab;
  int32_t history[64];
  uint32_t held;
  const uint32_t *mask;
  rng source;
  double value[VOCAB_MAX];
  double probability[VOCAB_MAX];
} reference;

static void reference_adjust(reference *r, const float *raw) {
  for (uint32_t i = 0; i < r->vocab; i++) {
    r->value[i] = (double)raw[i];
    uint32_t uses = 0;
    for (uint32_t j = 0; j < r->config.bias_count; j++) {
      if (r->config.bias[j].token != (int32_t)i) continue;
      r->value[i] = r->config.bias[j].bias <= -100
                        ? -(double)INFINITY
                        : (double)(float)(r->value[i] + (double)r->config.bias[j].bias);
    }
    if ((r->mask[i / 32] >> i % 32 & 1) == 0) r->value[i] = -(double)INFINITY;
    for (uint32_t j = 0; j < r->held; j++) uses += r->history[j] == (int32_t)i ? 1 : 0;
    if (uses == 0) continue;
    const double repeat = (double)r->config.repeat_penalty;
    r->value[i] = r->value[i] > 0 ? r->value[i] / repeat : r->value[i] * repeat;
    r->value[i] -= uses * (double)r->config.frequency_penalty + (double)r->config.presence_penalty;
    r->value[i] = (double)(float)r->value[i];
  }
}

// Sets the probabilities; returns false if a decision is too close to call in float.
static bool reference_truncate(reference *r) {
  static int32_t order[VOCAB_MAX];
  static float rounded[VOCAB_MAX];
  const uint32_t vocab = r->vocab;
  for (uint32_t i = 0; i < vocab; i++) rounded[i] = (float)r->value[i];
  order_all(rounded, vocab, order);
  uint32_t n = r->config.top_k > 0 && r->config.top_k < vocab ? r->config.top_k : vocab;
  if (n < vocab && fabs(r->value[order[n]] - r->value[order[n - 1]]) < 1e-5) return false;
  const double max = r->value[order[0]];
  double total = 0, sum = 0;
  for (uint32_t i = 0; i < n; i++) total += exp(r->value[order[i]] - max);
  const double mass = (double)r->config.top_p * total;
  for (uint32_t i = 0; i < n && r->config.top_p < 1; i++) {
    sum += exp(r->value[order[i]] - max);
    if (fabs(sum - mass) < 1e-5 * total) return false;
    if (sum >= mass) n = i + 1;
  }
  for (uint32_t i = 1; i < n && r->config.min_p > 0; i++) {
    const double distance = r->value[order[i]] - max - log((double)r->config.min_p);
    if (fabs(distance) < 1e-5) return false;
    if (distance < 0) n = i;
  }
  memset(r->probability, 0, sizeof r->probability);
  total = 0;
  for (uint32_t i = 0; i < n; i++) {
    total += exp((r->value[order[i]] - max) / (double)r->config.temperature);
  }
  for (uint32_t i = 0; i < n; i++) {
    r->probability[order[i]] =
        exp((r->value[order[i]] - max) / (double)r->config.temperature) / total;
  }
  return true;
}

// Returns the token, or -1 if it is too close to call.
static int32_t reference_choose(reference *r, const float *raw) {
  reference_adjust(r, raw);
  if (r->config.temperature == 0) {
    int32_t best = 0;
    for (uint32_t i = 0; i < r->vocab; i++) best = r->value[i] > r->value[best] ? (int32_t)i : best;
    return best;
  }
  const double point = rng_uniform(&r->source);
  if (!reference_truncate(r)) return -1;
  double sum = 0;
  for (uint32_t i = 0; i < r->vocab; i++) {
    sum += r->probability[i];
    if (fabs(sum - point) < 1e-5) return -1;
    if (sum > point) return (int32_t)i;
  }
  return -1;
}

static void reference_accept(reference *r, int32_t token) {
  const uint32_t last = r->config.penalty_last;
  if (last == 0) return;
  if (r->held == last) {
    memmove(r->history, r->history + 1, (last - 1) * sizeof *r->history);
    r->held--;
  }
  r->history[r->held++] = token;
}

static void copy_mask(void *context, const float *of_model, uint32_t *bits, uint32_t vocab) {
  (void)of_model;
  const uint32_t *mask = context;
  for (uint32_t i = 0; i < (vocab + 31) / 32; i++) {
    CHECK_EQ_UINT(bits[i], UINT32_MAX);
    bits[i] &= mask[i];
  }
}

TEST(the_chain_agrees_with_a_reference_in_double) {
  static reference r;
  static uint32_t mask[VOCAB_MAX / 32];
  static wick_bias bias[4];
  rng source;
  rng_seed(&source, 3);
  uint32_t compared = 0, total = 0;
  for (uint32_t round = 0; round < 150; round++) {
    const uint32_t vocab = 8 + below(&source, round % 10 == 0 ? 2000 : 100);
    memset(&r, 0, sizeof r);
    random_config(&source, &r.config, bias, vocab);
    r.vocab = vocab;
    r.mask = mask;
    rng_seed(&r.source, r.config.seed);
    sampler *s = sampler_open(&r.config, vocab);
    REQUIRE(s != NULL);
    const bool masked = round % 3 == 0;
    if (masked) sampler_set_mask(s, copy_mask, mask);
    for (int i = 0; i < 30; i++) {
      const int32_t accepted = (int32_t)below(&source, vocab);
      sampler_accept(s, accepted);
      reference_accept(&r, accepted);
      for (uint32_t word = 0; word < (vocab + 31) / 32; word++) {
        mask[word] = masked ? (uint32_t)rng_next(&source) | 1u : UINT32_MAX;
      }
      fill_logits(&source, logits, vocab, 3, 1e6);
      const int32_t wanted = reference_choose(&r, logits);
      const int32_t found = choose(s, logits);
      total++;
      compared += wanted >= 0 ? 1 : 0;
      if (wanted >= 0 && !CHECK_EQ_INT(found, wanted)) printf("#   round %u\n", round);
      reference_accept(&r, found);
    }
    sampler_close(s);
  }
  CHECK(compared > total * 9 / 10);
}

TEST(samples_have_the_softmax_distribution) {
  enum { VOCAB = 10, DRAWS = 100000 };
  const float values[VOCAB] = {0.0f, 1.0f, 2.0f, 0.5f, -1.0f, 1.5f, 0.25f, -0.5f, 2.5f, 1.0f};
  wick_sampling config;
  sampler_set_defaults(&config);
  config.temperature = 0.7f;
  config.seed = 20260101;
  sampler *s = sampler_open(&config, VOCAB);
  REQUIRE(s != NULL);
  uint32_t counts[VOCAB] = {0};
  for (int i = 0; i < DRAWS; i++) counts[choose(s, values)]++;
  double total = 0, chi_square = 0;
  for (int i = 0; i < VOCAB; i++) total += exp((double)values[i] / (double)0.7f);
  for (int i = 0; i < VOCAB; i++) {
    const double expected = exp((double)values[i] / (double)0.7f) / total * (double)DRAWS;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  printf("#   chi-square %.2f, 9 degrees of freedom\n", chi_square);
  CHECK(chi_square > 1.0 && chi_square < 27.9);  // p = 0.001
  sampler_close(s);
}

// ---- log-probabilities ----

TEST(logprobs_are_the_models_before_any_sampler) {
  enum { VOCAB = 500 };
  const wick_bias bias[] = {{3, -100}};
  rng source;
  rng_seed(&source, 8);
  fill_logits(&source, logits, VOCAB, 4, 4);
  double total = 0;
  for (int32_t i = 0; i < VOCAB; i++) total += exp((double)logits[i]);
  int32_t order[VOCAB];
  order_all(logits, VOCAB, order);
  wick_sampling config;
  sampler_set_defaults(&config);
  config.temperature = 3;
  config.top_p = 0.9f;
  config.repeat_penalty = 1.5f;
  config.bias = bias;
  config.bias_count = 1;
  config.logprobs = WICK_LOGPROBS_MAX;
  sampler *s = sampler_open(&config, VOCAB);
  REQUIRE(s != NULL);
  for (int round = 0; round < 20; round++) {
    sampler_choice choice;
    CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_OK);
    CHECK_NEAR((double)choice.logprob, (double)logits[choice.token] - log(total), 2e-6);
    CHECK_EQ_UINT(choice.top_count, WICK_LOGPROBS_MAX);
    for (uint32_t i = 0; i < choice.top_count; i++) {
      CHECK_EQ_INT(choice.top_tokens[i], order[i]);
      CHECK_NEAR((double)choice.top_logprobs[i], (double)logits[order[i]] - log(total), 2e-6);
    }
  }
  sampler_close(s);
}

TEST(logprobs_are_returned_only_if_requested) {
  const float values[] = {0, 0, -INFINITY};
  wick_sampling config;
  sampler_set_defaults(&config);
  sampler_choice choice;
  sampler *s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
  CHECK_EQ_F32(choice.logprob, 0);
  CHECK_EQ_UINT(choice.top_count, 0);
  sampler_close(s);
  config.logprob = true;
  s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
  CHECK_NEAR((double)choice.logprob, -log(2), 1e-7);
  CHECK_EQ_UINT(choice.top_count, 0);
  sampler_close(s);
  config.logprobs = 5;
  s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  CHECK_EQ_INT(sampler_choose(s, values, &choice, NULL), WICK_OK);
  CHECK_EQ_UINT(choice.top_count, 3);
  CHECK_EQ_INT(choice.top_tokens[2], 2);
  CHECK_EQ_F32(choice.top_logprobs[2], -INFINITY);
  sampler_close(s);
}

// tests/c/sampler_test.c — the sampler chain against a plain reference in double, its distribution,
// and choices that must be the same on every host. With WICK_BENCH=1 it prints times (for figures
// that count, run the WASI build or compile with -O3).
#include "sample/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "check.h"
#include "platform/platform.h"
#include "sample/penalty.h"
#include "sample/rng.h"
#include "sample/softmax.h"
#include "sample/truncate.h"

enum { VOCAB_MAX = 4096, QWEN_VOCAB = 151936 };

static wick_memory memory;

static sampler *sampler_open(const sampler_config *config, uint32_t vocab) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  sampler *s = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(sampler_create(&memory, config, vocab, &s, &error), WICK_OK)) {
    printf("# %s\n", error.message);
  }
  return s;
}

static void sampler_close(sampler *s) {
  sampler_destroy(s);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static int32_t choose(sampler *s, const float *logits) {
  sampler_choice choice = {.token = -1};
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_OK);
  return choice.token;
}

static double normal(rng *source) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += rng_uniform(source);
  return sum;
}

static uint32_t below(rng *source, uint32_t bound) {
  return (uint32_t)(rng_uniform(source) * bound);
}

// Logits with a step of 1/`steps`, so that many are equal.
static void fill_logits(rng *source, float *logits, uint32_t count, double spread, double steps) {
  for (uint32_t i = 0; i < count; i++) {
    logits[i] = (float)(floor(normal(source) * spread * steps) / steps);
  }
}

// ---- random numbers ----

TEST(splitmix64_gives_its_published_outputs) {
  static const uint64_t wanted[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
  uint64_t state = 1234567;
  for (int i = 0; i < 5; i++) CHECK_EQ_UINT(splitmix64_next(&state), wanted[i]);
  state = 42;
  CHECK_EQ_UINT(splitmix64_next(&state), 0xbdd732262feb6e95u);
}

TEST(xoshiro256_gives_its_published_outputs) {
  static const uint64_t wanted[] = {11520u,
                                    0u,
                                    1509978240u,
                                    1215971899390074240u,
                                    1216172134540287360u,
                                    607988272756665600u,
                                    16172922978634559625u,
                                    8476171486693032832u,
                                    10595114339597558777u,
                                    2904607092377533576u};
  rng source = {{1, 2, 3, 4}};
  for (int i = 0; i < 10; i++) CHECK_EQ_UINT(rng_next(&source), wanted[i]);
  rng_seed(&source, 42);
  CHECK_EQ_UINT(rng_next(&source), 1546998764402558742u);
  CHECK_EQ_UINT(rng_next(&source), 6990951692964543102u);
}

TEST(uniforms_are_below_one) {
  rng source;
  rng_seed(&source, 0);
  double least = 1, most = 0, sum = 0;
  for (int i = 0; i < 100000; i++) {
    const double u = rng_uniform(&source);
    least = u < least ? u : least;
    most = u > most ? u : most;
    sum += u;
  }
  CHECK(least >= 0 && least < 1e-4 && most < 1 && most > 0.9999);
  CHECK_NEAR(sum / 100000, 0.5, 0.005);
}

// ---- exponentials ----

TEST(softmax_exp_is_within_its_bound) {
  double worst = 0;
  for (double x = 0; x > -87; x -= 0.000737) {
    const float argument = (float)x;
    const double exact = exp((double)argument);
    const double error = fabs((double)softmax_exp(argument) - exact) / exact;
    worst = error > worst ? error : worst;
  }
  CHECK_NEAR(worst, 0, 1.2e-7);
  CHECK_EQ_F32(softmax_exp(0), 1.0f);
  CHECK_EQ_F32(softmax_exp(-0.0f), 1.0f);
  CHECK_EQ_F32(softmax_exp(-88.0f), 0.0f);
  CHECK_EQ_F32(softmax_exp(-1e30f), 0.0f);
  CHECK_EQ_F32(softmax_exp(-INFINITY), 0.0f);
}

// ---- truncation ----

static float logits[QWEN_VOCAB];
static float work[VOCAB_MAX], weights[VOCAB_MAX], maxima[VOCAB_MAX];
static int32_t ids[VOCAB_MAX];
static double buckets[TRUNCATE_BUCKETS];
static candidates kept = {ids, work, weights, buckets, 0};

static const float *order_logits;

// By falling logit, then by rising id.
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

TEST(top_k_keeps_what_sorting_would) {
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

TEST(top_k_takes_zeros_of_both_signs_as_equal) {
  const float zeros[] = {-1.0f, -0.0f, 0.0f, -0.0f, 0.0f};
  const int32_t wanted[] = {1, 2, 3};
  logit_scan(zeros, 5, maxima);
  truncate_top_k(&kept, zeros, 5, maxima, 3);
  CHECK(kept_is(wanted, 3, zeros));
}

// Whether `n` of the sorted weights are the fewest that sum to mass * total, give or take rounding.
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

TEST(min_p_compares_with_the_largest) {
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
  sampler_config config;
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

// Sets the probabilities; false when a decision is too near to call in float.
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

// The token, or -1 when it is too near to call.
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
  const uint32_t last = r->config.penalty_last == 0 ? 64 : r->config.penalty_last;
  if (r->held == last) {
    memmove(r->history, r->history + 1, (last - 1) * sizeof *r->history);
    r->held--;
  }
  r->history[r->held++] = token;
}

static void copy_mask(void *context, uint32_t *bits, uint32_t vocab) {
  const uint32_t *mask = context;
  for (uint32_t i = 0; i < (vocab + 31) / 32; i++) {
    CHECK_EQ_UINT(bits[i], UINT32_MAX);
    bits[i] &= mask[i];
  }
}

static void random_config(rng *source, sampler_config *config, sampler_bias *bias, uint32_t vocab) {
  sampler_config_default(config);
  config->seed = rng_next(source);
  config->temperature = (float)below(source, 8) * 0.25f;
  if (below(source, 2) == 0) config->top_k = 1 + below(source, vocab + vocab / 4);
  if (below(source, 2) == 0) config->top_p = (float)(1 - rng_uniform(source));
  if (below(source, 3) == 0) config->min_p = (float)rng_uniform(source) * 0.3f;
  if (below(source, 3) == 0) config->repeat_penalty = 0.8f + (float)rng_uniform(source);
  if (below(source, 3) == 0) config->frequency_penalty = (float)rng_uniform(source) - 0.3f;
  if (below(source, 3) == 0) config->presence_penalty = (float)rng_uniform(source) - 0.3f;
  config->penalty_last = below(source, 65);
  config->bias = bias;
  config->bias_count = below(source, 4);
  for (uint32_t i = 0; i < config->bias_count; i++) {
    bias[i].token = (int32_t)below(source, vocab);
    bias[i].bias = below(source, 3) == 0 ? -100 : (float)normal(source) * 3;
  }
}

TEST(the_chain_agrees_with_a_reference_in_double) {
  static reference r;
  static uint32_t mask[VOCAB_MAX / 32];
  static sampler_bias bias[4];
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
      const int32_t told = (int32_t)below(&source, vocab);
      sampler_accept(s, told);
      reference_accept(&r, told);
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

TEST(the_draws_have_the_softmax_distribution) {
  enum { VOCAB = 10, DRAWS = 100000 };
  const float values[VOCAB] = {0.0f, 1.0f, 2.0f, 0.5f, -1.0f, 1.5f, 0.25f, -0.5f, 2.5f, 1.0f};
  sampler_config config;
  sampler_config_default(&config);
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

// ---- choices that never change ----

TEST(choices_are_the_same_on_every_host) {
  static const int32_t wanted[4][12] = {
      {1573, 291, 2466, 2957, 2971, 2622, 3, 3, 587, 121, 959, 1751},
      {2063, 690, 2576, 2957, 2971, 2624, 79, 240, 1017, 291, 1491, 2186},
      {2148, 781, 2594, 2957, 2971, 2703, 134, 257, 1151, 403, 1592, 2250},
      {3, 291, 403, 959, 250, 1192, 1751, 773, 781, 53, 1265, 1491},
  };
  static const struct {
    float temperature, top_p, min_p, repeat;
    uint32_t top_k;
  } settings[4] = {
      {0.8f, 0.95f, 0, 1, 40}, {1, 0.9f, 0, 1.1f, 0}, {1.5f, 1, 0.02f, 1, 0}, {0, 1, 0, 1.3f, 0}};
  enum { VOCAB = 3000 };
  for (int i = 0; i < 4; i++) {
    sampler_config config;
    sampler_config_default(&config);
    config.temperature = settings[i].temperature;
    config.top_p = settings[i].top_p;
    config.min_p = settings[i].min_p;
    config.repeat_penalty = settings[i].repeat;
    config.top_k = settings[i].top_k;
    config.seed = 7;
    sampler *s = sampler_open(&config, VOCAB);
    REQUIRE(s != NULL);
    rng source;
    rng_seed(&source, 99);
    fill_logits(&source, logits, VOCAB, 2, 1e6);
    for (int t = 0; t < 12; t++) {
      const int32_t found = choose(s, logits);
      if (!CHECK_EQ_INT(found, wanted[i][t])) printf("#   setting %d, token %d\n", i, t);
    }
    sampler_close(s);
  }
}

TEST(a_seed_gives_the_same_tokens_again_and_another_others) {
  sampler_config config;
  sampler_config_default(&config);
  config.temperature = 1;
  int32_t tokens[3][20];
  for (int32_t i = 0; i < 1000; i++) logits[i] = 0;
  for (int i = 0; i < 3; i++) {
    config.seed = i < 2 ? 5 : 6;
    sampler *s = sampler_open(&config, 1000);
    REQUIRE(s != NULL);
    for (int t = 0; t < 20; t++) tokens[i][t] = choose(s, logits);
    sampler_close(s);
  }
  CHECK_EQ_MEM(tokens[0], tokens[1], sizeof tokens[0]);
  CHECK(memcmp(tokens[0], tokens[2], sizeof tokens[0]) != 0);
}

// ---- single links of the chain ----

TEST(greedy_takes_the_lowest_id_among_equals) {
  sampler_config config;
  sampler_config_default(&config);
  config.top_k = 1;
  config.top_p = 0.1f;
  sampler *s = sampler_open(&config, 5);
  REQUIRE(s != NULL);
  const float ties[] = {1, 4, 2, 4, 4};
  const float zeros[] = {-1, -0.0f, 0.0f, -3, -INFINITY};
  CHECK_EQ_INT(choose(s, ties), 1);
  CHECK_EQ_INT(choose(s, zeros), 1);
  sampler_close(s);
}

TEST(penalties_follow_llama_cpp) {
  float values[] = {2.0f, -2.0f, 1.0f, 0.0f, 5.0f};
  int32_t ring[4];
  penalty_slot slots[8];
  CHECK_EQ_UINT(penalty_slot_count(4), 8);
  penalty_window window = {ring, slots, 4, 0, 0};
  const int32_t tokens[] = {4, 4, 0, 1, 0, 3};  // the first two have left the window
  for (int i = 0; i < 6; i++) penalty_push(&window, tokens[i]);
  const penalty_strength strength = {2.0f, 0.5f, 0.25f};
  penalty_apply(&window, &strength, values);
  CHECK_EQ_F32(values[0], 1.0f - 1.25f);   // twice: 2 / 2 - 2 * 0.5 - 0.25
  CHECK_EQ_F32(values[1], -4.0f - 0.75f);  // once, negative: -2 * 2
  CHECK_EQ_F32(values[2], 1.0f);
  CHECK_EQ_F32(values[3], -0.75f);
  CHECK_EQ_F32(values[4], 5.0f);
}

TEST(a_repeated_token_loses) {
  sampler_config config;
  sampler_config_default(&config);
  config.repeat_penalty = 2.0f;
  sampler *s = sampler_open(&config, 3);
  REQUIRE(s != NULL);
  const float values[] = {3, 2, 1.75f};
  CHECK_EQ_INT(choose(s, values), 0);
  CHECK_EQ_INT(choose(s, values), 1);
  CHECK_EQ_INT(choose(s, values), 2);
  CHECK_EQ_INT(choose(s, values), 0);
  sampler_close(s);
}

TEST(bias_forbids_and_lifts) {
  const sampler_bias bias[] = {{0, -INFINITY}, {1, -100}, {3, 2.5f}, {4, -99}};
  sampler_config config;
  sampler_config_default(&config);
  config.bias = bias;
  config.bias_count = 3;
  config.temperature = 1;
  sampler *s = sampler_open(&config, 5);
  REQUIRE(s != NULL);
  const float values[] = {50, 200, 1, -1, -INFINITY};
  bool seen[5] = {false};
  for (int i = 0; i < 200; i++) seen[choose(s, values)] = true;
  CHECK(!seen[0] && !seen[1] && seen[2] && seen[3] && !seen[4]);
  sampler_close(s);
}

static void allow_one(void *context, uint32_t *bits, uint32_t vocab) {
  for (uint32_t i = 0; i < (vocab + 31) / 32; i++) bits[i] = 0;
  const int32_t token = *(const int32_t *)context;
  if (token >= 0) bits[token / 32] = 1u << token % 32;
}

TEST(a_mask_leaves_only_what_it_allows) {
  sampler_config config;
  sampler_config_default(&config);
  config.temperature = 2;
  config.top_k = 3;
  sampler *s = sampler_open(&config, 70);
  REQUIRE(s != NULL);
  for (int32_t i = 0; i < 70; i++) logits[i] = (float)i;
  int32_t only = 0;
  sampler_set_mask(s, allow_one, &only);
  for (only = 0; only < 70; only++) CHECK_EQ_INT(choose(s, logits), only);
  only = -1;
  sampler_choice choice;
  wick_error error;
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, &error), WICK_E_NONFINITE);
  CHECK_EQ_STR(error.message, "after bias, mask and penalties: every token is forbidden");
  sampler_set_mask(s, NULL, NULL);
  CHECK(choose(s, logits) >= 67);
  sampler_close(s);
}

TEST(logits_that_are_no_numbers_are_refused) {
  sampler_config config;
  sampler_config_default(&config);
  config.temperature = 1;
  config.repeat_penalty = 1.5f;
  config.seed = 11;
  sampler *s = sampler_open(&config, 200);
  sampler *same = sampler_open(&config, 200);
  REQUIRE(s != NULL && same != NULL);
  for (int32_t i = 0; i < 200; i++) logits[i] = (float)(i % 7);
  const float bad[] = {INFINITY, NAN, -NAN};
  for (int i = 0; i < 3; i++) {
    sampler_choice choice;
    wick_error error;
    logits[133] = bad[i];
    CHECK_EQ_INT(sampler_choose(s, logits, &choice, &error), WICK_E_NONFINITE);
    CHECK_EQ_STR(error.message, i == 0 ? "logits of the model: logit of token 133 is inf"
                                       : "logits of the model: logit of token 133 is nan");
  }
  logits[133] = -INFINITY;
  for (int i = 0; i < 20; i++) CHECK_EQ_INT(choose(s, logits), choose(same, logits));
  for (int32_t i = 0; i < 200; i++) logits[i] = -INFINITY;
  sampler_choice choice;
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_E_NONFINITE);
  sampler_destroy(same);
  sampler_destroy(s);
}

TEST(tokens_outside_of_the_vocabulary_are_not_penalised) {
  sampler_config config;
  sampler_config_default(&config);
  config.presence_penalty = 1;
  sampler *s = sampler_open(&config, 2);
  REQUIRE(s != NULL);
  sampler_accept(s, -1);
  sampler_accept(s, 2);
  sampler_accept(s, INT32_MAX);
  const float values[] = {0, 0.5f};
  CHECK_EQ_INT(choose(s, values), 1);
  sampler_close(s);
}

// ---- log-probabilities ----

TEST(logprobs_are_those_of_the_model) {
  enum { VOCAB = 500 };
  const sampler_bias bias[] = {{3, -100}};
  rng source;
  rng_seed(&source, 8);
  fill_logits(&source, logits, VOCAB, 4, 4);
  double total = 0;
  for (int32_t i = 0; i < VOCAB; i++) total += exp((double)logits[i]);
  int32_t order[VOCAB];
  order_all(logits, VOCAB, order);
  sampler_config config;
  sampler_config_default(&config);
  config.temperature = 3;
  config.top_p = 0.9f;
  config.repeat_penalty = 1.5f;
  config.bias = bias;
  config.bias_count = 1;
  config.logprobs = SAMPLER_LOGPROBS_MAX;
  sampler *s = sampler_open(&config, VOCAB);
  REQUIRE(s != NULL);
  for (int round = 0; round < 20; round++) {
    sampler_choice choice;
    CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_OK);
    CHECK_NEAR((double)choice.logprob, (double)logits[choice.token] - log(total), 2e-6);
    CHECK_EQ_UINT(choice.top_count, SAMPLER_LOGPROBS_MAX);
    for (uint32_t i = 0; i < choice.top_count; i++) {
      CHECK_EQ_INT(choice.top_tokens[i], order[i]);
      CHECK_NEAR((double)choice.top_logprobs[i], (double)logits[order[i]] - log(total), 2e-6);
    }
  }
  sampler_close(s);
}

TEST(logprobs_come_only_when_asked_for) {
  const float values[] = {0, 0, -INFINITY};
  sampler_config config;
  sampler_config_default(&config);
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

// ---- settings and memory ----

static void check_refusal(const sampler_config *config, const char *message) {
  wick_error error = {0};
  sampler *s = NULL;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(sampler_create(&memory, config, 100, &s, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, message);
  CHECK(s == NULL);
  CHECK_EQ_UINT(memory.calls, 0);
}

TEST(settings_out_of_range_are_refused_by_name) {
  sampler_config good, c;
  sampler_config_default(&good);
  c = good, c.temperature = -0.5f;
  check_refusal(&c, "temperature is -0.5, not finite and at least 0");
  c = good, c.temperature = NAN;
  check_refusal(&c, "temperature is nan, not finite and at least 0");
  c = good, c.temperature = INFINITY;
  check_refusal(&c, "temperature is inf, not finite and at least 0");
  c = good, c.top_p = 0;
  check_refusal(&c, "top_p is 0, not above 0 and at most 1");
  c = good, c.top_p = NAN;
  check_refusal(&c, "top_p is nan, not above 0 and at most 1");
  c = good, c.min_p = 1.5f;
  check_refusal(&c, "min_p is 1.5, not 0 to 1");
  c = good, c.repeat_penalty = 0;
  check_refusal(&c, "repeat_penalty is 0, not finite and above 0");
  c = good, c.frequency_penalty = -INFINITY;
  check_refusal(&c, "frequency_penalty is -inf, not finite");
  c = good, c.presence_penalty = NAN;
  check_refusal(&c, "presence_penalty is nan, not finite");
  c = good, c.penalty_last = SAMPLER_PENALTY_LAST_MAX + 1;
  check_refusal(&c, "penalty_last is 1048577, not at most 1048576");
  c = good, c.logprobs = 21;
  check_refusal(&c, "logprobs is 21, not at most 20");
  const sampler_bias far = {100, 0}, negative = {-1, 0}, infinite = {1, INFINITY};
  c = good, c.bias_count = 1, c.bias = &far;
  check_refusal(&c, "logit bias for token 100, the vocabulary has 100");
  c.bias = &negative;
  check_refusal(&c, "logit bias for token -1, the vocabulary has 100");
  c.bias = &infinite;
  check_refusal(&c, "a logit bias is inf, not finite");
  c.bias_count = SAMPLER_BIAS_MAX + 1;
  check_refusal(&c, "the number of logit biases is 1025, not at most 1024");
  sampler *s = NULL;
  CHECK_EQ_INT(sampler_create(&memory, &good, 0, &s, NULL), WICK_E_ARG);
}

TEST(the_plan_is_what_is_taken_and_choosing_takes_nothing) {
  rng source;
  rng_seed(&source, 12);
  sampler_bias bias[4];
  for (int round = 0; round < 50; round++) {
    sampler_config config;
    const uint32_t vocab = 1 + below(&source, VOCAB_MAX);
    random_config(&source, &config, bias, vocab);
    sampler *s = sampler_open(&config, vocab);
    REQUIRE(s != NULL);
    CHECK_EQ_UINT(memory.bytes_now, sampler_plan_bytes(&config, vocab) + WICK_CACHE_LINE_BYTES);
    fill_logits(&source, logits, vocab, 3, 1e6);
    for (int i = 0; i < 3; i++) choose(s, logits);
    CHECK_EQ_UINT(memory.calls, 1);
    sampler_close(s);
  }
  sampler_config config;
  sampler_config_default(&config);
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory.fail_at_call = 1;
  sampler *s = NULL;
  CHECK_EQ_INT(sampler_create(&memory, &config, 100, &s, NULL), WICK_E_NOMEM);
  sampler_destroy(NULL);
}

TEST(bench_of_a_large_vocabulary) {
  if (getenv("WICK_BENCH") == NULL) return;
  static const struct {
    const char *name;
    float temperature, top_p, min_p, repeat;
    uint32_t top_k;
    bool logprob;
  } cases[] = {{"greedy", 0, 1, 0, 1, 0, false},
               {"greedy, logprob", 0, 1, 0, 1, 0, true},
               {"temp 0.8, top-k 40, top-p 0.95", 0.8f, 0.95f, 0, 1, 40, false},
               {"the same with repeat penalty", 0.8f, 0.95f, 0, 1.1f, 40, false},
               {"temp 0.8, top-p 0.95", 0.8f, 0.95f, 0, 1, 0, false},
               {"temp 1, min-p 0.05", 1, 1, 0.05f, 1, 0, false},
               {"temp 1", 1, 1, 0, 1, 0, false}};
  rng source;
  rng_seed(&source, 1);
  fill_logits(&source, logits, QWEN_VOCAB, 3, 1e6);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sampler_config config;
    sampler_config_default(&config);
    config.temperature = cases[i].temperature;
    config.top_p = cases[i].top_p;
    config.min_p = cases[i].min_p;
    config.repeat_penalty = cases[i].repeat;
    config.top_k = cases[i].top_k;
    config.logprob = cases[i].logprob;
    sampler *s = sampler_open(&config, QWEN_VOCAB);
    REQUIRE(s != NULL);
    uint64_t best_us = UINT64_MAX;
    for (int round = 0; round < 50; round++) {
      const uint64_t start_us = platform_now_us();
      choose(s, logits);
      const uint64_t spent_us = platform_now_us() - start_us;
      best_us = spent_us < best_us ? spent_us : best_us;
    }
    printf("# %-32s %5u us, %7u bytes\n", cases[i].name, (unsigned)best_us,
           (unsigned)sampler_plan_bytes(&config, QWEN_VOCAB));
    sampler_close(s);
  }
}

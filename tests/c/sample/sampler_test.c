// Random numbers, single steps of the sampler chain, choices that must be the same on every host,
// settings and memory. The comparison of the whole chain with a simple reference is in
// sampler_reference_test.c. With WICK_BENCH=1 it prints times (for meaningful figures, run the WASI
// build or compile with -O3).
#include "sample/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "sample/penalty.h"
#include "sample/softmax.h"
#include "sampler_rig.h"

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

// ---- choices that must never change ----

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
    wick_sampling config;
    sampler_set_defaults(&config);
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

TEST(equal_seeds_give_equal_tokens_and_different_seeds_differ) {
  wick_sampling config;
  sampler_set_defaults(&config);
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

// ---- single steps of the chain ----

TEST(greedy_chooses_the_lowest_id_among_equal_logits) {
  wick_sampling config;
  sampler_set_defaults(&config);
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
  const logit_set all = {values, NULL, 5};
  penalty_apply(&window, &strength, &all);
  CHECK_EQ_F32(values[0], 1.0f - 1.25f);   // twice: 2 / 2 - 2 * 0.5 - 0.25
  CHECK_EQ_F32(values[1], -4.0f - 0.75f);  // once, negative: -2 * 2
  CHECK_EQ_F32(values[2], 1.0f);
  CHECK_EQ_F32(values[3], -0.75f);
  CHECK_EQ_F32(values[4], 5.0f);
}

TEST(repeated_tokens_are_penalized) {
  wick_sampling config;
  sampler_set_defaults(&config);
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

TEST(bias_forbids_and_favors_tokens) {
  wick_bias bias[] = {{0, -INFINITY}, {1, -100}, {3, 2.5f}, {4, -99}};
  wick_sampling config;
  sampler_set_defaults(&config);
  config.bias = bias;
  config.bias_count = 3;
  config.temperature = 1;
  sampler *s = sampler_open(&config, 5);
  REQUIRE(s != NULL);
  memset(bias, 0, sizeof bias);  // the sampler has made a copy
  const float values[] = {50, 200, 1, -1, -INFINITY};
  bool seen[5] = {false};
  for (int i = 0; i < 200; i++) seen[choose(s, values)] = true;
  CHECK(!seen[0] && !seen[1] && seen[2] && seen[3] && !seen[4]);
  sampler_close(s);
}

static void allow_one(void *context, const float *all_logits, uint32_t *bits, uint32_t vocab) {
  (void)all_logits;
  for (uint32_t i = 0; i < (vocab + 31) / 32; i++) bits[i] = 0;
  const int32_t token = *(const int32_t *)context;
  if (token >= 0) bits[token / 32] = 1u << token % 32;
}

TEST(only_tokens_allowed_by_the_mask_are_chosen) {
  wick_sampling config;
  sampler_set_defaults(&config);
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

TEST(infinite_and_nan_logits_are_rejected) {
  wick_sampling config;
  sampler_set_defaults(&config);
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
  logits[0] = NAN;  // the error reports the first of several
  sampler_choice none;
  wick_error first;
  CHECK_EQ_INT(sampler_choose(s, logits, &none, &first), WICK_E_NONFINITE);
  CHECK_EQ_STR(first.message, "logits of the model: logit of token 0 is nan");
  logits[0] = 0;
  logits[133] = -INFINITY;
  for (int i = 0; i < 20; i++) CHECK_EQ_INT(choose(s, logits), choose(same, logits));
  for (int32_t i = 0; i < 200; i++) logits[i] = -INFINITY;
  sampler_choice choice;
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_E_NONFINITE);
  sampler_destroy(same);
  sampler_destroy(s);
}

TEST(tokens_outside_the_vocabulary_are_not_penalized) {
  wick_sampling config;
  sampler_set_defaults(&config);
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

// ---- settings and memory ----

static void check_refusal(const wick_sampling *config, const char *message) {
  wick_error error = {0};
  sampler *s = NULL;
  memory_init(&memory, 0, platform_alloc, platform_free);
  CHECK_EQ_INT(sampler_create(&memory, config, 100, &s, &error), WICK_E_ARG);
  CHECK_EQ_STR(error.message, message);
  CHECK(s == NULL);
  CHECK_EQ_UINT(memory.calls, 0);
}

TEST(out_of_range_settings_are_rejected_by_name) {
  wick_sampling good, c;
  sampler_set_defaults(&good);
  c = good, c.temperature = -0.5f;
  check_refusal(&c, "temperature is -0.5, not finite and at least 0");
  c = good, c.temperature = NAN;
  check_refusal(&c, "temperature is nan, not finite and at least 0");
  c = good, c.temperature = INFINITY;
  check_refusal(&c, "temperature is inf, not finite and at least 0");
  c = good, c.top_p = -0.1f;
  check_refusal(&c, "top_p is -0.1, not 0 to 1");
  c = good, c.top_p = NAN;
  check_refusal(&c, "top_p is nan, not 0 to 1");
  c = good, c.min_p = 1.5f;
  check_refusal(&c, "min_p is 1.5, not 0 to 1");
  c = good, c.repeat_penalty = 0;
  check_refusal(&c, "repeat_penalty is 0, not finite and above 0");
  c = good, c.frequency_penalty = -INFINITY;
  check_refusal(&c, "frequency_penalty is -inf, not -100 to 100");
  c = good, c.presence_penalty = NAN;
  check_refusal(&c, "presence_penalty is nan, not -100 to 100");
  c = good, c.penalty_last = WICK_PENALTY_LAST_MAX + 1;
  check_refusal(&c, "penalty_last is 1048577, not at most 1048576");
  c = good, c.logprobs = 21;
  check_refusal(&c, "logprobs is 21, not at most 20");
  const wick_bias far = {100, 0}, negative = {-1, 0}, infinite = {1, INFINITY};
  c = good, c.bias_count = 1, c.bias = &far;
  check_refusal(&c, "logit bias for token 100: the vocabulary has 100");
  c.bias = &negative;
  check_refusal(&c, "logit bias for token -1: the vocabulary has 100");
  c.bias = &infinite;
  check_refusal(&c, "a logit bias is inf, not finite");
  c.bias_count = WICK_BIAS_MAX + 1;
  check_refusal(&c, "the number of logit biases is 1025, not at most 1024");
  sampler *s = NULL;
  CHECK_EQ_INT(sampler_create(&memory, &good, 0, &s, NULL), WICK_E_ARG);
}

// A window of 15 or 16 tokens fits one cache line; 17 need a second line.
TEST(list_sizes_are_rounded_up_to_cache_lines) {
  wick_sampling config = {.repeat_penalty = 1.1f, .penalty_last = 15};
  const uint64_t bytes = sampler_plan_bytes(&config, 100);
  CHECK_EQ_UINT(bytes % CACHE_LINE_BYTES, 0);
  config.penalty_last = 16;
  CHECK_EQ_UINT(sampler_plan_bytes(&config, 100), bytes);
  config.penalty_last = 17;
  CHECK(sampler_plan_bytes(&config, 100) > bytes);
}

TEST(the_planned_size_is_allocated_and_choosing_allocates_nothing) {
  rng source;
  rng_seed(&source, 12);
  wick_bias bias[4];
  for (int round = 0; round < 50; round++) {
    wick_sampling config;
    const uint32_t vocab = 1 + below(&source, VOCAB_MAX);
    random_config(&source, &config, bias, vocab);
    sampler *s = sampler_open(&config, vocab);
    REQUIRE(s != NULL);
    CHECK_EQ_UINT(memory.bytes_now, sampler_plan_bytes(&config, vocab) + CACHE_LINE_BYTES);
    fill_logits(&source, logits, vocab, 3, 1e6);
    for (int i = 0; i < 3; i++) choose(s, logits);
    CHECK_EQ_UINT(memory.calls, 1);
    sampler_close(s);
  }
  wick_sampling config;
  sampler_set_defaults(&config);
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory.fail_at_call = 1;
  sampler *s = NULL;
  wick_error error = {0};
  CHECK_EQ_INT(sampler_create(&memory, &config, 100, &s, &error), WICK_E_NOMEM);
  CHECK_EQ_INT(error.status, WICK_E_NOMEM);
  CHECK(strncmp(error.message, "out of memory: ", 15) == 0);
  sampler_destroy(NULL);
}

BENCH(of_a_large_vocabulary) {
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
    wick_sampling config;
    sampler_set_defaults(&config);
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

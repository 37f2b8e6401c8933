// Checks that sampled text with proposals has exactly the model's distribution (Leviathan et al.
// 2023 prove it for their rule; ours samples each token from its own logits). The logits of the
// chain are known at every position, so the probability of each token is, too. With the most likely
// token first, each token corresponds to an interval of [0, 1), and a random point in the interval
// of the sampled token is uniform if and only if tokens are sampled with their probability.
// Pearson's chi-square over 32 equal parts then has 31 degrees of freedom.
//
// Power: a correct sampler exceeds the limit for one seed in a million (seeds are fixed). With
// 20,000 tokens and a probability of about 0.85 for the most likely one, a shift of 0.03 towards it
// raises the statistic to 31 + 20,000 * 0.03^2 * (1 / 0.85 + 1 / 0.15) = 172 with a deviation of
// 25, which is detected in 9,998 of 10,000 cases.
#include <stdio.h>

#include "base/math.h"
#include "scheduler_simulation.h"

enum { PROMPT = 24, TOKENS_LEAST = 20000 };
#define PARTS 32u
// The quantile 1 - 1e-6 of chi-square with 31 degrees of freedom (Wilson and Hilferty 1931).
static const double CHI_SQUARE_MOST = 84.2;
static const float TEMPERATURE = 0.9f;

static simulation sim;

typedef struct tally {
  uint64_t parts[PARTS], count;
  uint64_t random;  // for points within intervals
  double bias;      // how often the likeliest token replaces the sampled one; usually 0
} tally;

static double draw(tally *to) { return (double)(random_u64(&to->random) >> 11) * 0x1p-53; }

// Returns a random point in the interval of a token that was sampled from these logits.
static double place_of(tally *to, const float *logits, int32_t token) {
  float most = logits[0];
  for (uint32_t t = 1; t < SIM_VOCAB; t++) most = logits[t] > most ? logits[t] : most;
  if (to->bias > 0 && draw(to) < to->bias) {
    for (int32_t t = 0; t < SIM_VOCAB; t++) token = logits[t] == most ? t : token;
  }
  double sum = 0, before = 0, own = 0;
  for (int32_t t = 0; t < SIM_VOCAB; t++) {
    const double p = math_exp((double)((logits[t] - most) / TEMPERATURE));
    sum += p;
    if (t == token) own = p;
    const bool is_before = logits[t] > logits[token] || (logits[t] == logits[token] && t < token);
    before += is_before ? p : 0;
  }
  return (before + draw(to) * own) / sum;
}

// Counts every token except where the end token was possible, because the text may have ended
// there.
static void tally_text(tally *to, const simulated *request) {
  static chain_state states[2 * SIM_CONTEXT_MAX + 2];
  for (uint32_t i = 0; i < request->prompt_count + request->count; i++) {
    const int32_t token =
        i < request->prompt_count ? request->prompt[i] : request->tokens[i - request->prompt_count];
    if (i >= request->prompt_count) {
      float logits[SIM_VOCAB];
      chain_logits(&states[i - 1], logits);
      if (logits[SIM_END] < 0) {
        const double place = place_of(to, logits, token);
        to->parts[(uint32_t)(place * (double)PARTS) % PARTS]++;
        to->count++;
      }
    }
    chain_read(states, i, token);
  }
}

static double chi_square(const tally *of) {
  const double expected = (double)of->count / (double)PARTS;
  double sum = 0;
  for (uint32_t i = 0; i < PARTS; i++) {
    const double off = (double)of->parts[i] - expected;
    sum += off * off / expected;
  }
  return sum;
}

typedef struct proposals {
  uint64_t made, accepted;
} proposals;

// Samples texts of all styles; if there are pages for a draft model, it also makes proposals.
static bool sample_texts(tally *to, uint32_t draft_pages, proposals *proposals) {
  const simulation_setup setup = {.pages = 200,
                                  .batch_tokens = 32,
                                  .context_tokens = 400,
                                  .requests_max = 64,
                                  .running_max = 16,
                                  .draft_pages = draft_pages};
  for (uint32_t which = 0; to->count < TOKENS_LEAST; which++) {
    uint64_t random = which + 1;
    int32_t prompt[PROMPT] = {SIM_LETTERS + (int32_t)(which % 60)};
    for (uint32_t i = 1; i < PROMPT; i++) {
      prompt[i] = SIM_LETTERS + (int32_t)sim_below(&random, SIM_VOCAB - SIM_LETTERS);
    }
    wick_request wanted = {.tokens = prompt, .token_count = PROMPT};
    sampler_set_defaults(&wanted.sampling);
    wanted.sampling.temperature = TEMPERATURE;
    wanted.sampling.seed = 5000 + which;
    uint32_t id;
    if (!simulation_open(&sim, &setup)) return false;
    CHECK_EQ_INT(simulation_submit(&sim, &wanted, &id), WICK_OK);
    CHECK(simulation_run(&sim, 100000));
    tally_text(to, &sim.last);
    const scheduler_stats stats = scheduler_get_stats(sim.scheduler);
    proposals->made += stats.tokens_proposed;
    proposals->accepted += stats.tokens_accepted;
    simulation_close(&sim);
  }
  return true;
}

static void check_distribution(uint32_t draft_pages) {
  tally counted = {.random = 1};
  proposals proposals = {0};
  REQUIRE(sample_texts(&counted, draft_pages, &proposals));
  const double statistic = chi_square(&counted);
  printf("#   %llu tokens, %llu proposed, %llu accepted: chi-square %.1f (limit %.1f)\n",
         (unsigned long long)counted.count, (unsigned long long)proposals.made,
         (unsigned long long)proposals.accepted, statistic, CHI_SQUARE_MOST);
  CHECK(statistic < CHI_SQUARE_MOST);
  CHECK(proposals.accepted > counted.count / 20);  // proposals contributed to the text,
  CHECK(proposals.accepted < proposals.made);      // and some were rejected
}

TEST(text_with_lookup_proposals_has_the_models_distribution) { check_distribution(0); }
TEST(text_with_a_draft_model_has_the_models_distribution) { check_distribution(30); }

// Replaces one token in five by the most likely one, which changes 3 tokens in 100.
TEST(a_small_bias_is_detected) {
  tally counted = {.random = 1, .bias = 0.2};
  proposals proposals = {0};
  REQUIRE(sample_texts(&counted, 0, &proposals));
  CHECK(chi_square(&counted) > CHI_SQUARE_MOST);
}

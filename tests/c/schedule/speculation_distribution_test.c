// Sampled text with proposals has exactly the model's distribution (Leviathan et al. 2023 prove it
// for their rule; ours draws each token from its own logits). The chain's logits are known at every
// place, so each token's probability is: ordered with the likeliest first, a token owns an interval
// of [0, 1), and a place in it, drawn for itself, is uniform if and only if the token came with its
// probability. Pearson's chi-square over 32 equal parts then has 31 degrees of freedom.
//
// Power: a right sampler fails in one run of a million seeds (the limit; seeds are fixed). Of
// 20,000 tokens, of which the likeliest has about 0.85, a shift of 0.03 towards it makes the
// statistic 31 + 20,000 * 0.03^2 * (1 / 0.85 + 1 / 0.15) = 172 with a deviation of 25: found in
// 9,998 of 10,000.
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
  uint64_t random;  // places within intervals
  double bias;      // how often the likeliest takes a token's place; 0 but where the test is tested
} tally;

static double draw(tally *to) { return (double)(random_u64(&to->random) >> 11) * 0x1p-53; }

// The place in [0, 1) of a token that was drawn from these logits.
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

// Every token of the text but where an end was possible: the text may have ended there.
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

// Texts of all styles; with pages for a draft model it proposes, too.
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
  tally told = {.random = 1};
  proposals proposals = {0};
  REQUIRE(sample_texts(&told, draft_pages, &proposals));
  const double statistic = chi_square(&told);
  printf("#   %llu tokens, %llu proposed, %llu of them right: chi-square %.1f (most %.1f)\n",
         (unsigned long long)told.count, (unsigned long long)proposals.made,
         (unsigned long long)proposals.accepted, statistic, CHI_SQUARE_MOST);
  CHECK(statistic < CHI_SQUARE_MOST);
  CHECK(proposals.accepted > told.count / 20);  // it is their text that was looked at,
  CHECK(proposals.accepted < proposals.made);   // and some were refused
}

TEST(text_with_lookups_has_the_distribution_of_the_model) { check_distribution(0); }
TEST(text_with_a_draft_model_has_the_distribution_of_the_model) { check_distribution(30); }

// The same texts, had the likeliest come for one draw in five: for 3 tokens in 100 it is another.
TEST(a_small_bias_is_found) {
  tally told = {.random = 1, .bias = 0.2};
  proposals proposals = {0};
  REQUIRE(sample_texts(&told, 0, &proposals));
  CHECK(chi_square(&told) > CHI_SQUARE_MOST);
}

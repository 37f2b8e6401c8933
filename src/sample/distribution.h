// sample/distribution.h — samplers that use the whole distribution of the candidates: its entropy,
// its spread, the surprise of a token. Candidates are sorted by ascending id, and none is
// forbidden. `max` is their largest logit.
#ifndef WICK_SAMPLE_DISTRIBUTION_H
#define WICK_SAMPLE_DISTRIBUTION_H

#include <stdint.h>

#include "sample/truncate.h"

// Sets the weights to e^((logit - max) / temperature); returns their sum.
double candidates_weigh(candidates *kept, float max, float temperature);
// Keeps the largest candidate; among equals, the one with the lowest id.
void truncate_to_largest(candidates *kept, float max);
// Keeps the k (at least 1) largest candidates; among equals, the lowest ids.
void truncate_to_count(candidates *kept, uint32_t k);
// Locally typical sampling (Meister et al. 2022): keeps the candidates whose surprise is nearest to
// the entropy, until they sum to at least `mass` (0..1). keys: [count] scratch.
void truncate_typical(candidates *kept, float max, double mass, float *keys);
// Top-n-sigma (Tang et al. 2024): keeps logits of at least max - n * the standard deviation of the
// logits.
void truncate_top_n_sigma(candidates *kept, float max, double n);
// XTC, exclude top choices (P. E. Weidmann 2024): of the candidates with a probability of at least
// `threshold`, keeps only the least likely one; among equals, the one with the highest id.
void truncate_xtc(candidates *kept, float max, double threshold);
// Dynamic temperature, as in llama.cpp: returns low + (high - low) * (entropy / log
// count)^exponent. Needs at least two candidates. A result of 0 means greedy.
double dynamic_temperature(candidates *kept, float max, double low, double high, double exponent);

// Mirostat (Basu et al. 2021) keeps the surprise of the drawn tokens near tau bits.
typedef struct mirostat_state {
  double tau, eta;
  double mu;  // starts at 2 tau
} mirostat_state;

// Algorithm 1: Zipf's exponent is estimated from the 100 largest candidates, and determines how
// many candidates are kept.
void mirostat_truncate_1(const mirostat_state *state, candidates *kept, uint32_t vocab);
// Algorithm 2 (the authors' code): keeps candidates with a surprise of at most mu, or only the
// largest if there are none.
void mirostat_truncate_2(const mirostat_state *state, candidates *kept, float max);
// Records that a token with this probability was drawn.
void mirostat_learn(mirostat_state *state, double probability);

// adaptive-p (llama.cpp, 2026): the mean of the probabilities of the last tokens, weighted by
// decay, is steered to the target.
typedef struct adaptive_state {
  double target, decay;
  double sum, weight;  // of the mean; initialised as if the mean had always been the target
} adaptive_state;

void adaptive_begin(adaptive_state *state, double target, double decay);
// Replaces the weights, whose sum is `total`, by the weights to draw from, and returns their sum;
// keys [count] receives the old weights.
double adaptive_weigh(const adaptive_state *state, candidates *kept, double total, float *keys);
// Records that a token with this original probability was drawn.
void adaptive_learn(adaptive_state *state, double probability);

#endif

// sample/sampler.h — from logits to a token: mask hook, logit bias, penalties, top-k, top-p, min-p,
// temperature, seeded choice. The same on every host: xoshiro256** (Blackman and Vigna 2018) seeded
// by splitmix64, own exp. One file a subject; no allocation after create.
#ifndef WICK_SAMPLE_SAMPLER_H
#define WICK_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

enum { SAMPLER_BIAS_MAX = 1024, SAMPLER_LOGPROBS_MAX = 20 };

typedef struct sampler_bias {
  int32_t token;
  float bias;          // added to the logit; -inf (or <= -100) forbids
} sampler_bias;

typedef struct sampler_config {
  float temperature;        // 0: greedy (lowest id among equals)
  uint32_t top_k;           // 0: off
  float top_p;              // 1: off
  float min_p;              // 0: off
  float repeat_penalty;     // 1: off (Keskar et al. 2019, as llama.cpp applies it)
  float frequency_penalty;  // 0: off (OpenAI)
  float presence_penalty;   // 0: off
  uint32_t penalty_last;    // tokens looked back at; 0: the default 64
  uint64_t seed;
  const sampler_bias *bias; // copied
  uint32_t bias_count;
  uint32_t logprobs;        // how many alternatives to report, 0: none
} sampler_config;

// Greedy, everything off.
void sampler_config_default(sampler_config *config);

// A mask clears the bits of tokens that may not come next (grammar). bits: ceil(vocab/32) words, all
// ones on entry.
typedef void (*sampler_mask)(void *context, uint32_t *bits, uint32_t vocab);

typedef struct sampler_choice {
  int32_t token;
  float logprob;                          // natural log, of the distribution before temperature
                                          // and truncation, after bias and penalties are NOT applied
  uint32_t top_count;                     // <= SAMPLER_LOGPROBS_MAX
  int32_t top_tokens[SAMPLER_LOGPROBS_MAX];
  float top_logprobs[SAMPLER_LOGPROBS_MAX];
} sampler_choice;

typedef struct sampler sampler;

// WICK_E_ARG naming the setting that is out of its range (NaN, negative temperature, top_p outside
// of (0, 1], ...).
wick_status sampler_create(wick_memory *memory, const sampler_config *config, uint32_t vocab,
                           sampler **out, wick_error *error);
void sampler_destroy(sampler *sampler);
uint64_t sampler_plan_bytes(const sampler_config *config, uint32_t vocab);
void sampler_set_mask(sampler *sampler, sampler_mask mask, void *context);
// Tells the penalties about tokens that were not sampled (the prompt).
void sampler_accept(sampler *sampler, int32_t token);

// Chooses and accepts a token. `logits` [vocab] is left unchanged. WICK_E_NONFINITE when a logit is
// NaN or +Inf, or everything is masked. Cost: O(vocab), no allocation.
wick_status sampler_choose(sampler *sampler, const float *logits, sampler_choice *choice,
                           wick_error *error);

// Stop strings over streamed bytes: holds back what may yet become a stop string.
typedef struct stop_matcher stop_matcher;
enum { STOP_STRINGS_MAX = 16, STOP_STRING_BYTES_MAX = 256 };
// WICK_E_ARG for too many, empty, or too long ones.
wick_status stop_matcher_create(wick_memory *memory, const char *const *strings,
                                const size_t *sizes_bytes, uint32_t count, stop_matcher **out,
                                wick_error *error);
void stop_matcher_destroy(stop_matcher *matcher);
// Feeds bytes; out (size_bytes + STOP_STRING_BYTES_MAX) receives what may be shown now. Returns true
// when a stop string is complete: nothing of it nor after it is shown. *stop_index says which.
bool stop_matcher_feed(stop_matcher *matcher, const char *bytes, size_t size_bytes, char *out,
                       size_t *out_bytes, uint32_t *stop_index);
// The generation ended otherwise: what was held back.
size_t stop_matcher_flush(stop_matcher *matcher, char *out);

#endif

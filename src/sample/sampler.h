// sample/sampler.h — from logits to a token. The samplers and their default order are llama.cpp's;
// the order can be changed:
//
//   logits -> bias -> mask -> penalties -> DRY -> top-n-sigma -> top-k -> typical-p -> top-p
//          -> min-p -> XTC -> temperature -> softmax -> seeded choice, or adaptive-p's
//
// Mirostat replaces all samplers except the temperature. Each sampler uses the softmax (at
// temperature 1) of the candidates that remain after the previous samplers; min-p compares with the
// largest probability. Tokens with logit -Inf are not candidates. Equal logits are ordered by
// ascending id, and -0 equals 0. Choices are the same on every host: xoshiro256** (Blackman and
// Vigna 2018) seeded by splitmix64, one draw per token (none if greedy), preceded by one for XTC if
// at least two candidates are left; the engine's own exp and log; and a fixed summation order.
// Nothing is allocated after create.
#ifndef WICK_SAMPLE_SAMPLER_H
#define WICK_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "sample/dry.h"

// Sets the defaults: greedy, all other settings off.
void sampler_set_defaults(wick_sampling *config);

// A mask clears the bits of tokens that must not be next (grammar). bits: ceil(vocab/32) words, all
// ones on entry.
typedef void (*sampler_mask)(void *context, const float *logits, uint32_t *bits, uint32_t vocab);

// Log-probabilities are natural logarithms of the softmax over the model's original logits: before
// bias, mask, penalties, temperature and truncation. They need one exponential per token of the
// vocabulary (0.4 ms for 151,936) and are computed only on request. With config.logprobs_after,
// they describe the distribution from which the token was drawn; for a greedy choice, this
// distribution has a single token.
typedef struct sampler_choice {
  int32_t token;
  float logprob;       // of `token`; 0 if not requested
  uint32_t top_count;  // config.logprobs, or the number of possible tokens if that is less
  int32_t top_tokens[WICK_LOGPROBS_MAX];  // the most probable first
  float top_logprobs[WICK_LOGPROBS_MAX];
} sampler_choice;

typedef struct sampler sampler;

// Copies the configuration. WICK_E_ARG with the setting that is out of range (NaN, negative
// temperature, top_p outside [0, 1], min_p outside [0, 1], repeat_penalty not above 0, a bias for
// an id outside the vocabulary, a window of WICK_LAST_CONTEXT, which the caller must replace, ...),
// WICK_E_NOMEM.
wick_status sampler_create(memory_gate *memory, const wick_sampling *config, uint32_t vocab,
                           sampler **out, wick_error *error);
void sampler_destroy(sampler *sampler);
// Returns the number of bytes that sampler_create allocates: 4 per token of the vocabulary, 8 to 12
// more without top-k, and about 24 to 40 per token of DRY's window.
uint64_t sampler_plan_bytes(const wick_sampling *config, uint32_t vocab);
// Sets the mask; NULL removes it.
void sampler_set_mask(sampler *sampler, sampler_mask mask, void *context);
// Sets the source of tokens' bytes, in which DRY's sequence breakers are searched for. Without it,
// there are no breakers. Must be called before the first token.
void sampler_set_text(sampler *sampler, dry_text text, void *context);
// Adds tokens that were not sampled (the prompt) to the windows of the penalties and of DRY. Ids
// outside the vocabulary are ignored.
void sampler_accept(sampler *sampler, int32_t token);
// Whether a bias forbids the token. O(biases).
bool sampler_forbids(const sampler *sampler, int32_t token);

// Chooses and accepts a token. `logits` [vocab] is not changed. WICK_E_NONFINITE if a logit is NaN
// or +Inf, or every token is forbidden; then nothing is drawn or accepted. O(vocab), no allocation.
wick_status sampler_choose(sampler *sampler, const float *logits, sampler_choice *choice,
                           wick_error *error);

// Accepts a forced token, without drawing one. Its log-probabilities are computed as in
// sampler_choose; with config.logprobs_after they are 0, because it is the only candidate. If
// log-probabilities are requested, returns WICK_E_NONFINITE like sampler_choose.
wick_status sampler_tell(sampler *sampler, const float *logits, int32_t token,
                         sampler_choice *choice, wick_error *error);

// Matches stop strings in streamed bytes. The matcher holds back the longest suffix of the text
// that is a prefix of a stop string, and no more. The string that is complete first wins; if
// several end at the same byte, the longest wins. The result does not depend on how the text is
// split. If the pieces consist of whole characters, so does the output.
typedef struct stop_matcher stop_matcher;
// Creates a matcher. WICK_E_ARG for too many strings, or for a string that is too long or not
// UTF-8. count may be 0. An empty string never matches.
wick_status stop_matcher_create(memory_gate *memory, const char *const *strings,
                                const size_t *sizes_bytes, uint32_t count, stop_matcher **out,
                                wick_error *error);
void stop_matcher_destroy(stop_matcher *matcher);
// Feeds bytes; out (size_bytes + WICK_STOP_BYTES_MAX) receives the text that can be shown now.
// Returns true when a stop string is complete; *stop_index is its index. Neither the stop string
// nor the text after it is shown. The matcher is then reset.
bool stop_matcher_feed(stop_matcher *matcher, const char *bytes, size_t size_bytes, char *out,
                       size_t *out_bytes, uint32_t *stop_index);
// Whether one of the stop strings equals this text; *stop_index is its index.
bool stop_matcher_has(const stop_matcher *matcher, const uint8_t *text, size_t size_bytes,
                      uint32_t *stop_index);
// Called if generation ended for a reason other than a stop string: `out` receives the text that
// was held back (less than WICK_STOP_BYTES_MAX). The matcher is then reset.
size_t stop_matcher_flush(stop_matcher *matcher, char *out);

#endif

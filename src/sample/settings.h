// sample/settings.h — checks the settings of a sampler, and determines the samplers that they
// enable.
#ifndef WICK_SAMPLE_SETTINGS_H
#define WICK_SAMPLE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "base/status.h"

// Letters of wick_sampling.samplers.
#define SAMPLER_LETTER(id, name, letter) SAMPLER_##id = (letter),
enum { SAMPLERS(SAMPLER_LETTER) };
#undef SAMPLER_LETTER

// The steps for a token, in order. Samplers that are off are omitted.
typedef struct sampler_plan {
  char steps[WICK_SAMPLERS_MAX];
  uint32_t step_count;
  bool is_greedy;         // choose the largest logit after the steps, which only change logits
  bool has_adaptive;      // adaptive-p chooses
  float temperature;      // for the final choice, if the temperature is the last step
  uint32_t kept_max;      // limit on candidates; 0 if greedy
  bool has_dynatemp;      // the temperature depends on the entropy
  bool has_keys;          // a sampler needs scratch of one number per candidate
  uint32_t penalty_last;  // number of tokens; 0: no penalties
  uint32_t dry_last;      // number of tokens; 0: no DRY
} sampler_plan;

// Checks the settings. Returns the errors of sampler_create.
wick_status settings_check(const wick_sampling *config, uint32_t vocab, wick_error *error);
// Plans the steps. The settings must have been checked.
void settings_plan(const wick_sampling *config, uint32_t vocab, sampler_plan *plan);

#endif

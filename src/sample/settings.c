// sample/settings.c — code that runs once per request.
#include "sample/settings.h"

#include <stddef.h>
#include <string.h>

#include "base/math.h"
#include "base/options.h"
#include "sample/sampler.h"

static const float XTC_THRESHOLD_MAX = 0.5f;

// A numeric setting, by its offset in wick_sampling. For whole numbers, -1 means UINT32_MAX.
typedef struct number_setting {
  uint8_t subject;
  bool is_float;
  uint16_t at_bytes;
  float least, most, by_default;
} number_setting;

#define SETTING(field, subject, is_float, least, most, by_default) \
  {subject, is_float, offsetof(wick_sampling, field), least, most, by_default},

static const number_setting NUMBERS[] = {SAMPLING_RANGES(SETTING)};

enum { NUMBER_COUNT = sizeof NUMBERS / sizeof *NUMBERS };

void sampler_set_defaults(wick_sampling *config) {
  memset(config, 0, sizeof *config);
  for (size_t i = 0; i < NUMBER_COUNT; i++) {
    const float number = NUMBERS[i].by_default;
    const uint32_t whole = (uint32_t)(int32_t)number;
    memcpy((char *)config + NUMBERS[i].at_bytes,
           NUMBERS[i].is_float ? (const void *)&number : (const void *)&whole, sizeof whole);
  }
}

// ---- ranges ----

static wick_status refuse_number(const number_setting *setting, float value, wick_error *error) {
  const wick_subject subject = (wick_subject)setting->subject;
  const char *format = "%s is %g, not %g to %g";
  if (setting->most == FLOAT_MOST) {
    format = setting->least == FLOAT_LEAST ? "%s is %g, not finite and above 0"
                                           : "%s is %g, not finite and at least %g";
  }
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, format, wick_subject_name(subject), (double)value,
            (double)setting->least, (double)setting->most);
  return status_about(WICK_E_ARG, error, subject, 0, 0);
}

static bool check_most(uint32_t value, uint32_t most, wick_subject subject, wick_error *error) {
  if (value <= most) return true;
  const char *name =
      subject == WICK_SUBJECT_BIAS ? "the number of logit biases" : wick_subject_name(subject);
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%s is %u, not at most %u", name, value, most);
  status_about(WICK_E_ARG, error, subject, value, most);
  return false;
}

static wick_status check_numbers(const wick_sampling *config, wick_error *error) {
  for (size_t i = 0; i < NUMBER_COUNT; i++) {
    const number_setting *setting = &NUMBERS[i];
    if (setting->subject == WICK_SUBJECT_NONE) continue;
    const char *place = (const char *)config + setting->at_bytes;
    float number;
    uint32_t whole;
    memcpy(&number, place, sizeof number);
    memcpy(&whole, place, sizeof whole);
    if (setting->is_float) {
      if (number >= setting->least && number <= setting->most) continue;
      return refuse_number(setting, number, error);
    }
    // if DRY is off, its window may be the whole context
    if (setting->subject == WICK_SUBJECT_DRY_PENALTY_LAST && !(config->dry_multiplier > 0))
      continue;
    if (!check_most(whole, (uint32_t)setting->most, (wick_subject)setting->subject, error)) {
      return WICK_E_ARG;
    }
  }
  const bool fits = check_most(config->logprobs, WICK_LOGPROBS_MAX, WICK_SUBJECT_LOGPROBS, error) &&
                    check_most(config->bias_count, WICK_BIAS_MAX, WICK_SUBJECT_BIAS, error);
  return fits ? WICK_OK : WICK_E_ARG;
}

static wick_status check_biases(const wick_sampling *config, uint32_t vocab, wick_error *error) {
  for (uint32_t i = 0; i < config->bias_count; i++) {
    const wick_bias *bias = &config->bias[i];
    if (bias->token < 0 || (uint32_t)bias->token >= vocab) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "logit bias for token %d: the vocabulary has %u",
                bias->token, vocab);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, (uint32_t)bias->token, vocab);
    }
    if (!(bias->bias < -FLOAT_MOST) && !math_is_finite_f32(bias->bias)) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "a logit bias is %g, not finite",
                (double)bias->bias);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, (uint32_t)bias->token, vocab);
    }
  }
  return WICK_OK;
}

static wick_status check_breakers(const wick_sampling *config, wick_error *error) {
  const uint32_t count = config->dry_sequence_breakers == NULL ? 0 : config->dry_breaker_count;
  for (uint32_t i = 0; i < count; i++) {
    const size_t size_bytes = config->dry_breaker_bytes[i];
    if (i < WICK_DRY_BREAKERS_MAX && size_bytes - 1 < WICK_DRY_BREAKER_BYTES_MAX) continue;
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "dry_sequence_breakers: number %u has %zu bytes, not 1 to %d, or is over %d", i,
              size_bytes, (int)WICK_DRY_BREAKER_BYTES_MAX, (int)WICK_DRY_BREAKERS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_DRY_SEQUENCE_BREAKERS, i,
                        WICK_DRY_BREAKERS_MAX);
  }
  return WICK_OK;
}

static wick_status check_samplers(const char *samplers, wick_error *error) {
  uint32_t i = 0;
  if (samplers == NULL) return WICK_OK;
  for (; samplers[i] != 0; i++) {
    uint32_t known = 0;
    while (SAMPLERS_DEFAULT[known] != 0 && SAMPLERS_DEFAULT[known] != samplers[i]) known++;
    if (i < WICK_SAMPLERS_MAX && SAMPLERS_DEFAULT[known] != 0) continue;
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET,
              "samplers: letter %u is not one of \"%s\", or over %d", i, SAMPLERS_DEFAULT,
              (int)WICK_SAMPLERS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_SAMPLERS, i, WICK_SAMPLERS_MAX);
  }
  return WICK_OK;
}

wick_status settings_check(const wick_sampling *config, uint32_t vocab, wick_error *error) {
  if (vocab == 0 || vocab > INT32_MAX) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "vocabulary is %u, not 1 to 2147483647",
                     vocab);
  }
  wick_status status = check_numbers(config, error);
  if (status == WICK_OK) status = check_biases(config, vocab, error);
  if (status == WICK_OK) status = check_breakers(config, error);
  if (status == WICK_OK) status = check_samplers(config->samplers, error);
  return status;
}

// ---- the plan ----

static bool is_on(const wick_sampling *config, uint32_t vocab, char letter) {
  switch (letter) {
    case SAMPLER_PENALTIES:
      return config->penalty_last > 0 &&
             (config->repeat_penalty != 1.0f || config->frequency_penalty != 0.0f ||
              config->presence_penalty != 0.0f);
    case SAMPLER_DRY:
      return config->dry_multiplier > 0 && config->dry_penalty_last > 0;
    case SAMPLER_TOP_N_SIGMA:
      return config->top_n_sigma > 0;
    case SAMPLER_TOP_K:
      return config->top_k > 0 && config->top_k < vocab;
    case SAMPLER_TYP_P:
      return config->typical_p < 1;
    case SAMPLER_TOP_P:
      return config->top_p < 1;
    case SAMPLER_MIN_P:
      return config->min_p > 0;
    case SAMPLER_XTC:
      return config->xtc_probability > 0 && config->xtc_threshold <= XTC_THRESHOLD_MAX;
    case SAMPLER_TEMPERATURE:
      return config->temperature != 1.0f || config->dynatemp_range > 0;
    default:
      return config->adaptive_target >= 0;
  }
}

static bool changes_logits(char step) { return step == SAMPLER_PENALTIES || step == SAMPLER_DRY; }

// Returns the number of leading steps that change logits without dropping candidates.
static uint32_t count_leading(const sampler_plan *plan) {
  uint32_t count = 0;
  while (count < plan->step_count && changes_logits(plan->steps[count])) count++;
  return count;
}

// Whether the largest logit after the leading steps is chosen regardless of the later steps.
// Samplers that keep the largest logits also keep this one; typical-p and XTC do not.
static bool takes_largest(const sampler_plan *plan, const wick_sampling *config) {
  if (config->temperature != 0 || plan->has_dynatemp) return false;
  for (uint32_t i = count_leading(plan); i < plan->step_count; i++) {
    const char step = plan->steps[i];
    if (step == SAMPLER_TEMPERATURE) return true;
    if (changes_logits(step) || step == SAMPLER_TYP_P || step == SAMPLER_XTC) return false;
  }
  return false;
}

static void add_step(sampler_plan *plan, const wick_sampling *config, char letter) {
  if (letter == SAMPLER_ADAPTIVE_P) {
    plan->has_adaptive = plan->has_keys = true;
    return;
  }
  plan->steps[plan->step_count++] = letter;
  if (letter == SAMPLER_PENALTIES) {
    plan->penalty_last = config->penalty_last;
  } else if (letter == SAMPLER_DRY) {
    plan->dry_last = config->dry_penalty_last;
  } else if (letter == SAMPLER_TYP_P) {
    plan->has_keys = true;
  } else if (letter == SAMPLER_TEMPERATURE) {
    plan->has_dynatemp = config->mirostat == 0 && config->dynatemp_range > 0;
  }
}

static void add_steps(sampler_plan *plan, const wick_sampling *config, uint32_t vocab) {
  if (config->mirostat != 0) {
    if (config->temperature != 1.0f) add_step(plan, config, SAMPLER_TEMPERATURE);
    return;
  }
  const char *letter = config->samplers != NULL ? config->samplers : SAMPLERS_DEFAULT;
  for (; *letter != 0; letter++) {
    if (is_on(config, vocab, *letter)) add_step(plan, config, *letter);
  }
}

void settings_plan(const wick_sampling *config, uint32_t vocab, sampler_plan *plan) {
  *plan = (sampler_plan){.temperature = 1};
  add_steps(plan, config, vocab);
  const uint32_t leading = count_leading(plan);
  plan->is_greedy = takes_largest(plan, config);
  if (plan->is_greedy) {
    plan->has_keys = false;
    plan->step_count = leading;
    return;
  }
  const char first = leading < plan->step_count ? plan->steps[leading] : 0;
  const char last = plan->step_count > 0 ? plan->steps[plan->step_count - 1] : 0;
  plan->kept_max = first == SAMPLER_TOP_K ? config->top_k : vocab;
  if (last == SAMPLER_TEMPERATURE && config->temperature > 0 && !plan->has_dynatemp &&
      config->mirostat == 0) {
    plan->temperature = config->temperature;
    plan->step_count--;
  }
}

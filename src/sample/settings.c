// sample/settings.c — code that runs once a request.
#include "sample/settings.h"

#include <stddef.h>
#include <string.h>

#include "base/math.h"
#include "sample/sampler.h"

enum { PENALTY_LAST_DEFAULT = 64 };

static const char SAMPLERS_DEFAULT[] = "edskypmxta";
static const float XTC_THRESHOLD_MAX = 0.5f;

void sampler_set_defaults(wick_sampling *config) {
  memset(config, 0, sizeof *config);
  config->top_p = 1.0f;
  config->repeat_penalty = 1.0f;
  config->typical_p = 1.0f;
  config->xtc_threshold = 0.1f;
  config->dynatemp_exponent = 1.0f;
  config->dry_base = 1.75f;
  config->dry_allowed_length = 2;
  config->dry_penalty_last = WICK_LAST_CONTEXT;
  config->mirostat_tau = 5.0f;
  config->mirostat_eta = 0.1f;
  config->adaptive_target = -1.0f;
  config->adaptive_decay = 0.9f;
}

// ---- ranges ----

#define MOST 3.402823466e38f
#define LEAST_ABOVE_0 1.4e-45f

typedef struct range {
  const char *name;
  float low, high;
} range;

enum { FINITE, NOT_NEGATIVE, ABOVE_0, SHARE, AT_LEAST_1, AT_MOST_1, DECAY };

static const range RANGES[] = {
    [FINITE] = {"finite", -MOST, MOST},
    [NOT_NEGATIVE] = {"finite and at least 0", 0, MOST},
    [ABOVE_0] = {"finite and above 0", LEAST_ABOVE_0, MOST},
    [SHARE] = {"0 to 1", 0, 1},
    [AT_LEAST_1] = {"finite and at least 1", 1, MOST},
    [AT_MOST_1] = {"finite and at most 1", -MOST, 1},
    [DECAY] = {"0 to 0.99", 0, 0.99f},
};

// A setting that is a number, by its place in wick_sampling.
typedef struct number_setting {
  uint8_t subject, range;
  uint16_t at_bytes;
} number_setting;

#define SETTING(subject, range, field) \
  {WICK_SUBJECT_##subject, range, offsetof(wick_sampling, field)}

static const number_setting NUMBERS[] = {
    SETTING(TEMPERATURE, NOT_NEGATIVE, temperature),
    SETTING(TOP_P, SHARE, top_p),
    SETTING(MIN_P, SHARE, min_p),
    SETTING(REPEAT_PENALTY, ABOVE_0, repeat_penalty),
    SETTING(FREQUENCY_PENALTY, FINITE, frequency_penalty),
    SETTING(PRESENCE_PENALTY, FINITE, presence_penalty),
    SETTING(TYPICAL_P, SHARE, typical_p),
    SETTING(TOP_N_SIGMA, FINITE, top_n_sigma),
    SETTING(XTC_PROBABILITY, SHARE, xtc_probability),
    SETTING(XTC_THRESHOLD, SHARE, xtc_threshold),
    SETTING(DYNATEMP_RANGE, NOT_NEGATIVE, dynatemp_range),
    SETTING(DYNATEMP_EXPONENT, NOT_NEGATIVE, dynatemp_exponent),
    SETTING(DRY_MULTIPLIER, NOT_NEGATIVE, dry_multiplier),
    SETTING(DRY_BASE, AT_LEAST_1, dry_base),
    SETTING(MIROSTAT_TAU, NOT_NEGATIVE, mirostat_tau),
    SETTING(MIROSTAT_ETA, NOT_NEGATIVE, mirostat_eta),
    SETTING(ADAPTIVE_TARGET, AT_MOST_1, adaptive_target),
    SETTING(ADAPTIVE_DECAY, DECAY, adaptive_decay),
};

static wick_status check_numbers(const wick_sampling *config, wick_error *error) {
  for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
    const range *range = &RANGES[NUMBERS[i].range];
    const wick_subject subject = (wick_subject)NUMBERS[i].subject;
    float value;
    memcpy(&value, (const char *)config + NUMBERS[i].at_bytes, sizeof value);
    if (value >= range->low && value <= range->high) continue;
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%s is %g, not %s", wick_subject_name(subject),
              (double)value, range->name);
    return status_about(WICK_E_ARG, error, subject, 0, 0);
  }
  return WICK_OK;
}

static bool check_most(uint32_t value, uint32_t most, wick_subject subject, wick_error *error) {
  if (value <= most) return true;
  const char *name =
      subject == WICK_SUBJECT_BIAS ? "the number of logit biases" : wick_subject_name(subject);
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%s is %u, not at most %u", name, value, most);
  status_about(WICK_E_ARG, error, subject, value, most);
  return false;
}

static wick_status check_counts(const wick_sampling *config, wick_error *error) {
  const uint32_t dry_last = config->dry_multiplier > 0 ? config->dry_penalty_last : 0;
  const bool fits =
      check_most(config->penalty_last, WICK_PENALTY_LAST_MAX, WICK_SUBJECT_PENALTY_LAST, error) &&
      check_most(dry_last, WICK_PENALTY_LAST_MAX, WICK_SUBJECT_DRY_PENALTY_LAST, error) &&
      check_most(config->mirostat, 2, WICK_SUBJECT_MIROSTAT, error) &&
      check_most(config->logprobs, WICK_LOGPROBS_MAX, WICK_SUBJECT_LOGPROBS, error) &&
      check_most(config->bias_count, WICK_BIAS_MAX, WICK_SUBJECT_BIAS, error);
  return fits ? WICK_OK : WICK_E_ARG;
}

static wick_status check_biases(const wick_sampling *config, uint32_t vocab, wick_error *error) {
  for (uint32_t i = 0; i < config->bias_count; i++) {
    const wick_bias *bias = &config->bias[i];
    if (bias->token < 0 || (uint32_t)bias->token >= vocab) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "logit bias for token %d, the vocabulary has %u",
                bias->token, vocab);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, (uint32_t)bias->token, vocab);
    }
    if (!(bias->bias < -MOST) && !math_is_finite_f32(bias->bias)) {
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
  if (status == WICK_OK) status = check_counts(config, error);
  if (status == WICK_OK) status = check_biases(config, vocab, error);
  if (status == WICK_OK) status = check_breakers(config, error);
  if (status == WICK_OK) status = check_samplers(config->samplers, error);
  return status;
}

// ---- the plan ----

static bool is_on(const wick_sampling *config, uint32_t vocab, char letter) {
  switch (letter) {
    case SAMPLER_PENALTIES:
      return config->repeat_penalty != 1.0f || config->frequency_penalty != 0.0f ||
             config->presence_penalty != 0.0f;
    case SAMPLER_DRY:
      return config->dry_multiplier > 0 && config->dry_penalty_last > 0;
    case SAMPLER_TOP_N_SIGMA:
      return config->top_n_sigma > 0;
    case SAMPLER_TOP_K:
      return config->top_k > 0 && config->top_k < vocab;
    case SAMPLER_TYPICAL_P:
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

// How many steps at the beginning change logits and drop nothing.
static uint32_t count_leading(const sampler_plan *plan) {
  uint32_t count = 0;
  while (count < plan->step_count && changes_logits(plan->steps[count])) count++;
  return count;
}

// Whether the largest logit after the leading steps comes whatever follows them. Samplers that keep
// the largest logits keep it, too; typical-p and XTC do not.
static bool takes_largest(const sampler_plan *plan, const wick_sampling *config) {
  if (config->temperature != 0 || plan->has_dynatemp) return false;
  for (uint32_t i = count_leading(plan); i < plan->step_count; i++) {
    const char step = plan->steps[i];
    if (step == SAMPLER_TEMPERATURE) return true;
    if (changes_logits(step) || step == SAMPLER_TYPICAL_P || step == SAMPLER_XTC) return false;
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
    plan->penalty_last = config->penalty_last == 0 ? PENALTY_LAST_DEFAULT : config->penalty_last;
  } else if (letter == SAMPLER_DRY) {
    plan->dry_last = config->dry_penalty_last;
  } else if (letter == SAMPLER_TYPICAL_P) {
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

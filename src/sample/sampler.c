// sample/sampler.c — the chain. One block of memory holds everything:
//
//   sampler | bias | ring | slots | mask words | block maxima | work logits [vocab] | buckets
//           | ids, weights [kept]
//
// kept is top_k when top-k is on, else vocab; 0 when greedy.
#include "sample/sampler.h"

#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "sample/penalty.h"
#include "sample/rng.h"
#include "sample/softmax.h"
#include "sample/truncate.h"

enum { PENALTY_LAST_DEFAULT = 64 };

static const float BIAS_FORBIDS = -100.0f;

struct sampler {
  memory_gate *memory;
  wick_sampling config;  // config.bias points to our copy
  uint32_t vocab;
  rng rng;
  sampler_mask mask;
  void *mask_context;
  wick_bias *bias;  // [config.bias_count]
  penalty_window window;
  penalty_strength penalty;
  uint32_t *mask_words;  // [ceil(vocab / 32)]
  float *block_max;      // [ceil(vocab / LOGIT_BLOCK)] of the logits scanned last
  float *work;           // [vocab] logits after bias, mask and penalties; then the candidates'
  candidates kept;
};

static float minus_infinity(void) { return f32_of_bits(0xff800000u); }

// ---- settings ----

void sampler_set_defaults(wick_sampling *config) {
  memset(config, 0, sizeof *config);
  config->top_p = 1.0f;
  config->repeat_penalty = 1.0f;
}

static wick_status fail_setting(wick_error *error, wick_subject subject, const char *name,
                                double value, const char *range) {
  fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "%s is %g, not %s", name, value, range);
  return status_about(WICK_E_ARG, error, subject, 0, 0);
}

static wick_status check_biases(const wick_sampling *config, uint32_t vocab, wick_error *error) {
  if (config->bias_count > WICK_BIAS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "the number of logit biases is %u, not at most %d",
              config->bias_count, (int)WICK_BIAS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, config->bias_count, WICK_BIAS_MAX);
  }
  for (uint32_t i = 0; i < config->bias_count; i++) {
    const wick_bias *bias = &config->bias[i];
    if (bias->token < 0 || (uint32_t)bias->token >= vocab) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "logit bias for token %d, the vocabulary has %u",
                bias->token, vocab);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, (uint32_t)bias->token, vocab);
    }
    if (bias->bias != minus_infinity() && !math_is_finite_f32(bias->bias)) {
      fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "a logit bias is %g, not finite",
                (double)bias->bias);
      return status_about(WICK_E_ARG, error, WICK_SUBJECT_BIAS, (uint32_t)bias->token, vocab);
    }
  }
  return WICK_OK;
}

static wick_status check_config(const wick_sampling *c, uint32_t vocab, wick_error *error) {
  if (vocab == 0 || vocab > INT32_MAX) {
    return fail_setting(error, WICK_SUBJECT_NONE, "vocabulary", vocab, "1 to 2147483647");
  }
  if (!math_is_finite_f32(c->temperature) || c->temperature < 0) {
    return fail_setting(error, WICK_SUBJECT_TEMPERATURE, "temperature", (double)c->temperature,
                        "finite and at least 0");
  }
  if (!(c->top_p > 0 && c->top_p <= 1)) {
    return fail_setting(error, WICK_SUBJECT_TOP_P, "top_p", (double)c->top_p,
                        "above 0 and at most 1");
  }
  if (!(c->min_p >= 0 && c->min_p <= 1)) {
    return fail_setting(error, WICK_SUBJECT_MIN_P, "min_p", (double)c->min_p, "0 to 1");
  }
  if (!math_is_finite_f32(c->repeat_penalty) || c->repeat_penalty <= 0) {
    return fail_setting(error, WICK_SUBJECT_REPEAT_PENALTY, "repeat_penalty",
                        (double)c->repeat_penalty, "finite and above 0");
  }
  if (!math_is_finite_f32(c->frequency_penalty)) {
    return fail_setting(error, WICK_SUBJECT_FREQUENCY_PENALTY, "frequency_penalty",
                        (double)c->frequency_penalty, "finite");
  }
  if (!math_is_finite_f32(c->presence_penalty)) {
    return fail_setting(error, WICK_SUBJECT_PRESENCE_PENALTY, "presence_penalty",
                        (double)c->presence_penalty, "finite");
  }
  if (c->penalty_last > WICK_PENALTY_LAST_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "penalty_last is %u, not at most %d",
              c->penalty_last, WICK_PENALTY_LAST_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_PENALTY_LAST, c->penalty_last,
                        WICK_PENALTY_LAST_MAX);
  }
  if (c->logprobs > WICK_LOGPROBS_MAX) {
    fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "logprobs is %u, not at most %d", c->logprobs,
              (int)WICK_LOGPROBS_MAX);
    return status_about(WICK_E_ARG, error, WICK_SUBJECT_LOGPROBS, c->logprobs, WICK_LOGPROBS_MAX);
  }
  return check_biases(c, vocab, error);
}

static bool has_penalties(const wick_sampling *config) {
  return config->repeat_penalty != 1.0f || config->frequency_penalty != 0.0f ||
         config->presence_penalty != 0.0f;
}

static bool is_greedy(const wick_sampling *config) { return config->temperature == 0.0f; }

static bool has_top_k(const wick_sampling *config, uint32_t vocab) {
  return config->top_k > 0 && config->top_k < vocab;
}

// ---- memory ----

typedef struct sampler_layout {
  uint64_t bias, ring, slots, mask_words, block_max, work, buckets, ids, weights;  // offsets
  uint64_t total;
  uint32_t window;  // tokens
} sampler_layout;

// Counts and item sizes are below 2^32 and few, so no sum wraps.
static uint64_t layout_take(sampler_layout *layout, uint64_t count, uint64_t item_bytes) {
  const uint64_t at = layout->total;
  const uint64_t line = CACHE_LINE_BYTES;
  layout->total += (count * item_bytes + line - 1) / line * line;
  return at;
}

static sampler_layout layout_of(const wick_sampling *config, uint32_t vocab) {
  sampler_layout l = {0};
  if (has_penalties(config)) {
    l.window = config->penalty_last == 0 ? PENALTY_LAST_DEFAULT : config->penalty_last;
  }
  const uint32_t kept = is_greedy(config) ? 0 : has_top_k(config, vocab) ? config->top_k : vocab;
  layout_take(&l, 1, sizeof(sampler));
  l.bias = layout_take(&l, config->bias_count, sizeof(wick_bias));
  l.ring = layout_take(&l, l.window, sizeof(int32_t));
  l.slots = layout_take(&l, l.window == 0 ? 0 : penalty_slot_count(l.window), sizeof(penalty_slot));
  l.mask_words = layout_take(&l, ceil_div_u32(vocab, 32), sizeof(uint32_t));
  l.block_max = layout_take(&l, ceil_div_u32(vocab, LOGIT_BLOCK), sizeof(float));
  l.work = layout_take(&l, vocab, sizeof(float));
  l.buckets = layout_take(&l, TRUNCATE_BUCKETS, sizeof(double));
  l.ids = layout_take(&l, kept, sizeof(int32_t));
  l.weights = layout_take(&l, kept, sizeof(float));
  return l;
}

uint64_t sampler_plan_bytes(const wick_sampling *config, uint32_t vocab) {
  return layout_of(config, vocab).total;
}

wick_status sampler_create(memory_gate *memory, const wick_sampling *config, uint32_t vocab,
                           sampler **out, wick_error *error) {
  const wick_status status = check_config(config, vocab, error);
  if (status != WICK_OK) return status;
  const sampler_layout layout = layout_of(config, vocab);
  size_t size_bytes;
  uint8_t *block = NULL;
  if (checked_to_size(layout.total, &size_bytes)) block = memory_alloc(memory, size_bytes);
  if (block == NULL) return memory_fail(memory, error, "sampler", layout.total);
  sampler *s = (sampler *)(void *)block;
  memset(s, 0, sizeof *s);
  s->memory = memory;
  s->config = *config;
  s->vocab = vocab;
  rng_seed(&s->rng, config->seed);
  s->bias = (wick_bias *)(void *)(block + layout.bias);
  s->config.bias = s->bias;
  if (config->bias_count > 0) {
    memcpy(s->bias, config->bias, config->bias_count * sizeof *s->bias);
  }
  s->window.ring = (int32_t *)(void *)(block + layout.ring);
  s->window.slots = (penalty_slot *)(void *)(block + layout.slots);
  s->window.capacity = layout.window;
  s->penalty = (penalty_strength){config->repeat_penalty, config->frequency_penalty,
                                  config->presence_penalty};
  s->mask_words = (uint32_t *)(void *)(block + layout.mask_words);
  s->block_max = (float *)(void *)(block + layout.block_max);
  s->work = (float *)(void *)(block + layout.work);
  s->kept.ids = (int32_t *)(void *)(block + layout.ids);
  s->kept.logits = s->work;
  s->kept.weights = (float *)(void *)(block + layout.weights);
  s->kept.buckets = (double *)(void *)(block + layout.buckets);
  *out = s;
  return WICK_OK;
}

void sampler_destroy(sampler *sampler) {
  if (sampler != NULL) memory_free(sampler->memory, sampler);
}

void sampler_set_mask(sampler *sampler, sampler_mask mask, void *context) {
  sampler->mask = mask;
  sampler->mask_context = context;
}

void sampler_accept(sampler *sampler, int32_t token) {
  if (token >= 0 && (uint32_t)token < sampler->vocab) penalty_push(&sampler->window, token);
}

// ---- the chain ----

// Finds the largest logit; all must be numbers below +Inf, and one above -Inf. Sets s->block_max.
static wick_status find_max(sampler *s, const float *logits, const char *what, float *max,
                            wick_error *error) {
  const logit_range range = logit_scan(logits, s->vocab, s->block_max);
  const int32_t forbidden = logit_key(minus_infinity());
  if (range.most >= logit_key(-minus_infinity()) || range.least < forbidden) {
    uint32_t i = 0;
    while (logits[i] < -minus_infinity()) i++;
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "%s: logit of token %u is %g", what,
                     i, (double)logits[i]);
  }
  if (range.most == forbidden) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "%s: every token is forbidden", what);
  }
  *max = logit_of_key(range.most);
  return WICK_OK;
}

static void apply_biases(const sampler *s) {
  for (uint32_t i = 0; i < s->config.bias_count; i++) {
    const wick_bias *bias = &s->bias[i];
    const bool forbids = bias->bias <= BIAS_FORBIDS;
    s->work[bias->token] = forbids ? minus_infinity() : s->work[bias->token] + bias->bias;
  }
}

static void apply_mask(const sampler *s) {
  memset(s->mask_words, 0xff, ceil_div_u32(s->vocab, 32) * sizeof *s->mask_words);
  s->mask(s->mask_context, s->mask_words, s->vocab);
  for (uint32_t first = 0; first < s->vocab; first += 32) {
    const uint32_t word = s->mask_words[first / 32];
    const uint32_t bits = s->vocab - first < 32 ? s->vocab - first : 32;
    if (word == UINT32_MAX) continue;
    for (uint32_t bit = 0; bit < bits; bit++) {
      const bool may_come = word != 0 && (word >> bit & 1u) != 0;
      s->work[first + bit] = may_come ? s->work[first + bit] : minus_infinity();
    }
  }
}

// Applies bias, mask and penalties. *adjusted is `logits` itself when none is on; *max its largest.
static wick_status adjust_logits(sampler *s, const float *logits, const float **adjusted,
                                 float *max, wick_error *error) {
  const bool penalised = s->window.held > 0;
  *adjusted = logits;
  if (s->config.bias_count == 0 && s->mask == NULL && !penalised) return WICK_OK;
  memcpy(s->work, logits, s->vocab * sizeof *logits);
  apply_biases(s);
  if (s->mask != NULL) apply_mask(s);
  if (penalised) penalty_apply(&s->window, &s->penalty, s->work);
  *adjusted = s->work;
  return find_max(s, s->work, "after bias, mask and penalties", max, error);
}

static int32_t first_of_value(const float *logits, float value) {
  int32_t token = 0;
  while (logits[token] != value) token++;
  return token;
}

// Puts the candidates that pass top-k, top-p and min-p into s->kept.
static void truncate_logits(sampler *s, const float *logits, float max) {
  const wick_sampling *config = &s->config;
  candidates *kept = &s->kept;
  if (has_top_k(config, s->vocab)) {
    truncate_top_k(kept, logits, s->vocab, s->block_max, config->top_k);
  } else {
    if (logits != s->work) memcpy(s->work, logits, s->vocab * sizeof *logits);
    for (uint32_t i = 0; i < s->vocab; i++) kept->ids[i] = (int32_t)i;
    kept->count = s->vocab;
  }
  if (config->top_p < 1.0f) {
    softmax_weights(kept->logits, kept->count, max, 1.0f, kept->weights);
    truncate_top_p(kept, max, (double)config->top_p);
  }
  if (config->min_p > 0.0f) truncate_min_p(kept, max, (double)config->min_p);
}

// Draws from the softmax of s->kept at the set temperature.
static int32_t draw_token(sampler *s, float max) {
  const candidates *kept = &s->kept;
  softmax_weights(kept->logits, kept->count, max, s->config.temperature, kept->weights);
  double total = 0;
  for (uint32_t i = 0; i < kept->count; i++) total += (double)kept->weights[i];
  const double point = rng_uniform(&s->rng) * total;
  double sum = 0;
  int32_t token = kept->ids[0];
  for (uint32_t i = 0; i < kept->count && sum <= point; i++) {
    if (kept->weights[i] == 0.0f) continue;
    sum += (double)kept->weights[i];
    token = kept->ids[i];
  }
  return token;
}

// ---- log-probabilities ----

// Sorts by falling logit. Equal logits keep their order, which is by rising id.
static void sort_top(sampler_choice *choice) {
  for (uint32_t i = 1; i < choice->top_count; i++) {
    const float logit = choice->top_logprobs[i];
    const int32_t token = choice->top_tokens[i];
    uint32_t at = i;
    for (; at > 0 && choice->top_logprobs[at - 1] < logit; at--) {
      choice->top_tokens[at] = choice->top_tokens[at - 1];
      choice->top_logprobs[at] = choice->top_logprobs[at - 1];
    }
    choice->top_tokens[at] = token;
    choice->top_logprobs[at] = logit;
  }
}

// Finds the alternatives; s->block_max must be that of the model's logits. Their logprob fields
// hold logits afterwards.
static void find_top(sampler *s, const float *logits, sampler_choice *choice) {
  const uint32_t wanted = s->config.logprobs < s->vocab ? s->config.logprobs : s->vocab;
  choice->top_count = 0;
  if (wanted == 0) return;
  candidates top = {choice->top_tokens, choice->top_logprobs, NULL, s->kept.buckets, 0};
  truncate_top_k(&top, logits, s->vocab, s->block_max, wanted);
  choice->top_count = top.count;
  sort_top(choice);
}

static void report_logprobs(const sampler *s, const float *logits, float max,
                            sampler_choice *choice) {
  choice->logprob = 0;
  if (s->config.logprobs == 0 && !s->config.logprob) return;
  const double log_sum = (double)max + math_log(softmax_sum(logits, s->vocab, max));
  choice->logprob = (float)((double)logits[choice->token] - log_sum);
  for (uint32_t i = 0; i < choice->top_count; i++) {
    choice->top_logprobs[i] = (float)((double)choice->top_logprobs[i] - log_sum);
  }
}

wick_status sampler_choose(sampler *s, const float *logits, sampler_choice *choice,
                           wick_error *error) {
  float raw_max = 0;
  wick_status status = find_max(s, logits, "logits of the model", &raw_max, error);
  if (status != WICK_OK) return status;
  find_top(s, logits, choice);
  float max = raw_max;
  const float *adjusted;
  status = adjust_logits(s, logits, &adjusted, &max, error);
  if (status != WICK_OK) return status;
  if (is_greedy(&s->config)) {
    choice->token = first_of_value(adjusted, max);
  } else {
    truncate_logits(s, adjusted, max);
    choice->token = draw_token(s, max);
  }
  report_logprobs(s, logits, raw_max, choice);
  sampler_accept(s, choice->token);
  return WICK_OK;
}

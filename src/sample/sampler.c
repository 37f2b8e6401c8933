// sample/sampler.c — runs the sampler chain for each token.
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "sample/sampler_state.h"
#include "sample/softmax.h"

static const float BIAS_FORBIDS = -100.0f;
static const double LOGIT_LEAST = -3.4028234663852886e38;
static const float TEMPERATURE_LEAST =
    1e-30f;  // below this temperature, a quotient may be infinite, so sampling is greedy

static float minus_infinity(void) { return f32_of_bits(0xff800000u); }

void sampler_set_mask(sampler *sampler, sampler_mask mask, void *context) {
  sampler->mask = mask;
  sampler->mask_context = context;
}

void sampler_set_text(sampler *sampler, dry_text text, void *context) {
  sampler->dry.text = text;
  sampler->dry.text_context = context;
}

void sampler_accept(sampler *sampler, int32_t token) {
  if (token < 0 || (uint32_t)token >= sampler->vocab) return;
  penalty_push(&sampler->window, token);
  dry_accept(&sampler->dry, token);
}

// ---- before the samplers ----

// Finds the largest logit, of the vocabulary or of `kept`; all logits must be numbers below +Inf,
// and at least one must be above -Inf. Sets s->block_max.
static wick_status find_max(sampler *s, const float *logits, const candidates *kept,
                            const char *what, float *max, wick_error *error) {
  const logit_range range = logit_scan(logits, kept == NULL ? s->vocab : kept->count, s->block_max);
  const int32_t forbidden = logit_key(minus_infinity());
  if (range.most >= logit_key(-minus_infinity()) || range.least < forbidden) {
    uint32_t i = 0;
    while (logits[i] < -minus_infinity()) i++;
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "%s: logit of token %u is %g", what,
                     kept == NULL ? i : (uint32_t)kept->ids[i], (double)logits[i]);
  }
  if (range.most <= forbidden) {
    return fail_with(error, WICK_E_NONFINITE, WICK_NO_OFFSET, "%s: every token is forbidden", what);
  }
  *max = logit_of_key(range.most);
  return WICK_OK;
}

bool sampler_forbids(const sampler *s, int32_t token) {
  for (uint32_t i = 0; i < s->config.bias_count; i++) {
    if (s->bias[i].token == token && s->bias[i].bias <= BIAS_FORBIDS) return true;
  }
  return false;
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
  s->mask(s->mask_context, s->work, s->mask_words, s->vocab);
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

// ---- the samplers ----

// The logits between two samplers.
typedef struct chain_view {
  const float *full;  // [vocab] the model's logits, or s->work; NULL: the logits are in s->kept
  float max;          // largest logit, if known
  bool has_max;
} chain_view;

// Copies the vocabulary's logits to s->work, where they may be changed.
static void own_logits(sampler *s, chain_view *view) {
  if (view->full != s->work) memcpy(s->work, view->full, s->vocab * sizeof *s->work);
  view->full = s->work;
}

// Drops candidates that are forbidden.
static void drop_forbidden(candidates *kept) { truncate_at_least(kept, LOGIT_LEAST); }

static wick_status settle_max(sampler *s, chain_view *view, wick_error *error) {
  const bool is_gathered = view->full == NULL;
  if (view->has_max) return WICK_OK;
  view->has_max = true;
  if (is_gathered) drop_forbidden(&s->kept);
  return find_max(s, is_gathered ? s->kept.logits : view->full, is_gathered ? &s->kept : NULL,
                  "after bias, mask and penalties", &view->max, error);
}

// Stores all candidates, or the top_k largest, in s->kept.
static void gather(sampler *s, chain_view *view, uint32_t top_k) {
  candidates *kept = &s->kept;
  if (top_k != 0) {
    truncate_top_k(kept, view->full, s->vocab, s->block_max, top_k);
  } else {
    own_logits(s, view);
    for (uint32_t i = 0; i < s->vocab; i++) kept->ids[i] = (int32_t)i;
    kept->count = s->vocab;
  }
  drop_forbidden(kept);
  view->full = NULL;
}

static void apply_temperature(sampler *s, chain_view *view) {
  candidates *kept = &s->kept;
  double temperature = (double)s->config.temperature;
  if (s->plan.has_dynatemp) {
    if (kept->count < 2) return;
    const double reach = (double)s->config.dynatemp_range;
    const double low = temperature > reach ? temperature - reach : 0;
    temperature = dynamic_temperature(kept, view->max, low, temperature + reach,
                                      (double)s->config.dynatemp_exponent);
  }
  const float divisor = (float)temperature;
  if (!(divisor >= TEMPERATURE_LEAST)) {
    truncate_to_largest(kept, view->max);
    return;
  }
  for (uint32_t i = 0; i < kept->count; i++) kept->logits[i] /= divisor;
  view->has_max = false;
}

static void change_logits(sampler *s, chain_view *view, char step) {
  const bool is_dry = step == SAMPLER_DRY;
  if ((is_dry ? s->dry.held : s->window.held) == 0) return;
  logit_set set = {s->work, NULL, s->vocab};
  if (view->full != NULL) {
    own_logits(s, view);
  } else {
    set = (logit_set){s->kept.logits, s->kept.ids, s->kept.count};
  }
  if (is_dry) {
    dry_apply(&s->dry, &set);
  } else {
    penalty_apply(&s->window, &s->penalty, &set);
  }
  view->has_max = false;
}

// Applies a sampler to s->kept.
static void drop_candidates(sampler *s, chain_view *view, char step) {
  const wick_sampling *config = &s->config;
  candidates *kept = &s->kept;
  switch (step) {
    case SAMPLER_TOP_K:
      truncate_to_count(kept, config->top_k);
      break;
    case SAMPLER_TOP_P:
      softmax_weights(kept->logits, kept->count, view->max, 1.0f, kept->weights);
      truncate_top_p(kept, view->max, (double)config->top_p);
      break;
    case SAMPLER_MIN_P:
      truncate_min_p(kept, view->max, (double)config->min_p);
      break;
    case SAMPLER_TOP_N_SIGMA:
      truncate_top_n_sigma(kept, view->max, (double)config->top_n_sigma);
      break;
    case SAMPLER_TYP_P:
      truncate_typical(kept, view->max, (double)config->typical_p, s->keys);
      view->has_max = false;
      break;
    case SAMPLER_XTC:
      if (kept->count < 2 || rng_uniform(&s->rng) >= (double)config->xtc_probability) break;
      truncate_xtc(kept, view->max, (double)config->xtc_threshold);
      view->has_max = false;
      break;
    default:
      apply_temperature(s, view);
  }
}

// Applies bias, mask and the samplers.
static wick_status run_chain(sampler *s, chain_view *view, wick_error *error) {
  wick_status status = WICK_OK;
  if (s->config.bias_count != 0 || s->mask != NULL) {
    own_logits(s, view);
    apply_biases(s);
    if (s->mask != NULL) apply_mask(s);
    view->has_max = false;
  }
  for (uint32_t i = 0; i < s->plan.step_count && status == WICK_OK; i++) {
    const char step = s->plan.steps[i];
    if (step == SAMPLER_PENALTIES || step == SAMPLER_DRY) {
      change_logits(s, view, step);
      continue;
    }
    status = settle_max(s, view, error);
    if (status != WICK_OK) break;
    const bool is_first_top_k = view->full != NULL && step == SAMPLER_TOP_K;
    if (view->full != NULL) gather(s, view, is_first_top_k ? s->config.top_k : 0);
    if (!is_first_top_k) drop_candidates(s, view, step);
  }
  return status == WICK_OK ? settle_max(s, view, error) : status;
}

// ---- the choice ----

static int32_t first_of_value(const float *logits, float value) {
  int32_t token = 0;
  while (logits[token] != value) token++;
  return token;
}

// Draws with the weights of s->kept, whose sum is `total`. Returns the index of the drawn
// candidate.
static uint32_t draw(sampler *s, double total) {
  const candidates *kept = &s->kept;
  const double point = rng_uniform(&s->rng) * total;
  double sum = 0;
  uint32_t drawn = 0;
  for (uint32_t i = 0; i < kept->count && sum <= point; i++) {
    if (kept->weights[i] == 0.0f) continue;
    sum += (double)kept->weights[i];
    drawn = i;
  }
  return drawn;
}

// Draws from s->kept. Returns the index, and the sum of the weights that were used.
static uint32_t choose_kept(sampler *s, float max, double *total) {
  candidates *kept = &s->kept;
  if (s->config.mirostat == 1) mirostat_truncate_1(&s->mirostat, kept, s->vocab);
  if (s->config.mirostat == 2) mirostat_truncate_2(&s->mirostat, kept, max);
  double sum = candidates_weigh(kept, max, s->plan.temperature);
  const double before = sum;
  if (s->plan.has_adaptive) sum = adaptive_weigh(&s->adaptive, kept, before, s->keys);
  const uint32_t drawn = draw(s, sum);
  if (s->config.mirostat != 0) {
    mirostat_learn(&s->mirostat, (double)kept->weights[drawn] / sum);
  }
  if (s->plan.has_adaptive) adaptive_learn(&s->adaptive, (double)s->keys[drawn] / before);
  *total = sum;
  return drawn;
}

// ---- log-probabilities ----

// Sorts by descending logit. Equal logits keep their order, which is by ascending id.
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

// Finds the alternatives; s->block_max must belong to the model's logits. The logprob fields then
// contain logits.
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

// Reports the candidates of the distribution from which the token was drawn: the weights of
// s->kept, or one token.
static void report_logprobs_after(const sampler *s, uint32_t drawn, double total,
                                  sampler_choice *choice) {
  const candidates *kept = &s->kept;
  const bool is_greedy = s->plan.is_greedy;
  choice->logprob = is_greedy ? 0 : (float)math_log((double)kept->weights[drawn] / total);
  choice->top_count = is_greedy && s->config.logprobs > 0 ? 1 : 0;
  choice->top_tokens[0] = choice->token;
  choice->top_logprobs[0] = 0;
  if (is_greedy || s->config.logprobs == 0) return;
  candidates top = s->kept;  // the weights are no longer needed
  top.logits = top.weights;
  truncate_to_count(&top, s->config.logprobs);
  for (uint32_t i = 0; i < top.count; i++) {
    const float weight = top.logits[i];
    if (weight == 0.0f) continue;
    choice->top_tokens[choice->top_count] = top.ids[i];
    choice->top_logprobs[choice->top_count++] = (float)math_log((double)weight / total);
  }
  sort_top(choice);
}

wick_status sampler_choose(sampler *s, const float *logits, sampler_choice *choice,
                           wick_error *error) {
  float raw_max = 0;
  uint32_t drawn = 0;
  double total = 1;
  wick_status status = find_max(s, logits, NULL, "logits of the model", &raw_max, error);
  if (status != WICK_OK) return status;
  choice->top_count = 0;
  if (!s->config.logprobs_after) find_top(s, logits, choice);
  chain_view view = {logits, raw_max, true};
  status = run_chain(s, &view, error);
  if (status != WICK_OK) return status;
  if (s->plan.is_greedy &&
      view.full != NULL) {  // the steps of a greedy sampler gather no candidates
    choice->token = first_of_value(view.full, view.max);
  } else {
    if (view.full != NULL) gather(s, &view, 0);
    drawn = choose_kept(s, view.max, &total);
    choice->token = s->kept.ids[drawn];
  }
  if (s->config.logprobs_after) {
    report_logprobs_after(s, drawn, total, choice);
  } else {
    report_logprobs(s, logits, raw_max, choice);
  }
  sampler_accept(s, choice->token);
  return WICK_OK;
}

wick_status sampler_tell(sampler *s, const float *logits, int32_t token, sampler_choice *choice,
                         wick_error *error) {
  const bool is_certain = s->config.logprobs_after;
  float max = 0;
  const wick_status status = find_max(s, logits, NULL, "logits of the model", &max, error);
  if (status != WICK_OK) return status;
  *choice = (sampler_choice){.token = token};
  if (is_certain) {
    choice->top_count = s->config.logprobs > 0 ? 1 : 0;
    choice->top_tokens[0] = token;
  } else {
    find_top(s, logits, choice);
    report_logprobs(s, logits, max, choice);
  }
  sampler_accept(s, token);
  return WICK_OK;
}

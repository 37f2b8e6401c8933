// Helpers for the sampler tests: one sampler at a time with a separate allocator, random logits and
// random settings.
#ifndef WICK_TESTS_SAMPLER_RIG_H
#define WICK_TESTS_SAMPLER_RIG_H

#include <math.h>
#include <stdio.h>

#include "check.h"
#include "platform/platform.h"
#include "sample/rng.h"
#include "sample/sampler.h"

enum { VOCAB_MAX = 4096, QWEN_VOCAB = 151936 };

static memory_gate memory;

static sampler *sampler_open(const wick_sampling *config, uint32_t vocab) {
  memory_init(&memory, 0, platform_alloc, platform_free);
  sampler *s = NULL;
  wick_error error = {0};
  if (!CHECK_EQ_INT(sampler_create(&memory, config, vocab, &s, &error), WICK_OK)) {
    printf("# %s\n", error.message);
  }
  return s;
}

static void sampler_close(sampler *s) {
  sampler_destroy(s);
  CHECK_EQ_UINT(memory.blocks_now, 0);
}

static int32_t choose(sampler *s, const float *logits) {
  sampler_choice choice = {.token = -1};
  CHECK_EQ_INT(sampler_choose(s, logits, &choice, NULL), WICK_OK);
  return choice.token;
}

static double normal(rng *source) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += rng_uniform(source);
  return sum;
}

static uint32_t below(rng *source, uint32_t bound) {
  return (uint32_t)(rng_uniform(source) * bound);
}

// Fills in logits that are multiples of 1/`steps`, so that many are equal.
static void fill_logits(rng *source, float *logits, uint32_t count, double spread, double steps) {
  for (uint32_t i = 0; i < count; i++) {
    logits[i] = (float)(floor(normal(source) * spread * steps) / steps);
  }
}

static void random_config(rng *source, wick_sampling *config, wick_bias *bias, uint32_t vocab) {
  sampler_set_defaults(config);
  config->seed = rng_next(source);
  config->temperature = (float)below(source, 8) * 0.25f;
  if (below(source, 2) == 0) config->top_k = 1 + below(source, vocab + vocab / 4);
  if (below(source, 2) == 0) config->top_p = (float)(1 - rng_uniform(source));
  if (below(source, 3) == 0) config->min_p = (float)rng_uniform(source) * 0.3f;
  if (below(source, 3) == 0) config->repeat_penalty = 0.8f + (float)rng_uniform(source);
  if (below(source, 3) == 0) config->frequency_penalty = (float)rng_uniform(source) - 0.3f;
  if (below(source, 3) == 0) config->presence_penalty = (float)rng_uniform(source) - 0.3f;
  config->penalty_last = below(source, 65);
  config->bias = bias;
  config->bias_count = below(source, 4);
  for (uint32_t i = 0; i < config->bias_count; i++) {
    bias[i].token = (int32_t)below(source, vocab);
    bias[i].bias = below(source, 3) == 0 ? -100 : (float)normal(source) * 3;
  }
}

// Chooses random settings for the chain.
static float logits[QWEN_VOCAB];

#endif

// sample/sampler_state.h — the state of a sampler. One block of memory contains everything;
// create.c lays it out.
#ifndef WICK_SAMPLE_SAMPLER_STATE_H
#define WICK_SAMPLE_SAMPLER_STATE_H

#include "sample/distribution.h"
#include "sample/dry.h"
#include "sample/rng.h"
#include "sample/sampler.h"
#include "sample/settings.h"

struct sampler {
  memory_gate *memory;
  wick_sampling config;  // its pointers are not used
  sampler_plan plan;
  uint32_t vocab;
  rng rng;
  sampler_mask mask;
  void *mask_context;
  wick_bias *bias;  // [config.bias_count]
  penalty_window window;
  penalty_strength penalty;
  dry_state dry;
  mirostat_state mirostat;
  adaptive_state adaptive;
  uint32_t *mask_words;  // [ceil(vocab / 32)]
  float *block_max;      // [ceil(vocab / LOGIT_BLOCK)] maxima of the last scanned logits
  float *work;  // [vocab] logits after bias, mask and penalties; then the candidates' logits
  candidates kept;
  float *keys;  // [kept] scratch; NULL unless typical-p or adaptive-p is on
};

#endif

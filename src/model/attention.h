// model/attention.h — keys and values into their pages, and attention over the pages of a sequence.
#ifndef WICK_MODEL_ATTENTION_H
#define WICK_MODEL_ATTENTION_H

#include <stdint.h>

#include "base/status.h"
#include "kv/pool.h"
#include "model/forward.h"
#include "model/scratch.h"
#include "model/weights.h"
#include "thread/pool.h"

typedef struct model_attention {
  const wick_model *model;
  wick_kv_pool *kv;
  const model_scratch *scratch;
  const double *frequencies;
  const model_input *inputs;
  uint32_t count;
  uint32_t layer;
} model_attention;

// Cosine and sine of position * frequency, in pairs; angles in double (RoFormer, Su et al. 2021).
void rope_table(const double *frequencies, uint32_t rope_dims, int64_t position, float *cos_sin);

// Rotates the keys and writes keys and values of all tokens to their pages. WICK_E_NONFINITE when
// one of them is not finite.
wick_status attention_store(model_attention *attention, thread_pool *threads, wick_error *error);
// attention[t] = softmax(q K^T / sqrt(head_dim)) V over what the sequence holds up to the token.
void attention_run(model_attention *attention, thread_pool *threads);

#endif

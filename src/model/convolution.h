// model/convolution.h — the causal convolution of a recurrent block: one filter of a few taps per
// channel over the rows of a pass. Each sequence continues from the inputs in its state.
#ifndef WICK_MODEL_CONVOLUTION_H
#define WICK_MODEL_CONVOLUTION_H

#include "model/pass.h"

typedef struct model_convolution {
  const model_pass *pass;
  uint64_t state_offset_bytes;  // of [taps - 1, channels] in the states
  uint32_t channels, taps;
  const float *filter;  // [taps, channels]
  const float *bias;    // [channels] or NULL
  float *rows;          // [tokens, channels], stride floats apart; overwritten with the results
  uint32_t stride;
} model_convolution;

void convolution_run(const model_convolution *convolution);

#endif

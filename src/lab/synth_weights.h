// lab/synth_weights.h — random values in the block formats of GGUF files, generated directly:
// random codes with scales that produce the requested standard deviation.
#ifndef WICK_LAB_SYNTH_WEIGHTS_H
#define WICK_LAB_SYNTH_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "format/types.h"

typedef struct synth_random {
  uint64_t state;
} synth_random;

enum { SYNTH_SCALES = 64, SYNTH_HALVES = 4096 };

typedef struct synth_filler {
  synth_random random;
  ggml_type type;
  float deviation;
  uint16_t halves[SYNTH_HALVES];  // F16, BF16: the values to choose from
  uint16_t scales[SYNTH_SCALES];  // half floats near the required scale, both signs
} synth_filler;

void synth_filler_init(synth_filler *filler, ggml_type type, float deviation, uint64_t seed);
// Writes `blocks` blocks of F32, F16, BF16, Q8_0, Q4_0, Q5_0, Q4_K, Q6_K, Q1_0 or MXFP4; the
// mean is about 0.
void synth_fill(synth_filler *filler, uint8_t *out, size_t blocks);
// Returns a value uniform in [-1, 1).
float synth_random_f32(synth_random *random);

#endif

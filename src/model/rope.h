// model/rope.h — rotary positions (RoFormer, Su et al. 2021): pairs of a head's values are
// rotated by position * frequency.
#ifndef WICK_MODEL_ROPE_H
#define WICK_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

// YaRN (Peng et al. 2023): slow rotations are interpolated, and fast ones are unchanged. In
// between, rotations that turn `slow` to `fast` times within the original context are blended.
typedef struct model_yarn {
  bool is_on;
  double fast, slow;  // turns
} model_yarn;

typedef struct model_rope {
  uint32_t dims;        // number of rotated values at the start of a head; even
  bool is_interleaved;  // pairs are (2i, 2i + 1), otherwise (i, i + dims / 2)
  double theta;         // frequency i = theta^(-2i / dims)
  double scale;         // positions are divided by it (linear scaling); 1: no scaling
  double magnitude;     // of cosines and sines; 1: rotation only
  model_yarn yarn;
  uint32_t sections[4];       // number of pairs rotated by time, y, x and z; all 0: one position
  bool is_alternating;        // pairs alternate between time, y and x within their sections
  uint32_t original_context;  // tokens; 0: not in the file
  float *factors;             // [dims / 2], divide the frequencies; NULL: none
  // LongRoPE (Ding et al. 2024): like `factors`, for contexts up to the original one, and for
  // longer contexts
  float *short_factors, *long_factors;
  double *frequencies;  // [dims / 2], radians per position
} model_rope;

// Allocates memory for the frequencies.
wick_status rope_create(memory_gate *memory, model_rope *rope, wick_error *error);
void rope_destroy(memory_gate *memory, model_rope *rope);
// Computes the frequencies for contexts of this many tokens, once the factors have arrived.
void rope_fill(const model_rope *rope, uint32_t context_tokens);
// Computes cosine and sine of position * frequency, in pairs [dims / 2]; angles are computed in
// double. A rope without sections uses the first axis. For text, the position is the same on all
// axes except the last, where it is 0.
void rope_table(const model_rope *rope, const int64_t positions[4], float *cos_sin);

#endif

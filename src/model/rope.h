// model/rope.h — rotary positions (RoFormer, Su et al. 2021): pairs of a head's values are turned
// by position * frequency.
#ifndef WICK_MODEL_ROPE_H
#define WICK_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef struct model_rope {
  uint32_t dims;        // of a head, the first ones; even
  bool is_interleaved;  // pairs are (2i, 2i + 1), else (i, i + dims / 2)
  double theta;         // frequency i = theta^(-2i / dims)
  double scale;         // positions are divided by it (linear scaling), 1: none
  float *factors;       // [dims / 2], divide the frequencies; NULL: none
  double *frequencies;  // [dims / 2], radians a position
} model_rope;

// Room for the frequencies.
wick_status rope_create(memory_gate *memory, model_rope *rope, wick_error *error);
void rope_destroy(memory_gate *memory, model_rope *rope);
// Fills the frequencies in; the factors have arrived.
void rope_fill(const model_rope *rope);
// Cosine and sine of position * frequency, in pairs [dims / 2]; angles in double.
void rope_table(const model_rope *rope, int64_t position, float *cos_sin);

#endif

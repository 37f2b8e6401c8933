// model/rope.c — see rope.h.
#include "model/rope.h"

#include "base/math.h"

wick_status rope_create(memory_gate *memory, model_rope *rope, wick_error *error) {
  rope->frequencies = memory_alloc_array(memory, rope->dims / 2, sizeof(double));
  return rope->frequencies != NULL ? WICK_OK
                                   : memory_fail(memory, error, "rotary frequencies", rope->dims);
}

void rope_destroy(memory_gate *memory, model_rope *rope) {
  memory_free(memory, rope->frequencies);
  rope->frequencies = NULL;
}

void rope_fill(const model_rope *rope) {
  for (uint32_t i = 0; i < rope->dims / 2; i++) {
    const double exponent = -2.0 * (double)i / (double)rope->dims;
    double frequency = math_pow(rope->theta, exponent) / rope->scale;
    if (rope->factors != NULL) frequency /= (double)rope->factors[i];
    rope->frequencies[i] = frequency;
  }
}

void rope_table(const model_rope *rope, int64_t position, float *cos_sin) {
  for (uint32_t i = 0; i < rope->dims / 2; i++) {
    double sine, cosine;
    math_sin_cos((double)position * rope->frequencies[i], &sine, &cosine);
    cos_sin[2 * i] = (float)cosine;
    cos_sin[2 * i + 1] = (float)sine;
  }
}

// sample/softmax.c — loops over softmax_exp.
#include "sample/softmax.h"

enum { LANES = 8 };

double softmax_sum(const float *logits, uint32_t count, float max) {
  double lanes[LANES] = {0};
  uint32_t i = 0;
  for (; count - i >= LANES; i += LANES) {
    for (uint32_t lane = 0; lane < LANES; lane++) {
      lanes[lane] += (double)softmax_exp(logits[i + lane] - max);
    }
  }
  double sum = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
  for (; i < count; i++) sum += (double)softmax_exp(logits[i] - max);
  return sum;
}

void softmax_weights(const float *logits, uint32_t count, float max, float temperature,
                     float *weights) {
  for (uint32_t i = 0; i < count; i++) {
    weights[i] = softmax_exp((logits[i] - max) / temperature);
  }
}

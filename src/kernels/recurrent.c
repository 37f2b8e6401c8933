// kernels/recurrent.c — mixers that carry a state from token to token; scalar reference.
#include <string.h>

#include "kernels/families.h"

// ---- convolution ----

void conv_state_write(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last) {
  const size_t bytes = (channel_last - channel_first) * sizeof(float);
  for (uint32_t k = 0; k + 1 < conv->width; k++) {
    memcpy(conv->state_out + (size_t)k * conv->channels + channel_first,
           conv_input(conv, conv->tokens + k) + channel_first, bytes);
  }
}

// The last token comes first, so that y may be x: no output takes the place of an input that is
// wanted later.
void conv_scalar(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last) {
  conv_state_write(conv, channel_first, channel_last);
  for (uint32_t t = conv->tokens; t-- > 0;) {
    for (uint32_t c = channel_first; c < channel_last; c++) {
      float sum = conv->bias != NULL ? conv->bias[c] : 0.0f;
      for (uint32_t k = 0; k < conv->width; k++) {
        sum += conv->weight[(size_t)k * conv->channels + c] * conv_input(conv, t + k)[c];
      }
      conv->y[conv->y_stride * t + c] = sum;
    }
  }
}

// ---- gated delta rule ----

// One column of the state, `state` after the step.
static float delta_step(const kernel_delta *delta, uint32_t t, uint32_t column, const float *from) {
  const float *k = delta->k + delta->qk_stride * t, *q = delta->q + delta->qk_stride * t;
  const float decay = delta->decay[delta->gate_stride * t];
  const float beta = delta->beta[delta->gate_stride * t];
  float known = 0.0f, sum = 0.0f;
  for (uint32_t i = 0; i < delta->key_dim; i++) {
    known += from[(size_t)i * delta->value_dim + column] * k[i];
  }
  const float d = (delta->v[delta->v_stride * t + column] - decay * known) * beta;
  for (uint32_t i = 0; i < delta->key_dim; i++) {
    const size_t at = (size_t)i * delta->value_dim + column;
    const float state = from[at] * decay + k[i] * d;
    delta->state_out[at] = state;
    sum += state * q[i];
  }
  return sum;
}

void delta_columns(const kernel_delta *delta, uint32_t first, uint32_t last) {
  for (uint32_t c = first; c < last; c++) {
    for (uint32_t t = 0; t < delta->tokens; t++) {
      const float *from = t == 0 ? delta->state_in : delta->state_out;
      delta->y[delta->y_stride * t + c] = delta_step(delta, t, c, from);
    }
  }
}

void delta_scalar(const kernel_delta *delta) { delta_columns(delta, 0, delta->value_dim); }

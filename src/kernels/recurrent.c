// kernels/recurrent.c — mixers that carry a state from token to token; scalar reference.
#include <string.h>

#include "kernels/exp.h"
#include "kernels/families.h"

// ---- convolution ----

void conv_state_write(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last) {
  const size_t bytes = (channel_last - channel_first) * sizeof(float);
  for (uint32_t k = 0; k + 1 < conv->width; k++) {
    memcpy(conv->state_out + (size_t)k * conv->channels + channel_first,
           conv_input(conv, conv->tokens + k) + channel_first, bytes);
  }
}

// Computes the last token first, so that y may be x: no output overwrites an input that is needed
// later.
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

// Computes one column of the state; `state` is the state after the step.
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

// ---- selective scan ----

// Computes one token of one channel: the new state, and its sum.
static float scan_step(const kernel_scan *scan, uint32_t t, uint32_t channel, const float *from,
                       float *to) {
  const float *a = scan->a + (size_t)channel * scan->states;
  const float *b = scan->b + scan->bc_stride * t, *c = scan->c + scan->bc_stride * t;
  const float dt = scan->dt[scan->dt_stride * t + channel];
  const float input = dt * scan->x[scan->x_stride * t + channel];
  float parts[4] = {0};  // value s in part s % 4, as in SIMD lanes
  for (uint32_t s = 0; s < scan->states; s++) {
    to[s] = exp_f32(dt * a[s]) * from[s] + input * b[s];
    parts[s % 4] += to[s] * c[s];
  }
  return (parts[0] + parts[2]) + (parts[1] + parts[3]);
}

void scan_scalar(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last) {
  for (uint32_t t = 0; t < scan->tokens; t++) {
    const float *from = t == 0 ? scan->state_in : scan->state_out;
    for (uint32_t c = channel_first; c < channel_last; c++) {
      const size_t at = (size_t)c * scan->states;
      const float sum = scan_step(scan, t, c, from + at, scan->state_out + at);
      const float x = scan->x[scan->x_stride * t + c];
      scan->y[scan->y_stride * t + c] = scan->d != NULL ? sum + scan->d[c] * x : sum;
    }
  }
}

// ---- Mamba 2 ----

static float ssd_step(const kernel_ssd *ssd, uint32_t t, uint32_t column, const float *from) {
  const float *b = ssd->b + ssd->bc_stride * t, *c = ssd->c + ssd->bc_stride * t;
  const float decay = ssd->decay[ssd->gate_stride * t];
  const float x = ssd->x[ssd->x_stride * t + column];
  const float input = x * ssd->dt[ssd->gate_stride * t];
  float sum = ssd->d * x;
  for (uint32_t i = 0; i < ssd->states; i++) {
    const size_t at = (size_t)i * ssd->head_dim + column;
    const float state = from[at] * decay + b[i] * input;
    ssd->state_out[at] = state;
    sum += state * c[i];
  }
  return sum;
}

void ssd_columns(const kernel_ssd *ssd, uint32_t first, uint32_t last) {
  for (uint32_t c = first; c < last; c++) {
    for (uint32_t t = 0; t < ssd->tokens; t++) {
      const float *from = t == 0 ? ssd->state_in : ssd->state_out;
      ssd->y[ssd->y_stride * t + c] = ssd_step(ssd, t, c, from);
    }
  }
}

void ssd_scalar(const kernel_ssd *ssd) { ssd_columns(ssd, 0, ssd->head_dim); }

// ---- RWKV-7 ----

// Computes one column of the values.
static float wkv_step(const kernel_wkv *wkv, uint32_t t, uint32_t column, const float *from) {
  const size_t row = wkv->stride * t;
  const float v = wkv->v[row + column];
  float known = 0.0f, sum = 0.0f;
  for (uint32_t i = 0; i < wkv->dim; i++) {
    known += from[(size_t)i * wkv->dim + column] * wkv->a[row + i];
  }
  for (uint32_t i = 0; i < wkv->dim; i++) {
    const size_t at = (size_t)i * wkv->dim + column;
    const float state =
        (from[at] * wkv->w[row + i] + wkv->k[row + i] * v) + wkv->b[row + i] * known;
    wkv->state_out[at] = state;
    sum += state * wkv->r[row + i];
  }
  return sum;
}

void wkv_columns(const kernel_wkv *wkv, uint32_t first, uint32_t last) {
  for (uint32_t c = first; c < last; c++) {
    for (uint32_t t = 0; t < wkv->tokens; t++) {
      const float *from = t == 0 ? wkv->state_in : wkv->state_out;
      wkv->y[wkv->stride * t + c] = wkv_step(wkv, t, c, from);
    }
  }
}

void wkv_scalar(const kernel_wkv *wkv) { wkv_columns(wkv, 0, wkv->dim); }

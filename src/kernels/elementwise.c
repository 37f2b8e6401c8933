// kernels/elementwise.c — norms, rotation, activations, residual; scalar reference.
#include "kernels/exp.h"
#include "kernels/families.h"

// Adds up sums that are kept in 16 parts, value i in part i % 16, as in SIMD lanes.
static float sum_of_parts(float parts[16]) {
  for (uint32_t half = 8; half > 0; half /= 2) {
    for (uint32_t i = 0; i < half; i++) parts[i] += parts[i + half];
  }
  return parts[0];
}

static float sum_of_values(const float *x, uint32_t n) {
  float parts[16] = {0};
  for (uint32_t i = 0; i < n; i++) parts[i % 16] += x[i];
  return sum_of_parts(parts);
}

// Returns the sum of (x - mean)^2.
static float sum_of_squares_about(const float *x, uint32_t n, float mean) {
  float parts[16] = {0};
  for (uint32_t i = 0; i < n; i++) parts[i % 16] += (x[i] - mean) * (x[i] - mean);
  return sum_of_parts(parts);
}

static float sum_of_squares(const float *x, uint32_t n) { return sum_of_squares_about(x, n, 0); }

void rms_norm_scalar(const float *x, const float *weight, uint32_t n, float epsilon, float *out) {
  const float factor = 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + epsilon);
  if (weight == NULL) {
    for (uint32_t i = 0; i < n; i++) out[i] = x[i] * factor;
    return;
  }
  for (uint32_t i = 0; i < n; i++) out[i] = x[i] * factor * weight[i];
}

void layer_norm_scalar(const float *x, const float *weight, const float *bias, uint32_t n,
                       float epsilon, float *out) {
  const float mean = sum_of_values(x, n) / (float)n;
  const float square = sum_of_squares_about(x, n, mean);
  const float factor = 1.0f / __builtin_sqrtf(square / (float)n + epsilon);
  for (uint32_t i = 0; i < n; i++) {
    const float scaled = (x[i] - mean) * factor * weight[i];
    out[i] = bias == NULL ? scaled : scaled + bias[i];
  }
}

void l2_norm_scalar(const float *x, uint32_t n, float epsilon, float *out) {
  const float length = __builtin_sqrtf(sum_of_squares(x, n));
  const float factor = 1.0f / (length < epsilon ? epsilon : length);  // NaN stays NaN
  for (uint32_t i = 0; i < n; i++) out[i] = x[i] * factor;
}

static void rope_pair(float *a, float *b, const float *cos_sin) {
  const float x = *a, y = *b;
  *a = x * cos_sin[0] - y * cos_sin[1];
  *b = x * cos_sin[1] + y * cos_sin[0];
}

void rope_scalar(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot, const float *cos_sin,
                 bool interleaved) {
  const uint32_t pairs = n_rot / 2;
  for (uint32_t h = 0; h < heads; h++, x += head_dim) {
    for (uint32_t i = 0; i < pairs; i++) {
      if (interleaved) {
        rope_pair(x + 2 * i, x + 2 * i + 1, cos_sin + 2 * i);
      } else {
        rope_pair(x + i, x + i + pairs, cos_sin + 2 * i);
      }
    }
  }
}

// Computes silu(g) = g / (1 + e^-g) (Elfwing et al. 2017; SwiGLU: Shazeer 2020).
void silu_mul_scalar(float *gate, const float *up, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) gate[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

void silu_scalar(float *x, uint32_t n) { sigmoid_mul_scalar(x, x, n); }

void sigmoid_mul_scalar(float *x, const float *gate, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] = x[i] / (1.0f + exp_f32(-gate[i]));
}

// Computes ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|).
void softplus_scalar(float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float e = exp_f32(x[i] < 0 ? x[i] : -x[i]), s = e / (2.0f + e), s2 = s * s;
    float sum = LOG1P_TERM(LOG1P_TERMS);
    for (int k = LOG1P_TERMS - 1; k >= 0; k--) sum = sum * s2 + LOG1P_TERM(k);
    x[i] = (x[i] > 0 ? x[i] : 0.0f) + s * sum;
  }
}

// Computes gelu(g) = g / 2 * (1 + tanh(u)) = g / (1 + e^(-2u)), u = sqrt(2 / pi) * (g + 0.044715
// g^3).
void gelu_mul_scalar(float *gate, const float *up, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float g = gate[i], u2 = g * (GELU_LINEAR + GELU_CUBIC * (g * g));
    const float value = g / (1.0f + exp_f32(-u2));
    gate[i] = up == NULL ? value : value * up[i];
  }
}

void soft_cap_scalar(float *x, float cap, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] = cap * tanh_f32(x[i] / cap);
}

void swiglu_clamped_scalar(float *gate, const float *up, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float g = gate[i] > SWIGLU_LIMIT ? SWIGLU_LIMIT : gate[i];
    const float below = up[i] > SWIGLU_LIMIT ? SWIGLU_LIMIT : up[i];
    const float u = below < -SWIGLU_LIMIT ? -SWIGLU_LIMIT : below;
    gate[i] = g / (1.0f + exp_f32(-(SWIGLU_SLOPE * g))) * (u + 1.0f);
  }
}

void xielu_scalar(float *x, const kernel_xielu *curve, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float v = x[i], low = v > curve->most ? curve->most : v;
    const float bent = v > 0 ? curve->grow * (v * v) : curve->shrink * ((exp_f32(low) - 1.0f) - v);
    x[i] = bent + curve->slope * v;
  }
}

void gelu_erf_mul_scalar(float *gate, const float *up, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float g = gate[i], value = 0.5f * g * (1.0f + erf_f32(g * GELU_ROOT));
    gate[i] = up == NULL ? value : value * up[i];
  }
}

// These functions are so simple that compilers vectorise them automatically.

void relu_mul(float *x, const float *up, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float value = x[i] < 0 ? 0 : x[i];  // NaN stays NaN
    x[i] = up == NULL ? value : value * up[i];
  }
}

void relu_square(float *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float value = x[i] < 0 ? 0 : x[i];
    x[i] = value * value;
  }
}

void clamp_values(float *x, float limit, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const float value = x[i] > limit ? limit : x[i];
    x[i] = value < -limit ? -limit : value;
  }
}

void multiply_values(float *x, const float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] *= y[i];
}

void add_scalar(float *x, const float *y, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] += y[i];
}

void scale_scalar(float *x, float factor, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) x[i] *= factor;
}

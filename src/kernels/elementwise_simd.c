// kernels/elementwise_simd.c — norms, rotation, activations, residual in 128-bit vectors,
// bit-identical to elementwise.c, which computes the remainders of rows.
#include "kernels/exp_simd.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

static float sum_of_parts(const v128_t parts[4]) {
  const v128_t four =
      wasm_f32x4_add(wasm_f32x4_add(parts[0], parts[2]), wasm_f32x4_add(parts[1], parts[3]));
  const v128_t two = wasm_f32x4_add(four, wasm_i64x2_shuffle(four, four, 1, 0));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

// Adds 16 squares of x - mean to 16 parts.
static inline void squares_add(v128_t parts[4], const float *x, v128_t mean) {
  for (uint32_t k = 0; k < 4; k++) {
    const v128_t values = wasm_f32x4_sub(wasm_v128_load(x + 4 * k), mean);
    parts[k] = wasm_f32x4_add(parts[k], wasm_f32x4_mul(values, values));
  }
}

static float sum_of_squares_about(const float *x, uint32_t n, float mean) {
  const v128_t means = wasm_f32x4_splat(mean);
  v128_t parts[4] = {wasm_f32x4_splat(0), wasm_f32x4_splat(0), wasm_f32x4_splat(0),
                     wasm_f32x4_splat(0)};
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) squares_add(parts, x + i, means);
  if (i < n) {
    float padded[16];
    for (uint32_t k = 0; k < 16; k++) padded[k] = i + k < n ? x[i + k] : mean;
    squares_add(parts, padded, means);
  }
  return sum_of_parts(parts);
}

static float sum_of_squares(const float *x, uint32_t n) { return sum_of_squares_about(x, n, 0); }

static float sum_of_values(const float *x, uint32_t n) {
  v128_t parts[4] = {wasm_f32x4_splat(0), wasm_f32x4_splat(0), wasm_f32x4_splat(0),
                     wasm_f32x4_splat(0)};
  for (uint32_t i = 0; i < n; i += 16) {
    float padded[16] = {0};
    const float *at = x + i;
    if (n - i < 16) {
      memcpy(padded, at, (n - i) * sizeof(float));
      at = padded;
    }
    for (uint32_t k = 0; k < 4; k++) {
      parts[k] = wasm_f32x4_add(parts[k], wasm_v128_load(at + 4 * k));
    }
  }
  return sum_of_parts(parts);
}

void rms_norm_simd128(const float *x, const float *weight, uint32_t n, float epsilon, float *out) {
  const float factor = 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + epsilon);
  const v128_t factors = wasm_f32x4_splat(factor);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    v128_t scaled = wasm_f32x4_mul(wasm_v128_load(x + i), factors);
    if (weight != NULL) scaled = wasm_f32x4_mul(scaled, wasm_v128_load(weight + i));
    wasm_v128_store(out + i, scaled);
  }
  for (; i < n; i++) out[i] = weight == NULL ? x[i] * factor : x[i] * factor * weight[i];
}

void layer_norm_simd128(const float *x, const float *weight, const float *bias, uint32_t n,
                        float epsilon, float *out) {
  const float mean = sum_of_values(x, n) / (float)n;
  const float square = sum_of_squares_about(x, n, mean);
  const float factor = 1.0f / __builtin_sqrtf(square / (float)n + epsilon);
  const v128_t means = wasm_f32x4_splat(mean), factors = wasm_f32x4_splat(factor);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t centred = wasm_f32x4_sub(wasm_v128_load(x + i), means);
    v128_t scaled = wasm_f32x4_mul(wasm_f32x4_mul(centred, factors), wasm_v128_load(weight + i));
    if (bias != NULL) scaled = wasm_f32x4_add(scaled, wasm_v128_load(bias + i));
    wasm_v128_store(out + i, scaled);
  }
  for (; i < n; i++) {
    const float scaled = (x[i] - mean) * factor * weight[i];
    out[i] = bias == NULL ? scaled : scaled + bias[i];
  }
}

void l2_norm_simd128(const float *x, uint32_t n, float epsilon, float *out) {
  const float length = __builtin_sqrtf(sum_of_squares(x, n));
  const float factor = 1.0f / (length < epsilon ? epsilon : length);
  const v128_t factors = wasm_f32x4_splat(factor);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    wasm_v128_store(out + i, wasm_f32x4_mul(wasm_v128_load(x + i), factors));
  }
  for (; i < n; i++) out[i] = x[i] * factor;
}

// Rotates 4 pairs (a[i], b[i]).
static void rope_halves(float *a, float *b, const float *cos_sin) {
  const v128_t first = wasm_v128_load(cos_sin), second = wasm_v128_load(cos_sin + 4);
  const v128_t c = wasm_i32x4_shuffle(first, second, 0, 2, 4, 6);
  const v128_t s = wasm_i32x4_shuffle(first, second, 1, 3, 5, 7);
  const v128_t x = wasm_v128_load(a), y = wasm_v128_load(b);
  wasm_v128_store(a, wasm_f32x4_sub(wasm_f32x4_mul(x, c), wasm_f32x4_mul(y, s)));
  wasm_v128_store(b, wasm_f32x4_add(wasm_f32x4_mul(x, s), wasm_f32x4_mul(y, c)));
}

// Rotates 2 adjacent pairs.
static void rope_neighbours(float *x, const float *cos_sin) {
  const v128_t signs = wasm_i32x4_make(INT32_MIN, 0, INT32_MIN, 0);
  const v128_t both = wasm_v128_load(cos_sin), values = wasm_v128_load(x);
  const v128_t c = wasm_i32x4_shuffle(both, both, 0, 0, 2, 2);
  const v128_t s = wasm_v128_xor(wasm_i32x4_shuffle(both, both, 1, 1, 3, 3), signs);
  const v128_t swapped = wasm_i32x4_shuffle(values, values, 1, 0, 3, 2);
  wasm_v128_store(x, wasm_f32x4_add(wasm_f32x4_mul(values, c), wasm_f32x4_mul(swapped, s)));
}

void rope_simd128(float *x, uint32_t heads, uint32_t head_dim, uint32_t n_rot, const float *cos_sin,
                  bool interleaved) {
  const uint32_t pairs = n_rot / 2, step = interleaved ? 2 : 4;
  if (pairs % step != 0) {
    rope_scalar(x, heads, head_dim, n_rot, cos_sin, interleaved);
    return;
  }
  for (uint32_t h = 0; h < heads; h++, x += head_dim) {
    for (uint32_t i = 0; i < pairs; i += step) {
      if (interleaved) {
        rope_neighbours(x + 2 * i, cos_sin + 2 * i);
      } else {
        rope_halves(x + i, x + i + pairs, cos_sin + 2 * i);
      }
    }
  }
}

// Returns x * sigmoid(gate).
SIMD_INLINE v128_t sigmoid_times(v128_t x, v128_t gate) {
  return wasm_f32x4_div(x, wasm_f32x4_add(wasm_f32x4_splat(1), exp_f32x4(wasm_f32x4_neg(gate))));
}

void silu_mul_simd128(float *gate, const float *up, uint32_t n) {
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t g = wasm_v128_load(gate + i);
    wasm_v128_store(gate + i, wasm_f32x4_mul(sigmoid_times(g, g), wasm_v128_load(up + i)));
  }
  silu_mul_scalar(gate + i, up + i, n - i);
}

void gelu_mul_simd128(float *gate, const float *up, uint32_t n) {
  const v128_t linear = wasm_f32x4_splat(GELU_LINEAR), cubic = wasm_f32x4_splat(GELU_CUBIC);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t g = wasm_v128_load(gate + i);
    const v128_t curve = wasm_f32x4_add(linear, wasm_f32x4_mul(cubic, wasm_f32x4_mul(g, g)));
    v128_t value = sigmoid_times(g, wasm_f32x4_mul(g, curve));
    if (up != NULL) value = wasm_f32x4_mul(value, wasm_v128_load(up + i));
    wasm_v128_store(gate + i, value);
  }
  gelu_mul_scalar(gate + i, up == NULL ? NULL : up + i, n - i);
}

// Computes erf_f32 of exp.h.
SIMD_INLINE v128_t erf_f32x4(v128_t x) {
  static const float terms[] = {1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f,
                                0.254829592f};
  const v128_t one = wasm_f32x4_splat(1), size = wasm_f32x4_abs(x);
  const v128_t slope = wasm_f32x4_mul(wasm_f32x4_splat(0.3275911f), size);
  const v128_t t = wasm_f32x4_div(one, wasm_f32x4_add(one, slope));
  v128_t p = wasm_f32x4_mul(wasm_f32x4_splat(terms[0]), t);
  for (int i = 1; i < 5; i++) {
    p = wasm_f32x4_mul(wasm_f32x4_add(p, wasm_f32x4_splat(terms[i])), t);
  }
  const v128_t e = exp_up_to_most(wasm_f32x4_neg(wasm_f32x4_mul(size, size)), SIMD_PLAIN);
  const v128_t value = wasm_f32x4_sub(one, wasm_f32x4_mul(p, e));
  const v128_t below = wasm_f32x4_lt(x, wasm_f32x4_splat(0));
  return wasm_v128_xor(value, wasm_v128_and(below, wasm_i32x4_splat(INT32_MIN)));
}

void gelu_erf_mul_simd128(float *gate, const float *up, uint32_t n) {
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t g = wasm_v128_load(gate + i), half = wasm_f32x4_mul(wasm_f32x4_splat(0.5f), g);
    const v128_t erf = erf_f32x4(wasm_f32x4_mul(g, wasm_f32x4_splat(GELU_ROOT)));
    v128_t value = wasm_f32x4_mul(half, wasm_f32x4_add(wasm_f32x4_splat(1), erf));
    if (up != NULL) value = wasm_f32x4_mul(value, wasm_v128_load(up + i));
    wasm_v128_store(gate + i, value);
  }
  gelu_erf_mul_scalar(gate + i, up == NULL ? NULL : up + i, n - i);
}

void soft_cap_simd128(float *x, float cap, uint32_t n) {
  const v128_t caps = wasm_f32x4_splat(cap);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t part = wasm_f32x4_div(wasm_v128_load(x + i), caps);
    wasm_v128_store(x + i, wasm_f32x4_mul(caps, tanh_f32x4(part)));
  }
  soft_cap_scalar(x + i, cap, n - i);
}

void swiglu_clamped_simd128(float *gate, const float *up, uint32_t n) {
  const v128_t limit = wasm_f32x4_splat(SWIGLU_LIMIT), least = wasm_f32x4_splat(-SWIGLU_LIMIT);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    v128_t g = wasm_v128_load(gate + i), u = wasm_v128_load(up + i);
    g = wasm_v128_bitselect(limit, g, wasm_f32x4_gt(g, limit));
    u = wasm_v128_bitselect(limit, u, wasm_f32x4_gt(u, limit));
    u = wasm_v128_bitselect(least, u, wasm_f32x4_lt(u, least));
    const v128_t value = sigmoid_times(g, wasm_f32x4_mul(wasm_f32x4_splat(SWIGLU_SLOPE), g));
    wasm_v128_store(gate + i, wasm_f32x4_mul(value, wasm_f32x4_add(u, wasm_f32x4_splat(1))));
  }
  swiglu_clamped_scalar(gate + i, up + i, n - i);
}

void xielu_simd128(float *x, const kernel_xielu *curve, uint32_t n) {
  const v128_t grow = wasm_f32x4_splat(curve->grow), shrink = wasm_f32x4_splat(curve->shrink);
  const v128_t most = wasm_f32x4_splat(curve->most), slope = wasm_f32x4_splat(curve->slope);
  const v128_t zero = wasm_f32x4_splat(0), one = wasm_f32x4_splat(1);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t v = wasm_v128_load(x + i);
    const v128_t low = wasm_v128_bitselect(most, v, wasm_f32x4_gt(v, most));
    const v128_t below = wasm_f32x4_sub(wasm_f32x4_sub(exp_f32x4(low), one), v);
    const v128_t bent = wasm_v128_bitselect(wasm_f32x4_mul(grow, wasm_f32x4_mul(v, v)),
                                            wasm_f32x4_mul(shrink, below), wasm_f32x4_gt(v, zero));
    wasm_v128_store(x + i, wasm_f32x4_add(bent, wasm_f32x4_mul(slope, v)));
  }
  xielu_scalar(x + i, curve, n - i);
}

void softplus_simd128(float *x, uint32_t n) {
  const v128_t two = wasm_f32x4_splat(2), zero = wasm_f32x4_splat(0);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t v = wasm_v128_load(x + i);
    const v128_t e = exp_f32x4(wasm_f32x4_neg(wasm_f32x4_abs(v)));
    const v128_t s = wasm_f32x4_div(e, wasm_f32x4_add(two, e)), s2 = wasm_f32x4_mul(s, s);
    v128_t sum = wasm_f32x4_splat(LOG1P_TERM(LOG1P_TERMS));
    for (int k = LOG1P_TERMS - 1; k >= 0; k--) {
      sum = wasm_f32x4_add(wasm_f32x4_mul(sum, s2), wasm_f32x4_splat(LOG1P_TERM(k)));
    }
    wasm_v128_store(x + i, wasm_f32x4_add(wasm_f32x4_pmax(zero, v), wasm_f32x4_mul(s, sum)));
  }
  softplus_scalar(x + i, n - i);
}

void silu_simd128(float *x, uint32_t n) { sigmoid_mul_simd128(x, x, n); }

void sigmoid_mul_simd128(float *x, const float *gate, uint32_t n) {
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    wasm_v128_store(x + i, sigmoid_times(wasm_v128_load(x + i), wasm_v128_load(gate + i)));
  }
  sigmoid_mul_scalar(x + i, gate + i, n - i);
}

void add_simd128(float *x, const float *y, uint32_t n) {
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    wasm_v128_store(x + i, wasm_f32x4_add(wasm_v128_load(x + i), wasm_v128_load(y + i)));
  }
  add_scalar(x + i, y + i, n - i);
}

void scale_simd128(float *x, float factor, uint32_t n) {
  const v128_t factors = wasm_f32x4_splat(factor);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    wasm_v128_store(x + i, wasm_f32x4_mul(wasm_v128_load(x + i), factors));
  }
  scale_scalar(x + i, factor, n - i);
}

#endif

// kernels/elementwise_simd.c — norm, rotation, activation, residual in 128-bit vectors, bit for bit
// what elementwise.c gives, so that ends that fill no vector are left to it.
#include "kernels/exp_simd.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

// 16 squares added to 16 parts.
static inline void squares_add(v128_t parts[4], const float *x) {
  for (uint32_t k = 0; k < 4; k++) {
    const v128_t values = wasm_v128_load(x + 4 * k);
    parts[k] = wasm_f32x4_add(parts[k], wasm_f32x4_mul(values, values));
  }
}

static float sum_of_squares(const float *x, uint32_t n) {
  v128_t parts[4] = {wasm_f32x4_splat(0), wasm_f32x4_splat(0), wasm_f32x4_splat(0),
                     wasm_f32x4_splat(0)};
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) squares_add(parts, x + i);
  if (i < n) {
    float padded[16] = {0};
    memcpy(padded, x + i, (n - i) * sizeof(float));
    squares_add(parts, padded);
  }
  const v128_t four =
      wasm_f32x4_add(wasm_f32x4_add(parts[0], parts[2]), wasm_f32x4_add(parts[1], parts[3]));
  const v128_t two = wasm_f32x4_add(four, wasm_i64x2_shuffle(four, four, 1, 0));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

void rms_norm_simd128(const float *x, const float *weight, uint32_t n, float epsilon, float *out) {
  const float factor = 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + epsilon);
  const v128_t factors = wasm_f32x4_splat(factor);
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const v128_t scaled = wasm_f32x4_mul(wasm_v128_load(x + i), factors);
    wasm_v128_store(out + i, wasm_f32x4_mul(scaled, wasm_v128_load(weight + i)));
  }
  for (; i < n; i++) out[i] = x[i] * factor * weight[i];
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

// 4 pairs (a[i], b[i]).
static void rope_halves(float *a, float *b, const float *cos_sin) {
  const v128_t first = wasm_v128_load(cos_sin), second = wasm_v128_load(cos_sin + 4);
  const v128_t c = wasm_i32x4_shuffle(first, second, 0, 2, 4, 6);
  const v128_t s = wasm_i32x4_shuffle(first, second, 1, 3, 5, 7);
  const v128_t x = wasm_v128_load(a), y = wasm_v128_load(b);
  wasm_v128_store(a, wasm_f32x4_sub(wasm_f32x4_mul(x, c), wasm_f32x4_mul(y, s)));
  wasm_v128_store(b, wasm_f32x4_add(wasm_f32x4_mul(x, s), wasm_f32x4_mul(y, c)));
}

// 2 pairs side by side.
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

// x * sigmoid(gate).
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

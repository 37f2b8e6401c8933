// kernels/recurrent_simd.c — mixers that carry a state, in 128-bit vectors. Lanes are channels or
// columns of values, so every sum is added in the order of recurrent.c and is bit-identical.
// Remainders that do not fill a vector are left to recurrent.c.
#include <string.h>

#include "kernels/exp_simd.h"
#include "kernels/families.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// ---- convolution ----

// Tokens that share their loads of inputs and taps.
enum { CONV_TOKENS = 4, CONV_ROWS_MAX = KERNEL_CONV_WIDTH_MAX + CONV_TOKENS - 1 };

// Computes `tokens` tokens starting at t, up to CONV_TOKENS. All inputs of 4 channels are loaded
// before an output is stored, because y may be x.
SIMD_INLINE void conv_strip(const kernel_conv *conv, uint32_t width, uint32_t t, uint32_t tokens,
                            uint32_t channel_first, uint32_t channel_last) {
  const float *rows[CONV_ROWS_MAX];
  for (uint32_t r = 0; r < width + tokens - 1; r++) rows[r] = conv_input(conv, t + r);
  float *y = conv->y + conv->y_stride * t;
  for (uint32_t c = channel_first; c < channel_last; c += 4) {
    v128_t sums[CONV_TOKENS], inputs[CONV_ROWS_MAX];
    for (uint32_t r = 0; r < width + tokens - 1; r++) inputs[r] = wasm_v128_load(rows[r] + c);
    const v128_t bias = conv->bias != NULL ? wasm_v128_load(conv->bias + c) : wasm_f32x4_splat(0);
    for (uint32_t i = 0; i < tokens; i++) sums[i] = bias;
    for (uint32_t k = 0; k < width; k++) {
      const v128_t weight = wasm_v128_load(conv->weight + (size_t)k * conv->channels + c);
      for (uint32_t i = 0; i < tokens; i++) {
        sums[i] = wasm_f32x4_add(sums[i], wasm_f32x4_mul(weight, inputs[i + k]));
      }
    }
    for (uint32_t i = 0; i < tokens; i++) wasm_v128_store(y + conv->y_stride * i + c, sums[i]);
  }
}

static void conv_one(const kernel_conv *conv, uint32_t t, uint32_t first, uint32_t last) {
  conv_strip(conv, conv->width, t, 1, first, last);
}

static void conv_tokens_of_3(const kernel_conv *conv, uint32_t t, uint32_t first, uint32_t last) {
  conv_strip(conv, 3, t, CONV_TOKENS, first, last);
}

static void conv_tokens_of_4(const kernel_conv *conv, uint32_t t, uint32_t first, uint32_t last) {
  conv_strip(conv, 4, t, CONV_TOKENS, first, last);
}

void conv_simd128(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last) {
  const uint32_t end = channel_first + (channel_last - channel_first) / 4 * 4;
  conv_state_write(conv, channel_first, end);
  uint32_t t = conv->tokens;
  for (; (conv->width == 3 || conv->width == 4) && t >= CONV_TOKENS; t -= CONV_TOKENS) {
    if (conv->width == 3) {
      conv_tokens_of_3(conv, t - CONV_TOKENS, channel_first, end);
    } else {
      conv_tokens_of_4(conv, t - CONV_TOKENS, channel_first, end);
    }
  }
  while (t-- > 0) conv_one(conv, t, channel_first, end);
  if (end < channel_last) conv_scalar(conv, end, channel_last);
}

// ---- gated delta rule ----

// DELTA_COLUMNS: columns whose sums are on the stack. DELTA_STRIP: vectors whose sums stay in
// registers while rows of the state are read. DELTA_NEXT_STRIP: their number if the sums of the
// next token are also computed.
enum { DELTA_COLUMNS = 256, DELTA_STRIP = 4, DELTA_NEXT_STRIP = 2 };

// The sums of columns while the rows of a token are read.
typedef struct delta_sums {
  float d[DELTA_COLUMNS];      // the token's addition, which is multiplied by its key
  float known[DELTA_COLUMNS];  // S^T k of the next token
} delta_sums;

SIMD_INLINE v128_t add_product(v128_t sum, v128_t a, v128_t b) {
  return wasm_f32x4_add(sum, wasm_f32x4_mul(a, b));
}

// Computes known += S^T k for one row.
static void known_add(const float *row, uint32_t columns, const float *k, float *known) {
  const v128_t key = wasm_v128_load32_splat(k);
  for (uint32_t c = 0; c < columns; c += 4) {
    const v128_t sum = wasm_v128_load(known + c);
    wasm_v128_store(known + c, add_product(sum, wasm_v128_load(row + c), key));
  }
}

// One token and a few rows of the state.
typedef struct delta_rows {
  const float *from;
  float *to;
  size_t stride;
  const float *k, *q, *k_next;  // k_next: NULL after the last token
  const float *decay;
  float *y;
} delta_rows;

// Computes S = S * decay + k d^T; y += S^T q; sums->known += S^T k_next, for `vectors` vectors
// starting at c.
SIMD_INLINE void strip_step(const delta_rows *at, uint32_t c, uint32_t rows, uint32_t vectors,
                            bool has_next, delta_sums *sums) {
  v128_t d[DELTA_STRIP], y[DELTA_STRIP], known[DELTA_STRIP], next;
  const v128_t decay = wasm_v128_load32_splat(at->decay);
  const float *from = at->from + c;
  float *to = at->to + c;
  for (uint32_t j = 0; j < vectors; j++) {
    d[j] = wasm_v128_load(sums->d + c + 4 * j);
    y[j] = wasm_v128_load(at->y + c + 4 * j);
    if (has_next) known[j] = wasm_v128_load(sums->known + c + 4 * j);
  }
  for (uint32_t r = 0; r < rows; r++, from += at->stride, to += at->stride) {
    const v128_t key = wasm_v128_load32_splat(at->k + r);
    const v128_t query = wasm_v128_load32_splat(at->q + r);
    if (has_next) next = wasm_v128_load32_splat(at->k_next + r);
    for (uint32_t j = 0; j < vectors; j++) {
      const v128_t decayed = wasm_f32x4_mul(wasm_v128_load(from + 4 * j), decay);
      const v128_t state = add_product(decayed, key, d[j]);
      wasm_v128_store(to + 4 * j, state);
      y[j] = add_product(y[j], state, query);
      if (has_next) known[j] = add_product(known[j], state, next);
    }
  }
  for (uint32_t j = 0; j < vectors; j++) {
    wasm_v128_store(at->y + c + 4 * j, y[j]);
    if (has_next) wasm_v128_store(sums->known + c + 4 * j, known[j]);
  }
}

SIMD_INLINE void strips_step(const delta_rows *at, uint32_t rows, uint32_t columns, bool has_next,
                             delta_sums *sums) {
  const uint32_t strip = has_next ? DELTA_NEXT_STRIP : DELTA_STRIP;
  for (uint32_t c = 0; c < columns; c += 4 * strip) {
    strip_step(at, c, rows, strip, has_next, sums);
  }
}

// Steps all rows. One copy serves the delta rule and Mamba 2. The state of a single token is read
// from memory, which is fastest in order, row after row.
static __attribute__((noinline)) void all_rows_step(delta_rows at, uint32_t key_dim,
                                                    uint32_t columns, bool is_alone,
                                                    delta_sums *sums) {
  if (at.k_next != NULL) {
    strips_step(&at, key_dim, columns, true, sums);
    return;
  }
  const uint32_t rows = is_alone ? 1 : key_dim;
  for (uint32_t i = 0; i < key_dim; i += rows, at.k += rows, at.q += rows) {
    strips_step(&at, rows, columns, false, sums);
    at.from += at.stride;
    at.to += at.stride;
  }
}

// Computes d = (v - known * decay) * beta; known = y = 0.
static void token_begin(const float *v, float decay, float beta, uint32_t columns, float *y,
                        delta_sums *sums) {
  const v128_t decays = wasm_f32x4_splat(decay), betas = wasm_f32x4_splat(beta);
  for (uint32_t c = 0; c < columns; c += 4) {
    const v128_t known = wasm_f32x4_mul(decays, wasm_v128_load(sums->known + c));
    const v128_t rest = wasm_f32x4_sub(wasm_v128_load(v + c), known);
    wasm_v128_store(sums->d + c, wasm_f32x4_mul(rest, betas));
    wasm_v128_store(sums->known + c, wasm_f32x4_splat(0));
    wasm_v128_store(y + c, wasm_f32x4_splat(0));
  }
}

// Computes up to DELTA_COLUMNS columns. The rows are read once for each token: one pass updates the
// rows and computes the first sum of the next token.
static void some_columns(const kernel_delta *delta, uint32_t first, uint32_t columns) {
  delta_sums sums;
  memset(sums.known, 0, columns * sizeof(float));
  for (uint32_t i = 0; i < delta->key_dim; i++) {
    known_add(delta->state_in + (size_t)i * delta->value_dim + first, columns, delta->k + i,
              sums.known);
  }
  for (uint32_t t = 0; t < delta->tokens; t++) {
    const bool is_last = t + 1 == delta->tokens;
    const float *k = delta->k + delta->qk_stride * t,
                *decay = delta->decay + delta->gate_stride * t;
    float *y = delta->y + delta->y_stride * t + first;
    token_begin(delta->v + delta->v_stride * t + first, *decay, delta->beta[delta->gate_stride * t],
                columns, y, &sums);
    const delta_rows rows = {.from = (t == 0 ? delta->state_in : delta->state_out) + first,
                             .to = delta->state_out + first,
                             .stride = delta->value_dim,
                             .k = k,
                             .q = delta->q + delta->qk_stride * t,
                             .k_next = is_last ? NULL : k + delta->qk_stride,
                             .decay = decay,
                             .y = y};
    all_rows_step(rows, delta->key_dim, columns, delta->tokens == 1, &sums);
  }
}

// Heads in use are multiples of the strips; the scalar code computes any remainder.
void delta_simd128(const kernel_delta *delta) {
  const uint32_t end = delta->value_dim / (4 * DELTA_STRIP) * (4 * DELTA_STRIP);
  for (uint32_t c = 0; c < end; c += DELTA_COLUMNS) {
    some_columns(delta, c, end - c < DELTA_COLUMNS ? end - c : DELTA_COLUMNS);
  }
  delta_columns(delta, end, delta->value_dim);
}

// ---- selective scan ----

// Computes one token of one channel, as in recurrent.c; states are a multiple of 4.
SIMD_INLINE float scan_channel(const kernel_scan *scan, const float *a, const float *b,
                               const float *c, float dt, float x, const float *from, float *to) {
  const v128_t dts = wasm_f32x4_splat(dt), inputs = wasm_f32x4_splat(dt * x);
  v128_t parts = wasm_f32x4_splat(0);
  for (uint32_t s = 0; s < scan->states; s += 4) {
    const v128_t decay = exp_f32x4(wasm_f32x4_mul(dts, wasm_v128_load(a + s)));
    const v128_t kept = wasm_f32x4_mul(decay, wasm_v128_load(from + s));
    const v128_t state = add_product(kept, inputs, wasm_v128_load(b + s));
    wasm_v128_store(to + s, state);
    parts = add_product(parts, state, wasm_v128_load(c + s));
  }
  const v128_t two = wasm_f32x4_add(parts, wasm_i64x2_shuffle(parts, parts, 1, 0));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

static void scan_token(const kernel_scan *scan, uint32_t t, uint32_t channel_first,
                       uint32_t channel_last) {
  const float *from = t == 0 ? scan->state_in : scan->state_out;
  const float *b = scan->b + scan->bc_stride * t, *c = scan->c + scan->bc_stride * t;
  const float *x = scan->x + scan->x_stride * t, *dt = scan->dt + scan->dt_stride * t;
  float *y = scan->y + scan->y_stride * t;
  for (uint32_t i = channel_first; i < channel_last; i++) {
    const size_t at = (size_t)i * scan->states;
    const float input = x[i];
    const float sum =
        scan_channel(scan, scan->a + at, b, c, dt[i], input, from + at, scan->state_out + at);
    y[i] = scan->d != NULL ? sum + scan->d[i] * input : sum;
  }
}

void scan_simd128(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last) {
  if (scan->states % 4 != 0) {
    scan_scalar(scan, channel_first, channel_last);
    return;
  }
  for (uint32_t t = 0; t < scan->tokens; t++) scan_token(scan, t, channel_first, channel_last);
}

// ---- Mamba 2: the delta rule's pass over the state, without its first sum ----

// Computes inputs = x * dt; y = d * x.
static void ssd_begin(const float *x, float dt, float d, uint32_t columns, float *y,
                      float *inputs) {
  for (uint32_t c = 0; c < columns; c += 4) {
    const v128_t values = wasm_v128_load(x + c);
    wasm_v128_store(inputs + c, wasm_f32x4_mul(values, wasm_f32x4_splat(dt)));
    wasm_v128_store(y + c, wasm_f32x4_mul(values, wasm_f32x4_splat(d)));
  }
}

static void ssd_some_columns(const kernel_ssd *ssd, uint32_t first, uint32_t columns) {
  delta_sums sums;
  for (uint32_t t = 0; t < ssd->tokens; t++) {
    float *y = ssd->y + ssd->y_stride * t + first;
    ssd_begin(ssd->x + ssd->x_stride * t + first, ssd->dt[ssd->gate_stride * t], ssd->d, columns, y,
              sums.d);
    const delta_rows rows = {.from = (t == 0 ? ssd->state_in : ssd->state_out) + first,
                             .to = ssd->state_out + first,
                             .stride = ssd->head_dim,
                             .k = ssd->b + ssd->bc_stride * t,
                             .q = ssd->c + ssd->bc_stride * t,
                             .decay = ssd->decay + ssd->gate_stride * t,
                             .y = y};
    all_rows_step(rows, ssd->states, columns, ssd->tokens == 1, &sums);
  }
}

void ssd_simd128(const kernel_ssd *ssd) {
  const uint32_t end = ssd->head_dim / (4 * DELTA_STRIP) * (4 * DELTA_STRIP);
  for (uint32_t c = 0; c < end; c += DELTA_COLUMNS) {
    ssd_some_columns(ssd, c, end - c < DELTA_COLUMNS ? end - c : DELTA_COLUMNS);
  }
  ssd_columns(ssd, end, ssd->head_dim);
}

// ---- RWKV-7 ----

enum { WKV_VECTORS = 4 };

// Computes one token of 4 * WKV_VECTORS columns.
static void wkv_strip(const kernel_wkv *wkv, uint32_t t, uint32_t column) {
  const size_t row = wkv->stride * t, dim = wkv->dim;
  const float *from = (t == 0 ? wkv->state_in : wkv->state_out) + column;
  float *to = wkv->state_out + column;
  v128_t known[WKV_VECTORS], sum[WKV_VECTORS], v[WKV_VECTORS];
  for (uint32_t j = 0; j < WKV_VECTORS; j++) {
    known[j] = sum[j] = wasm_f32x4_splat(0);
    v[j] = wasm_v128_load(wkv->v + row + column + 4 * j);
  }
  for (uint32_t i = 0; i < dim; i++) {
    const v128_t a = wasm_v128_load32_splat(wkv->a + row + i);
    for (uint32_t j = 0; j < WKV_VECTORS; j++) {
      known[j] = add_product(known[j], wasm_v128_load(from + i * dim + 4 * j), a);
    }
  }
  for (uint32_t i = 0; i < dim; i++) {
    const v128_t w = wasm_v128_load32_splat(wkv->w + row + i);
    const v128_t k = wasm_v128_load32_splat(wkv->k + row + i);
    const v128_t b = wasm_v128_load32_splat(wkv->b + row + i);
    const v128_t r = wasm_v128_load32_splat(wkv->r + row + i);
    for (uint32_t j = 0; j < WKV_VECTORS; j++) {
      const v128_t kept = wasm_f32x4_mul(wasm_v128_load(from + i * dim + 4 * j), w);
      const v128_t state = add_product(add_product(kept, k, v[j]), b, known[j]);
      wasm_v128_store(to + i * dim + 4 * j, state);
      sum[j] = add_product(sum[j], state, r);
    }
  }
  for (uint32_t j = 0; j < WKV_VECTORS; j++) wasm_v128_store(wkv->y + row + column + 4 * j, sum[j]);
}

// Heads in use are multiples of the strips; the scalar code computes any remainder.
void wkv_simd128(const kernel_wkv *wkv) {
  enum { STRIP = 4 * WKV_VECTORS };
  const uint32_t end = wkv->dim / STRIP * STRIP;
  for (uint32_t c = 0; c < end; c += STRIP) {
    for (uint32_t t = 0; t < wkv->tokens; t++) wkv_strip(wkv, t, c);
  }
  wkv_columns(wkv, end, wkv->dim);
}

#endif

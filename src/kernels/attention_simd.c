// kernels/attention_simd.c — computes attention over the pages of a step in 128-bit vectors. Lanes
// are tokens for the scores and dims for the values. The heads of a group share loaded and
// converted values. Sums are added in the order of attention.c.
#include "base/checked.h"
#include "base/memory.h"
#include "kernels/exp_simd.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

#ifdef WICK_SIMD128

// HEADS: heads whose scores are kept at a time, which is also the number of rows of STEP. K_DIMS
// and V_DIMS: dims of a page of floats that are read at a time.
enum { HEADS = 16, K_DIMS = 32, V_DIMS = 16, TOKENS = KERNEL_PAGE_TOKENS };
enum { STEP = KERNEL_STEP_TOKENS };

// Halves become floats that are too small by 2^112 (simd_f16_tiny). Queries and probabilities are
// first multiplied by 2^112, so the products have the right bits. Queries of 2^16 and above
// overflow.
#define F16_SIZE 0x1p112f

// Loads the last 4 dims of a row whose number of dims is not a multiple of 8; d is the first of
// these dims.
static void f16_load_4(const uint16_t *row, uint32_t d, float *to) {
  wasm_v128_store(to, simd_f16_tiny(wasm_u32x4_load16x4(row + d), 0));
}

// Computes to[i] = from[i] * factor; n is a multiple of 4.
static void multiply(const float *from, uint32_t n, float factor, float *to) {
  for (uint32_t i = 0; i < n; i += 4) {
    wasm_v128_store(to + i, wasm_f32x4_mul(wasm_v128_load(from + i), wasm_f32x4_splat(factor)));
  }
}

// Computes scores[16] += sum over `dims` dims of q[d] * k[d][16], for one or two heads.
SIMD_INLINE void scores_add(const float *k, uint32_t dims, const float *q, size_t q_stride,
                            float *scores, uint32_t heads, simd_flavor flavor) {
  v128_t sums[2][4];
  for (uint32_t i = 0; i < heads * 4; i++) {
    sums[i / 4][i % 4] = wasm_v128_load(scores + (size_t)(i / 4) * STEP + i % 4 * 4);
  }
#pragma nounroll
  for (uint32_t d = 0; d < dims; d++, k += KERNEL_PAGE_TOKENS, q++) {
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t splat = wasm_v128_load32_splat(q + h * q_stride);
      for (uint32_t i = 0; i < 4; i++) {
        sums[h][i] = simd_multiply_add(splat, wasm_v128_load(k + 4 * i), sums[h][i], flavor);
      }
    }
  }
  for (uint32_t i = 0; i < heads * 4; i++) {
    wasm_v128_store(scores + (size_t)(i / 4) * STEP + i % 4 * 4, sums[i / 4][i % 4]);
  }
}

// Computes acc[4 * vectors dims] += sum over t of p[t] * v[t], for one or two heads.
SIMD_INLINE void values_add(const float *v, size_t v_stride, const float *p, uint32_t first,
                            uint32_t last, float *acc, size_t acc_stride, uint32_t heads,
                            uint32_t vectors, simd_flavor flavor) {
  v128_t sums[2][4];
  for (uint32_t i = 0; i < heads * vectors; i++) {
    sums[i / vectors][i % vectors] =
        wasm_v128_load(acc + i / vectors * acc_stride + 4 * (i % vectors));
  }
#pragma nounroll
  for (uint32_t t = first; t < last; t++) {
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t splat = wasm_v128_load32_splat(p + (size_t)h * STEP + t);
      for (uint32_t i = 0; i < vectors; i++) {
        const v128_t values = wasm_v128_load(v + v_stride * t + 4 * i);
        sums[h][i] = simd_multiply_add(splat, values, sums[h][i], flavor);
      }
    }
  }
  for (uint32_t i = 0; i < heads * vectors; i++) {
    wasm_v128_store(acc + i / vectors * acc_stride + 4 * (i % vectors),
                    sums[i / vectors][i % vectors]);
  }
}

#ifdef WICK_LEVEL

// Heads whose scores, or whose values of V_DIMS dims, fit into registers of 8 floats.
enum { WIDE_HEADS = 4 };

// Computes out[h][16] += sum over i < count of x[h][i] * rows[i][16], with rows `stride` floats
// apart: the same products and sums as scores_add and values_add.
SIMD_INLINE void wide_add(const float *rows, size_t stride, uint32_t count, const float *x,
                          size_t x_stride, float *out, size_t out_stride) {
  __m256 sums[WIDE_HEADS][2];
  for (uint32_t i = 0; i < 2 * WIDE_HEADS; i++) {
    sums[i / 2][i % 2] = _mm256_loadu_ps(out + i / 2 * out_stride + i % 2 * 8);
  }
#pragma nounroll
  for (; count > 0; count--, rows += stride, x++) {
    const __m256 low = _mm256_loadu_ps(rows), high = _mm256_loadu_ps(rows + 8);
    for (uint32_t h = 0; h < WIDE_HEADS; h++) {
      const __m256 splat = _mm256_broadcast_ss(x + h * x_stride);
      sums[h][0] = _mm256_add_ps(_mm256_mul_ps(splat, low), sums[h][0]);
      sums[h][1] = _mm256_add_ps(_mm256_mul_ps(splat, high), sums[h][1]);
    }
  }
  for (uint32_t i = 0; i < 2 * WIDE_HEADS; i++) {
    _mm256_storeu_ps(out + i / 2 * out_stride + i % 2 * 8, sums[i / 2][i % 2]);
  }
}

#endif

// ---- Reading ahead ----

// Starts prefetching. Each time, an eighteenth of the bytes is prefetched, because a call reaches
// this point at least about 18 times.
static reading_ahead ahead_begin(const kernel_ahead *places) {
  return (reading_ahead){places, 0, (uint32_t)align_size(places->bytes / 18, CACHE_LINE_BYTES)};
}

__attribute__((noinline)) void read_ahead(reading_ahead *ahead) {
  const kernel_ahead *places = ahead->places;
  const uint32_t rest = places->bytes - ahead->done_bytes;
  const uint32_t end = ahead->done_bytes + (rest < ahead->step_bytes ? rest : ahead->step_bytes);
#pragma nounroll
  for (uint32_t i = ahead->done_bytes; i < end; i += CACHE_LINE_BYTES) {
    for (uint32_t page = 0; page < KERNEL_STEP_PAGES; page++) {
      (void)*(const volatile uint8_t *)(places->from[page] + i);
    }
  }
  ahead->done_bytes = end;
}

// ---- F16: heads use the halves while they are being converted ----

// FEW: heads that share a conversion. With 8 halves and 2 sums per head, all fit into the
// registers. Converting again for the next heads costs no more than writing floats and reading
// them. STRIP: factors at a time.
enum { FEW = 4, STRIP = 64 };

// The factors of `heads` rows, STRIP apart, starting at x; and the halves of `count` rows, `stride`
// bytes apart, of each of `pages` pages.
typedef struct strip_rows {
  const uint8_t *halves[KERNEL_STEP_PAGES];
  size_t stride;
  const float *x;
  uint32_t count, pages;
} strip_rows;

// Computes out[h][8] += sum over i of x[h][i] * halves[i][column to column + 7]. `heads` is a
// compile-time constant. Each iteration handles one row: V8 unrolls such a loop itself and
// interleaves the sums. If the rows were unrolled here, V8 would put all products of a sum one
// after the other.
SIMD_INLINE void strip_add(const strip_rows *rows, uint32_t column, float *out, size_t out_stride,
                           uint32_t heads, simd_flavor flavor) {
  const v128_t mask = wasm_v128_load(simd_mask.f16_tiny);
  const v128_t low_halves = wasm_v128_load(simd_mask.f16_low);
  const float *x = rows->x;
  v128_t sums[FEW][2];
  for (uint32_t i = 0; i < heads * 2; i++) {
    sums[i / 2][i % 2] = wasm_v128_load(out + i / 2 * out_stride + i % 2 * 4);
  }
#pragma nounroll
  for (uint32_t n = 0; n < rows->pages; n++) {
    const uint8_t *halves = rows->halves[n] + column * sizeof(uint16_t);
    const float *end = x + rows->count;
#pragma nounroll
    while (x < end) {
      const v128_t pairs = wasm_v128_load(halves);
      const v128_t low = wasm_v128_and(wasm_i32x4_dot_i16x8(pairs, low_halves), mask);
      const v128_t high = wasm_v128_and(wasm_i32x4_shr(pairs, 3), mask);
      for (uint32_t h = 0; h < heads; h++) {
        const v128_t splat = wasm_v128_load32_splat(x + (size_t)h * STRIP);
        sums[h][0] = simd_multiply_add(splat, low, sums[h][0], flavor);
        sums[h][1] = simd_multiply_add(splat, high, sums[h][1], flavor);
      }
      halves += rows->stride;
      x++;
      SIMD_OPAQUE(x);
    }
  }
  for (uint32_t i = 0; i < heads * 2; i++) {
    wasm_v128_store(out + i / 2 * out_stride + i % 2 * 4, sums[i / 2][i % 2]);
  }
}

// Computes the columns of `columns` / 8 strips.
SIMD_INLINE void strips(const strip_rows *rows, float *out, size_t out_stride, uint32_t columns,
                        reading_ahead *ahead, uint32_t heads, simd_flavor flavor) {
#pragma nounroll
  for (uint32_t c = 0; c + 8 <= columns; c += 8) {
    read_ahead(ahead);
    strip_add(rows, c, out + c, out_stride, heads, flavor);
  }
}

SIMD_INLINE void strips_few(const strip_rows *rows, float *out, size_t out_stride, uint32_t columns,
                            reading_ahead *ahead, uint32_t heads, simd_flavor flavor) {
  if (heads == 1) {
    strips(rows, out, out_stride, columns, ahead, 1, flavor);
  } else if (heads == 2) {
    strips(rows, out, out_stride, columns, ahead, 2, flavor);
  } else if (heads == 3) {
    strips(rows, out, out_stride, columns, ahead, 3, flavor);
  } else {
    strips(rows, out, out_stride, columns, ahead, 4, flavor);
  }
}

// Handles a score above the maximum so far: the new maximum is the largest of `most`, and the sums
// so far shrink.
static __attribute__((noinline)) void softmax_raise(const kernel_attention *state, uint32_t head,
                                                    v128_t most) {
  most = wasm_f32x4_pmax(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_f32x4_pmax(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  const float max = wasm_f32x4_extract_lane(most, 0);
  const float correction = exp_f32(state->max[head] - max);
  state->max[head] = max;
  state->sum[head] *= correction;
  float *acc = state->acc + (size_t)head * state->head_dim;
  multiply(acc, state->head_dim, correction, acc);
}

// Returns the sum of four vectors, in the order of add_places in attention.c.
static float add_places(const v128_t places[4]) {
  v128_t sum =
      wasm_f32x4_add(wasm_f32x4_add(places[0], places[1]), wasm_f32x4_add(places[2], places[3]));
  sum = wasm_f32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
  return wasm_f32x4_extract_lane(sum, 0) + wasm_f32x4_extract_lane(sum, 1);
}

// Returns the largest of the scores and of `max`, in one of the lanes. NaN scores are ignored.
static v128_t largest_of(const float *scores, uint32_t tokens, v128_t max) {
  v128_t most[4];
  for (uint32_t i = 0; i < 4; i++) most[i] = max;
#pragma nounroll
  for (uint32_t t = 0; t < tokens; t += TOKENS) {
    for (uint32_t i = 0; i < 4; i++) {
      most[i] = wasm_f32x4_pmax(most[i], wasm_v128_load(scores + t + 4 * i));
    }
  }
  return wasm_f32x4_pmax(wasm_f32x4_pmax(most[0], most[1]), wasm_f32x4_pmax(most[2], most[3]));
}

// Computes scores = e^(scores - max). Returns their sum.
SIMD_INLINE float exp_row(float *scores, uint32_t tokens, v128_t max, simd_flavor flavor) {
  v128_t places[4];
  for (uint32_t i = 0; i < 4; i++) places[i] = wasm_f32x4_splat(0);
#pragma nounroll
  for (const float *end = scores + tokens; scores < end; scores += TOKENS) {
    SIMD_OPAQUE(scores);
    for (uint32_t i = 0; i < 4; i++) {
      const v128_t x = wasm_f32x4_sub(wasm_v128_load(scores + 4 * i), max);
      const v128_t p = exp_up_to_most(x, flavor);
      wasm_v128_store(scores + 4 * i, p);
      places[i] = wasm_f32x4_add(places[i], p);
    }
  }
  return add_places(places);
}

// Computes what step_softmax of attention.c does; there, the correction is 1 if the maximum does
// not change. Handles the heads starting at `head`, with `tokens` tokens each; scores of tokens
// that do not count are -Inf.
SIMD_INLINE void softmax(const kernel_attention *state, uint32_t head, uint32_t heads,
                         float *scores, uint32_t tokens, simd_flavor flavor) {
#pragma nounroll
  for (uint32_t h = head; h < head + heads; h++, scores += STEP) {
    const v128_t max = wasm_v128_load32_splat(state->max + h);
    const v128_t most = largest_of(scores, tokens, max);
    if (wasm_v128_any_true(wasm_f32x4_gt(most, max))) softmax_raise(state, h, most);
    state->sum[h] += exp_row(scores, tokens, wasm_v128_load32_splat(state->max + h), flavor);
  }
}

// Sets the scores of tokens that do not count to -Inf.
static void leave_out(float *scores, uint32_t heads, const kernel_page *pages, uint32_t count) {
  for (uint32_t n = 0; n < count; n++, scores += TOKENS) {
    if (pages[n].last - pages[n].first == TOKENS) continue;
    for (uint32_t i = 0; i < heads * TOKENS; i++) {
      const uint32_t t = i % TOKENS;
      if (t >= pages[n].first && t < pages[n].last) continue;
      scores[(size_t)(i / TOKENS) * STEP + t] = f32_of_bits(0xff800000u);
    }
  }
}

// Caps 4 scores, and adds ALiBi's biases for the positions starting at `position`.
static v128_t bend(v128_t scores, float cap, const kernel_bias *bias, uint32_t position) {
  if (cap != 0) {
    const v128_t caps = wasm_f32x4_splat(cap);
    scores = wasm_f32x4_mul(caps, tanh_f32x4(wasm_f32x4_div(scores, caps)));
  }
  if (bias == NULL) return scores;
  const v128_t first = wasm_i32x4_splat((int32_t)position - (int32_t)bias->position);
  const v128_t back = wasm_f32x4_convert_i32x4(wasm_i32x4_add(first, wasm_i32x4_make(0, 1, 2, 3)));
  return wasm_f32x4_add(scores, wasm_f32x4_mul(wasm_f32x4_splat(bias->slope), back));
}

// Caps and biases the scores of the heads starting at `head`. Most models do not need this.
static __attribute__((noinline)) void bend_scores(const kernel_attention *state, uint32_t head,
                                                  uint32_t heads, const kernel_page *pages,
                                                  uint32_t count, float *scores) {
  for (uint32_t h = 0; h < heads; h++) {
    const kernel_bias *bias = state->biases == NULL ? NULL : &state->biases[head + h];
    for (uint32_t t = 0; t < count * TOKENS; t += 4) {
      float *four = scores + (size_t)h * STEP + t;
      const uint32_t position = pages[t / TOKENS].position + t % TOKENS;
      wasm_v128_store(four, bend(wasm_v128_load(four), state->cap, bias, position));
    }
  }
}

// Computes scores of `heads` heads over `count` dims of one piece of K. q: rows q_stride apart.
SIMD_INLINE void piece_scores(const float *k, uint32_t count, const float *q, size_t q_stride,
                              uint32_t heads, float *scores, simd_flavor flavor) {
  uint32_t h = 0;
#ifdef WICK_LEVEL
  for (; h + WIDE_HEADS <= heads; h += WIDE_HEADS) {
    wide_add(k, TOKENS, count, q + h * q_stride, q_stride, scores + (size_t)h * STEP, STEP);
  }
#endif
  for (; h + 2 <= heads; h += 2) {
    scores_add(k, count, q + h * q_stride, q_stride, scores + (size_t)h * STEP, 2, flavor);
  }
  if (h < heads) {
    scores_add(k, count, q + h * q_stride, q_stride, scores + (size_t)h * STEP, 1, flavor);
  }
}

// Multiplies `heads` (up to FEW) rows of n factors, from_stride apart, by 2^112.
SIMD_INLINE void enlarge(const float *from, size_t from_stride, uint32_t n, uint32_t heads,
                         float x[FEW][STRIP]) {
  for (uint32_t h = 0; h < heads; h++) multiply(from + h * from_stride, n, F16_SIZE, x[h]);
}

SIMD_INLINE void f16_scores(const float *q, uint32_t dims, uint32_t heads, const kernel_page *pages,
                            uint32_t count, float *scores, reading_ahead *ahead,
                            simd_flavor flavor) {
  enum { ROW_BYTES = TOKENS * sizeof(uint16_t) };
  float x[FEW][STRIP];
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    for (uint32_t d = 0; d < dims; d += STRIP) {
      const uint32_t some = dims - d < STRIP ? dims - d : STRIP;
      enlarge(q + (size_t)h * dims + d, dims, some, few, x);
      for (uint32_t n = 0; n < count; n++) {
        const strip_rows rows = {{pages[n].k + (size_t)d * ROW_BYTES}, ROW_BYTES, x[0], some, 1};
        float *to = scores + (size_t)h * STEP + (size_t)n * TOKENS;
        strips_few(&rows, to, STEP, TOKENS, ahead, few, flavor);
      }
    }
  }
}

// Adds the values, without the last 4 dims if the number of dims is not a multiple of 8. Tokens
// that do not count have p = 0, and all halves become finite floats.
SIMD_INLINE void f16_values(float *acc, uint32_t dims, uint32_t heads, const kernel_page *pages,
                            uint32_t count, const float *p, reading_ahead *ahead,
                            simd_flavor flavor) {
  float x[FEW][STRIP];
  strip_rows rows = {{NULL}, dims * sizeof(uint16_t), x[0], TOKENS, count};
  for (uint32_t n = 0; n < count; n++) rows.halves[n] = pages[n].v;
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    enlarge(p + (size_t)h * STEP, STEP, count * TOKENS, few, x);
    strips_few(&rows, acc + (size_t)h * dims, dims, dims, ahead, few, flavor);
  }
}

// Computes scores of `heads` heads, with K in pieces of K_DIMS dims.
SIMD_INLINE void step_scores(const float *q, uint32_t dims, uint32_t heads,
                             const kernel_page *pages, uint32_t count, kernel_kv_type type,
                             float *scores, reading_ahead *ahead, simd_flavor flavor) {
  for (uint32_t h = 0; h < heads; h++) {
    for (uint32_t t = 0; t < count * TOKENS; t += 4) {
      wasm_v128_store(scores + (size_t)h * STEP + t, wasm_f32x4_splat(0));
    }
  }
  if (type == KERNEL_KV_F16) {
    f16_scores(q, dims, heads, pages, count, scores, ahead, flavor);
    return;
  }
  for (uint32_t n = 0; n < count; n++, scores += TOKENS) {
    for (uint32_t d = 0; d < dims; d += K_DIMS) {
      read_ahead(ahead);
      const uint32_t some = dims - d < K_DIMS ? dims - d : K_DIMS;
      const float *k = (const float *)(const void *)pages[n].k + (size_t)d * TOKENS;
      piece_scores(k, some, q + d, dims, heads, scores, flavor);
    }
  }
}

// Adds values of `heads` heads for one piece of V, which has V_DIMS dims or 4.
SIMD_INLINE void piece_values(const float *v, size_t v_stride, uint32_t count, const float *p,
                              uint32_t first, uint32_t last, uint32_t heads, float *acc,
                              size_t acc_stride, simd_flavor flavor) {
#ifdef WICK_LEVEL
  for (; count == V_DIMS && heads >= WIDE_HEADS; heads -= WIDE_HEADS) {
    wide_add(v + v_stride * first, v_stride, last - first, p + first, STEP, acc, acc_stride);
    acc += WIDE_HEADS * acc_stride;
    p += (size_t)WIDE_HEADS * STEP;
  }
#endif
  for (uint32_t h = 0; h < heads; h++, acc += acc_stride, p += STEP) {
    if (count == 4) {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 1, 1, flavor);
    } else if (h + 2 <= heads) {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 2, 4, flavor);
      h++;
      acc += acc_stride;
      p += STEP;
    } else {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 1, 4, flavor);
    }
  }
}

// Adds the last 4 dims of F16's V rows if the number of dims is not a multiple of 8. Overwrites p.
SIMD_INLINE void f16_last_values(float *acc, uint32_t dims, uint32_t heads, const kernel_page *page,
                                 float *p, simd_flavor flavor) {
  const uint32_t d = dims / 8 * 8;
  float v[TOKENS][4];
  for (uint32_t h = 0; h < heads; h++) {
    multiply(p + (size_t)h * STEP, TOKENS, F16_SIZE, p + (size_t)h * STEP);
  }
  for (uint32_t t = page->first; t < page->last; t++) {
    f16_load_4((const uint16_t *)(const void *)page->v + (size_t)t * dims, d, v[t]);
  }
  piece_values(v[0], 4, 4, p, page->first, page->last, heads, acc + d, dims, flavor);
}

// Adds the values: F32 in pieces of V_DIMS dims, and the remaining dims in pieces of 4. May
// overwrite p.
SIMD_INLINE void step_values(float *acc, uint32_t dims, uint32_t heads, const kernel_page *pages,
                             uint32_t count, kernel_kv_type type, float *p, reading_ahead *ahead,
                             simd_flavor flavor) {
  if (type == KERNEL_KV_F16) f16_values(acc, dims, heads, pages, count, p, ahead, flavor);
  for (uint32_t n = 0; n < count; n++, p += TOKENS) {
    const kernel_page *page = &pages[n];
    if (type == KERNEL_KV_F16) {
      if (dims % 8 != 0) f16_last_values(acc, dims, heads, page, p, flavor);
      continue;
    }
    for (uint32_t d = 0, some; d < dims; d += some) {
      read_ahead(ahead);
      some = dims - d < V_DIMS ? 4 : V_DIMS;
      piece_values((const float *)(const void *)page->v + d, dims, some, p, page->first, page->last,
                   heads, acc + d, dims, flavor);
    }
  }
}

// One function per type and side, and a function that calls them. One function per pair of types
// would mean sixteen functions.
typedef struct page_types {
  kernel_kv_type k, v;
} page_types;

#define SIDES(name, type, variant, flavor)                                                     \
  static __attribute__((noinline)) void scores_##name##_##variant(                             \
      const float *q, uint32_t dims, uint32_t heads, const kernel_page *pages, uint32_t count, \
      float *scores, reading_ahead *ahead) {                                                   \
    step_scores(q, dims, heads, pages, count, type, scores, ahead, flavor);                    \
  }                                                                                            \
  static __attribute__((noinline)) void values_##name##_##variant(                             \
      float *acc, uint32_t dims, uint32_t heads, const kernel_page *pages, uint32_t count,     \
      float *p, reading_ahead *ahead) {                                                        \
    step_values(acc, dims, heads, pages, count, type, p, ahead, flavor);                       \
  }

#define STEP_OF_TYPES(variant, flavor)                                                             \
  static __attribute__((noinline)) void softmax_##variant(const kernel_attention *state,           \
                                                          uint32_t head, uint32_t heads,           \
                                                          float *scores, uint32_t tokens) {        \
    softmax(state, head, heads, scores, tokens, flavor);                                           \
  }                                                                                                \
  static __attribute__((noinline)) void step_##variant(                                            \
      const kernel_attention *state, const kernel_page *pages, uint32_t count, page_types types) { \
    const uint32_t dims = state->head_dim;                                                         \
    reading_ahead ahead = ahead_begin(&state->ahead);                                              \
    for (uint32_t h = 0; h < state->group; h += HEADS) {                                           \
      const uint32_t heads = state->group - h < HEADS ? state->group - h : HEADS;                  \
      float scores[HEADS][STEP];                                                                   \
      const float *q = state->q + (size_t)h * dims;                                                \
      float *acc = state->acc + (size_t)h * dims;                                                  \
      if (types.k == KERNEL_KV_F16) {                                                              \
        scores_f16_##variant(q, dims, heads, pages, count, scores[0], &ahead);                     \
      } else if (types.k == KERNEL_KV_F32) {                                                       \
        scores_f32_##variant(q, dims, heads, pages, count, scores[0], &ahead);                     \
      } else if (types.k == KERNEL_KV_C8 || types.k == KERNEL_KV_C4) {                             \
        uint32_t coded = count;                                                                    \
        while (coded > 0 && pages[coded - 1].is_open) coded--;                                     \
        channels_scores_simd(state->factors + h * kv_factor_bytes(dims), dims, heads, pages,       \
                             coded, types.k, scores[0], &ahead);                                   \
        if (coded < count) {                                                                       \
          scores_f16_##variant(q, dims, heads, pages + coded, count - coded,                       \
                               scores[0] + coded * TOKENS, &ahead);                                \
        }                                                                                          \
      } else {                                                                                     \
        codes_scores_simd(q, dims, heads, pages, count, types.k, scores[0], &ahead);               \
      }                                                                                            \
      if (state->cap != 0 || state->biases != NULL) {                                              \
        bend_scores(state, h, heads, pages, count, scores[0]);                                     \
      }                                                                                            \
      leave_out(scores[0], heads, pages, count);                                                   \
      softmax_##variant(state, h, heads, scores[0], count *TOKENS);                                \
      if (types.v == KERNEL_KV_F16) {                                                              \
        values_f16_##variant(acc, dims, heads, pages, count, scores[0], &ahead);                   \
      } else if (types.v == KERNEL_KV_F32) {                                                       \
        values_f32_##variant(acc, dims, heads, pages, count, scores[0], &ahead);                   \
      } else {                                                                                     \
        codes_values_simd(acc, dims, heads, pages, count, types.v, scores[0], &ahead);             \
      }                                                                                            \
    }                                                                                              \
  }

#define ATTENTION_STEP(k, v, k_type, v_type, variant)                                              \
  void SIMD_NAME(attention_step_##k##_##v##_##variant)(const kernel_attention *state,              \
                                                       const kernel_page *pages, uint32_t count) { \
    step_##variant(state, pages, count, (page_types){k_type, v_type});                             \
  }

#define ATTENTION_STEPS(k, k_type, variant)              \
  ATTENTION_STEP(k, f32, k_type, KERNEL_KV_F32, variant) \
  ATTENTION_STEP(k, f16, k_type, KERNEL_KV_F16, variant) \
  ATTENTION_STEP(k, q8, k_type, KERNEL_KV_Q8, variant)   \
  ATTENTION_STEP(k, q4, k_type, KERNEL_KV_Q4, variant)

#define ATTENTION(variant, flavor)             \
  SIDES(f32, KERNEL_KV_F32, variant, flavor)   \
  SIDES(f16, KERNEL_KV_F16, variant, flavor)   \
  STEP_OF_TYPES(variant, flavor)               \
  ATTENTION_STEPS(f32, KERNEL_KV_F32, variant) \
  ATTENTION_STEPS(f16, KERNEL_KV_F16, variant) \
  ATTENTION_STEPS(q8, KERNEL_KV_Q8, variant)   \
  ATTENTION_STEPS(q4, KERNEL_KV_Q4, variant)   \
  ATTENTION_STEPS(c8, KERNEL_KV_C8, variant)   \
  ATTENTION_STEPS(c4, KERNEL_KV_C4, variant)

ATTENTION(simd128, SIMD_PLAIN)

#ifdef WICK_FUSED
ATTENTION(relaxed, SIMD_QUADS)
#endif

#endif

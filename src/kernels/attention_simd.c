// kernels/attention_simd.c — attention over one page in 128-bit vectors: lanes are tokens for the
// scores, dims for the values; heads of the group share what was loaded and converted. The sums go
// in the order of attention.c.
#include "base/checked.h"
#include "base/memory.h"
#include "kernels/exp_simd.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

#ifdef WICK_SIMD128

// Heads whose scores are kept at a time; dims of a page of floats at a time.
enum { HEADS = 16, K_DIMS = 32, V_DIMS = 16 };

// Halves become floats 2^112 too small (simd_f16_tiny); what they meet, queries and probabilities,
// is made 2^112 too large before, which changes no bit of a product. Queries of 2^16 and more
// overflow.
#define F16_SIZE 0x1p112f

// The last 4 dims of a row whose dims are no multiple of 8, d the first of them.
static void f16_load_4(const uint16_t *row, uint32_t d, float *to) {
  wasm_v128_store(to, simd_f16_tiny(wasm_u32x4_load16x4(row + d), 0));
}

// to[i] = from[i] * factor, n a multiple of 4.
static void multiply(const float *from, uint32_t n, float factor, float *to) {
  for (uint32_t i = 0; i < n; i += 4) {
    wasm_v128_store(to + i, wasm_f32x4_mul(wasm_v128_load(from + i), wasm_f32x4_splat(factor)));
  }
}

// scores[16] += sum over `dims` dims of q[d] * k[d][16], for one or two heads.
SIMD_INLINE void scores_add(const float *k, uint32_t dims, const float *q, size_t q_stride,
                            float *scores, uint32_t heads, simd_flavor flavor) {
  v128_t sums[2][4];
  for (uint32_t i = 0; i < heads * 4; i++) {
    sums[i / 4][i % 4] = wasm_v128_load(scores + i * 4);
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
    wasm_v128_store(scores + i * 4, sums[i / 4][i % 4]);
  }
}

// acc[4 * vectors dims] += sum over t of p[t] * v[t], for one or two heads.
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
      const v128_t splat = wasm_v128_load32_splat(p + h * KERNEL_PAGE_TOKENS + t);
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

// ---- Reading ahead ----

// How far a call is with touching its share of the next page: `step_bytes` of each place at a time.
typedef struct reading_ahead {
  const kernel_ahead *share;
  uint32_t done_bytes, step_bytes;
} reading_ahead;

// An eighth at a time: a call touches that often at the least.
static reading_ahead ahead_begin(const kernel_ahead *share) {
  return (reading_ahead){share, 0,
                         (uint32_t)align_size(share->bytes / 8 + 1, WICK_CACHE_LINE_BYTES)};
}

static __attribute__((noinline)) void read_ahead(reading_ahead *ahead) {
  const kernel_ahead *share = ahead->share;
  const uint8_t *a = share->from[0], *b = share->from[1], *c = share->from[2];
  const uint32_t rest = share->bytes - ahead->done_bytes;
  const uint32_t end = ahead->done_bytes + (rest < ahead->step_bytes ? rest : ahead->step_bytes);
#pragma nounroll
  for (uint32_t i = ahead->done_bytes; i < end; i += WICK_CACHE_LINE_BYTES) {
    (void)*(const volatile uint8_t *)(a + i);
    (void)*(const volatile uint8_t *)(b + i);
    (void)*(const volatile uint8_t *)(c + i);
  }
  ahead->done_bytes = end;
}

// ---- F16: heads meet the halves as they are converted ----

// Heads that share a conversion: with 8 halves, 2 sums a head, nothing is spilled. Converting again
// for the next ones costs no more than floats written and read again. STRIP: factors at a time.
enum { FEW = 4, STRIP = 64 };

// Factors of `heads` rows, STRIP apart, from x on; halves of `count` rows `stride` bytes apart.
typedef struct strip_rows {
  const uint8_t *halves;
  size_t stride;
  const float *x;
  uint32_t count;
} strip_rows;

// out[h][8] += sum over i of x[h][i] * halves[i][8]. `heads`: known when compiled. One row a round:
// V8 unrolls such a loop itself and keeps each sum's products apart, of rows unrolled here it puts
// all products of a sum one behind the other.
SIMD_INLINE void strip_add(const strip_rows *rows, float *out, size_t out_stride, uint32_t heads,
                           simd_flavor flavor) {
  const v128_t mask = wasm_v128_load(simd_mask.f16_tiny);
  const v128_t low_halves = wasm_v128_load(simd_mask.f16_low);
  const float *x = rows->x, *end = x + rows->count;
  const uint8_t *halves = rows->halves;
  v128_t sums[FEW][2];
  for (uint32_t i = 0; i < heads * 2; i++) {
    sums[i / 2][i % 2] = wasm_v128_load(out + i / 2 * out_stride + i % 2 * 4);
  }
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
  for (uint32_t i = 0; i < heads * 2; i++) {
    wasm_v128_store(out + i / 2 * out_stride + i % 2 * 4, sums[i / 2][i % 2]);
  }
}

// The columns of `columns` / 8 strips.
SIMD_INLINE void strips(strip_rows rows, float *out, size_t out_stride, uint32_t columns,
                        reading_ahead *ahead, uint32_t heads, simd_flavor flavor) {
#pragma nounroll
  for (uint32_t c = 0; c + 8 <= columns; c += 8, rows.halves += 16) {
    read_ahead(ahead);
    strip_add(&rows, out + c, out_stride, heads, flavor);
  }
}

SIMD_INLINE void strips_few(strip_rows rows, float *out, size_t out_stride, uint32_t columns,
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

// The first score that is larger than all before it: what was summed so far shrinks.
static __attribute__((noinline)) void softmax_raise(const kernel_attention *state, uint32_t head,
                                                    const float *scores) {
  float most = state->max[head];
  for (uint32_t t = 0; t < KERNEL_PAGE_TOKENS; t++) most = scores[t] > most ? scores[t] : most;
  const float correction = exp_f32(state->max[head] - most);
  state->max[head] = most;
  state->sum[head] *= correction;
  float *acc = state->acc + (size_t)head * state->head_dim;
  multiply(acc, state->head_dim, correction, acc);
}

// See page_softmax of attention.c, where the correction of a maximum that stays is 1. The heads
// from `head` on; scores of tokens that do not count are -Inf.
SIMD_INLINE void softmax(const kernel_attention *state, uint32_t head, uint32_t heads,
                         float *scores, simd_flavor flavor) {
#pragma nounroll
  for (uint32_t h = head; h < head + heads; h++, scores += KERNEL_PAGE_TOKENS) {
    v128_t p[4];
    for (uint32_t i = 0; i < 4; i++) p[i] = wasm_v128_load(scores + 4 * i);
    const v128_t most = wasm_f32x4_pmax(wasm_f32x4_pmax(p[0], p[1]), wasm_f32x4_pmax(p[2], p[3]));
    if (wasm_v128_any_true(wasm_f32x4_gt(most, wasm_v128_load32_splat(state->max + h)))) {
      softmax_raise(state, h, scores);
    }
    const v128_t max = wasm_v128_load32_splat(state->max + h);
    for (uint32_t i = 0; i < 4; i++) p[i] = wasm_f32x4_sub(p[i], max);
    exp_steps(p, 4, flavor);
    for (uint32_t i = 0; i < 4; i++) wasm_v128_store(scores + 4 * i, p[i]);
    v128_t parts = wasm_f32x4_add(wasm_f32x4_add(wasm_f32x4_add(p[0], p[1]), p[2]), p[3]);
    parts = wasm_f32x4_add(parts, wasm_i64x2_shuffle(parts, parts, 1, 0));
    state->sum[h] += wasm_f32x4_extract_lane(parts, 0) + wasm_f32x4_extract_lane(parts, 1);
  }
}

// Scores outside of [first, last) become -Inf.
static void leave_out(float *scores, uint32_t heads, uint32_t first, uint32_t last) {
  for (uint32_t i = 0; i < heads * KERNEL_PAGE_TOKENS; i++) {
    const uint32_t t = i % KERNEL_PAGE_TOKENS;
    if (t < first || t >= last) scores[i] = f32_of_bits(0xff800000u);
  }
}

// Scores of `heads` heads over `count` dims of one piece of K. q: rows q_stride apart.
SIMD_INLINE void piece_scores(const float *k, uint32_t count, const float *q, size_t q_stride,
                              uint32_t heads, float *scores, simd_flavor flavor) {
  uint32_t h = 0;
  for (; h + 2 <= heads; h += 2) {
    scores_add(k, count, q + h * q_stride, q_stride, scores + h * KERNEL_PAGE_TOKENS, 2, flavor);
  }
  if (h < heads) {
    scores_add(k, count, q + h * q_stride, q_stride, scores + h * KERNEL_PAGE_TOKENS, 1, flavor);
  }
}

// Makes `heads` (up to FEW) rows of n factors, from_stride apart, large.
SIMD_INLINE void enlarge(const float *from, size_t from_stride, uint32_t n, uint32_t heads,
                         float x[FEW][STRIP]) {
  for (uint32_t h = 0; h < heads; h++) multiply(from + h * from_stride, n, F16_SIZE, x[h]);
}

SIMD_INLINE void f16_scores(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                            float *scores, reading_ahead *ahead, simd_flavor flavor) {
  enum { ROW_BYTES = KERNEL_PAGE_TOKENS * sizeof(uint16_t) };
  float x[FEW][STRIP];
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    for (uint32_t d = 0; d < dims; d += STRIP) {
      const uint32_t count = dims - d < STRIP ? dims - d : STRIP;
      enlarge(q + (size_t)h * dims + d, dims, count, few, x);
      const uint8_t *halves = (const uint8_t *)k_page + (size_t)d * ROW_BYTES;
      strips_few((strip_rows){halves, ROW_BYTES, x[0], count}, scores + h * KERNEL_PAGE_TOKENS,
                 KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, ahead, few, flavor);
    }
  }
}

// Without the last 4 dims where these are no multiple of 8. Tokens that do not count have p = 0,
// and all halves become finite floats.
SIMD_INLINE void f16_values(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                            const float *p, reading_ahead *ahead, simd_flavor flavor) {
  float x[FEW][STRIP];
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    enlarge(p + h * KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, few, x);
    strips_few((strip_rows){v_page, dims * sizeof(uint16_t), x[0], KERNEL_PAGE_TOKENS},
               acc + (size_t)h * dims, dims, dims, ahead, few, flavor);
  }
}

// Scores of `heads` heads; K in pieces of K_DIMS dims.
SIMD_INLINE void page_scores(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                             kernel_kv_type type, float *scores, reading_ahead *ahead,
                             simd_flavor flavor) {
  for (uint32_t i = 0; i < heads * KERNEL_PAGE_TOKENS; i += 4) {
    wasm_v128_store(scores + i, wasm_f32x4_splat(0));
  }
  if (type == KERNEL_KV_F16) {
    f16_scores(q, dims, heads, k_page, scores, ahead, flavor);
    return;
  }
  for (uint32_t d = 0; d < dims; d += K_DIMS) {
    read_ahead(ahead);
    const uint32_t count = dims - d < K_DIMS ? dims - d : K_DIMS;
    const size_t at = (size_t)d * KERNEL_PAGE_TOKENS;
    piece_scores((const float *)k_page + at, count, q + d, dims, heads, scores, flavor);
  }
}

// Values of `heads` heads for one piece of V of V_DIMS dims, or of 4.
SIMD_INLINE void piece_values(const float *v, size_t v_stride, uint32_t count, const float *p,
                              uint32_t first, uint32_t last, uint32_t heads, float *acc,
                              size_t acc_stride, simd_flavor flavor) {
  for (uint32_t h = 0; h < heads; h++, acc += acc_stride, p += KERNEL_PAGE_TOKENS) {
    if (count == 4) {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 1, 1, flavor);
    } else if (h + 2 <= heads) {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 2, 4, flavor);
      h++;
      acc += acc_stride;
      p += KERNEL_PAGE_TOKENS;
    } else {
      values_add(v, v_stride, p, first, last, acc, acc_stride, 1, 4, flavor);
    }
  }
}

// The last 4 dims of F16's V rows where these are no multiple of 8. Overwrites p.
SIMD_INLINE void f16_last_values(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                                 uint32_t first, uint32_t last, float *p, simd_flavor flavor) {
  const uint32_t d = dims / 8 * 8;
  float v[KERNEL_PAGE_TOKENS][4];
  multiply(p, heads * KERNEL_PAGE_TOKENS, F16_SIZE, p);
  for (uint32_t t = first; t < last; t++) {
    f16_load_4((const uint16_t *)v_page + (size_t)t * dims, d, v[t]);
  }
  piece_values(v[0], 4, 4, p, first, last, heads, acc + d, dims, flavor);
}

// F32 in pieces of V_DIMS dims, the end in pieces of 4. May overwrite p.
SIMD_INLINE void page_values(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                             kernel_kv_type type, uint32_t first, uint32_t last, float *p,
                             reading_ahead *ahead, simd_flavor flavor) {
  if (type == KERNEL_KV_F16) {
    f16_values(acc, dims, heads, v_page, p, ahead, flavor);
    if (dims % 8 != 0) f16_last_values(acc, dims, heads, v_page, first, last, p, flavor);
    return;
  }
  for (uint32_t d = 0, count; d < dims; d += count) {
    read_ahead(ahead);
    count = dims - d < V_DIMS ? 4 : V_DIMS;
    piece_values((const float *)v_page + d, dims, count, p, first, last, heads, acc + d, dims,
                 flavor);
  }
}

// One body a type and side and one that calls them, not one a pair of types: these would be
// sixteen.
typedef struct page_types {
  kernel_kv_type k, v;
} page_types;

#define SIDES(name, type, variant, flavor)                                              \
  static __attribute__((noinline)) void scores_##name##_##variant(                      \
      const float *q, uint32_t dims, uint32_t heads, const void *k_page, float *scores, \
      reading_ahead *ahead) {                                                           \
    page_scores(q, dims, heads, k_page, type, scores, ahead, flavor);                   \
  }                                                                                     \
  static __attribute__((noinline)) void values_##name##_##variant(                      \
      float *acc, uint32_t dims, uint32_t heads, const void *v_page, uint32_t first,    \
      uint32_t last, float *p, reading_ahead *ahead) {                                  \
    page_values(acc, dims, heads, v_page, type, first, last, p, ahead, flavor);         \
  }

#define PAGE_OF_TYPES(variant, flavor)                                                       \
  static __attribute__((noinline)) void softmax_##variant(                                   \
      const kernel_attention *state, uint32_t head, uint32_t heads, float *scores) {         \
    softmax(state, head, heads, scores, flavor);                                             \
  }                                                                                          \
  static __attribute__((noinline)) void page_##variant(                                      \
      const kernel_attention *state, const void *k_page, const void *v_page, uint32_t first, \
      uint32_t last, page_types types) {                                                     \
    const uint32_t dims = state->head_dim;                                                   \
    reading_ahead ahead = ahead_begin(&state->ahead);                                        \
    for (uint32_t h = 0; h < state->group; h += HEADS) {                                     \
      const uint32_t heads = state->group - h < HEADS ? state->group - h : HEADS;            \
      float scores[HEADS][KERNEL_PAGE_TOKENS];                                               \
      const float *q = state->q + (size_t)h * dims;                                          \
      float *acc = state->acc + (size_t)h * dims;                                            \
      if (types.k == KERNEL_KV_F16) {                                                        \
        scores_f16_##variant(q, dims, heads, k_page, scores[0], &ahead);                     \
      } else if (types.k == KERNEL_KV_F32) {                                                 \
        scores_f32_##variant(q, dims, heads, k_page, scores[0], &ahead);                     \
      } else {                                                                               \
        codes_scores_simd(q, dims, heads, k_page, types.k, scores[0]);                       \
      }                                                                                      \
      if (last - first < KERNEL_PAGE_TOKENS) leave_out(scores[0], heads, first, last);       \
      softmax_##variant(state, h, heads, scores[0]);                                         \
      if (types.v == KERNEL_KV_F16) {                                                        \
        values_f16_##variant(acc, dims, heads, v_page, first, last, scores[0], &ahead);      \
      } else if (types.v == KERNEL_KV_F32) {                                                 \
        values_f32_##variant(acc, dims, heads, v_page, first, last, scores[0], &ahead);      \
      } else {                                                                               \
        codes_values_simd(acc, dims, heads, v_page, types.v, first, last, scores[0]);        \
      }                                                                                      \
    }                                                                                        \
  }

#define ATTENTION_PAGE(k, v, k_type, v_type, variant)                                            \
  void attention_page_##k##_##v##_##variant(const kernel_attention *state, const void *k_page,   \
                                            const void *v_page, uint32_t first, uint32_t last) { \
    page_##variant(state, k_page, v_page, first, last, (page_types){k_type, v_type});            \
  }

#define ATTENTION_PAGES(k, k_type, variant)              \
  ATTENTION_PAGE(k, f32, k_type, KERNEL_KV_F32, variant) \
  ATTENTION_PAGE(k, f16, k_type, KERNEL_KV_F16, variant) \
  ATTENTION_PAGE(k, q8, k_type, KERNEL_KV_Q8, variant)   \
  ATTENTION_PAGE(k, q4, k_type, KERNEL_KV_Q4, variant)

#define ATTENTION(variant, flavor)             \
  SIDES(f32, KERNEL_KV_F32, variant, flavor)   \
  SIDES(f16, KERNEL_KV_F16, variant, flavor)   \
  PAGE_OF_TYPES(variant, flavor)               \
  ATTENTION_PAGES(f32, KERNEL_KV_F32, variant) \
  ATTENTION_PAGES(f16, KERNEL_KV_F16, variant) \
  ATTENTION_PAGES(q8, KERNEL_KV_Q8, variant)   \
  ATTENTION_PAGES(q4, KERNEL_KV_Q4, variant)

ATTENTION(simd128, SIMD_PLAIN)

#ifdef WICK_RELAXED
ATTENTION(relaxed, SIMD_QUADS)
#endif

#endif

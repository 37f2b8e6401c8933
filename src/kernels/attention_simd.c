// kernels/attention_simd.c — attention over one page in 128-bit vectors: lanes are tokens for the
// scores, dims for the values; heads of the group share what was loaded and converted. The sums go
// in the order of attention.c.
#include "base/checked.h"
#include "base/memory.h"
#include "kernels/exp_simd.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

#ifdef WICK_SIMD128

// Heads whose scores are kept at a time; dims of a page turned into floats at a time: of K a block
// of the quantised types.
enum { HEADS = 16, K_DIMS = 32, V_DIMS = 16 };
_Static_assert((int)K_DIMS == (int)WICK_KV_BLOCK_VALUES, "a piece of K is a block");

// Halves become floats 2^112 too small (simd_f16_tiny); what they meet, queries and probabilities,
// is made 2^112 too large before, which changes no bit of a product. Queries of 2^16 and more
// overflow.
#define F16_SIZE 0x1p112f

// The last 4 dims of a row whose dims are no multiple of 8, d the first of them.
static void f16_load_4(const uint16_t *row, uint32_t d, float *to) {
  wasm_v128_store(to, simd_f16_tiny(wasm_u32x4_load16x4(row + d), 0));
}

// 16 codes times their scales (one each, or all the same): decoded just as kv_codec.h does.
SIMD_INLINE void codes_load(v128_t codes, const v128_t scales[4], float *to) {
  const v128_t low = wasm_i16x8_extend_low_i8x16(codes), high = wasm_i16x8_extend_high_i8x16(codes);
  const v128_t wide[4] = {wasm_i32x4_extend_low_i16x8(low), wasm_i32x4_extend_high_i16x8(low),
                          wasm_i32x4_extend_low_i16x8(high), wasm_i32x4_extend_high_i16x8(high)};
  for (uint32_t i = 0; i < 4; i++) {
    wasm_v128_store(to + 4 * i, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(wide[i]), scales[i]));
  }
}

// The low or high halves of 16 bytes, as codes around 0.
SIMD_INLINE v128_t nibbles(v128_t bytes, bool high) {
  const v128_t codes = high ? wasm_u8x16_shr(bytes, 4) : wasm_v128_and(bytes, wasm_i8x16_splat(15));
  return wasm_i8x16_sub(codes, wasm_i8x16_splat(8));
}

// `count` dims of a block of K, [count][16 tokens].
static void q8_k_load(const kv_q8_k_block *block, uint32_t count, float *to) {
  v128_t scales[4];
  for (uint32_t i = 0; i < 4; i++) scales[i] = wasm_v128_load(block->scales + 4 * i);
  for (uint32_t d = 0; d < count; d++, to += KERNEL_PAGE_TOKENS) {
    codes_load(wasm_v128_load(block->codes[d]), scales, to);
  }
}

static void q4_k_load(const kv_q4_k_block *block, uint32_t count, float *to) {
  v128_t scales[4];
  for (uint32_t i = 0; i < 4; i++) scales[i] = wasm_v128_load(block->scales + 4 * i);
  for (uint32_t d = 0; d < count; d += 2, to += 2 * KERNEL_PAGE_TOKENS) {
    const v128_t bytes = wasm_v128_load(block->bytes[d / 2]);
    codes_load(nibbles(bytes, false), scales, to);
    codes_load(nibbles(bytes, true), scales, to + KERNEL_PAGE_TOKENS);
  }
}

// 16 dims of a token's V row, the ones after the head's last included.
SIMD_INLINE void q8_v_load(const void *v_page, uint32_t slot, uint32_t d, uint32_t dims,
                           float *to) {
  const v128_t scale = wasm_v128_load32_splat(kv_v_scales(v_page, slot, dims) + d / K_DIMS);
  const v128_t scales[4] = {scale, scale, scale, scale};
  codes_load(wasm_v128_load(kv_q8_v_codes(v_page, slot, dims) + d), scales, to);
}

SIMD_INLINE void q4_v_load(const void *v_page, uint32_t slot, uint32_t d, uint32_t dims,
                           float *to) {
  const v128_t scale = wasm_v128_load32_splat(kv_v_scales(v_page, slot, dims) + d / K_DIMS);
  const v128_t scales[4] = {scale, scale, scale, scale};
  const v128_t bytes = wasm_v128_load(kv_q4_v_bytes(v_page, slot, dims) + d / K_DIMS * V_DIMS);
  codes_load(nibbles(bytes, d % K_DIMS != 0), scales, to);
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

// `times`: how often the call will touch.
static reading_ahead ahead_begin(const kernel_ahead *share, uint32_t times) {
  const uint32_t step_bytes = (share->bytes + times - 1) / times;
  return (reading_ahead){share, 0, (uint32_t)align_size(step_bytes, WICK_CACHE_LINE_BYTES)};
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
    v128_t most = wasm_v128_load(scores);
    for (uint32_t i = 4; i < KERNEL_PAGE_TOKENS; i += 4) {
      most = wasm_f32x4_pmax(most, wasm_v128_load(scores + i));
    }
    if (wasm_v128_any_true(wasm_f32x4_gt(most, wasm_v128_load32_splat(state->max + h)))) {
      softmax_raise(state, h, scores);
    }
    const v128_t max = wasm_v128_load32_splat(state->max + h);
    v128_t parts = wasm_f32x4_splat(0);
#pragma nounroll
    for (uint32_t i = 0; i < KERNEL_PAGE_TOKENS; i += 4) {
      const v128_t p = exp_most_0(wasm_f32x4_sub(wasm_v128_load(scores + i), max), flavor);
      wasm_v128_store(scores + i, p);
      parts = wasm_f32x4_add(parts, p);
    }
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
    if (type == KERNEL_KV_F32) {
      piece_scores((const float *)k_page + at, count, q + d, dims, heads, scores, flavor);
      continue;
    }
    float k[K_DIMS * KERNEL_PAGE_TOKENS];
    if (type == KERNEL_KV_Q8) q8_k_load((const kv_q8_k_block *)k_page + d / K_DIMS, count, k);
    if (type == KERNEL_KV_Q4) q4_k_load((const kv_q4_k_block *)k_page + d / K_DIMS, count, k);
    piece_scores(k, count, q + d, dims, heads, scores, flavor);
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

// A piece of V's tokens [first, last): V_DIMS dims from d on, of F16 the last 4.
SIMD_INLINE void load_values(const void *v_page, kernel_kv_type type, uint32_t d, uint32_t dims,
                             uint32_t first, uint32_t last, float v[KERNEL_PAGE_TOKENS][V_DIMS]) {
  for (uint32_t t = first; t < last; t++) {
    if (type == KERNEL_KV_Q8) {
      q8_v_load(v_page, t, d, dims, v[t]);
    } else if (type == KERNEL_KV_Q4) {
      q4_v_load(v_page, t, d, dims, v[t]);
    } else {
      f16_load_4((const uint16_t *)v_page + (size_t)t * dims, d, v[t]);
    }
  }
}

// V in pieces of V_DIMS dims, the end in pieces of 4. Overwrites p when V is F16.
SIMD_INLINE void page_values(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                             kernel_kv_type type, uint32_t first, uint32_t last, float *p,
                             reading_ahead *ahead, simd_flavor flavor) {
  uint32_t d = 0;
  if (type == KERNEL_KV_F16) {
    f16_values(acc, dims, heads, v_page, p, ahead, flavor);
    d = dims / 8 * 8;
    if (d < dims) multiply(p, heads * KERNEL_PAGE_TOKENS, F16_SIZE, p);
  }
  float v[KERNEL_PAGE_TOKENS][V_DIMS];
  for (uint32_t count; d < dims; d += count) {
    read_ahead(ahead);
    count = dims - d < V_DIMS ? 4 : V_DIMS;
    if (type == KERNEL_KV_F32) {
      piece_values((const float *)v_page + d, dims, count, p, first, last, heads, acc + d, dims,
                   flavor);
      continue;
    }
    // a quantised head is padded: what is loaded at its first piece of 4 serves the others too
    const uint32_t within = type == KERNEL_KV_F16 ? 0 : d % V_DIMS;
    if (within == 0) load_values(v_page, type, d, dims, first, last, v);
    piece_values(v[0] + within, V_DIMS, count, p, first, last, heads, acc + d, dims, flavor);
  }
}

// One body a type and side, not one a pair: a call a page costs nothing.
typedef void scores_function(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                             float *scores, reading_ahead *ahead);
typedef void softmax_function(const kernel_attention *state, uint32_t head, uint32_t heads,
                              float *scores);
typedef void values_function(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                             uint32_t first, uint32_t last, float *p, reading_ahead *ahead);

SIMD_INLINE void attention_page(const kernel_attention *state, const void *k_page,
                                const void *v_page, uint32_t first, uint32_t last,
                                scores_function *k_scores, softmax_function *softmax_heads,
                                values_function *v_values) {
  const uint32_t dims = state->head_dim;
  reading_ahead ahead = ahead_begin(&state->ahead, dims / 8 + 1);
  for (uint32_t h = 0; h < state->group; h += HEADS) {
    const uint32_t heads = state->group - h < HEADS ? state->group - h : HEADS;
    float scores[HEADS][KERNEL_PAGE_TOKENS];
    k_scores(state->q + (size_t)h * dims, dims, heads, k_page, scores[0], &ahead);
    if (last - first < KERNEL_PAGE_TOKENS) leave_out(scores[0], heads, first, last);
    softmax_heads(state, h, heads, scores[0]);
    v_values(state->acc + (size_t)h * dims, dims, heads, v_page, first, last, scores[0], &ahead);
  }
}

#define SOFTMAX(variant, flavor)                                                     \
  static __attribute__((noinline)) void softmax_##variant(                           \
      const kernel_attention *state, uint32_t head, uint32_t heads, float *scores) { \
    softmax(state, head, heads, scores, flavor);                                     \
  }

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

#define ATTENTION_PAGE(k, v, variant)                                                             \
  void attention_page_##k##_##v##_##variant(const kernel_attention *state, const void *k_page,    \
                                            const void *v_page, uint32_t first, uint32_t last) {  \
    attention_page(state, k_page, v_page, first, last, scores_##k##_##variant, softmax_##variant, \
                   values_##v##_##variant);                                                       \
  }

#define ATTENTION_PAGES(k, variant) \
  ATTENTION_PAGE(k, f32, variant)   \
  ATTENTION_PAGE(k, f16, variant)   \
  ATTENTION_PAGE(k, q8, variant)    \
  ATTENTION_PAGE(k, q4, variant)

#define ATTENTION(variant, flavor)           \
  SOFTMAX(variant, flavor)                   \
  SIDES(f32, KERNEL_KV_F32, variant, flavor) \
  SIDES(f16, KERNEL_KV_F16, variant, flavor) \
  SIDES(q8, KERNEL_KV_Q8, variant, flavor)   \
  SIDES(q4, KERNEL_KV_Q4, variant, flavor)   \
  ATTENTION_PAGES(f32, variant)              \
  ATTENTION_PAGES(f16, variant)              \
  ATTENTION_PAGES(q8, variant)               \
  ATTENTION_PAGES(q4, variant)

ATTENTION(simd128, SIMD_PLAIN)

#ifdef WICK_RELAXED
ATTENTION(relaxed, SIMD_QUADS)
#endif

#endif

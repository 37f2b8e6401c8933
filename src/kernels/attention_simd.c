// kernels/attention_simd.c — attention over one page in 128-bit vectors: lanes are tokens for the
// scores, dims for the values; heads of the group share what was loaded and converted. The sums go
// in the order of attention.c.
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

// acc[4 * vectors dims] = acc * correction + sum over t of p[t] * v[t], for one or two heads.
SIMD_INLINE void values_add(const float *v, size_t v_stride, const float *p, uint32_t first,
                            uint32_t last, const float *corrections, float *acc, size_t acc_stride,
                            uint32_t heads, uint32_t vectors, simd_flavor flavor) {
  v128_t sums[2][4];
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t correction = wasm_v128_load32_splat(corrections + h);
    for (uint32_t i = 0; i < vectors; i++) {
      sums[h][i] = wasm_f32x4_mul(wasm_v128_load(acc + h * acc_stride + 4 * i), correction);
    }
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

// ---- F16: heads meet the halves as they are converted ----

// Heads that share a conversion: with 8 halves, 2 sums a head, nothing is spilled. Converting again
// for the next ones costs no more than floats written and read again. STRIP: factors at a time.
enum { FEW = 4, STRIP = 64 };

// sums[h][8] += sum over i of x[h][i] * halves[i][8], rows `stride` halves apart, those of x STRIP.
SIMD_INLINE void strip_add(const uint16_t *halves, size_t stride, const float *x, uint32_t count,
                           v128_t sums[FEW][2], uint32_t heads, simd_flavor flavor) {
  const v128_t mask = wasm_v128_load(simd_mask.f16_tiny);
#pragma nounroll
  for (uint32_t i = 0; i < count; i++, halves += stride, x++) {
    const v128_t pairs = wasm_v128_load(halves);
    const v128_t low = wasm_v128_and(wasm_i32x4_shr(wasm_i32x4_shl(pairs, 16), 3), mask);
    const v128_t high = wasm_v128_and(wasm_i32x4_shr(pairs, 3), mask);
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t splat = wasm_v128_load32_splat(x + (size_t)h * STRIP);
      sums[h][0] = simd_multiply_add(splat, low, sums[h][0], flavor);
      sums[h][1] = simd_multiply_add(splat, high, sums[h][1], flavor);
    }
  }
}

// out[h][8] = out[h] * corrections[h] + the sums. `heads`: known when compiled.
SIMD_INLINE void strip_one(const uint16_t *halves, size_t stride, const float *x, uint32_t count,
                           const float *corrections, float *out, size_t out_stride, uint32_t heads,
                           simd_flavor flavor) {
  v128_t sums[FEW][2];
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t correction = wasm_v128_load32_splat(corrections + h);
    for (uint32_t i = 0; i < 2; i++) {
      sums[h][i] = wasm_f32x4_mul(wasm_v128_load(out + h * out_stride + 4 * i), correction);
    }
  }
  strip_add(halves, stride, x, count, sums, heads, flavor);
  for (uint32_t h = 0; h < heads; h++) {
    wasm_v128_store(out + h * out_stride, sums[h][0]);
    wasm_v128_store(out + h * out_stride + 4, sums[h][1]);
  }
}

// The columns of `columns` / 8 strips.
SIMD_INLINE void strips(const uint16_t *halves, size_t stride, const float *x, uint32_t count,
                        const float *corrections, float *out, size_t out_stride, uint32_t columns,
                        uint32_t heads, simd_flavor flavor) {
  for (uint32_t c = 0; c + 8 <= columns; c += 8) {
    strip_one(halves + c, stride, x, count, corrections, out + c, out_stride, heads, flavor);
  }
}

SIMD_INLINE void strips_few(const uint16_t *halves, size_t stride, const float *x, uint32_t count,
                            const float *corrections, float *out, size_t out_stride,
                            uint32_t columns, uint32_t heads, simd_flavor flavor) {
  if (heads == 1) {
    strips(halves, stride, x, count, corrections, out, out_stride, columns, 1, flavor);
  } else if (heads == 2) {
    strips(halves, stride, x, count, corrections, out, out_stride, columns, 2, flavor);
  } else if (heads == 3) {
    strips(halves, stride, x, count, corrections, out, out_stride, columns, 3, flavor);
  } else {
    strips(halves, stride, x, count, corrections, out, out_stride, columns, 4, flavor);
  }
}

// See page_softmax of attention.c. `inside`: which of the 16 tokens count, as masks.
static float softmax_16(float *scores, const v128_t inside[4], float *max, float *sum) {
  v128_t s[4], most = wasm_f32x4_splat(*max);
  for (uint32_t i = 0; i < 4; i++) {
    s[i] = wasm_v128_bitselect(wasm_v128_load(scores + 4 * i), wasm_i32x4_splat((int)0xff800000),
                               inside[i]);
    most = wasm_f32x4_pmax(most, s[i]);
  }
  most = wasm_f32x4_pmax(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_f32x4_pmax(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  v128_t parts = wasm_f32x4_splat(0);
  for (uint32_t i = 0; i < 4; i++) {
    const v128_t p = wasm_v128_and(exp_f32x4(wasm_f32x4_sub(s[i], most)), inside[i]);
    wasm_v128_store(scores + 4 * i, p);
    parts = wasm_f32x4_add(parts, p);
  }
  parts = wasm_f32x4_add(parts, wasm_i64x2_shuffle(parts, parts, 1, 0));
  const float added = wasm_f32x4_extract_lane(parts, 0) + wasm_f32x4_extract_lane(parts, 1);
  const float new_max = wasm_f32x4_extract_lane(most, 0);
  const float correction = exp_f32(*max - new_max);
  *sum = *sum * correction + added;
  *max = new_max;
  return correction;
}

static void inside_masks(uint32_t first, uint32_t last, v128_t inside[4]) {
  for (uint32_t i = 0; i < 4; i++) {
    const v128_t t = wasm_i32x4_add(wasm_i32x4_make(0, 1, 2, 3), wasm_i32x4_splat((int)(4 * i)));
    inside[i] = wasm_v128_and(wasm_i32x4_ge(t, wasm_i32x4_splat((int)first)),
                              wasm_i32x4_lt(t, wasm_i32x4_splat((int)last)));
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

SIMD_INLINE void f16_scores(const float *q, uint32_t dims, uint32_t heads, const uint16_t *k_page,
                            float *scores, simd_flavor flavor) {
  static const float ones[FEW] = {1, 1, 1, 1};
  float x[FEW][STRIP];
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    for (uint32_t d = 0; d < dims; d += STRIP) {
      const uint32_t count = dims - d < STRIP ? dims - d : STRIP;
      enlarge(q + (size_t)h * dims + d, dims, count, few, x);
      strips_few(k_page + (size_t)d * KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, x[0], count, ones,
                 scores + h * KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, few,
                 flavor);
    }
  }
}

// Without the last 4 dims where these are no multiple of 8.
SIMD_INLINE void f16_values(float *acc, uint32_t dims, uint32_t heads, const uint16_t *v_page,
                            uint32_t first, uint32_t last, const float *p, const float *corrections,
                            simd_flavor flavor) {
  float x[FEW][STRIP];
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = heads - h < FEW ? heads - h : FEW;
    enlarge(p + h * KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, KERNEL_PAGE_TOKENS, few, x);
    strips_few(v_page + (size_t)first * dims, dims, x[0] + first, last - first, corrections + h,
               acc + (size_t)h * dims, dims, dims, few, flavor);
  }
}

// Scores of `heads` heads; K in pieces of K_DIMS dims.
SIMD_INLINE void page_scores(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                             kernel_kv_type type, float *scores, simd_flavor flavor) {
  for (uint32_t i = 0; i < heads * KERNEL_PAGE_TOKENS; i += 4) {
    wasm_v128_store(scores + i, wasm_f32x4_splat(0));
  }
  if (type == KERNEL_KV_F16) {
    f16_scores(q, dims, heads, k_page, scores, flavor);
    return;
  }
  for (uint32_t d = 0; d < dims; d += K_DIMS) {
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
                              uint32_t first, uint32_t last, const float *corrections,
                              uint32_t heads, float *acc, size_t acc_stride, simd_flavor flavor) {
  for (uint32_t h = 0; h < heads; h++, acc += acc_stride, p += KERNEL_PAGE_TOKENS) {
    if (count == 4) {
      values_add(v, v_stride, p, first, last, corrections + h, acc, acc_stride, 1, 1, flavor);
    } else if (h + 2 <= heads) {
      values_add(v, v_stride, p, first, last, corrections + h, acc, acc_stride, 2, 4, flavor);
      h++;
      acc += acc_stride;
      p += KERNEL_PAGE_TOKENS;
    } else {
      values_add(v, v_stride, p, first, last, corrections + h, acc, acc_stride, 1, 4, flavor);
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
                             const float *corrections, simd_flavor flavor) {
  uint32_t d = 0;
  if (type == KERNEL_KV_F16) {
    f16_values(acc, dims, heads, v_page, first, last, p, corrections, flavor);
    d = dims / 8 * 8;
    if (d < dims) multiply(p, heads * KERNEL_PAGE_TOKENS, F16_SIZE, p);
  }
  float v[KERNEL_PAGE_TOKENS][V_DIMS];
  for (uint32_t count; d < dims; d += count) {
    count = dims - d < V_DIMS ? 4 : V_DIMS;
    if (type == KERNEL_KV_F32) {
      piece_values((const float *)v_page + d, dims, count, p, first, last, corrections, heads,
                   acc + d, dims, flavor);
      continue;
    }
    // a quantised head is padded: what is loaded at its first piece of 4 serves the others too
    const uint32_t within = type == KERNEL_KV_F16 ? 0 : d % V_DIMS;
    if (within == 0) load_values(v_page, type, d, dims, first, last, v);
    piece_values(v[0] + within, V_DIMS, count, p, first, last, corrections, heads, acc + d, dims,
                 flavor);
  }
}

// One body a type and side, not one a pair: a call a page costs nothing.
typedef void scores_function(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                             float *scores);
typedef void values_function(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                             uint32_t first, uint32_t last, float *p, const float *corrections);

SIMD_INLINE void attention_page(const kernel_attention *state, const void *k_page,
                                const void *v_page, uint32_t first, uint32_t last,
                                scores_function *k_scores, values_function *v_values) {
  const uint32_t dims = state->head_dim;
  v128_t inside[4];
  inside_masks(first, last, inside);
  for (uint32_t h = 0; h < state->group; h += HEADS) {
    const uint32_t heads = state->group - h < HEADS ? state->group - h : HEADS;
    float scores[HEADS][KERNEL_PAGE_TOKENS], corrections[HEADS];
    k_scores(state->q + (size_t)h * dims, dims, heads, k_page, scores[0]);
    for (uint32_t i = 0; i < heads; i++) {
      corrections[i] = softmax_16(scores[i], inside, &state->max[h + i], &state->sum[h + i]);
    }
    v_values(state->acc + (size_t)h * dims, dims, heads, v_page, first, last, scores[0],
             corrections);
  }
}

#define SIDES(name, type, variant, flavor)                                                \
  static __attribute__((noinline)) void scores_##name##_##variant(                        \
      const float *q, uint32_t dims, uint32_t heads, const void *k_page, float *scores) { \
    page_scores(q, dims, heads, k_page, type, scores, flavor);                            \
  }                                                                                       \
  static __attribute__((noinline)) void values_##name##_##variant(                        \
      float *acc, uint32_t dims, uint32_t heads, const void *v_page, uint32_t first,      \
      uint32_t last, float *p, const float *corrections) {                                \
    page_values(acc, dims, heads, v_page, type, first, last, p, corrections, flavor);     \
  }

#define ATTENTION_PAGE(k, v, variant)                                                            \
  void attention_page_##k##_##v##_##variant(const kernel_attention *state, const void *k_page,   \
                                            const void *v_page, uint32_t first, uint32_t last) { \
    attention_page(state, k_page, v_page, first, last, scores_##k##_##variant,                   \
                   values_##v##_##variant);                                                      \
  }

#define ATTENTION_PAGES(k, variant) \
  ATTENTION_PAGE(k, f32, variant)   \
  ATTENTION_PAGE(k, f16, variant)   \
  ATTENTION_PAGE(k, q8, variant)    \
  ATTENTION_PAGE(k, q4, variant)

#define ATTENTION(variant, flavor)           \
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

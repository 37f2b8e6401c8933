// kernels/attention_simd.c — attention over one page in 128-bit vectors: lanes are tokens for the
// scores, dims for the values; heads of the group share what was loaded and converted. The sums go
// in the order of attention.c.
#include "kernels/exp_simd.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

// Heads whose scores are kept at a time; dims of a page turned into floats at a time.
enum { HEADS = 16, K_DIMS = 32, V_DIMS = 16 };

// Halves become floats 2^112 too small (simd_f16_tiny); what they meet, queries and probabilities,
// is made 2^112 too large before, which changes no bit of a product. Queries of 2^16 and more
// overflow.
#define F16_SIZE 0x1p112f

// n (a multiple of 8) halves in the order of kv_pages.h.
static void f16_load(const uint16_t *from, uint32_t n, float *to) {
  for (uint32_t i = 0; i < n; i += 8) {
    const v128_t pairs = wasm_v128_load(from + i);
    wasm_v128_store(to + i, simd_f16_tiny(pairs, 0));
    wasm_v128_store(to + i + 4, simd_f16_tiny(pairs, 1));
  }
}

// Dims d to d + 3 of a row of `dims` halves.
static void f16_load_4(const uint16_t *row, uint32_t d, uint32_t dims, float *to) {
  if (d / 8 * 8 + 8 <= dims) {
    wasm_v128_store(to, simd_f16_tiny(wasm_v128_load(row + d / 8 * 8), d % 8 / 4));
  } else {
    wasm_v128_store(to, simd_f16_tiny(wasm_u32x4_load16x4(row + d), 0));
  }
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

// Scores of `heads` heads; K in pieces of K_DIMS dims.
SIMD_INLINE void page_scores(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                             bool k_is_f16, float *scores, simd_flavor flavor) {
  for (uint32_t i = 0; i < heads * KERNEL_PAGE_TOKENS; i += 4) {
    wasm_v128_store(scores + i, wasm_f32x4_splat(0));
  }
  for (uint32_t d = 0; d < dims; d += K_DIMS) {
    const uint32_t count = dims - d < K_DIMS ? dims - d : K_DIMS;
    const size_t at = (size_t)d * KERNEL_PAGE_TOKENS;
    if (!k_is_f16) {
      piece_scores((const float *)k_page + at, count, q + d, dims, heads, scores, flavor);
      continue;
    }
    float k[K_DIMS * KERNEL_PAGE_TOKENS], large_q[HEADS][K_DIMS];
    f16_load((const uint16_t *)k_page + at, count * KERNEL_PAGE_TOKENS, k);
    for (uint32_t h = 0; h < heads; h++) {
      multiply(q + (size_t)h * dims + d, count, F16_SIZE, large_q[h]);
    }
    piece_scores(k, count, large_q[0], K_DIMS, heads, scores, flavor);
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

// V in pieces of V_DIMS dims, the end in pieces of 4. Overwrites p when V is F16.
SIMD_INLINE void page_values(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                             bool v_is_f16, uint32_t first, uint32_t last, float *p,
                             const float *corrections, simd_flavor flavor) {
  if (v_is_f16) multiply(p, heads * KERNEL_PAGE_TOKENS, F16_SIZE, p);
  for (uint32_t d = 0, count; d < dims; d += count) {
    count = dims - d < V_DIMS ? 4 : V_DIMS;
    if (!v_is_f16) {
      piece_values((const float *)v_page + d, dims, count, p, first, last, corrections, heads,
                   acc + d, dims, flavor);
      continue;
    }
    float v[KERNEL_PAGE_TOKENS][V_DIMS];
    for (uint32_t t = first; t < last; t++) {
      const uint16_t *row = (const uint16_t *)v_page + (size_t)t * dims;
      if (count == 4) {
        f16_load_4(row, d, dims, v[t]);
      } else {
        f16_load(row + d, V_DIMS, v[t]);
      }
    }
    piece_values(v[0], V_DIMS, count, p, first, last, corrections, heads, acc + d, dims, flavor);
  }
}

SIMD_INLINE void attention_page(const kernel_attention *state, const void *k_page,
                                const void *v_page, uint32_t first, uint32_t last, bool k_is_f16,
                                bool v_is_f16, simd_flavor flavor) {
  const uint32_t dims = state->head_dim;
  v128_t inside[4];
  inside_masks(first, last, inside);
  for (uint32_t h = 0; h < state->group; h += HEADS) {
    const uint32_t heads = state->group - h < HEADS ? state->group - h : HEADS;
    float scores[HEADS][KERNEL_PAGE_TOKENS], corrections[HEADS];
    page_scores(state->q + (size_t)h * dims, dims, heads, k_page, k_is_f16, scores[0], flavor);
    for (uint32_t i = 0; i < heads; i++) {
      corrections[i] = softmax_16(scores[i], inside, &state->max[h + i], &state->sum[h + i]);
    }
    page_values(state->acc + (size_t)h * dims, dims, heads, v_page, v_is_f16, first, last,
                scores[0], corrections, flavor);
  }
}

#define ATTENTION_PAGE(name, k_is_f16, v_is_f16, flavor)                            \
  void attention_page_##name(const kernel_attention *state, const void *k_page,     \
                             const void *v_page, uint32_t first, uint32_t last) {   \
    attention_page(state, k_page, v_page, first, last, k_is_f16, v_is_f16, flavor); \
  }

ATTENTION_PAGE(f32_f32_simd128, false, false, SIMD_PLAIN)
ATTENTION_PAGE(f32_f16_simd128, false, true, SIMD_PLAIN)
ATTENTION_PAGE(f16_f32_simd128, true, false, SIMD_PLAIN)
ATTENTION_PAGE(f16_f16_simd128, true, true, SIMD_PLAIN)

#ifdef WICK_RELAXED
ATTENTION_PAGE(f32_f32_relaxed, false, false, SIMD_QUADS)
ATTENTION_PAGE(f32_f16_relaxed, false, true, SIMD_QUADS)
ATTENTION_PAGE(f16_f32_relaxed, true, false, SIMD_QUADS)
ATTENTION_PAGE(f16_f16_relaxed, true, true, SIMD_QUADS)
#endif

#endif

// kernels/attention_codes_simd.c — computes attention over Q8 and Q4 pages in 128-bit vectors.
// Codes are stored in pairs (kv_pages.h) and multiplied by pairs of 16-bit factors; i32x4.dot_i16x8
// sums two products at a time in integers. The results are bit-identical to those of attention.c.
// Low codes of a row are larger by KV_CODE_BIAS (code_rows.h).
#include "kernels/code_rows.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

enum { PIECE = 2 };  // blocks of K at a time

// The factors of several heads, in pairs, and for each head the negated excess caused by codes that
// are larger by KV_CODE_BIAS.
typedef struct code_factors {
  const int16_t *of[FEW];
  const int32_t *bias[FEW];
} code_factors;

// Returns the sums of columns 0-3 and of columns 4-7 as floats.
SIMD_INLINE void sums_end(row_sums *sums, v128_t floats[FEW][2], uint32_t heads) {
  sums_join(sums, heads);
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t high = sums->even[h][1];
    const v128_t low = wasm_i32x4_sub(sums->even[h][0], wasm_i32x4_shl(high, 8));
    floats[h][0] = wasm_f32x4_convert_i32x4(low);
    floats[h][1] = wasm_f32x4_convert_i32x4(high);
  }
}

// Returns the blocks [first, first + count) of a page; Q4 is unpacked into `room`.
static const kv_q8_block *take_blocks(const void *page, kernel_kv_type type, uint32_t first,
                                      uint32_t count, kv_q8_block *room) {
  if (type == KERNEL_KV_Q8) return (const kv_q8_block *)page + first;
  const kv_q4_block *from = (const kv_q4_block *)page + first;
  const v128_t low = wasm_v128_load(simd_mask.low_4);
  const v128_t offsets = wasm_v128_load(simd_mask.q4_offsets);
  for (uint32_t b = 0; b < count; b++) {
    for (uint32_t i = 0; i < TOKENS; i += 4) {
      wasm_v128_store(room[b].scales + i, wasm_v128_load(from[b].scales + i));
    }
    for (uint32_t i = 0; i < KV_BLOCK_CODES / 2; i += 16) {
      const v128_t bytes = wasm_v128_load(from[b].bytes + i);
      uint8_t *codes = room[b].codes + i / 128 * 256 + i % 128;
      wasm_v128_store(codes, wasm_i8x16_add(wasm_v128_and(bytes, low), offsets));
      wasm_v128_store(codes + 128, wasm_i8x16_add(wasm_u8x16_shr(bytes, 4), offsets));
    }
  }
  return room;
}

// ---- Scores ----

// Computes, for tokens [token, token + 8) of a page and `count` blocks: scores[h] = (scores[h],
// unless these blocks are the first, + sums times scales) * units[h].
SIMD_INLINE void strip_scores(const kv_q8_block *block, uint32_t count, uint32_t token,
                              const code_factors *from, const float units[FEW], bool is_first,
                              float *scores, uint32_t heads) {
  code_factors factors = *from;
  v128_t totals[FEW][2];
  for (uint32_t i = 0; i < heads * 2; i++) {
    const float *total = scores + (size_t)(i / 2) * STEP + token + i % 2 * 4;
    totals[i / 2][i % 2] = is_first ? wasm_f32x4_splat(0) : wasm_v128_load(total);
  }
#pragma nounroll
  for (uint32_t b = 0; b < count; b++, block++) {
    const uint8_t *codes = block->codes + token * BLOCK;
    row_sums rows;
    sums_begin(&rows, factors.bias, heads);
#pragma nounroll
    for (uint32_t row = 0; row < BLOCK / ROW_FACTORS; row += ROWS, codes += ROWS * ROW_BYTES) {
      rows_add(codes, factors.of, &rows, heads);
      for (uint32_t h = 0; h < heads; h++) factors.of[h] += ROWS * ROW_FACTORS;
    }
    v128_t sums[FEW][2];
    sums_end(&rows, sums, heads);
    for (uint32_t i = 0; i < 2; i++) {
      const v128_t scale = wasm_v128_load(block->scales + token + 4 * i);
      for (uint32_t h = 0; h < heads; h++) {
        totals[h][i] = wasm_f32x4_add(totals[h][i], wasm_f32x4_mul(sums[h][i], scale));
      }
    }
    for (uint32_t h = 0; h < heads; h++) factors.bias[h]++;
  }
  for (uint32_t i = 0; i < heads * 2; i++) {
    const v128_t unit = wasm_v128_load32_splat(&units[i / 2]);
    wasm_v128_store(scores + (size_t)(i / 2) * STEP + token + i % 2 * 4,
                    wasm_f32x4_mul(totals[i / 2][i % 2], unit));
  }
}

static __attribute__((noinline)) void page_scores(const kv_q8_block *blocks, uint32_t count,
                                                  const code_factors *factors,
                                                  const float units[FEW], bool is_first,
                                                  float *scores, uint32_t heads,
                                                  reading_ahead *ahead) {
#pragma nounroll
  for (uint32_t t = 0; t < TOKENS; t += STRIP) {
    read_ahead(ahead);
    if (heads == 1) {
      strip_scores(blocks, count, t, factors, units, is_first, scores, 1);
    } else if (heads == 2) {
      strip_scores(blocks, count, t, factors, units, is_first, scores, 2);
    } else if (heads == 3) {
      strip_scores(blocks, count, t, factors, units, is_first, scores, 3);
    } else {
      strip_scores(blocks, count, t, factors, units, is_first, scores, 4);
    }
  }
}

// Returns the factors of `heads` heads for `count` blocks starting at `first`. `room` is used if
// the last block is incomplete.
static code_factors query_factors(const float *q, uint32_t dims, uint32_t first, uint32_t count,
                                  uint32_t heads, int16_t room[FEW][PIECE * BLOCK]) {
  code_factors factors;
  const uint32_t first_dim = first * BLOCK;
  for (uint32_t h = 0; h < heads; h++, q += dims) {
    const int16_t *from = (const int16_t *)(const void *)q + first_dim;
    factors.bias[h] = kv_query_biases(q, dims) + first;
    factors.of[h] = from;
    if (dims - first_dim >= count * BLOCK) continue;
    for (uint32_t d = 0; d < count * BLOCK; d++) room[h][d] = first_dim + d < dims ? from[d] : 0;
    factors.of[h] = room[h];
  }
  return factors;
}

void codes_scores_simd(const float *q, uint32_t dims, uint32_t heads, const kernel_page *pages,
                       uint32_t count, kernel_kv_type type, float *scores, reading_ahead *ahead) {
  const uint32_t all = kv_blocks(dims);
  for (uint32_t first = 0; first < all; first += PIECE) {
    kv_q8_block room[KERNEL_STEP_PAGES][PIECE];
    const kv_q8_block *k[KERNEL_STEP_PAGES];
    const uint32_t blocks = all - first < PIECE ? all - first : PIECE;
    for (uint32_t n = 0; n < count; n++) {
      k[n] = take_blocks(pages[n].k, type, first, blocks, room[n]);
    }
    for (uint32_t h = 0; h < heads; h += FEW) {
      const uint32_t few = few_of(heads, h);
      const float *few_q = q + (size_t)h * dims;
      int16_t padded[FEW][PIECE * BLOCK];
      const code_factors factors = query_factors(few_q, dims, first, blocks, few, padded);
      float units[FEW];
      for (uint32_t i = 0; i < few; i++) {
        units[i] = first + blocks < all ? 1.0f : kv_query_unit(few_q + (size_t)i * dims, dims);
      }
      for (uint32_t n = 0; n < count; n++) {
        float *to = scores + (size_t)h * STEP + (size_t)n * TOKENS;
        page_scores(k[n], blocks, &factors, units, first == 0, to, few, ahead);
      }
    }
  }
}

// ---- Values ----

// One block of each page of a step, and the number of pages.
typedef struct step_blocks {
  const kv_q8_block *of[KERNEL_STEP_PAGES];
  uint32_t count;
} step_blocks;

// Returns the largest of 16 values.
static float largest(const v128_t of[4]) {
  v128_t most = wasm_f32x4_pmax(wasm_f32x4_pmax(of[0], of[1]), wasm_f32x4_pmax(of[2], of[3]));
  most = wasm_f32x4_pmax(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_f32x4_pmax(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  return wasm_f32x4_extract_lane(most, 0);
}

// Returns the scales of a block of a page. If some tokens do not count, they are a copy in `room`
// with 0 for these tokens.
static const float *page_scales(const kv_q8_block *block, const kernel_page *page, float *room) {
  if (page->last - page->first == TOKENS) return block->scales;
  for (uint32_t t = 0; t < TOKENS; t++) {
    room[t] = t < page->first || t >= page->last ? 0.0f : block->scales[t];
  }
  return room;
}

// Multiplies the scales of a step's block so that probability * scale becomes a 16-bit factor.
// Returns the value of a factor of 1.
static float step_scales(const step_blocks *blocks, const kernel_page *pages, float scales[STEP]) {
  v128_t most[4];
  const float *from[KERNEL_STEP_PAGES];
  for (uint32_t i = 0; i < 4; i++) most[i] = wasm_f32x4_splat(0);
#pragma nounroll
  for (uint32_t n = 0; n < blocks->count; n++) {
    from[n] = page_scales(blocks->of[n], &pages[n], scales + (size_t)n * TOKENS);
    for (uint32_t i = 0; i < 4; i++) {
      most[i] = wasm_f32x4_pmax(most[i], wasm_v128_load(from[n] + 4 * i));
    }
  }
  const kv_factor_size size = kv_factor_size_of(largest(most));
  const v128_t splat = wasm_f32x4_splat(size.size);
#pragma nounroll
  for (uint32_t n = 0; n < blocks->count; n++) {
    for (uint32_t i = 0; i < TOKENS; i += 4) {
      wasm_v128_store(scales + (size_t)n * TOKENS + i,
                      wasm_f32x4_mul(wasm_v128_load(from[n] + i), splat));
    }
  }
  return size.unit;
}

// Returns four factors: p * scales.
SIMD_INLINE v128_t make_four(const float *p, const float *scales, v128_t round, v128_t bits) {
  const v128_t value = wasm_f32x4_mul(wasm_v128_load(p), wasm_v128_load(scales));
  return wasm_i32x4_sub(wasm_f32x4_add(value, round), bits);
}

// Computes factors[tokens] = p * scales for one head. Returns the correction for biased codes.
static int32_t make_factors(const float *p, const float *scales, uint32_t tokens,
                            int16_t *factors) {
  const v128_t round = wasm_v128_load(simd_mask.code_round),
               bits = wasm_v128_load(simd_mask.code_bits);
  const v128_t ones = wasm_v128_load(simd_mask.ones);
  v128_t sum = wasm_i32x4_splat(0);
#pragma nounroll
  for (uint32_t t = 0; t < tokens; t += TOKENS) {
    for (uint32_t i = t; i < t + TOKENS; i += 8) {
      const v128_t made =
          wasm_i16x8_narrow_i32x4(make_four(p + i, scales + i, round, bits),
                                  make_four(p + i + 4, scales + i + 4, round, bits));
      wasm_v128_store(factors + i, made);
      sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(made, ones));
    }
  }
  sum = wasm_i32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
  return -KV_CODE_BIAS * (wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1));
}

// Computes acc[heads][8 dims] += the sums of one strip times `unit`; the last 4 dims are only added
// if they exist.
SIMD_INLINE void strip_values(const step_blocks *blocks, uint32_t d, bool is_whole,
                              const code_factors *from, v128_t unit, float *acc, uint32_t dims,
                              uint32_t heads) {
  code_factors factors = *from;
  row_sums rows;
  sums_begin(&rows, factors.bias, heads);
#pragma nounroll
  for (uint32_t n = 0; n < blocks->count; n++) {
    const uint8_t *codes = blocks->of[n]->codes + d * TOKENS;
#pragma nounroll
    for (uint32_t row = 0; row < TOKENS / ROW_FACTORS; row += ROWS, codes += ROWS * ROW_BYTES) {
      rows_add(codes, factors.of, &rows, heads);
      for (uint32_t h = 0; h < heads; h++) factors.of[h] += ROWS * ROW_FACTORS;
    }
  }
  v128_t sums[FEW][2];
  sums_end(&rows, sums, heads);
  for (uint32_t i = 0; i < heads * 2; i++) {
    if (i % 2 == 1 && !is_whole) continue;
    float *to = acc + (size_t)(i / 2) * dims + d + i % 2 * 4;
    const v128_t value = wasm_f32x4_mul(sums[i / 2][i % 2], unit);
    wasm_v128_store(to, wasm_f32x4_add(wasm_v128_load(to), value));
  }
}

// Adds the `count` dims of a block to acc: [heads], `dims` apart.
static __attribute__((noinline)) void block_values(const step_blocks *blocks, uint32_t count,
                                                   const code_factors *factors, float unit,
                                                   float *acc, uint32_t dims, uint32_t heads,
                                                   reading_ahead *ahead) {
  const v128_t splat = wasm_f32x4_splat(unit);
#pragma nounroll
  for (uint32_t d = 0; d < count; d += STRIP) {
    const bool is_whole = d + STRIP <= count;
    read_ahead(ahead);
    if (heads == 1) {
      strip_values(blocks, d, is_whole, factors, splat, acc, dims, 1);
    } else if (heads == 2) {
      strip_values(blocks, d, is_whole, factors, splat, acc, dims, 2);
    } else if (heads == 3) {
      strip_values(blocks, d, is_whole, factors, splat, acc, dims, 3);
    } else {
      strip_values(blocks, d, is_whole, factors, splat, acc, dims, 4);
    }
  }
}

void codes_values_simd(float *acc, uint32_t dims, uint32_t heads, const kernel_page *pages,
                       uint32_t count, kernel_kv_type type, const float *p, reading_ahead *ahead) {
  for (uint32_t b = 0; b < kv_blocks(dims); b++) {
    kv_q8_block room[KERNEL_STEP_PAGES];
    step_blocks blocks = {.count = count};
    for (uint32_t n = 0; n < count; n++) {
      blocks.of[n] = take_blocks(pages[n].v, type, b, 1, &room[n]);
    }
    float scales[STEP];
    const float unit = step_scales(&blocks, pages, scales);
    for (uint32_t h = 0; h < heads; h += FEW) {
      const uint32_t few = few_of(heads, h);
      int16_t made[FEW][STEP];
      int32_t biases[FEW];
      code_factors factors;
      for (uint32_t i = 0; i < few; i++) {
        biases[i] = make_factors(p + (size_t)(h + i) * STEP, scales, count * TOKENS, made[i]);
        factors.of[i] = made[i];
        factors.bias[i] = &biases[i];
      }
      float *to = acc + (size_t)h * dims + (size_t)b * BLOCK;
      block_values(&blocks, kv_block_dims(b, dims), &factors, unit, to, dims, few, ahead);
    }
  }
}

#endif

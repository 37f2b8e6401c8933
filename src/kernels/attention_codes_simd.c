// kernels/attention_codes_simd.c — attention over Q8 and Q4 pages in 128-bit vectors: rows of pairs
// of codes (kv_pages.h) meet pairs of 16-bit factors, i32x4.dot_i16x8 sums the products in whole
// numbers. Bit for bit what attention.c gives.
#include "kernels/families.h"
#include "kernels/kv_pages.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// FEW: heads that share codes once they are widened; more sums would be spilled. PIECE: blocks at a
// time. HEADS_MAX: of a call, see HEADS of attention_simd.c.
enum { FEW = 4, PIECE = 4, BLOCK = WICK_KV_BLOCK_VALUES, TOKENS = KERNEL_PAGE_TOKENS };
enum { STRIP = 8, ROW_BYTES = 16, ROWS = 8, HEADS_MAX = 16 };

// What codes meet: pairs of factors of so many heads.
typedef struct code_factors {
  const int16_t *of[FEW];
} code_factors;

// Where the results of so many heads go.
typedef struct code_results {
  float *of[FEW];
} code_results;

// sums[h][8] += ROWS rows of codes times pairs of factors. `heads`: known when compiled.
SIMD_INLINE void rows_add(const int8_t *codes, const code_factors *factors, uint32_t first_row,
                          v128_t sums[FEW][2], uint32_t heads) {
  const int16_t *x[FEW];
  for (uint32_t h = 0; h < heads; h++) x[h] = factors->of[h] + 2 * (size_t)first_row;
  uint32_t zero = 0;
#pragma unroll
  for (uint32_t u = 0; u < ROWS; u++) {
    if (u > 0 && simd_never(&zero)) break;
    const v128_t low = wasm_i16x8_load8x8(codes + ROW_BYTES * u);
    const v128_t high = wasm_i16x8_load8x8(codes + ROW_BYTES * u + STRIP);
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t pair = wasm_v128_load32_splat(x[h] + 2 * u);
      sums[h][0] = wasm_i32x4_add(sums[h][0], wasm_i32x4_dot_i16x8(low, pair));
      sums[h][1] = wasm_i32x4_add(sums[h][1], wasm_i32x4_dot_i16x8(high, pair));
    }
  }
}

SIMD_INLINE void clear(v128_t sums[FEW][2], uint32_t heads) {
  for (uint32_t i = 0; i < heads * 2; i++) sums[i / 2][i % 2] = wasm_i32x4_splat(0);
}

// to[4] += sums * scale
SIMD_INLINE void add_scaled(float *to, v128_t sums, v128_t scale) {
  const v128_t value = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(sums), scale);
  wasm_v128_store(to, wasm_f32x4_add(wasm_v128_load(to), value));
}

static uint32_t few_of(uint32_t heads, uint32_t h) { return heads - h < FEW ? heads - h : FEW; }

// The blocks [first, first + count) of a page, Q4 taken apart into `room`.
static const kv_q8_block *take_blocks(const void *page, kernel_kv_type type, uint32_t first,
                                      uint32_t count, kv_q8_block room[PIECE]) {
  if (type == KERNEL_KV_Q8) return (const kv_q8_block *)page + first;
  const kv_q4_block *from = (const kv_q4_block *)page + first;
  const v128_t low = wasm_i8x16_splat(15), eight = wasm_i8x16_splat(8);
  for (uint32_t b = 0; b < count; b++) {
    for (uint32_t i = 0; i < TOKENS; i += 4) {
      wasm_v128_store(room[b].scales + i, wasm_v128_load(from[b].scales + i));
    }
    for (uint32_t i = 0; i < KV_BLOCK_CODES / 2; i += 16) {
      const v128_t bytes = wasm_v128_load(from[b].bytes + i);
      int8_t *codes = room[b].codes + i / 128 * 256 + i % 128;
      wasm_v128_store(codes, wasm_i8x16_sub(wasm_v128_and(bytes, low), eight));
      wasm_v128_store(codes + 128, wasm_i8x16_sub(wasm_u8x16_shr(bytes, 4), eight));
    }
  }
  return room;
}

// ---- Scores ----

// scores[heads][16] += a block's sums times its scales.
SIMD_INLINE void block_scores(const kv_q8_block *block, const code_factors *factors,
                              const code_results *scores, uint32_t heads) {
  const int8_t *codes = block->codes;
#pragma nounroll
  for (uint32_t t = 0; t < TOKENS; t += STRIP) {
    v128_t sums[FEW][2];
    clear(sums, heads);
#pragma nounroll
    for (uint32_t row = 0; row < BLOCK / 2; row += ROWS, codes += ROWS * ROW_BYTES) {
      rows_add(codes, factors, row, sums, heads);
    }
    for (uint32_t i = 0; i < 2; i++) {
      const v128_t scale = wasm_v128_load(block->scales + t + 4 * i);
      for (uint32_t h = 0; h < heads; h++) {
        add_scaled(scores->of[h] + t + 4 * i, sums[h][i], scale);
      }
    }
  }
}

static __attribute__((noinline)) void block_scores_few(const kv_q8_block *block,
                                                       const code_factors *factors,
                                                       const code_results *scores, uint32_t heads) {
  if (heads == 1) {
    block_scores(block, factors, scores, 1);
  } else if (heads == 2) {
    block_scores(block, factors, scores, 2);
  } else if (heads == 3) {
    block_scores(block, factors, scores, 3);
  } else {
    block_scores(block, factors, scores, 4);
  }
}

// The factors of the heads from q on, for the dims from first_dim on; `room` where there are none
// for a whole block.
static code_factors query_factors(const float *q, uint32_t first_dim, uint32_t dims, uint32_t heads,
                                  int16_t room[FEW][BLOCK]) {
  code_factors factors;
  for (uint32_t h = 0; h < heads; h++) {
    const int16_t *from = (const int16_t *)(const void *)(q + (size_t)h * dims) + first_dim;
    factors.of[h] = from;
    if (dims - first_dim >= BLOCK) continue;
    for (uint32_t d = 0; d < BLOCK; d++) room[h][d] = first_dim + d < dims ? from[d] : 0;
    factors.of[h] = room[h];
  }
  return factors;
}

void codes_scores_simd(const float *q, uint32_t dims, uint32_t heads, const void *k_page,
                       kernel_kv_type type, float *scores) {
  for (uint32_t i = 0; i < heads * TOKENS; i += 4) {
    wasm_v128_store(scores + i, wasm_f32x4_splat(0));
  }
  const uint32_t blocks = kv_blocks(dims);
  for (uint32_t first = 0; first < blocks; first += PIECE) {
    kv_q8_block room[PIECE];
    const uint32_t count = blocks - first < PIECE ? blocks - first : PIECE;
    const kv_q8_block *k = take_blocks(k_page, type, first, count, room);
    for (uint32_t h = 0; h < heads; h += FEW) {
      const uint32_t few = few_of(heads, h);
      for (uint32_t b = 0; b < count; b++) {
        int16_t padded[FEW][BLOCK];
        code_factors factors =
            query_factors(q + (size_t)h * dims, (first + b) * BLOCK, dims, few, padded);
        code_results results;
        for (uint32_t i = 0; i < few; i++) results.of[i] = scores + (size_t)(h + i) * TOKENS;
        block_scores_few(&k[b], &factors, &results, few);
      }
    }
  }
  for (uint32_t h = 0; h < heads; h++, scores += TOKENS) {
    const v128_t unit = wasm_f32x4_splat(kv_query_unit(q + (size_t)h * dims, dims));
    for (uint32_t i = 0; i < TOKENS; i += 4) {
      wasm_v128_store(scores + i, wasm_f32x4_mul(wasm_v128_load(scores + i), unit));
    }
  }
}

// ---- Values ----

// The largest of 16, at least 0.
static float largest(const v128_t values[4]) {
  v128_t most = wasm_f32x4_splat(0);
  for (uint32_t i = 0; i < 4; i++) most = wasm_f32x4_pmax(most, values[i]);
  most = wasm_f32x4_pmax(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_f32x4_pmax(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  return wasm_f32x4_extract_lane(most, 0);
}

// A block's scales, 0 outside of [first, last).
static void take_scales(const kv_q8_block *block, uint32_t first, uint32_t last, v128_t scales[4]) {
  float kept[TOKENS];
  const float *from = block->scales;
  if (last - first < TOKENS) {
    for (uint32_t t = 0; t < TOKENS; t++) kept[t] = t < first || t >= last ? 0.0f : from[t];
    from = kept;
  }
  for (uint32_t i = 0; i < 4; i++) scales[i] = wasm_v128_load(from + 4 * i);
}

// kv_factor_size_of of FEW heads' largest, a block's largest scale times each of `p_most`.
static void make_sizes(const float p_most[FEW], float scale_most, float sizes[FEW],
                       float units[FEW]) {
  const v128_t most = wasm_f32x4_mul(wasm_v128_load(p_most), wasm_f32x4_splat(scale_most));
  const v128_t exponent = wasm_v128_and(most, wasm_i32x4_splat(0x7f800000));
  const v128_t counts = wasm_f32x4_ge(most, wasm_f32x4_splat(0x1p-100f));
  const v128_t size = wasm_i32x4_sub(wasm_i32x4_splat((int32_t)(268u << 23)), exponent);
  const v128_t unit = wasm_i32x4_sub(exponent, wasm_i32x4_splat(14 << 23));
  wasm_v128_store(sizes, wasm_v128_and(size, counts));
  wasm_v128_store(units, wasm_v128_and(unit, counts));
}

// p * scales * size as factors.
static void make_factors(const float *p, const v128_t scales[4], const float *size,
                         int16_t factors[TOKENS]) {
  const v128_t splat = wasm_v128_load32_splat(size);
  v128_t codes[4];
  for (uint32_t i = 0; i < 4; i++) {
    const v128_t scale = wasm_f32x4_mul(scales[i], splat);
    const v128_t value = wasm_f32x4_mul(wasm_v128_load(p + 4 * i), scale);
    codes[i] = wasm_i32x4_sub(wasm_f32x4_add(value, wasm_f32x4_splat(KV_ROUND)),
                              wasm_i32x4_splat(KV_ROUND_BITS));
  }
  wasm_v128_store(factors, wasm_i16x8_narrow_i32x4(codes[0], codes[1]));
  wasm_v128_store(factors + 8, wasm_i16x8_narrow_i32x4(codes[2], codes[3]));
}

// acc[heads][dims] += a block's sums, `count` dims of it.
SIMD_INLINE void block_values(const kv_q8_block *block, uint32_t count, const code_factors *factors,
                              const float units[FEW], const code_results *acc, uint32_t heads) {
  const int8_t *codes = block->codes;
#pragma nounroll
  for (uint32_t d = 0; d < count; d += STRIP, codes += ROWS * ROW_BYTES) {
    v128_t sums[FEW][2];
    clear(sums, heads);
    rows_add(codes, factors, 0, sums, heads);
    for (uint32_t i = 0; i < 2 && d + 4 * i < count; i++) {
      for (uint32_t h = 0; h < heads; h++) {
        add_scaled(acc->of[h] + d + 4 * i, sums[h][i], wasm_v128_load32_splat(&units[h]));
      }
    }
  }
}

static __attribute__((noinline)) void block_values_few(const kv_q8_block *block, uint32_t count,
                                                       const code_factors *factors,
                                                       const float units[FEW],
                                                       const code_results *acc, uint32_t heads) {
  if (heads == 1) {
    block_values(block, count, factors, units, acc, 1);
  } else if (heads == 2) {
    block_values(block, count, factors, units, acc, 2);
  } else if (heads == 3) {
    block_values(block, count, factors, units, acc, 3);
  } else {
    block_values(block, count, factors, units, acc, 4);
  }
}

void codes_values_simd(float *acc, uint32_t dims, uint32_t heads, const void *v_page,
                       kernel_kv_type type, uint32_t first, uint32_t last, const float *p) {
  float p_most[HEADS_MAX + FEW] = {0};
  for (uint32_t h = 0; h < heads; h++) {
    v128_t parts[4];
    for (uint32_t i = 0; i < 4; i++) parts[i] = wasm_v128_load(p + (size_t)h * TOKENS + 4 * i);
    p_most[h] = largest(parts);
  }
  const uint32_t blocks = kv_blocks(dims);
  for (uint32_t piece = 0; piece < blocks; piece += PIECE) {
    kv_q8_block room[PIECE];
    const uint32_t count = blocks - piece < PIECE ? blocks - piece : PIECE;
    const kv_q8_block *v = take_blocks(v_page, type, piece, count, room);
    v128_t scales[PIECE][4];
    float scale_most[PIECE];
    for (uint32_t b = 0; b < count; b++) {
      take_scales(&v[b], first, last, scales[b]);
      scale_most[b] = largest(scales[b]);
    }
    for (uint32_t h = 0; h < heads; h += FEW) {
      const uint32_t few = few_of(heads, h);
      int16_t made[PIECE][FEW][TOKENS];
      float units[PIECE][FEW];
      for (uint32_t b = 0; b < count; b++) {  // all before the first is needed
        float sizes[FEW];
        make_sizes(p_most + h, scale_most[b], sizes, units[b]);
        for (uint32_t i = 0; i < few; i++) {
          make_factors(p + (size_t)(h + i) * TOKENS, scales[b], &sizes[i], made[b][i]);
        }
      }
      for (uint32_t b = 0; b < count; b++) {
        code_factors factors = {{made[b][0], made[b][1], made[b][2], made[b][3]}};
        code_results results;
        for (uint32_t i = 0; i < few; i++) {
          results.of[i] = acc + (size_t)(h + i) * dims + (size_t)(piece + b) * BLOCK;
        }
        block_values_few(&v[b], kv_block_dims(piece + b, dims), &factors, units[b], &results, few);
      }
    }
  }
}

#endif

// kernels/attention_channels_simd.c — computes scores over C8 and C4 pages of keys in 128-bit
// vectors. The query's factors are multiplied by the scales of a page's channels, and the products
// by the codes, all as integers. The results are bit-identical to those of attention.c.
#include "kernels/code_rows.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

enum { PAIRS = BLOCK / 2 };  // pairs of dims in a block

// A few blocks of a page. stride: bytes from one block to the next.
typedef struct page_piece {
  const uint8_t *blocks;
  size_t stride;
  uint32_t count;
  bool is_c8;
} page_piece;

// How sums of a page become scores: scores = sums * unit + base, for up to FEW heads.
typedef struct score_ends {
  float units[FEW], bases[FEW];
} score_ends;

// Works like kv_channel_units_of.
static kv_channel_units units_of(const void *page) {
  const uint8_t *offsets = page;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < BLOCK; i += 16, offsets += 32) {
    const v128_t low = wasm_i16x8_shl(wasm_v128_load(offsets), 15);
    const v128_t high = wasm_i16x8_shl(wasm_v128_load(offsets + 16), 15);
    bits |= (uint32_t)wasm_i8x16_bitmask(wasm_i8x16_narrow_i16x8(low, high)) << i;
  }
  return (kv_channel_units){f32_of_bits(bits & 0xffff0000u), f32_of_bits(bits << 16)};
}

// A query's factors for a piece: those for offsets, and those for scales.
typedef struct query_piece {
  const int16_t *fine, *coarse;
} query_piece;

// Computes for each head: factors = the coarse factors of its query times the scales of a piece,
// and bases += its query times the offsets of the piece.
SIMD_INLINE void piece_factors(const page_piece *piece, const query_piece *queries,
                               int16_t factors[FEW][KV_CHANNELS], float *bases, uint32_t heads) {
  v128_t sums[FEW][2];
  query_piece from[FEW];
  for (uint32_t h = 0; h < heads; h++) {
    from[h] = queries[h];
    sums[h][0] = sums[h][1] = wasm_f32x4_splat(0);
  }
  int16_t *to = factors[0];
  const uint8_t *block = piece->blocks, *end = block + piece->count * piece->stride;
#pragma nounroll
  for (; block < end; block += piece->stride) {
#pragma unroll
    for (uint32_t d = 0; d < BLOCK; d += 8) {
      const v128_t offsets = wasm_v128_load(block + d * sizeof(int16_t));
      const v128_t scales = wasm_u16x8_load8x8(block + BLOCK * sizeof(int16_t) + d);
      for (uint32_t h = 0; h < heads; h++) {
        const v128_t pairs = wasm_i32x4_dot_i16x8(offsets, wasm_v128_load(from[h].fine + d));
        v128_t *sum = &sums[h][d / 8 % 2];
        *sum = wasm_f32x4_add(*sum, wasm_f32x4_convert_i32x4(pairs));
        wasm_v128_store(to + h * KV_CHANNELS + d,
                        wasm_i16x8_mul(scales, wasm_v128_load(from[h].coarse + d)));
      }
    }
    for (uint32_t h = 0; h < heads; h++) {
      from[h].fine += BLOCK;
      from[h].coarse += BLOCK;
    }
    to += BLOCK;
  }
  for (uint32_t h = 0; h < heads; h++) {
    v128_t sum = wasm_f32x4_add(sums[h][0], sums[h][1]);
    sum = wasm_f32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
    bases[h] += wasm_f32x4_extract_lane(sum, 0) + wasm_f32x4_extract_lane(sum, 1);
  }
}

// ---- Scores ----

// Computes sums[h] += ROWS pairs of dims times pairs of factors, for 8 tokens. In C4, the first
// sums are over whole bytes, which exceed the low codes by 16 times the high codes.
SIMD_INLINE void pairs_add(const uint8_t *codes, bool is_c8, const int16_t *const *factors,
                           row_sums *sums, uint32_t heads) {
  const int16_t *x[FEW];
  for (uint32_t h = 0; h < heads; h++) {
    x[h] = factors[h];
    SIMD_OPAQUE(x[h]);
  }
  SIMD_OPAQUE(codes);
#pragma unroll
  for (uint32_t u = 0; u < ROWS; u++) {
    const uint8_t *row = codes + (is_c8 ? 32 : 16) * u;
    const v128_t low = is_c8 ? wasm_i16x8_load8x8(row) : wasm_u16x8_load8x8(row);
    const v128_t high = is_c8 ? wasm_i16x8_load8x8(row + 8) : wasm_u16x8_shr(low, 4);
    row_add(low, high, x, u, sums, heads);
  }
}

// Computes scores[h][8 tokens] = (scores, unless the piece is the first, + codes times factors) as
// defined by `ends`. `strip`: one of the two halves of the tokens.
SIMD_INLINE void strip_scores(const page_piece *piece, uint32_t strip, bool is_c8,
                              int16_t factors[FEW][KV_CHANNELS], const score_ends *ends,
                              bool is_first, float *scores, uint32_t heads) {
  row_sums sums;
  const int16_t *from[FEW];
  sums_begin(&sums, NULL, heads);
  for (uint32_t h = 0; h < heads; h++) from[h] = factors[h];
  const uint8_t *block = piece->blocks + BLOCK * 3 + strip * (is_c8 ? 16 : 8);
#pragma nounroll
  for (uint32_t b = 0; b < piece->count; b++, block += piece->stride) {
    const uint8_t *codes = block;
#pragma nounroll
    for (uint32_t pair = 0; pair < PAIRS; pair += ROWS, codes += ROWS * (is_c8 ? 32 : 16)) {
      pairs_add(codes, is_c8, from, &sums, heads);
      for (uint32_t h = 0; h < heads; h++) from[h] += ROWS * ROW_FACTORS;
    }
  }
  sums_join(&sums, heads);
  for (uint32_t h = 0; h < heads; h++, scores += STEP) {
    v128_t *all = sums.even[h];
    const v128_t unit = wasm_v128_load32_splat(&ends->units[h]);
    const v128_t base = wasm_v128_load32_splat(&ends->bases[h]);
    if (!is_c8) all[0] = wasm_i32x4_sub(all[0], wasm_i32x4_shl(all[1], 4));
    for (uint32_t i = 0; i < 2; i++) {
      v128_t sum = wasm_f32x4_convert_i32x4(all[i]);
      if (!is_first) sum = wasm_f32x4_add(wasm_v128_load(scores + 4 * i), sum);
      wasm_v128_store(scores + 4 * i, wasm_f32x4_add(wasm_f32x4_mul(sum, unit), base));
    }
  }
}

SIMD_INLINE void page_scores(const page_piece *piece, bool is_c8, int16_t factors[FEW][KV_CHANNELS],
                             const score_ends *ends, bool is_first, float *scores, uint32_t heads,
                             reading_ahead *ahead) {
#pragma nounroll
  for (uint32_t strip = 0; strip < 2; strip++, scores += STRIP) {
    read_ahead(ahead);
    if (heads == 1) {
      strip_scores(piece, strip, is_c8, factors, ends, is_first, scores, 1);
    } else if (heads == 2) {
      strip_scores(piece, strip, is_c8, factors, ends, is_first, scores, 2);
    } else if (heads == 3) {
      strip_scores(piece, strip, is_c8, factors, ends, is_first, scores, 3);
    } else {
      strip_scores(piece, strip, is_c8, factors, ends, is_first, scores, 4);
    }
  }
}

static __attribute__((noinline)) void c8_scores(const page_piece *piece,
                                                int16_t factors[FEW][KV_CHANNELS],
                                                const score_ends *ends, bool is_first,
                                                float *scores, uint32_t heads,
                                                reading_ahead *ahead) {
  page_scores(piece, true, factors, ends, is_first, scores, heads, ahead);
}

static __attribute__((noinline)) void c4_scores(const page_piece *piece,
                                                int16_t factors[FEW][KV_CHANNELS],
                                                const score_ends *ends, bool is_first,
                                                float *scores, uint32_t heads,
                                                reading_ahead *ahead) {
  page_scores(piece, false, factors, ends, is_first, scores, heads, ahead);
}

// ---- Pages ----

// The queries of a few heads: their factors for one piece, and the values of factors of 1.
typedef struct few_queries {
  query_piece of[FEW];
  kv_channel_units units[FEW];
  float bases[KERNEL_STEP_PAGES][FEW];  // sums of each page's offsets so far
  uint32_t count;
} few_queries;

SIMD_INLINE void add_factors(const page_piece *piece, const few_queries *queries,
                             int16_t factors[FEW][KV_CHANNELS], float *bases) {
  if (queries->count == 1) {
    piece_factors(piece, queries->of, factors, bases, 1);
  } else if (queries->count == 2) {
    piece_factors(piece, queries->of, factors, bases, 2);
  } else if (queries->count == 3) {
    piece_factors(piece, queries->of, factors, bases, 3);
  } else {
    piece_factors(piece, queries->of, factors, bases, 4);
  }
}

// Computes the scores of page `n` of a step, which is at `page`, over one piece of it.
static void add_piece(few_queries *queries, const void *page, uint32_t n, const page_piece *piece,
                      bool is_first, bool is_last, float *scores, reading_ahead *ahead) {
  int16_t factors[FEW][KV_CHANNELS];
  score_ends ends = {{1.0f, 1.0f, 1.0f, 1.0f}, {0}};
  float *bases = queries->bases[n];
  add_factors(piece, queries, factors, bases);
  if (is_last) {
    const kv_channel_units units = units_of(page);
    for (uint32_t i = 0; i < FEW; i++) {
      ends.units[i] = queries->units[i].scale * units.scale;
      ends.bases[i] = bases[i] * (queries->units[i].offset * units.offset);
    }
  }
  (piece->is_c8 ? c8_scores : c4_scores)(piece, factors, &ends, is_first, scores, queries->count,
                                         ahead);
}

void channels_scores_simd(const uint8_t *factors, uint32_t dims, uint32_t heads,
                          const kernel_page *pages, uint32_t count, kernel_kv_type type,
                          float *scores, reading_ahead *ahead) {
  const bool is_c8 = type == KERNEL_KV_C8;
  const uint32_t all = kv_blocks(dims) * BLOCK;
  page_piece piece = {.stride = is_c8 ? sizeof(kv_c8_block) : sizeof(kv_c4_block), .is_c8 = is_c8};
  for (uint32_t h = 0; h < heads; h += FEW, scores += FEW * STEP) {
    few_queries queries = {.count = few_of(heads, h)};
    for (uint32_t first = 0; first < all; first += KV_CHANNELS) {
      const uint8_t *row = factors + h * kv_factor_bytes(dims);
      for (uint32_t i = 0; i < queries.count; i++, row += kv_factor_bytes(dims)) {
        const kv_channel_query *query = (const kv_channel_query *)(const void *)row;
        queries.of[i] = (query_piece){query->factors + first, query->factors + first + all};
        queries.units[i] = query->units;
      }
      piece.count = (all - first < KV_CHANNELS ? all - first : KV_CHANNELS) / BLOCK;
      for (uint32_t n = 0; n < count; n++) {
        piece.blocks = pages[n].k + first / BLOCK * piece.stride;
        add_piece(&queries, pages[n].k, n, &piece, first == 0, first + KV_CHANNELS >= all,
                  scores + (size_t)n * TOKENS, ahead);
      }
    }
  }
}

#endif

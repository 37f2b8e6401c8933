// kernels/attention_channels_simd.c — scores over C8 and C4 pages of keys in 128-bit vectors. The
// scales of a page's channels become part of the query's factors, which meet the codes as integers;
// the offsets meet the query as floats. The results are those of attention.c, bit for bit.
#include "kernels/code_rows.h"
#include "kernels/families.h"

#ifdef WICK_SIMD128

// HEADS: of a call at most. PIECE: blocks of K at a time.
enum { HEADS = 16, PIECE = KV_CHANNELS / KV_BLOCK_VALUES };

// A piece of a page: where the codes of its blocks are, its scales as they meet factors, offsets.
typedef struct page_piece {
  const uint8_t *codes[PIECE];
  int16_t scales[KV_CHANNELS];
  float offsets[KV_CHANNELS];
  uint8_t room[PIECE][KV_BLOCK_CODES];  // of codes that were unpacked
} page_piece;

// The size of each head's factors, the same for all pieces of the query.
typedef struct query_sizes {
  kv_factor_size of[HEADS];
} query_sizes;

// ---- The query ----

static kv_factor_size query_size(const float *q, uint32_t dims) {
  v128_t mosts[2] = {wasm_f32x4_splat(0), wasm_f32x4_splat(0)};
  uint32_t d = 0;
#pragma nounroll
  for (; d + 8 <= dims; d += 8) {
    mosts[0] = wasm_f32x4_pmax(mosts[0], wasm_f32x4_abs(wasm_v128_load(q + d)));
    mosts[1] = wasm_f32x4_pmax(mosts[1], wasm_f32x4_abs(wasm_v128_load(q + d + 4)));
  }
  if (d < dims) mosts[0] = wasm_f32x4_pmax(mosts[0], wasm_f32x4_abs(wasm_v128_load(q + d)));
  v128_t most = wasm_f32x4_pmax(mosts[0], mosts[1]);
  most = wasm_f32x4_pmax(most, wasm_i64x2_shuffle(most, most, 1, 0));
  most = wasm_f32x4_pmax(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  return kv_factor_size_of(wasm_f32x4_extract_lane(most, 0));
}

// factors[count] of q[count]; 0 up to the next multiple of a block.
static void query_factors(const float *q, uint32_t count, float size, int16_t *factors) {
  const v128_t round = wasm_v128_load(simd_mask.code_round),
               bits = wasm_v128_load(simd_mask.code_bits), splat = wasm_f32x4_splat(size);
#pragma nounroll
  for (uint32_t d = 0; d < count; d += 4) {
    const v128_t value = wasm_f32x4_mul(wasm_v128_load(q + d), splat);
    const v128_t made = wasm_i32x4_sub(wasm_f32x4_add(value, round), bits);
    wasm_v128_store64_lane(factors + d, wasm_i16x8_narrow_i32x4(made, made), 0);
  }
  for (uint32_t d = count; d % BLOCK != 0; d++) factors[d] = 0;
}

// ---- A piece of a page ----

static void take_offsets(const uint16_t *halves, float *offsets) {
  const v128_t size = wasm_f32x4_splat(0x1p112f);
  const v128_t mask = wasm_v128_load(simd_mask.offset_tiny);
  const v128_t low_halves = wasm_v128_load(simd_mask.f16_low);
  for (uint32_t d = 0; d < BLOCK; d += 8) {
    const v128_t pairs = wasm_v128_load(halves + d);
    const v128_t low = wasm_v128_and(wasm_i32x4_dot_i16x8(pairs, low_halves), mask);
    const v128_t high = wasm_v128_and(wasm_i32x4_shr(pairs, 3), mask);
    wasm_v128_store(offsets + d, wasm_f32x4_mul(low, size));
    wasm_v128_store(offsets + d + 4, wasm_f32x4_mul(high, size));
  }
}

static void take_scales(const uint8_t *bytes, int16_t *scales) {
  for (uint32_t d = 0; d < BLOCK; d += 8) {
    const v128_t wide = wasm_u16x8_load8x8(bytes + d);
    wasm_v128_store(scales + d, wasm_i16x8_shl(wide, KV_SCALE_SHIFT));
  }
}

static void unpack(const uint8_t *bytes, uint8_t *codes) {
  const v128_t low = wasm_v128_load(simd_mask.low_4);
#pragma nounroll
  for (uint32_t i = 0; i < KV_BLOCK_CODES / 2; i += 16) {
    const v128_t from = wasm_v128_load(bytes + i);
    uint8_t *to = codes + i / 128 * 256 + i % 128;
    wasm_v128_store(to, wasm_v128_and(from, low));
    wasm_v128_store(to + 128, wasm_u8x16_shr(from, 4));
  }
}

// The blocks [first, first + count) of a page.
static void take_piece(const void *page, kernel_kv_type type, uint32_t first, uint32_t count,
                       page_piece *piece) {
  for (uint32_t b = 0; b < count; b++) {
    const kv_c8_block *c8 = (const kv_c8_block *)page + first + b;
    const kv_c4_block *c4 = (const kv_c4_block *)page + first + b;
    const bool is_c8 = type == KERNEL_KV_C8;
    take_offsets(is_c8 ? c8->offsets : c4->offsets, piece->offsets + (size_t)b * BLOCK);
    take_scales(is_c8 ? c8->scales : c4->scales, piece->scales + (size_t)b * BLOCK);
    piece->codes[b] = is_c8 ? c8->codes : piece->room[b];
    if (!is_c8) unpack(c4->bytes, piece->room[b]);
  }
}

// kv_channel_unit
static float unit_of(const void *page) {
  const uint8_t *offsets = page;
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const v128_t signs = wasm_i16x8_shl(wasm_v128_load(offsets + (size_t)i * 16), 15);
    bits |= wasm_i16x8_bitmask(signs) << 8 * i;
  }
  return f32_of_bits(bits);
}

// ---- Scores ----

SIMD_INLINE v128_t offsets_add(v128_t sum, const float *q, const float *offsets, uint32_t d) {
  return wasm_f32x4_add(sum, wasm_f32x4_mul(wasm_v128_load(q + d), wasm_v128_load(offsets + d)));
}

// sum over `count` dims of q * offsets, in the order of attention.c: four sums at a time, since
// each waits for its last addition
static float add_offsets(const float *q, const float *offsets, uint32_t count) {
  v128_t sums[4];
  for (uint32_t i = 0; i < 4; i++) sums[i] = wasm_f32x4_splat(0);
  uint32_t d = 0;
#pragma nounroll
  for (; d + 16 <= count; d += 16) {
    for (uint32_t i = 0; i < 4; i++) sums[i] = offsets_add(sums[i], q, offsets, d + 4 * i);
  }
  for (uint32_t i = 0; i < 3; i++) {
    if (d + 4 * i < count) sums[i] = offsets_add(sums[i], q, offsets, d + 4 * i);
  }
  v128_t sum = wasm_f32x4_add(wasm_f32x4_add(sums[0], sums[1]), wasm_f32x4_add(sums[2], sums[3]));
  sum = wasm_f32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
  return wasm_f32x4_extract_lane(sum, 0) + wasm_f32x4_extract_lane(sum, 1);
}

// The factors of `blocks` blocks for a page.
static void page_factors(const int16_t *query, const int16_t *scales, uint32_t blocks,
                         int16_t *factors) {
#pragma nounroll
  for (uint32_t d = 0; d < blocks * BLOCK; d += 16) {
    for (uint32_t i = d; i < d + 16; i += 8) {
      wasm_v128_store(factors + i, wasm_i16x8_q15mulr_sat(wasm_v128_load(query + i),
                                                          wasm_v128_load(scales + i)));
    }
  }
}

// The correction for high codes, which are smaller by KV_CODE_BIAS in C8.
static int32_t lack_of(const int16_t *factors, uint32_t blocks) {
  const v128_t ones = wasm_v128_load(simd_mask.ones);
  v128_t sum = wasm_i32x4_splat(0);
#pragma nounroll
  for (uint32_t d = 0; d < blocks * BLOCK; d += 8) {
    sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_v128_load(factors + d), ones));
  }
  sum = wasm_i32x4_add(sum, wasm_i64x2_shuffle(sum, sum, 1, 0));
  return KV_CODE_BIAS * (wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1));
}

// scores[h][tokens token to token + 7] += codes times factors.
SIMD_INLINE void strip_scores(const page_piece *piece, uint32_t blocks, uint32_t token,
                              int16_t factors[FEW][KV_CHANNELS], const int32_t lacks[FEW],
                              float *scores, uint32_t heads) {
  v128_t sums[FEW][2];
  const int16_t *from[FEW];
  for (uint32_t h = 0; h < heads; h++) {
    sums[h][0] = sums[h][1] = wasm_i32x4_splat(0);
    from[h] = factors[h];
  }
#pragma nounroll
  for (uint32_t b = 0; b < blocks; b++) {
    const uint8_t *codes = piece->codes[b] + token * BLOCK;
#pragma nounroll
    for (uint32_t row = 0; row < BLOCK / ROW_FACTORS; row += ROWS, codes += ROWS * ROW_BYTES) {
      rows_add(codes, from, sums, heads);
      for (uint32_t h = 0; h < heads; h++) from[h] += ROWS * ROW_FACTORS;
    }
  }
  for (uint32_t h = 0; h < heads; h++) {
    const v128_t low = wasm_i32x4_sub(sums[h][0], wasm_i32x4_shl(sums[h][1], 8));
    const v128_t high = wasm_i32x4_add(sums[h][1], wasm_v128_load32_splat(&lacks[h]));
    float *to = scores + (size_t)h * STEP + token;
    wasm_v128_store(to, wasm_f32x4_add(wasm_v128_load(to), wasm_f32x4_convert_i32x4(low)));
    wasm_v128_store(to + 4, wasm_f32x4_add(wasm_v128_load(to + 4), wasm_f32x4_convert_i32x4(high)));
  }
}

static __attribute__((noinline)) void few_scores(const page_piece *piece, uint32_t blocks,
                                                 int16_t factors[FEW][KV_CHANNELS],
                                                 const int32_t lacks[FEW], float *scores,
                                                 uint32_t heads, reading_ahead *ahead) {
#pragma nounroll
  for (uint32_t t = 0; t < TOKENS; t += STRIP) {
    read_ahead(ahead);
    if (heads == 1) {
      strip_scores(piece, blocks, t, factors, lacks, scores, 1);
    } else if (heads == 2) {
      strip_scores(piece, blocks, t, factors, lacks, scores, 2);
    } else if (heads == 3) {
      strip_scores(piece, blocks, t, factors, lacks, scores, 3);
    } else {
      strip_scores(piece, blocks, t, factors, lacks, scores, 4);
    }
  }
}

// One piece of one page. q: the piece of the first head, `dims` apart, `count` of them.
static void piece_scores(const page_piece *piece, const float *q, uint32_t dims, uint32_t count,
                         int16_t query[HEADS][KV_CHANNELS], bool is_c8, uint32_t heads,
                         float *scores, float bases[HEADS], reading_ahead *ahead) {
  const uint32_t blocks = kv_blocks(count);
  for (uint32_t h = 0; h < heads; h += FEW) {
    const uint32_t few = few_of(heads, h);
    int16_t factors[FEW][KV_CHANNELS];
    int32_t lacks[FEW];
    for (uint32_t i = 0; i < few; i++) {
      bases[h + i] += add_offsets(q + (size_t)(h + i) * dims, piece->offsets, count);
      page_factors(query[h + i], piece->scales, blocks, factors[i]);
      lacks[i] = is_c8 ? lack_of(factors[i], blocks) : 0;
    }
    few_scores(piece, blocks, factors, lacks, scores + (size_t)h * STEP, few, ahead);
  }
}

// score = score * unit + base
static void end_scores(const query_sizes *sizes, float bases[KERNEL_STEP_PAGES][HEADS],
                       const kernel_page *pages, uint32_t count, uint32_t heads, float *scores) {
  for (uint32_t n = 0; n < count; n++) {
    const float page_unit = unit_of(pages[n].k) * KV_SCALED_UNIT;
    for (uint32_t h = 0; h < heads; h++) {
      const v128_t unit = wasm_f32x4_splat(sizes->of[h].unit * page_unit);
      const v128_t base = wasm_f32x4_splat(bases[n][h]);
      float *at = scores + (size_t)h * STEP + (size_t)n * TOKENS;
      for (uint32_t t = 0; t < TOKENS; t += 4) {
        wasm_v128_store(at + t, wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(at + t), unit), base));
      }
    }
  }
}

void channels_scores_simd(const float *q, uint32_t dims, uint32_t heads, const kernel_page *pages,
                          uint32_t count, kernel_kv_type type, float *scores,
                          reading_ahead *ahead) {
  query_sizes sizes;
  float bases[KERNEL_STEP_PAGES][HEADS];
  memset(bases, 0, sizeof bases);
  for (uint32_t h = 0; h < heads; h++) {
    sizes.of[h] = query_size(q + (size_t)h * dims, dims);
    memset(scores + (size_t)h * STEP, 0, count * TOKENS * sizeof *scores);
  }
  for (uint32_t first = 0; first < dims; first += KV_CHANNELS) {
    const uint32_t some = dims - first < KV_CHANNELS ? dims - first : KV_CHANNELS;
    int16_t query[HEADS][KV_CHANNELS];
    for (uint32_t h = 0; h < heads; h++) {
      query_factors(q + (size_t)h * dims + first, some, sizes.of[h].size, query[h]);
    }
    for (uint32_t n = 0; n < count; n++) {
      page_piece piece;
      take_piece(pages[n].k, type, first / BLOCK, kv_blocks(some), &piece);
      piece_scores(&piece, q + first, dims, some, query, type == KERNEL_KV_C8, heads,
                   scores + (size_t)n * TOKENS, bases[n], ahead);
    }
  }
  end_scores(&sizes, bases, pages, count, heads, scores);
}

#endif

// kernels/tile.c — tiles of several tokens; see tile.h.
#include "kernels/tile.h"

#ifdef WICK_SIMD128

enum { TILE_TOKENS = 4, TILE_BATCH = 32, TILE_PARTS = 8, TILE_WORDS = TILE_PARTS * ACT_WORDS };

// ---- kernels ----
// x: [part][word of act_block][token], wide: the same of act_wide. sums: [token][8 rows].

typedef void tile_kernel(const tile_part *parts, uint32_t count, int32_t offset, const int32_t *x,
                         const int32_t *wide, float *sums);

// Word `word` of each token in all four lanes. Four tokens: one load and four shuffles take fewer
// instructions than four loads, whose offsets V8 adds apart.
SIMD_INLINE void tile_splats(const int32_t *x, uint32_t word, uint32_t tokens, v128_t *splats) {
  if (tokens == 4) {
    const v128_t four = wasm_v128_load(x + word * 4);
    splats[0] = wasm_i32x4_shuffle(four, four, 0, 0, 0, 0);
    splats[1] = wasm_i32x4_shuffle(four, four, 1, 1, 1, 1);
    splats[2] = wasm_i32x4_shuffle(four, four, 2, 2, 2, 2);
    splats[3] = wasm_i32x4_shuffle(four, four, 3, 3, 3, 3);
    return;
  }
  for (uint32_t t = 0; t < tokens; t++) {
    splats[t] = wasm_v128_load32_splat(x + word * tokens + t);
  }
}

// What a pass over the column groups takes of the codes. EVEN and ODD: 16-bit lanes; UPPER and
// LOWEST: the upper 7 bits and the lowest of code + 128.
typedef enum tile_form {
  FORM_BYTES,
  FORM_EVEN,
  FORM_ODD,
  FORM_SIGNED_EVEN,
  FORM_SIGNED_ODD,
  FORM_UPPER,
  FORM_LOWEST
} tile_form;

SIMD_INLINE v128_t form_take(v128_t codes, tile_form form) {
  switch (form) {
    case FORM_EVEN:
    case FORM_ODD:
      return simd_widen(codes, form == FORM_ODD, false);
    case FORM_SIGNED_EVEN:
    case FORM_SIGNED_ODD:
      return simd_widen(codes, form == FORM_SIGNED_ODD, true);
    case FORM_UPPER:
      codes = wasm_v128_xor(codes, wasm_v128_load(simd_mask.top));
      return wasm_v128_and(wasm_u16x8_shr(codes, 1), wasm_v128_load(simd_mask.low_7));
    case FORM_LOWEST:
      return wasm_v128_and(codes, wasm_v128_load(simd_mask.low_1));
    default:
      return codes;
  }
}

// Adds column groups [first, first + count) to dots[half * tokens + token]. One form at a time and
// not unrolled: 8 sums, 4 splats and a vector of codes are what V8's 16 registers hold.
SIMD_INLINE void tile_pass(const tile_part *part, uint32_t first, uint32_t count, tile_form form,
                           const int32_t *x, const int32_t *wide, uint32_t tokens,
                           simd_flavor flavor, v128_t *dots) {
  const bool is_wide = form != FORM_BYTES && form < FORM_UPPER;
  const uint32_t odd = form == FORM_ODD || form == FORM_SIGNED_ODD;
  const int32_t *words = is_wide ? wide + (2 * first + odd) * tokens : x + first * tokens;
  const uint8_t *codes = part->codes[first];
#pragma nounroll
  for (uint32_t g = 0; g < count; g++, codes += 32, words += (is_wide ? 2 : 1) * tokens) {
    v128_t splats[TILE_TOKENS];
    SIMD_OPAQUE(words);
    tile_splats(words, 0, tokens, splats);
    for (uint32_t h = 0; h < 2; h++) {
      const v128_t taken = form_take(wasm_v128_load(codes + 16 * h), form);
      for (uint32_t t = 0; t < tokens; t++) {
        v128_t *dot = &dots[h * tokens + t];
        *dot = simd_dot(*dot, splats[t], taken, is_wide ? SIMD_PLAIN : flavor);
      }
    }
  }
}

// -offset * sum(x): see strip_dot_start.
SIMD_INLINE void tile_dots_start(const int32_t *x, uint32_t step, int32_t offset, uint32_t tokens,
                                 bool pairs, v128_t *dots) {
  const uint32_t sum = step == 2 ? ACT_WORD_MINUS_SUM : ACT_WORD_MINUS_SUM_HALF + step;
  const uint32_t pair = step == 2 ? ACT_WORD_MINUS_PAIRS : ACT_WORD_MINUS_PAIRS_HALF + step;
  tile_splats(x, pairs ? pair : sum, tokens, dots);
  for (uint32_t t = 0; t < tokens; t++) {
    dots[t] = pairs ? wasm_i16x8_mul(dots[t], wasm_i16x8_splat((int16_t)offset))
                    : wasm_i32x4_mul(dots[t], wasm_i32x4_splat(offset));
    dots[tokens + t] = dots[t];
  }
}

// Dots of 8-bit codes with a sign in the column groups of a step (2: all). QUADS: code + 128 = 2 *
// upper + lowest, both within 7 bits.
SIMD_INLINE void tile_dots_signed(const tile_part *part, uint32_t step, const int32_t *x,
                                  const int32_t *wide, uint32_t tokens, simd_flavor flavor,
                                  v128_t *dots) {
  const uint32_t first = step == 2 ? 0 : 4 * step, count = step == 2 ? 8 : 4;
  if (flavor != SIMD_QUADS) {
    for (uint32_t i = 0; i < 2 * tokens; i++) dots[i] = wasm_i32x4_splat(0);
    tile_pass(part, first, count, FORM_SIGNED_EVEN, x, wide, tokens, flavor, dots);
    tile_pass(part, first, count, FORM_SIGNED_ODD, x, wide, tokens, flavor, dots);
  } else {
    tile_dots_start(x, step, 64, tokens, false, dots);
    tile_pass(part, first, count, FORM_UPPER, x, wide, tokens, flavor, dots);
    for (uint32_t i = 0; i < 2 * tokens; i++) dots[i] = wasm_i32x4_shl(dots[i], 1);
    tile_pass(part, first, count, FORM_LOWEST, x, wide, tokens, flavor, dots);
  }
  for (uint32_t i = 0; i < 2 * tokens; i++) dots[i] = simd_dot_total(dots[i], BLOCK_SIGNED, flavor);
}

// Dots of unsigned codes in the column groups of a step (2: all), the offset taken off.
SIMD_INLINE void tile_dots_step(const tile_part *part, uint32_t step, int32_t offset,
                                const int32_t *x, const int32_t *wide, uint32_t tokens,
                                simd_flavor flavor, v128_t *dots) {
  const uint32_t first = step == 2 ? 0 : 4 * step, count = step == 2 ? 8 : 4;
  tile_dots_start(x, step, offset, tokens, flavor == SIMD_PAIRS, dots);
  if (flavor == SIMD_PLAIN) {
    tile_pass(part, first, count, FORM_EVEN, x, wide, tokens, flavor, dots);
    tile_pass(part, first, count, FORM_ODD, x, wide, tokens, flavor, dots);
  } else {
    tile_pass(part, first, count, FORM_BYTES, x, wide, tokens, flavor, dots);
  }
}

SIMD_INLINE void tile_dots(const tile_part *part, int32_t offset, const int32_t *x,
                           const int32_t *wide, uint32_t tokens, block_kind kind,
                           simd_flavor flavor, v128_t *dots) {
  if (kind == BLOCK_SIGNED) {
    tile_dots_signed(part, 2, x, wide, tokens, flavor, dots);
    return;
  }
  if (!kind_has_sub(kind)) {
    tile_dots_step(part, 2, offset, x, wide, tokens, flavor, dots);
    for (uint32_t i = 0; i < 2 * tokens; i++) dots[i] = simd_dot_total(dots[i], kind, flavor);
    return;
  }
  v128_t step[2 * TILE_TOKENS];
  for (uint32_t s = 0; s < 2; s++) {
    tile_dots_step(part, s, offset, x, wide, tokens, flavor, step);
    for (uint32_t i = 0; i < 2 * tokens; i++) {
      const v128_t sub_scales = wasm_v128_load(part->sub_scales[s] + i / tokens * 4);
      const v128_t scaled = simd_dot_scaled(step[i], sub_scales, flavor);
      dots[i] = s == 0 ? scaled : wasm_i32x4_add(dots[i], scaled);
    }
  }
}

// What the minima add; see strip_part_add.
SIMD_INLINE v128_t tile_min_add(const tile_part *part, uint32_t half, uint32_t token,
                                const int32_t *x, v128_t x_scale, uint32_t tokens, block_kind kind,
                                simd_flavor flavor, v128_t sum) {
  const v128_t mins = wasm_v128_load(part->mins + 4 * half);
  const int32_t *words = x + token;
  if (kind == BLOCK_MINS) {
    const v128_t x_sum = wasm_v128_load32_splat(words + ACT_WORD_MINUS_SUM * tokens);
    return simd_multiply_add(mins, wasm_f32x4_mul(wasm_f32x4_convert_i32x4(x_sum), x_scale), sum,
                             flavor);
  }
  v128_t dot = wasm_i32x4_splat(0);
  for (uint32_t s = 0; s < 2; s++) {
    const v128_t x_sum = wasm_v128_load32_splat(words + (ACT_WORD_MINUS_SUM_HALF + s) * tokens);
    dot = wasm_i32x4_add(dot, wasm_i32x4_mul(wasm_v128_load(part->sub_mins[s] + 4 * half), x_sum));
  }
  return simd_multiply_add(wasm_f32x4_convert_i32x4(dot), wasm_f32x4_mul(mins, x_scale), sum,
                           flavor);
}

// Dots of each 16 columns times their own scale; see part_add of blocks.c.
SIMD_INLINE void tile_run_halves(const tile_part *part, const int32_t *x, const int32_t *wide,
                                 float *sums, uint32_t tokens, simd_flavor flavor) {
  v128_t dots[2 * TILE_TOKENS], x_scales[TILE_TOKENS];
  for (uint32_t s = 0; s < 2; s++) {
    tile_dots_signed(part, s, x, wide, tokens, flavor, dots);
    tile_splats(x, ACT_WORD_SCALE, tokens, x_scales);
    for (uint32_t i = 0; i < 2 * tokens; i++) {
      const uint32_t h = i / tokens, t = i % tokens;
      const v128_t scales = wasm_v128_load(part->half_scales[s] + 4 * h);
      const v128_t sum = wasm_v128_load(sums + 8 * t + 4 * h);
      wasm_v128_store(sums + 8 * t + 4 * h,
                      simd_multiply_add(wasm_f32x4_convert_i32x4(dots[i]),
                                        wasm_f32x4_mul(scales, x_scales[t]), sum, flavor));
    }
  }
}

SIMD_INLINE void tile_run(const tile_part *part, uint32_t count, int32_t offset, const int32_t *x,
                          const int32_t *wide, float *sums, uint32_t tokens, block_kind kind,
                          simd_flavor flavor) {
  const uint32_t words = ACT_WORDS * tokens;
#pragma nounroll
  for (uint32_t p = 0; p < count; p++, part++, x += words, wide += words) {
    v128_t dots[2 * TILE_TOKENS], x_scales[TILE_TOKENS];
    SIMD_FORGET();
    if (kind == BLOCK_HALVES) {
      tile_run_halves(part, x, wide, sums, tokens, flavor);
      continue;
    }
    tile_dots(part, offset, x, wide, tokens, kind, flavor, dots);
    tile_splats(x, ACT_WORD_SCALE, tokens, x_scales);
    for (uint32_t i = 0; i < 2 * tokens; i++) {
      const uint32_t h = i / tokens, t = i % tokens;
      const v128_t scale = wasm_f32x4_mul(wasm_v128_load(part->scales + 4 * h), x_scales[t]);
      v128_t sum = wasm_v128_load(sums + 8 * t + 4 * h);
      sum = simd_multiply_add(wasm_f32x4_convert_i32x4(dots[i]), scale, sum, flavor);
      if (kind == BLOCK_MINS || kind == BLOCK_SUB_MINS) {
        sum = tile_min_add(part, h, t, x, x_scales[t], tokens, kind, flavor, sum);
      }
      wasm_v128_store(sums + 8 * t + 4 * h, sum);
    }
  }
}

#define TILE_KERNEL(name, tokens, kind, flavor)                                       \
  static void name##_##tokens(const tile_part *parts, uint32_t count, int32_t offset, \
                              const int32_t *x, const int32_t *wide, float *sums) {   \
    tile_run(parts, count, offset, x, wide, sums, tokens, kind, flavor);              \
  }

#define TILE_KERNELS(flavor_name, flavor)                                  \
  TILE_KERNEL(tile_codes_##flavor_name, 2, BLOCK_CODES, flavor)            \
  TILE_KERNEL(tile_codes_##flavor_name, 4, BLOCK_CODES, flavor)            \
  TILE_KERNEL(tile_mins_##flavor_name, 2, BLOCK_MINS, flavor)              \
  TILE_KERNEL(tile_mins_##flavor_name, 4, BLOCK_MINS, flavor)              \
  TILE_KERNEL(tile_sub_##flavor_name, 2, BLOCK_SUB, flavor)                \
  TILE_KERNEL(tile_sub_##flavor_name, 4, BLOCK_SUB, flavor)                \
  TILE_KERNEL(tile_sub_mins_##flavor_name, 2, BLOCK_SUB_MINS, flavor)      \
  TILE_KERNEL(tile_sub_mins_##flavor_name, 4, BLOCK_SUB_MINS, flavor)      \
  TILE_KERNEL(tile_signed_##flavor_name, 2, BLOCK_SIGNED, flavor)          \
  TILE_KERNEL(tile_signed_##flavor_name, 4, BLOCK_SIGNED, flavor)          \
  TILE_KERNEL(tile_halves_##flavor_name, 2, BLOCK_HALVES, flavor)          \
  TILE_KERNEL(tile_halves_##flavor_name, 4, BLOCK_HALVES, flavor)          \
  const tile_kernels tile_kernels_##flavor_name = {                        \
      flavor,                                                              \
      {{tile_codes_##flavor_name##_2, tile_codes_##flavor_name##_4},       \
       {tile_mins_##flavor_name##_2, tile_mins_##flavor_name##_4},         \
       {tile_sub_##flavor_name##_2, tile_sub_##flavor_name##_4},           \
       {tile_sub_mins_##flavor_name##_2, tile_sub_mins_##flavor_name##_4}, \
       {tile_signed_##flavor_name##_2, tile_signed_##flavor_name##_4},     \
       {tile_halves_##flavor_name##_2, tile_halves_##flavor_name##_4}}};

struct tile_kernels {
  simd_flavor flavor;
  tile_kernel *by_kind[6][2];  // [block_kind][2 tokens, 4 tokens]
};

TILE_KERNELS(simd128, SIMD_PLAIN)
#ifdef WICK_RELAXED
TILE_KERNELS(pairs, SIMD_PAIRS)
TILE_KERNELS(quads, SIMD_QUADS)
#endif

// ---- activations ----

// words[w][t] of 4 words and 4 tokens, from rows that begin at `rows[t]`.
static void transpose_words(const int32_t *const rows[4], uint32_t word, int32_t *to) {
  const v128_t a = wasm_v128_load(rows[0] + word), b = wasm_v128_load(rows[1] + word);
  const v128_t c = wasm_v128_load(rows[2] + word), d = wasm_v128_load(rows[3] + word);
  const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5);
  const v128_t ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  const v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5);
  const v128_t cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  wasm_v128_store(to, wasm_i64x2_shuffle(ab_low, cd_low, 0, 2));
  wasm_v128_store(to + 4, wasm_i64x2_shuffle(ab_low, cd_low, 1, 3));
  wasm_v128_store(to + 8, wasm_i64x2_shuffle(ab_high, cd_high, 0, 2));
  wasm_v128_store(to + 12, wasm_i64x2_shuffle(ab_high, cd_high, 1, 3));
}

// to[word][token] of `words` words and 2 or 4 tokens. Rows that are not there repeat the last one.
static void transpose_rows(const uint8_t *rows, size_t stride_bytes, uint32_t words,
                           uint32_t tokens_there, uint32_t tokens, int32_t *to) {
  const int32_t *from[TILE_TOKENS];
  for (uint32_t t = 0; t < tokens; t++) {
    const uint32_t there = t < tokens_there ? t : tokens_there - 1;
    from[t] = (const int32_t *)(const void *)(rows + stride_bytes * there);
  }
  for (uint32_t w = 0; tokens == 4 && w < words; w += 4) transpose_words(from, w, to + 4 * w);
  for (uint32_t w = 0; tokens == 2 && w < words; w += 4) {
    const v128_t a = wasm_v128_load(from[0] + w), b = wasm_v128_load(from[1] + w);
    wasm_v128_store(to + 2 * w, wasm_i32x4_shuffle(a, b, 0, 4, 1, 5));
    wasm_v128_store(to + 2 * w + 4, wasm_i32x4_shuffle(a, b, 2, 6, 3, 7));
  }
}

// ---- the product ----

typedef struct tile_job {
  const kernel_matrix *matrix;
  const tile_type *type;
  const tile_kernels *kernels;
  uint32_t row_first, row_last;
  uint32_t parts;  // of 32 columns in a row
  const uint8_t *act;
  size_t act_stride_bytes;
  uint32_t tokens;  // of this batch
  float *y;         // of its first token
  size_t y_stride;
} tile_job;

static const uint8_t *job_record(const tile_job *job, uint32_t row, uint32_t part) {
  const size_t per_row = job->parts / job->type->parts;
  const size_t record = row / KERNEL_ROW_GROUP * per_row + part / job->type->parts;
  return job->matrix->data + record * job->type->record_bytes;
}

static uint32_t group_rows(const tile_job *job, uint32_t row) {
  return job->row_last - row < KERNEL_ROW_GROUP ? job->row_last - row : KERNEL_ROW_GROUP;
}

// Copies the first `rows` of 8 floats. (memcpy of a variable size is a slow call in V8.)
SIMD_INLINE void rows_copy(float *to, const float *from, uint32_t rows) {
  if (rows == KERNEL_ROW_GROUP) {
    const v128_t low = wasm_v128_load(from), high = wasm_v128_load(from + 4);
    wasm_v128_store(to, low);
    wasm_v128_store(to + 4, high);
    return;
  }
  for (uint32_t r = 0; r < rows; r++) to[r] = from[r];
}

// Few tokens, one by one: a group's records are in the nearest cache from the second token on.
static void run_strips(const tile_job *job) {
  const uint32_t records = job->parts / job->type->parts;
  const size_t wide_offset = act_wide_offset(job->matrix->cols);
  for (uint32_t r = job->row_first; r < job->row_last; r += KERNEL_ROW_GROUP) {
    const uint8_t *record = job_record(job, r, 0);
    const uint32_t rows = group_rows(job, r);
    const uint8_t *x = job->act;
    float *y = job->y + r;
    for (uint32_t t = 0; t < job->tokens; t++) {
      float sums[KERNEL_ROW_GROUP];
      job->type->strip(record, records, (const int32_t *)(const void *)x,
                       (const int32_t *)(const void *)(x + wide_offset), sums);
      rows_copy(y, sums, rows);
      x += job->act_stride_bytes;
      y += job->y_stride;
    }
  }
}

// Activations of a batch for 256 columns: tiles of 4 tokens, the last may be of 2.
typedef struct tile_act {
  int32_t x[TILE_BATCH / TILE_TOKENS][TILE_WORDS * TILE_TOKENS];
  int32_t wide[TILE_BATCH / TILE_TOKENS][TILE_WORDS * TILE_TOKENS];
} tile_act;

// Stores a row's 32 codes with `offset` added.
static void codes_store(const int8_t from[32], int32_t offset, uint8_t *to) {
  const v128_t add = wasm_i8x16_splat((int8_t)offset);
  for (uint32_t i = 0; i < 2; i++, to += 128) {
    const v128_t codes = wasm_i8x16_add(wasm_v128_load(from + 16 * i), add);
    wasm_v128_store32_lane(to, codes, 0);
    wasm_v128_store32_lane(to + 32, codes, 1);
    wasm_v128_store32_lane(to + 64, codes, 2);
    wasm_v128_store32_lane(to + 96, codes, 3);
  }
}

void tile_unpack_rows(const uint8_t *record, const block_type *type, int32_t offset,
                      tile_part *out) {
  for (uint32_t p = 0; p < type->columns / BLOCK_PART; p++, out++) {
    for (uint32_t r = 0; r < KERNEL_ROW_GROUP; r++) {
      block_part part = {0};
      type->load(record, r, p, &part);
      codes_store(part.codes, offset, out->codes[0] + layout_word_offset(r));
      out->scales[r] = part.scale;
      for (uint32_t s = 0; s < 2; s++) {
        out->half_scales[s][r] = part.half_scales[s];
        out->sub_scales[s][r] = part.sub_scales[s];
      }
    }
  }
}

static uint32_t tile_tokens(const tile_job *job, uint32_t token) {
  return job->tokens - token <= 2 ? 2 : 4;
}

static void act_gather(const tile_job *job, uint32_t part, uint32_t count, tile_act *act) {
  const bool wants_wide = flavor_is_wide(job->type->kind, job->kernels->flavor);
  for (uint32_t t = 0; t < job->tokens; t += TILE_TOKENS) {
    const uint32_t there = job->tokens - t, tokens = tile_tokens(job, t);
    const uint8_t *rows = job->act + job->act_stride_bytes * t;
    transpose_rows(rows + part * sizeof(act_block), job->act_stride_bytes, count * ACT_WORDS, there,
                   tokens, act->x[t / TILE_TOKENS]);
    if (wants_wide) {
      rows += act_wide_offset(job->matrix->cols) + part * sizeof(act_wide);
      transpose_rows(rows, job->act_stride_bytes, count * ACT_WORDS, there, tokens,
                     act->wide[t / TILE_TOKENS]);
    }
  }
}

// `count` parts of the group at row r with all tokens; sums wait in y between calls.
static void run_group(const tile_job *job, uint32_t r, uint32_t part, uint32_t count,
                      const tile_act *act) {
  tile_part parts[TILE_PARTS];
  for (uint32_t p = 0; p < count; p += job->type->parts) {
    job->type->unpack(job_record(job, r, part + p), parts + p);
  }
  const uint32_t rows = group_rows(job, r);
  for (uint32_t t = 0; t < job->tokens; t += TILE_TOKENS) {
    const uint32_t there = job->tokens - t < TILE_TOKENS ? job->tokens - t : TILE_TOKENS;
    float sums[TILE_TOKENS][KERNEL_ROW_GROUP] = {{0}};
    float *y = job->y + job->y_stride * t + r;
    for (uint32_t i = 0; part > 0 && i < there; i++)
      rows_copy(sums[i], y + job->y_stride * i, rows);
    tile_kernel *kernel = job->kernels->by_kind[job->type->kind][tile_tokens(job, t) / 4];
    kernel(parts, count, job->type->offset, act->x[t / TILE_TOKENS], act->wide[t / TILE_TOKENS],
           sums[0]);
    for (uint32_t i = 0; i < there; i++) rows_copy(y + job->y_stride * i, sums[i], rows);
  }
}

static void run_batch(const tile_job *job) {
  tile_act act;
  for (uint32_t part = 0; part < job->parts; part += TILE_PARTS) {
    const uint32_t left = job->parts - part, count = left < TILE_PARTS ? left : TILE_PARTS;
    act_gather(job, part, count, &act);
    for (uint32_t r = job->row_first; r < job->row_last; r += KERNEL_ROW_GROUP) {
      run_group(job, r, part, count, &act);
    }
  }
}

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type, const tile_kernels *kernels) {
  tile_job job = {.matrix = matrix,
                  .type = type,
                  .kernels = kernels,
                  .row_first = row_first,
                  .row_last = row_last,
                  .parts = matrix->cols / BLOCK_PART,
                  .act = act,
                  .act_stride_bytes = act_stride_bytes,
                  .y = y,
                  .y_stride = y_stride};
  const uint32_t few = type->strip_tokens == 0 ? TILE_STRIP_TOKENS : type->strip_tokens;
  while (tokens > 0) {
    job.tokens = tokens < TILE_BATCH ? tokens : TILE_BATCH;
    const bool has_strip = type->strip != NULL;
    // one that a tile of its own would be made for
    if (has_strip && job.tokens > few && job.tokens % TILE_TOKENS == 1) job.tokens--;
    if (has_strip && job.tokens <= few) {
      run_strips(&job);
    } else {
      run_batch(&job);
    }
    job.act += act_stride_bytes * job.tokens;
    job.y += y_stride * job.tokens;
    tokens -= job.tokens;
  }
}

#endif

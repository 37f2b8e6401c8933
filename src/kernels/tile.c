// kernels/tile.c — cuts a product into tiles; see tile.h.
#include "kernels/tile.h"

#ifdef WICK_SIMD128

// words[w][t] of 4 words and 4 tokens, from rows that begin at `rows[t]`.
static void transpose_words(const int32_t *const rows[4], uint32_t word, int32_t *to,
                            uint32_t tokens) {
  const v128_t a = wasm_v128_load(rows[0] + word), b = wasm_v128_load(rows[1] + word);
  const v128_t c = wasm_v128_load(rows[2] + word), d = wasm_v128_load(rows[3] + word);
  const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5);
  const v128_t ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  const v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5);
  const v128_t cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  wasm_v128_store(to, wasm_i64x2_shuffle(ab_low, cd_low, 0, 2));
  wasm_v128_store(to + tokens, wasm_i64x2_shuffle(ab_low, cd_low, 1, 3));
  wasm_v128_store(to + 2 * tokens, wasm_i64x2_shuffle(ab_high, cd_high, 0, 2));
  wasm_v128_store(to + 3 * tokens, wasm_i64x2_shuffle(ab_high, cd_high, 1, 3));
}

// Transposes `words` words (a multiple of 16) of `tokens` rows: to[word][token]. Rows behind
// `tokens_there` repeat the last one.
static void transpose_rows(const uint8_t *rows, size_t stride_bytes, uint32_t words,
                           uint32_t tokens_there, uint32_t tokens, int32_t *to) {
  const int32_t *from[TILE_TOKENS];
  for (uint32_t t = 0; t < tokens; t++) {
    const uint32_t there = t < tokens_there ? t : tokens_there - 1;
    from[t] = (const int32_t *)(const void *)(rows + stride_bytes * there);
  }
  if (tokens == 2) {
    for (uint32_t w = 0; w < words; w += 4) {
      const v128_t a = wasm_v128_load(from[0] + w), b = wasm_v128_load(from[1] + w);
      wasm_v128_store(to + 2 * w, wasm_i32x4_shuffle(a, b, 0, 4, 1, 5));
      wasm_v128_store(to + 2 * w + 4, wasm_i32x4_shuffle(a, b, 2, 6, 3, 7));
    }
    return;
  }
  for (uint32_t t = 0; t < tokens; t += 4) {
    for (uint32_t w = 0; w < words; w += 4) {
      transpose_words(from + t, w, to + w * tokens + t, tokens);
    }
  }
}

// Codes to magnitudes, in place, and signs.
static void split_signs(int32_t *x, int32_t *signs, uint32_t blocks, uint32_t tokens) {
  const v128_t zero = wasm_i8x16_splat(0);
  for (uint32_t b = 0; b < blocks; b++, x += TILE_WORDS * tokens, signs += TILE_WORDS * tokens) {
    for (uint32_t i = 0; i < 8 * tokens; i += 4) {
      const v128_t codes = wasm_v128_load(x + i);
      wasm_v128_store(signs + i, wasm_i8x16_gt(zero, codes));
      wasm_v128_store(x + i, wasm_i8x16_abs(codes));
    }
  }
}

typedef struct tile_job {
  const kernel_matrix *matrix;
  const tile_type *type;
  uint32_t row_first, row_last;
  uint32_t block_count;  // blocks of 32 columns in a row
  float *y;              // of the tile's first token
  size_t y_stride;
} tile_job;

static const uint8_t *job_records(const tile_job *job, uint32_t row, uint32_t block) {
  const size_t per_row = job->block_count / job->type->blocks_per_record;
  const size_t record = row / KERNEL_ROW_GROUP * per_row + block / job->type->blocks_per_record;
  return job->matrix->data + record * job->type->record_bytes;
}

static uint32_t group_rows(const tile_job *job, uint32_t row) {
  return job->row_last - row < KERNEL_ROW_GROUP ? job->row_last - row : KERNEL_ROW_GROUP;
}

static void run_one(const tile_job *job, const uint8_t *act) {
  const int32_t *x = (const int32_t *)(const void *)act;
  const uint8_t *wide_bytes = act + act_wide_offset(job->matrix->cols);
  const int32_t *second = (const int32_t *)(const void *)wide_bytes;
  for (uint32_t r = job->row_first; r < job->row_last; r += KERNEL_ROW_GROUP) {
    float sums[KERNEL_ROW_GROUP] = {0};
    job->type->strips[0](job_records(job, r, 0), job->block_count, x, second, sums);
    simd_store_rows(job->y + r, wasm_v128_load(sums), wasm_v128_load(sums + 4), group_rows(job, r));
  }
}

// Blocks [first, first + count) of the group at row r; sums wait in y between calls.
static void run_group(const tile_job *job, uint32_t r, uint32_t first, uint32_t count,
                      uint32_t tokens, tile_strip *strip, const int32_t *x, const int32_t *second) {
  float sums[TILE_TOKENS][KERNEL_ROW_GROUP];
  const size_t bytes = group_rows(job, r) * sizeof(float);
  memset(sums, 0, sizeof sums);
  for (uint32_t t = 0; first > 0 && t < tokens; t++) {
    memcpy(sums[t], job->y + job->y_stride * t + r, bytes);
  }
  strip(job_records(job, r, first), count, x, second, sums[0]);
  for (uint32_t t = 0; t < tokens; t++) {
    memcpy(job->y + job->y_stride * t + r, sums[t], bytes);
  }
}

// tokens: 2 to 4.
static void run_tile(const tile_job *job, const uint8_t *act, size_t stride_bytes,
                     uint32_t tokens) {
  int32_t x[TILE_BLOCKS * TILE_WORDS * TILE_TOKENS];
  int32_t second[TILE_BLOCKS * TILE_WORDS * TILE_TOKENS];
  const uint32_t log2_tokens = tokens == 2 ? 1 : 2;
  const uint8_t *act_wide_rows = act + act_wide_offset(job->matrix->cols);
  for (uint32_t first = 0; first < job->block_count; first += TILE_BLOCKS) {
    const uint32_t left = job->block_count - first;
    const uint32_t count = left < TILE_BLOCKS ? left : TILE_BLOCKS;
    transpose_rows(act + first * sizeof(act_block), stride_bytes, count * TILE_WORDS, tokens,
                   1u << log2_tokens, x);
    if (job->type->second == TILE_WIDE) {
      transpose_rows(act_wide_rows + first * sizeof(act_wide), stride_bytes, count * TILE_WORDS,
                     tokens, 1u << log2_tokens, second);
    } else if (job->type->second == TILE_SIGNS) {
      split_signs(x, second, count, 1u << log2_tokens);
    }
    for (uint32_t r = job->row_first; r < job->row_last; r += KERNEL_ROW_GROUP) {
      run_group(job, r, first, count, tokens, job->type->strips[log2_tokens], x, second);
    }
  }
}

void tile_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                 const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                 size_t y_stride, const tile_type *type) {
  tile_job job = {matrix, type, row_first, row_last, matrix->cols / ACT_BLOCK, y, y_stride};
  const uint8_t *rows = act;
  while (tokens > 0) {
    const uint32_t taken = tokens < TILE_TOKENS ? tokens : TILE_TOKENS;
    if (taken == 1) {
      run_one(&job, rows);
    } else {
      run_tile(&job, rows, act_stride_bytes, taken);
    }
    rows += act_stride_bytes * taken;
    job.y += y_stride * taken;
    tokens -= taken;
  }
}

#endif

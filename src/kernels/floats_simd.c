// kernels/floats_simd.c — products with F32, F16 and BF16 in 128-bit vectors. The records are
// described in floats.h.
#include "kernels/floats.h"

#include "kernels/families.h"
#include "kernels/layout.h"
#include "kernels/simd.h"

#ifdef WICK_SIMD128

// Loads rows 4 * half to 4 * half + 3 of a column as floats.
#define F16_CODE_SCALE 0x1p102f  // 2^(112 - F16_CODE_SHIFT)

typedef v128_t column_load(const uint8_t *record, uint32_t half);

SIMD_INLINE v128_t f32_column(const uint8_t *record, uint32_t half) {
  return wasm_v128_load(record + 16 * half);
}

// Loads a column. The results are too small by 2^102: 2^112 because of simd_f16_tiny, 2^-10 because
// of the code.
SIMD_INLINE v128_t f16_column(const uint8_t *record, uint32_t half) {
  return simd_f16_tiny(wasm_v128_load(record), half);
}

SIMD_INLINE v128_t bf16_column(const uint8_t *record, uint32_t half) {
  const v128_t both = wasm_v128_load(record);
  return half ? wasm_v128_and(both, wasm_i32x4_splat((int32_t)0xffff0000))
              : wasm_i32x4_shl(both, 16);
}

// Returns an element of x, multiplied by 2^102 if the weights are too small by that factor. A power
// of two does not change the rounding of a product. If x becomes Inf, the sums are not finite
// either.
SIMD_INLINE v128_t float_splat(const float *x, bool is_tiny) {
  const v128_t value = wasm_v128_load32_splat(x);
  return is_tiny ? wasm_f32x4_mul(value, wasm_f32x4_splat(F16_CODE_SCALE)) : value;
}

// Multiplies 8 rows by 1 or 2 tokens, with 4 or 8 sums in registers. sums: [token][8 rows]. x: rows
// `x_stride` floats apart.
SIMD_INLINE void float_strip(const uint8_t *record, uint32_t cols, const float *x, size_t x_stride,
                             float *sums, uint32_t tokens, uint32_t record_bytes,
                             simd_flavor flavor, column_load *load, bool is_tiny) {
  const uint32_t count = 2 * tokens;
  v128_t even[4], odd[4];
  for (uint32_t i = 0; i < count; i++) even[i] = odd[i] = wasm_f32x4_splat(0);
  uint32_t c = 0;
#pragma nounroll
  for (; c + 2 <= cols; c += 2, record += 2 * record_bytes) {
    for (uint32_t h = 0; h < 2; h++) {
      const v128_t w0 = load(record, h), w1 = load(record + record_bytes, h);
      for (uint32_t t = 0; t < tokens; t++) {
        const uint32_t i = h * tokens + t;
        const float *at = x + x_stride * t + c;
        even[i] = simd_multiply_add(w0, float_splat(at, is_tiny), even[i], flavor);
        odd[i] = simd_multiply_add(w1, float_splat(at + 1, is_tiny), odd[i], flavor);
      }
    }
  }
  for (uint32_t i = 0; c < cols && i < count; i++) {
    const v128_t last = float_splat(x + x_stride * (i % tokens) + c, is_tiny);
    even[i] = simd_multiply_add(load(record, i / tokens), last, even[i], flavor);
  }
  for (uint32_t i = 0; i < count; i++) {
    wasm_v128_store(sums + i % tokens * 8 + i / tokens * 4, wasm_f32x4_add(even[i], odd[i]));
  }
}

// A tile multiplies 8 rows by a few tokens along every second column of a chunk. 6 tokens leave
// registers for two vectors of weights and one of activations, but not for separate products
// (without fused multiply-adds), which therefore use 4 tokens. If a register has all 8 rows, 8
// tokens fit.
#ifdef WICK_LEVEL
enum { TILE_TOKENS_MAX = 8, TILE_TOKENS = 8 };
#else
enum { TILE_TOKENS_MAX = 6, TILE_TOKENS = 4 };
#endif
// TILES tiles share the weights of a group, which are decoded once if they have 16 bits.
enum { TILE_GROUPS = 24, TILE_COLS = 128, TILES = 4, STRIP_TOKENS_MAX = 3 };

#ifdef WICK_LEVEL

// Computes the tile below with all 8 rows in one register: the same products and sums.
SIMD_INLINE void float_tile(const float *weights, uint32_t count, const float *x, float *sums,
                            uint32_t tokens, simd_flavor flavor) {
  (void)flavor;
  __m256 rows[TILE_TOKENS_MAX];
  for (uint32_t t = 0; t < tokens; t++) rows[t] = _mm256_loadu_ps(sums + 8 * t);
#pragma nounroll
  for (; count > 0; count--, weights += 2 * KERNEL_ROW_GROUP, x += tokens) {
    const __m256 w = _mm256_loadu_ps(weights);
    for (uint32_t t = 0; t < tokens; t++) {
      rows[t] = _mm256_add_ps(rows[t], _mm256_mul_ps(w, _mm256_broadcast_ss(x + t)));
    }
  }
  for (uint32_t t = 0; t < tokens; t++) _mm256_storeu_ps(sums + 8 * t, rows[t]);
}

#else

// Adds `count` columns: the first column of `weights` and every second column after it. weights:
// [column][8 rows]. x: [column][token]. sums: [token][8 rows].
SIMD_INLINE void float_tile(const float *weights, uint32_t count, const float *x, float *sums,
                            uint32_t tokens, simd_flavor flavor) {
  v128_t low[TILE_TOKENS_MAX], high[TILE_TOKENS_MAX];
  for (uint32_t t = 0; t < tokens; t++) {
    low[t] = wasm_v128_load(sums + 8 * t);
    high[t] = wasm_v128_load(sums + 8 * t + 4);
  }
#pragma nounroll
  for (; count > 0; count--, weights += 2 * KERNEL_ROW_GROUP, x += tokens) {
    const v128_t w0 = wasm_v128_load(weights), w1 = wasm_v128_load(weights + 4);
    for (uint32_t t = 0; t < tokens; t++) {
      const v128_t value = wasm_v128_load32_splat(x + t);
      low[t] = simd_multiply_add(w0, value, low[t], flavor);
      high[t] = simd_multiply_add(w1, value, high[t], flavor);
      SIMD_FORGET();  // otherwise all loads are moved to the front, and registers are spilled
    }
  }
  for (uint32_t t = 0; t < tokens; t++) {
    wasm_v128_store(sums + 8 * t, low[t]);
    wasm_v128_store(sums + 8 * t + 4, high[t]);
  }
}
#endif

typedef void float_strip_function(const uint8_t *group, uint32_t cols, const float *x,
                                  size_t x_stride, float *sums);
typedef void float_tile_function(const float *weights, uint32_t count, const float *x, float *sums);
typedef void float_decode_function(const uint8_t *record, uint32_t cols, float *weights);

typedef struct float_type {
  uint32_t record_bytes, tile_tokens;
  float x_scale;
  float_strip_function *strips[2];  // for 1 and 2 tokens
  float_tile_function *tile;
  float_decode_function *decode;   // a group's columns as floats; NULL if the records are floats
  matmul_function *matmul_scalar;  // used if a sum is not finite, because x may have been too large
} float_type;

typedef struct float_job {
  const kernel_matrix *matrix;
  const float_type *type;
  uint32_t row_last;
  const float *x;
  size_t x_stride;
  float *y;
  size_t y_stride;
} float_job;

static bool are_finite(const float *sums, uint32_t rows) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < rows; i++) bad |= !(__builtin_fabsf(sums[i]) < __builtin_inff());
  return bad == 0;
}

static void sums_store(const float_job *job, uint32_t row, uint32_t token, const float *sums) {
  const uint32_t left = job->row_last - row,
                 rows = left < KERNEL_ROW_GROUP ? left : KERNEL_ROW_GROUP;
  memcpy(job->y + job->y_stride * token + row, sums, rows * sizeof(float));
  if (job->type->matmul_scalar == NULL || are_finite(sums, rows)) return;
  job->type->matmul_scalar(job->matrix, row, row + rows, job->x + job->x_stride * token,
                           job->x_stride * sizeof(float), 1, job->y + job->y_stride * token,
                           job->y_stride);
}

static const uint8_t *job_record(const float_job *job, uint32_t row, uint32_t col) {
  const uint32_t bytes = job->type->record_bytes;
  return job->matrix->data + layout_record_offset(job->matrix->cols, row, 0, 1, bytes) +
         (size_t)col * bytes;
}

static void run_strips(const float_job *job, uint32_t row_first, uint32_t token, uint32_t tokens) {
  for (uint32_t r = row_first; r < job->row_last; r += KERNEL_ROW_GROUP) {
    float sums[2 * KERNEL_ROW_GROUP];
    job->type->strips[tokens - 1](job_record(job, r, 0), job->matrix->cols,
                                  job->x + job->x_stride * token, job->x_stride, sums);
    for (uint32_t t = 0; t < tokens; t++) {
      sums_store(job, r, token + t, sums + (size_t)t * KERNEL_ROW_GROUP);
    }
  }
}

// Copies x of every second column, starting at `col`, for the tokens of a tile into adjacent
// memory. The last token is repeated to fill the tile.
static void pack(const float_job *job, uint32_t token, uint32_t tokens, uint32_t col,
                 uint32_t count, float *out) {
  const uint32_t all = job->type->tile_tokens;
  for (uint32_t t = 0; t < all; t++) {
    const float *x = job->x + job->x_stride * (token + (t < tokens ? t : tokens - 1)) + col;
    float *to = out + t;
#pragma nounroll
    for (uint32_t c = 0; c < count; c++, x += 2, to += all) *to = *x * job->type->x_scale;
  }
}

// Some groups of rows times some tiles, which share the groups' decoded weights.
typedef struct tile_block {
  uint32_t row, groups;    // the first row; at most TILE_GROUPS groups
  uint32_t token, tokens;  // at most TILES tiles
  uint32_t tiles;
  float x[TILES][2][TILE_COLS / 2 * TILE_TOKENS_MAX];
  float weights[TILE_COLS * KERNEL_ROW_GROUP];
  float sums[TILES][TILE_GROUPS][2][TILE_TOKENS_MAX * KERNEL_ROW_GROUP];
} tile_block;

// Adds up to TILE_COLS columns, starting at `c`. Groups share the packed activations. Chunks are
// short, so the activations and the weights of a group stay in the L1 cache.
static void add_chunk(const float_job *job, tile_block *block, uint32_t c) {
  const float_type *type = job->type;
  const uint32_t left = job->matrix->cols - c, all = left < TILE_COLS ? left : TILE_COLS;
  const uint32_t counts[2] = {(all + 1) / 2, all / 2};
  for (uint32_t t = 0; t < block->tiles; t++) {
    const uint32_t done = t * type->tile_tokens, rest = block->tokens - done;
    const uint32_t tokens = rest < type->tile_tokens ? rest : type->tile_tokens;
    pack(job, block->token + done, tokens, c, counts[0], block->x[t][0]);
    pack(job, block->token + done, tokens, c + 1, counts[1], block->x[t][1]);
  }
#pragma nounroll
  for (uint32_t g = 0; g < block->groups; g++) {
    const uint8_t *record = job_record(job, block->row + g * KERNEL_ROW_GROUP, c);
    const float *weights = (const float *)(const void *)record;
    if (type->decode != NULL) {
      type->decode(record, all, block->weights);
      weights = block->weights;
    }
    for (uint32_t t = 0; t < block->tiles; t++) {
      type->tile(weights, counts[0], block->x[t][0], block->sums[t][g][0]);
      type->tile(weights + KERNEL_ROW_GROUP, counts[1], block->x[t][1], block->sums[t][g][1]);
    }
  }
}

static void run_tiles(const float_job *job, tile_block *block) {
  const uint32_t tile_tokens = job->type->tile_tokens;
  block->tiles = ceil_div_u32(block->tokens, tile_tokens);
  memset(block->sums, 0, block->tiles * sizeof block->sums[0]);
#pragma nounroll
  for (uint32_t c = 0; c < job->matrix->cols; c += TILE_COLS) add_chunk(job, block, c);
  for (uint32_t g = 0; g < block->groups; g++) {
    for (uint32_t t = 0; t < block->tokens; t++) {
      float *even = block->sums[t / tile_tokens][g][0] + t % tile_tokens * KERNEL_ROW_GROUP;
      const float *odd = block->sums[t / tile_tokens][g][1] + t % tile_tokens * KERNEL_ROW_GROUP;
      for (uint32_t i = 0; i < KERNEL_ROW_GROUP; i += 4) {
        wasm_v128_store(even + i,
                        wasm_f32x4_add(wasm_v128_load(even + i), wasm_v128_load(odd + i)));
      }
      sums_store(job, block->row + g * KERNEL_ROW_GROUP, block->token + t, even);
    }
  }
}

// Multiplies a few hundred rows by all tokens before the next rows, so that their weights stay in a
// cache.
static void float_matmul(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                         const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                         size_t y_stride, const float_type *type) {
  const float_job job = {matrix, type,    row_last, act, act_stride_bytes / sizeof(float),
                         y,      y_stride};
  // a tile takes the same time if half of it is empty
  const uint32_t last = tokens % type->tile_tokens;
  const bool is_strip = 2 * last <= type->tile_tokens && last <= STRIP_TOKENS_MAX;
  const uint32_t in_strips = is_strip ? last : 0, in_tiles = tokens - in_strips;
  const uint32_t at_once = TILES * type->tile_tokens;
  tile_block block;
  for (uint32_t r = row_first; in_tiles > 0 && r < row_last; r += TILE_GROUPS * KERNEL_ROW_GROUP) {
    const uint32_t groups = ceil_div_u32(row_last - r, KERNEL_ROW_GROUP);
    block.row = r;
    block.groups = groups < TILE_GROUPS ? groups : TILE_GROUPS;
    for (uint32_t t = 0; t < in_tiles; t += at_once) {
      block.token = t;
      block.tokens = in_tiles - t < at_once ? in_tiles - t : at_once;
      run_tiles(&job, &block);
    }
  }
  for (uint32_t t = in_tiles; t < tokens; t += 2) {
    run_strips(&job, row_first, t, tokens - t < 2 ? 1 : 2);
  }
}

#define FLOAT_STRIP(name, tokens, record_bytes, flavor, load, is_tiny)                        \
  static void name(const uint8_t *group, uint32_t cols, const float *x, size_t x_stride,      \
                   float *sums) {                                                             \
    float_strip(group, cols, x, x_stride, sums, tokens, record_bytes, flavor, load, is_tiny); \
  }

#define FLOAT_TILE(name, tokens, flavor)                                                \
  static void name(const float *weights, uint32_t count, const float *x, float *sums) { \
    float_tile(weights, count, x, sums, tokens, flavor);                                \
  }

#define FLOAT_DECODE(name, record_bytes, load)                                        \
  static void name(const uint8_t *record, uint32_t cols, float *weights) {            \
    for (; cols > 0; cols--, record += (record_bytes), weights += KERNEL_ROW_GROUP) { \
      wasm_v128_store(weights, load(record, 0));                                      \
      wasm_v128_store(weights + 4, load(record, 1));                                  \
    }                                                                                 \
  }

// The product of a type in a flavor. If elements are wild, the scalar reference computes it.
#define FLOAT_MATMUL(type, variant, record_bytes, flavor, tile, tokens, decode_, is_tiny)    \
  FLOAT_STRIP(type##_strip_1_##variant, 1, record_bytes, flavor, type##_column, is_tiny)     \
  FLOAT_STRIP(type##_strip_2_##variant, 2, record_bytes, flavor, type##_column, is_tiny)     \
  void SIMD_NAME(type##_matmul_##variant)(                                                   \
      const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last, const void *act,   \
      size_t act_stride_bytes, uint32_t tokens_, float *y, size_t y_stride) {                \
    static const float_type strips = {record_bytes,                                          \
                                      tokens,                                                \
                                      (is_tiny) ? F16_CODE_SCALE : 1,                        \
                                      {type##_strip_1_##variant, type##_strip_2_##variant},  \
                                      tile,                                                  \
                                      decode_,                                               \
                                      (is_tiny) ? type##_matmul_scalar : NULL};              \
    if (matrix->flags & KERNEL_MATRIX_HAS_WILD_F16) {                                        \
      type##_matmul_scalar(matrix, row_first, row_last, act, act_stride_bytes, tokens_, y,   \
                           y_stride);                                                        \
    } else {                                                                                 \
      float_matmul(matrix, row_first, row_last, act, act_stride_bytes, tokens_, y, y_stride, \
                   &strips);                                                                 \
    }                                                                                        \
  }

FLOAT_DECODE(f16_decode, F16_RECORD_BYTES, f16_column)
FLOAT_DECODE(bf16_decode, F16_RECORD_BYTES, bf16_column)

FLOAT_TILE(tile_simd128, TILE_TOKENS, SIMD_PLAIN)
FLOAT_MATMUL(f32, simd128, F32_RECORD_BYTES, SIMD_PLAIN, tile_simd128, TILE_TOKENS, NULL, false)
FLOAT_MATMUL(f16, simd128, F16_RECORD_BYTES, SIMD_PLAIN, tile_simd128, TILE_TOKENS, f16_decode,
             true)
FLOAT_MATMUL(bf16, simd128, F16_RECORD_BYTES, SIMD_PLAIN, tile_simd128, TILE_TOKENS, bf16_decode,
             false)

#ifdef WICK_FUSED
FLOAT_TILE(tile_relaxed, TILE_TOKENS_MAX, SIMD_QUADS)
FLOAT_MATMUL(f32, relaxed, F32_RECORD_BYTES, SIMD_QUADS, tile_relaxed, TILE_TOKENS_MAX, NULL, false)
FLOAT_MATMUL(f16, relaxed, F16_RECORD_BYTES, SIMD_QUADS, tile_relaxed, TILE_TOKENS_MAX, f16_decode,
             true)
FLOAT_MATMUL(bf16, relaxed, F16_RECORD_BYTES, SIMD_QUADS, tile_relaxed, TILE_TOKENS_MAX,
             bf16_decode, false)
#endif

#endif

// Activations and matrix products of every type in every variant compared with the scalar
// reference, and the reference with sums in double precision: random shapes, denormals, extreme
// scales, -128, zero rows, Inf.
//
// With WICK_BENCH=1 in the environment, bench_products measures them: GB/s of weights for one
// token, GMAC/s for 64, and the machine's peak rates of reading and multiplying.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "check.h"
#include "kernel_cases.h"
#include "kernels/act.h"
#include "kernels/floats.h"
#include "kernels/layout.h"
#include "kernels/simd.h"

enum { TOKENS_MAX = 70 };

// ---- activations ----

typedef struct test_act {
  uint8_t *rows;
  size_t stride_bytes;
} test_act;

static test_act act_make(const kernel_table *kernels, kernel_act_form form, const float *x,
                         uint32_t tokens, uint32_t cols) {
  test_act act = {NULL, kernels->act_bytes(form, cols) + 64 * random_u32_below(2)};
  act.rows = aligned_alloc(64, act.stride_bytes * tokens);
  memset(act.rows, 0xee, act.stride_bytes * tokens);
  for (uint32_t t = 0; t < tokens; t++) {
    kernels->act_make(form, x + (size_t)t * cols, cols, act.rows + act.stride_bytes * t);
  }
  return act;
}

static void check_act_block(const act_block *block, const float *x, uint32_t n) {
  int32_t sums[2] = {0, 0};
  for (uint32_t i = 0; i < ACT_BLOCK; i++) {
    const double value = i < n ? (double)x[i] : 0;
    CHECK_NEAR((double)block->codes[i] * (double)block->scale, value,
               0.50001 * (double)block->scale + (double)ACT_TINY);
    CHECK(block->codes[i] >= -127);
    sums[i / 16] += block->codes[i];
  }
  CHECK_EQ_INT(block->minus_sum_half[0], -sums[0]);
  CHECK_EQ_INT(block->minus_sum_half[1], -sums[1]);
  CHECK_EQ_INT(block->minus_sum, -sums[0] - sums[1]);
  CHECK_EQ_INT(block->minus_pairs[0] + block->minus_pairs[1], -sums[0] - sums[1]);
}

TEST(activations_are_accurate_and_identical_in_all_variants) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static const float deviations[] = {1, 1e-30f, 1e-37f, 3000, 0, 1e-44f, 60000};
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t cols = 1 + random_u32_below(200);
    float x[200];
    random_floats(x, cols, deviations[round % 7]);
    if (round % 11 == 5) x[random_u32_below(cols)] = -0.0f;
    uint8_t *rows[VARIANTS_MAX];
    for (size_t v = 0; v < count; v++) {
      rows[v] = aligned_alloc(64, list[v]->act_bytes(KERNEL_ACT_Q8, cols));
      list[v]->act_make(KERNEL_ACT_Q8, x, cols, rows[v]);
      CHECK_EQ_MEM(rows[v], rows[0], act_wide_offset(cols));
      const act_wide *wide = (const act_wide *)(const void *)(rows[v] + act_wide_offset(cols));
      const act_block *blocks = (const act_block *)(const void *)rows[v];
      for (uint32_t c = 0; v > 0 && c < cols; c++) {
        const int16_t code = wide[c / 32].codes[c % 32 / 4][c % 2][c % 4 / 2];
        CHECK_EQ_INT(code, blocks[c / 32].codes[c % 32]);
      }
      for (uint32_t c = 0; v == 0 && c < cols; c += 32) {
        check_act_block(&blocks[c / 32], x + c, cols - c < 32 ? cols - c : 32);
      }
    }
    for (size_t v = 0; v < count; v++) free(rows[v]);
  }
}

TEST(non_finite_activations_are_reported) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const float bad[] = {f32_of_bits(0x7f800000u), f32_of_bits(0xffc00001u), 5e6f, -1e30f};
  for (size_t v = 0; v < count; v++) {
    for (uint32_t i = 0; i < 4; i++) {
      float x[64] = {1, 2, 3};
      x[17] = bad[i];
      _Alignas(64) uint8_t row[512];
      REQUIRE(list[v]->act_bytes(KERNEL_ACT_Q8, 64) <= sizeof row);
      list[v]->act_make(KERNEL_ACT_Q8, x, 64, row);
      const act_block *blocks = (const act_block *)(const void *)row;
      CHECK(isnan(blocks[0].scale) && isnan(blocks[0].scale_folded));
      CHECK_EQ_F32(blocks[1].scale, 0);
    }
  }
}

// ---- products ----

// Returns the value of an activation as the product uses it.
static double act_value(kernel_act_form form, const uint8_t *row, uint32_t col) {
  if (form == KERNEL_ACT_F32) return (double)((const float *)(const void *)row)[col];
  const act_block *block = (const act_block *)(const void *)row + col / ACT_BLOCK;
  return (double)block->codes[col % ACT_BLOCK] * (double)block->scale;
}

static bool same_f32(float a, float b) {
  return (isnan(a) && isnan(b)) || bits_of_f32(a) == bits_of_f32(b);
}

// Checks that an output is close to the sum in double precision; `slack` is in units of 2^-24 of
// the sum of magnitudes.
static void check_against_double(const test_matrix *w, kernel_act_form form, const uint8_t *act_row,
                                 const float *weights, float found, double slack) {
  double sum = 0, magnitude = 0;
  bool finite = true;
  for (uint32_t c = 0; c < w->matrix.cols; c++) {
    const double product = (double)weights[c] * act_value(form, act_row, c);
    finite = finite && isfinite(weights[c]);
    sum += product;
    magnitude += fabs(product);
  }
  if (!finite) {
    CHECK(!isfinite(found));
  } else if (magnitude < 1e38) {
    CHECK_NEAR((double)found, sum, slack * 0x1p-24 * magnitude + 1e-40 * w->matrix.cols);
  }
}

typedef struct product {
  const kernel_table *kernels;
  const test_matrix *w;
  test_act act;
  uint32_t tokens;
} product;

static void multiply(const product *p, uint32_t row_first, uint32_t row_last, uint32_t token_first,
                     uint32_t tokens, float *y, size_t y_stride) {
  p->kernels->types[p->w->matrix.type].matmul(&p->w->matrix, row_first, row_last,
                                              p->act.rows + p->act.stride_bytes * token_first,
                                              p->act.stride_bytes, tokens, y, y_stride);
}

// Checks that any range of rows and any batch give bits identical to `whole` [tokens][rows] and
// write nothing else.
static void check_parts(const product *p, const float *whole) {
  const uint32_t rows = p->w->matrix.rows, groups = ceil_div_u32(rows, KERNEL_ROW_GROUP);
  const size_t stride = rows + random_u32_below(9);
  const uint32_t canary = 0x7fabcdefu;
  float *y = malloc(stride * TOKENS_MAX * sizeof(float));
  for (uint32_t round = 0; round < 6; round++) {
    const uint32_t first = random_u32_below(groups) * KERNEL_ROW_GROUP;
    uint32_t last = first + (1 + random_u32_below(groups)) * KERNEL_ROW_GROUP;
    if (last > rows) last = rows;
    const uint32_t token_first = random_u32_below(p->tokens);
    const uint32_t tokens = 1 + random_u32_below(p->tokens - token_first);
    for (size_t i = 0; i < stride * TOKENS_MAX; i++) y[i] = f32_of_bits(canary);
    multiply(p, first, last, token_first, tokens, y, stride);
    for (size_t i = 0; i < stride * TOKENS_MAX; i++) {
      const uint32_t t = (uint32_t)(i / stride), r = (uint32_t)(i % stride);
      if (t < tokens && r >= first && r < last) {
        if (!CHECK(same_f32(y[i], whole[(size_t)(t + token_first) * rows + r]))) break;
      } else if (!CHECK_EQ_UINT(bits_of_f32(y[i]), canary)) {
        break;
      }
    }
  }
  free(y);
}

static void check_product(const type_case *type, scales_kind kind, uint32_t rows, uint32_t cols,
                          uint32_t tokens, bool minus_128) {
  const test_matrix w = matrix_make(type, rows, cols, kind, minus_128);
  float *x = malloc((size_t)tokens * cols * sizeof(float));
  float *weights = malloc(cols * sizeof(float));
  float *y[VARIANTS_MAX];
  random_floats(x, (size_t)tokens * cols, kind == SCALES_EXTREME ? 3e-3f : 1.0f);
  for (uint32_t i = 0; i < cols / 32; i++) x[i * 32 + 5] = -20 * fabsf(x[i * 32 + 5]);
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const kernel_act_form form = scalar()->types[type->type].act_form;
  for (size_t v = 0; v < count; v++) {
    product p = {list[v], &w, act_make(list[v], form, x, tokens, cols), tokens};
    y[v] = malloc((size_t)tokens * rows * sizeof(float));
    multiply(&p, 0, rows, 0, tokens, y[v], rows);
    check_parts(&p, y[v]);
    for (uint32_t r = 0; r < rows; r++) {
      scalar()->types[type->type].row_dequant(&w.matrix, r, weights);
      for (uint32_t t = 0; t < tokens; t++) {
        const size_t at = (size_t)t * rows + r;
        if (v > 0 && is_exact(list[v])) {
          CHECK(same_f32(y[v][at], y[0][at]));
          continue;
        }
        check_against_double(&w, form, p.act.rows + p.act.stride_bytes * t, weights, y[v][at],
                             (double)cols / 16 + 4);
      }
    }
    free(p.act.rows);
  }
  for (size_t v = 0; v < count; v++) free(y[v]);
  free(weights);
  free(x);
  free(w.data);
}

TEST(products_are_correct_for_every_type_and_variant) {
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const uint32_t block = type_facts(type_cases[i].type)->block_values;
    for (uint32_t round = 0; round < 25; round++) {
      const uint32_t rows = 1 + random_u32_below(40);
      const uint32_t blocks = 1 + random_u32_below(block > 32    ? 1280 / block
                                                   : block == 32 ? 40
                                                                 : 300);
      const uint32_t tokens = 1 + (round < 20 ? round : random_u32_below(TOKENS_MAX));
      check_product(&type_cases[i], (scales_kind)(round % SCALES_KINDS), rows, blocks * block,
                    tokens, round % 3 == 0);
    }
  }
}

// Elements of F16 are stored as codes: each element has a different code, and a shift, a mask and a
// factor turn a code into its value.
TEST(f16_codes_are_distinct_and_keep_their_values) {
  static bool is_taken[1 << 16];
  for (uint32_t half = 0; half < 1 << 16; half++) {
    const uint16_t code = f16_code((uint16_t)half);
    CHECK_EQ_UINT(f16_of_code(code), half);
    CHECK(!is_taken[code]);
    is_taken[code] = true;
    const float value = f32_of_f16((uint16_t)half);
    if (!(fabsf(value) < 128)) continue;
    const float tiny = f32_of_bits((code & 0x8000u) << 16 | (code & 0x7fffu) << 13);
    CHECK(same_f32(tiny * 0x1p102f, value));
  }
}

// A kernel that scales activations up must not overflow for large ones.
TEST(products_of_f16_are_correct_with_large_activations) {
  enum { ROWS = 11, COLS = 70, TOKENS_HERE = 7 };
  const type_case *type = type_cases;
  while (type->type != GGML_TYPE_F16) type++;
  const test_matrix w = matrix_make(type, ROWS, COLS, SCALES_USUAL, false);
  for (int exponent = 20; exponent < 127; exponent += 3) {
    float x[TOKENS_HERE * COLS], weights[COLS], y[TOKENS_HERE * ROWS], exact[TOKENS_HERE * ROWS];
    random_floats(x, TOKENS_HERE * COLS, 1);
    for (int t = 0; t < TOKENS_HERE; t += 2) x[t * COLS + 3 * t] = ldexpf(1.5f, exponent);
    const kernel_table *list[VARIANTS_MAX];
    const size_t count = variants(list);
    for (size_t v = 0; v < count; v++) {
      product p = {list[v], &w, act_make(list[v], KERNEL_ACT_F32, x, TOKENS_HERE, COLS),
                   TOKENS_HERE};
      multiply(&p, 0, ROWS, 0, TOKENS_HERE, y, ROWS);
      if (v == 0) memcpy(exact, y, sizeof y);
      for (uint32_t i = 0; i < TOKENS_HERE * ROWS; i++) {
        scalar()->types[GGML_TYPE_F16].row_dequant(&w.matrix, i % ROWS, weights);
        if (is_exact(list[v])) CHECK(same_f32(y[i], exact[i]));
        check_against_double(&w, KERNEL_ACT_F32, p.act.rows + p.act.stride_bytes * (i / ROWS),
                             weights, y[i], (double)COLS / 16 + 4);
      }
      free(p.act.rows);
    }
  }
  free(w.data);
}

// Uses more rows and tokens than a tile has. The three types use different tiles.
TEST(products_are_correct_for_more_rows_and_tokens_than_a_tile) {
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const ggml_type type = type_cases[i].type;
    if (type != GGML_TYPE_Q8_0 && type != GGML_TYPE_Q4_K && type != GGML_TYPE_IQ2_S) continue;
    check_product(&type_cases[i], SCALES_USUAL, 259, type_facts(type)->block_values, 70, false);
  }
}

// Weights may be written to used memory, for example by a second engine on the same page.
TEST(repacking_overwrites_all_previous_contents) {
  enum { ROWS = 8, BLOCKS = 3 };
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const kernel_type_ops *ops = &scalar()->types[type_cases[i].type];
    const ggml_type_facts *facts = type_facts(type_cases[i].type);
    const size_t row_bytes = (size_t)BLOCKS * facts->block_bytes, bytes = ROWS * row_bytes;
    uint8_t *clean = aligned_alloc(64, align_size(bytes, 64));
    uint8_t *used = aligned_alloc(64, align_size(bytes, 64));
    uint8_t *file = malloc(bytes);
    for (size_t k = 0; k < bytes; k++) file[k] = (uint8_t)random_u32();
    memset(clean, 0, bytes);
    memset(used, 0xff, bytes);
    for (uint32_t row = 0; row < ROWS; row++) {
      const uint32_t cols = BLOCKS * facts->block_values;
      ops->repack(clean, cols, row, 0, BLOCKS, file + row * row_bytes);
      ops->repack(used, cols, row, 0, BLOCKS, file + row * row_bytes);
    }
    CHECK_EQ_MEM(used, clean, bytes);
    free(clean);
    free(used);
    free(file);
  }
}

TEST(shapes_that_do_not_fit_are_rejected) {
  uint64_t bytes;
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const ggml_type_facts *facts = type_facts(type_cases[i].type);
    const kernel_type_ops *ops = &scalar()->types[type_cases[i].type];
    CHECK(!ops->matrix_bytes(8, 0, &bytes));
    if (facts->block_values > 1) CHECK(!ops->matrix_bytes(8, facts->block_values + 1, &bytes));
    CHECK(ops->matrix_bytes(9, facts->block_values * 3u, &bytes));
    CHECK_EQ_UINT(bytes, 16u * 3 * facts->block_bytes);
  }
}

// ---- measuring ----

enum {
  BENCH_COLS = 2048,
  BENCH_BYTES = 96 << 20,
  BENCH_STRIP_ROWS = 256,
};

static uint64_t bench_sink;

__attribute__((noinline)) static void read_strip(const uint8_t *bytes, size_t count) {
#ifdef WICK_SIMD128
  v128_t sums[4] = {0};
  for (size_t i = 0; i < count; i += 64) {
    for (size_t k = 0; k < 4; k++) sums[k] ^= wasm_v128_load(bytes + i + 16 * k);
  }
  sums[0] ^= sums[1] ^ sums[2] ^ sums[3];
  bench_sink += (uint64_t)wasm_i64x2_extract_lane(sums[0], 0);
#else
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    bench_sink ^= word;
  }
#endif
}

static void bench_read(void *context) {
  const uint8_t *bytes = context;
  for (size_t i = 0; i < BENCH_BYTES; i += 65536) read_strip(bytes + i, 65536);
}

#ifdef WICK_RELAXED
enum { PEAK_STEPS = 512 };

// 8 independent sums with one changing operand: the peak rate of the relaxed dots in registers.
#define PEAK_STRIP(name, STEP)                                                           \
  __attribute__((noinline)) static void name(const uint8_t *bytes) {                     \
    v128_t sums[8] = {0}, x = wasm_v128_load(bytes), codes = wasm_v128_load(bytes + 16); \
    const v128_t one = wasm_v128_load(bytes + 32);                                       \
    _Pragma("nounroll") for (int i = 0; i < PEAK_STEPS; i++) {                           \
      for (int k = 0; k < 8; k++) sums[k] = STEP(sums[k]);                               \
      x = wasm_v128_xor(x, one);                                                         \
    }                                                                                    \
    for (int k = 1; k < 8; k++) sums[0] ^= sums[k];                                      \
    bench_sink += (uint64_t)wasm_i64x2_extract_lane(sums[0], 0);                         \
  }
#define STEP_QUADS(sum) simd_dot_quads(x, codes, sum)
#define STEP_PAIRS(sum) wasm_i16x8_add(sum, simd_dot_pairs(x, sum &codes))
PEAK_STRIP(peak_quads_strip, STEP_QUADS)
PEAK_STRIP(peak_pairs_strip, STEP_PAIRS)

static void peak_quads(void *context) {
  for (int i = 0; i < 500; i++) peak_quads_strip(context);
}

static void peak_pairs(void *context) {
  for (int i = 0; i < 500; i++) peak_pairs_strip(context);
}

static void bench_peaks(void) {
  uint8_t bytes[48] = {1, 2, 3, 4};
  const double macs = 500.0 * (double)PEAK_STEPS * 8 * 16 * 1e-9;
  printf("#   dot peak in GMAC/s: quads %.1f, pairs (with an AND) %.1f\n",
         macs / bench_seconds(peak_quads, bytes), macs / bench_seconds(peak_pairs, bytes));
}
#else
static void bench_peaks(void) {}
#endif

typedef struct bench_product {
  const kernel_table *kernels;
  const kernel_matrix *matrix;
  const uint8_t *act;
  size_t stride_bytes;
  uint32_t tokens;
  float *y;
} bench_product;

static void bench_matmul(void *context) {
  const bench_product *b = context;
  for (uint32_t r = 0; r < b->matrix->rows; r += BENCH_STRIP_ROWS) {
    const uint32_t left = b->matrix->rows - r;
    b->kernels->types[b->matrix->type].matmul(
        b->matrix, r, r + (left < BENCH_STRIP_ROWS ? left : BENCH_STRIP_ROWS), b->act,
        b->stride_bytes, b->tokens, b->y, b->matrix->rows);
  }
}

// Makes a matrix of at most `bytes` bytes by repeating 64 random rows.
static test_matrix bench_matrix(const type_case *type, size_t bytes) {
  test_matrix few = matrix_make(type, 64, BENCH_COLS, SCALES_USUAL, false);
  const size_t times = bytes / (size_t)few.bytes;
  test_matrix many = few;
  many.matrix.rows = (uint32_t)(64 * times);
  many.bytes = few.bytes * times;
  many.data = aligned_alloc(64, (size_t)many.bytes);
  const size_t few_bytes = (size_t)few.bytes;
  for (size_t i = 0; i < times; i++) memcpy(many.data + i * few_bytes, few.data, few_bytes);
  many.matrix.data = many.data;
  free(few.data);
  return many;
}

static double bench_one(const kernel_table *kernels, const test_matrix *w, uint32_t tokens) {
  float *x = malloc((size_t)tokens * BENCH_COLS * sizeof(float));
  random_floats(x, (size_t)tokens * BENCH_COLS, 1.0f);
  test_act act = act_make(kernels, kernels->types[w->matrix.type].act_form, x, tokens, BENCH_COLS);
  float *y = malloc((size_t)tokens * w->matrix.rows * sizeof(float));
  bench_product b = {kernels, &w->matrix, act.rows, act.stride_bytes, tokens, y};
  const double seconds = bench_seconds(bench_matmul, &b);
  free(x);
  free(y);
  free(act.rows);
  return seconds;
}

static void bench_type(const kernel_table *kernels, const type_case *type, const uint8_t *memory) {
  test_matrix big = bench_matrix(type, BENCH_BYTES);
  const double read =
      (double)BENCH_BYTES / bench_seconds(bench_read, (void *)(uintptr_t)memory) * 1e-9;
  const double rate = (double)big.bytes / bench_one(kernels, &big, 1) * 1e-9;
  const double all_macs = (double)big.matrix.rows * (double)BENCH_COLS * 1e-9;
  const double of_4 = all_macs * 4 / bench_one(kernels, &big, 4);
  const double of_16 = all_macs * 16 / bench_one(kernels, &big, 16);
  free(big.data);
  test_matrix little = bench_matrix(type, 1 << 20);
  const double cached = (double)little.bytes / bench_one(kernels, &little, 1) * 1e-9;
  printf("#   %-14s %-6s %6.2f GB/s (%3.0f %% of read rate, in cache %6.2f)  GMAC/s: ",
         kernels->name, type_facts(type->type)->name, rate, 100 * rate / read, cached);
  little.matrix.rows = 64;
  const double macs = (double)little.matrix.rows * (double)BENCH_COLS * 1e-9;
  static const uint32_t batches[] = {1, 2, 3, 4, 5, 8, 16, 64};
  for (uint32_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
    printf(" %" PRIu32 ": %5.1f", batches[i],
           macs * batches[i] / bench_one(kernels, &little, batches[i]));
  }
  printf("; from memory 4: %.1f 16: %.1f\n", of_4, of_16);
  free(little.data);
}

BENCH(products) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  uint8_t *memory = aligned_alloc(64, BENCH_BYTES);
  memset(memory, 1, BENCH_BYTES);
  printf("#   reading %.2f GB/s; kernels_bind: %s\n",
         (double)BENCH_BYTES / bench_seconds(bench_read, memory) * 1e-9, kernels_bind()->name);
  bench_peaks();
  const char *only = getenv("WICK_BENCH_TYPE");
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    if (only != NULL && strcmp(only, type_facts(type_cases[i].type)->name) != 0) continue;
    for (size_t v = 1; v < count; v++) bench_type(list[v], &type_cases[i], memory);
  }
  free(memory);
}

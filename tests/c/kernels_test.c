// tests/c/kernels_test.c — every kernel of every variant against the scalar reference, and that
// against sums in double precision: random shapes, denormals, extreme scales, -128, zero rows, Inf.
//
// With WICK_BENCH=1 in the environment the tests named bench_* measure each kernel: GB/s of weights
// for one token, GMAC/s for 64, beside what the machine can read and multiply.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "check.h"
#include "kernels/act.h"
#include "kernels/exp.h"
#include "kernels/kernels.h"
#include "kernels/simd.h"
#include "platform/platform.h"

enum { TOKENS_MAX = 20, VARIANTS_MAX = 4 };

// ---- random things ----

static uint64_t random_state = 1;

static uint32_t random_u32(void) {
  random_state += 0x9e3779b97f4a7c15u;
  uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static uint32_t random_below(uint32_t end) { return random_u32() % end; }

// About normal, deviation 1.
static float random_normal(void) {
  float sum = 0;
  for (int i = 0; i < 6; i++) sum += (float)random_u32() * 0x1p-32f - 0.5f;
  return sum * 1.41421356f;
}

static void random_floats(float *x, size_t n, float deviation) {
  for (size_t i = 0; i < n; i++) x[i] = random_normal() * deviation;
}

// ---- the types ----

typedef enum scales_kind {
  SCALES_USUAL,
  SCALES_TINY,     // subnormal halves
  SCALES_EXTREME,  // from the smallest to the largest half
  SCALES_ZERO,     // half of the rows are 0
  SCALES_WILD,     // now and then Inf or NaN
  SCALES_KINDS
} scales_kind;

// Where a block of the file has 16-bit floats. scale_count 0: the block is a number itself, or has
// scales of another kind (random_block).
typedef struct type_case {
  uint32_t type;
  uint32_t scale_offsets[2], scale_count;
} type_case;

static const type_case type_cases[] = {
    {WICK_TYPE_F32, {0}, 0},     {WICK_TYPE_F16, {0}, 1},     {WICK_TYPE_BF16, {0}, 0},
    {WICK_TYPE_Q4_0, {0}, 1},    {WICK_TYPE_Q4_1, {0, 2}, 2}, {WICK_TYPE_Q5_0, {0}, 1},
    {WICK_TYPE_Q5_1, {0, 2}, 2}, {WICK_TYPE_Q8_0, {0}, 1},    {WICK_TYPE_Q4_K, {0, 2}, 2},
    {WICK_TYPE_Q5_K, {0, 2}, 2}, {WICK_TYPE_Q6_K, {208}, 1},  {WICK_TYPE_Q2_K, {80, 82}, 2},
    {WICK_TYPE_Q3_K, {108}, 1},  {WICK_TYPE_IQ4_NL, {0}, 1},  {WICK_TYPE_IQ4_XS, {0}, 1},
    {WICK_TYPE_IQ1_S, {0}, 1},   {WICK_TYPE_IQ1_M, {0}, 0},   {WICK_TYPE_IQ2_XXS, {0}, 1},
    {WICK_TYPE_IQ2_XS, {0}, 1},  {WICK_TYPE_IQ2_S, {0}, 1},   {WICK_TYPE_IQ3_XXS, {0}, 1},
    {WICK_TYPE_IQ3_S, {0}, 1},   {WICK_TYPE_TQ1_0, {52}, 1},  {WICK_TYPE_TQ2_0, {64}, 1},
    {WICK_TYPE_Q1_0, {0}, 1},    {WICK_TYPE_Q2_0, {0}, 1},    {WICK_TYPE_MXFP4, {0}, 0},
    {WICK_TYPE_NVFP4, {0}, 0},
};
enum { TYPE_CASES = sizeof type_cases / sizeof type_cases[0] };

static uint16_t random_half(scales_kind kind, uint32_t row) {
  const uint32_t sign = random_u32() & 0x8000u;
  switch (kind) {
    case SCALES_TINY:
      return (uint16_t)(sign | random_below(0x400));
    case SCALES_EXTREME:
      return (uint16_t)(sign | random_below(0x7c00));
    case SCALES_ZERO:
      if (row % 2 == 0) return 0;
      break;
    case SCALES_WILD:
      if (random_below(40) == 0) return (uint16_t)(sign | 0x7c00u | random_below(2) * 0x155u);
      break;
    default:
      break;
  }
  return (uint16_t)(sign | (0x2000u + random_below(0x800)));
}

// IQ1_M has its 16-bit float in the highest 4 bits of four words.
static void iq1_m_scale(uint16_t half, uint8_t *words) {
  for (uint32_t i = 0; i < 4; i++) {
    words[2 * i + 1] = (uint8_t)((words[2 * i + 1] & 15) | (half >> (4 * i) & 15) << 4);
  }
}

// The exponent of MXFP4's scale, bias 128. (So large that a weight overflows it is never.)
static uint8_t mxfp4_exponent(scales_kind kind, uint32_t row) {
  switch (kind) {
    case SCALES_TINY:
      return (uint8_t)random_below(30);
    case SCALES_EXTREME:
      return (uint8_t)random_below(245);
    case SCALES_ZERO:
      return row % 2 == 0 ? 0 : 120;
    default:
      return (uint8_t)(110 + random_below(20));
  }
}

static void random_block(const type_case *type, scales_kind kind, uint32_t row, bool minus_128,
                         uint8_t *block) {
  const uint32_t bytes = type_facts(type->type)->block_bytes;
  for (uint32_t i = 0; i < bytes; i++) block[i] = (uint8_t)random_u32();
  if (type->type == WICK_TYPE_F32) {
    const float value = kind == SCALES_ZERO && row % 2 == 0 ? 0 : random_normal();
    memcpy(block, &value, sizeof value);
  }
  if (type->type == WICK_TYPE_BF16) {
    const uint16_t half = (uint16_t)(bits_of_f32(random_normal()) >> 16);
    memcpy(block, &half, sizeof half);
  }
  if (type->type == WICK_TYPE_IQ1_M) iq1_m_scale(random_half(kind, row), block + 48);
  if (type->type == WICK_TYPE_MXFP4) block[0] = mxfp4_exponent(kind, row);
  for (uint32_t i = 0; i < type->scale_count; i++) {
    const uint16_t half = random_half(kind, row);
    memcpy(block + type->scale_offsets[i], &half, sizeof half);
  }
  for (uint32_t i = 2; type->type == WICK_TYPE_Q8_0 && !minus_128 && i < bytes; i++) {
    if (block[i] == 0x80) block[i] = 0x81;
  }
}

typedef struct test_matrix {
  kernel_matrix matrix;
  uint8_t *data;
  uint64_t bytes;
} test_matrix;

static const wick_kernels *scalar(void) { return kernels_by_name("scalar"); }

// Fills a matrix from random blocks, rows in a random order and in pieces.
static test_matrix matrix_make(const type_case *type, uint32_t rows, uint32_t cols,
                               scales_kind kind, bool minus_128) {
  const kernel_type_ops *ops = &scalar()->types[type->type];
  const wick_type_facts *facts = type_facts(type->type);
  test_matrix made = {.matrix = {.rows = rows, .cols = cols, .type = type->type}};
  CHECK(ops->matrix_bytes(rows, cols, &made.bytes));
  made.data = aligned_alloc(64, align_size((size_t)made.bytes, 64));
  memset(made.data, 0, align_size((size_t)made.bytes, 64));
  const uint32_t blocks = cols / facts->block_values;
  uint8_t *file = malloc((size_t)blocks * facts->block_bytes);
  const uint32_t start = random_below(rows);
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t row = (start + rows - i) % rows;
    for (uint32_t b = 0; b < blocks; b++) {
      random_block(type, kind, row, minus_128, file + (size_t)b * facts->block_bytes);
    }
    const uint32_t cut = random_below(blocks + 1);
    made.matrix.flags |= ops->repack(made.data, cols, row, cut, blocks - cut,
                                     file + (size_t)cut * facts->block_bytes);
    made.matrix.flags |= ops->repack(made.data, cols, row, 0, cut, file);
  }
  free(file);
  made.matrix.data = made.data;
  return made;
}

static size_t variants(const wick_kernels *list[VARIANTS_MAX]) {
  static const char *const names[] = {"scalar", "simd128", "relaxed-pairs", "relaxed-quads"};
  size_t count = 0;
  for (size_t i = 0; i < VARIANTS_MAX; i++) {
    const wick_kernels *kernels = kernels_by_name(names[i]);
    if (kernels != NULL) list[count++] = kernels;
  }
  return count;
}

static bool is_exact(const wick_kernels *kernels) {
  return strcmp(kernels->name, "scalar") == 0 || strcmp(kernels->name, "simd128") == 0;
}

// ---- activations ----

typedef struct test_act {
  uint8_t *rows;
  size_t stride_bytes;
} test_act;

static test_act act_make(const wick_kernels *kernels, kernel_act_form form, const float *x,
                         uint32_t tokens, uint32_t cols) {
  test_act act = {NULL, kernels->act_bytes(form, cols) + 64 * random_below(2)};
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

TEST(activations_are_near_and_the_same_in_all_variants) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static const float deviations[] = {1, 1e-30f, 1e-37f, 3000, 0, 1e-44f, 60000};
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t cols = 1 + random_below(200);
    float x[200];
    random_floats(x, cols, deviations[round % 7]);
    if (round % 11 == 5) x[random_below(cols)] = -0.0f;
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
    }
    const act_block *blocks = (const act_block *)(const void *)rows[0];
    for (uint32_t c = 0; c < cols; c += 32) {
      check_act_block(&blocks[c / 32], x + c, cols - c < 32 ? cols - c : 32);
    }
    for (size_t v = 0; v < count; v++) free(rows[v]);
  }
}

TEST(activations_that_are_not_finite_say_so) {
  const wick_kernels *list[VARIANTS_MAX];
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

// The activation's value as the product sees it.
static double act_value(kernel_act_form form, const uint8_t *row, uint32_t col) {
  if (form == KERNEL_ACT_F32) return (double)((const float *)(const void *)row)[col];
  const act_block *block = (const act_block *)(const void *)row + col / ACT_BLOCK;
  return (double)block->codes[col % ACT_BLOCK] * (double)block->scale;
}

static bool same_f32(float a, float b) {
  return (isnan(a) && isnan(b)) || bits_of_f32(a) == bits_of_f32(b);
}

// One output near the sum in double precision; `slack` is in units of 2^-24 of the sum of
// magnitudes.
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
  const wick_kernels *kernels;
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

// Any range of rows and any batch give the bits of `whole` [tokens][rows], and write nothing else.
static void check_parts(const product *p, const float *whole) {
  const uint32_t rows = p->w->matrix.rows, groups = ceil_div_u32(rows, KERNEL_ROW_GROUP);
  const size_t stride = rows + random_below(9);
  const uint32_t canary = 0x7fabcdefu;
  float *y = malloc(stride * TOKENS_MAX * sizeof(float));
  for (uint32_t round = 0; round < 6; round++) {
    const uint32_t first = random_below(groups) * KERNEL_ROW_GROUP;
    uint32_t last = first + (1 + random_below(groups)) * KERNEL_ROW_GROUP;
    if (last > rows) last = rows;
    const uint32_t token_first = random_below(p->tokens);
    const uint32_t tokens = 1 + random_below(p->tokens - token_first);
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
  const wick_kernels *list[VARIANTS_MAX];
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
        if (is_exact(list[v])) CHECK(same_f32(y[v][at], y[0][at]));
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

TEST(products_of_every_type_and_variant) {
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const uint32_t block = type_facts(type_cases[i].type)->block_values;
    for (uint32_t round = 0; round < 25; round++) {
      const uint32_t rows = 1 + random_below(40);
      const uint32_t blocks = 1 + random_below(block > 32 ? 1280 / block : block == 32 ? 40 : 300);
      const uint32_t tokens = 1 + (round < 20 ? round : random_below(TOKENS_MAX));
      check_product(&type_cases[i], (scales_kind)(round % SCALES_KINDS), rows, blocks * block,
                    tokens, round % 3 == 0);
    }
  }
}

// Weights go to memory that others have used before: an engine after another in one page.
TEST(repacking_replaces_what_was_there) {
  enum { ROWS = 8, BLOCKS = 3 };
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const kernel_type_ops *ops = &scalar()->types[type_cases[i].type];
    const wick_type_facts *facts = type_facts(type_cases[i].type);
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

TEST(shapes_that_do_not_fit_are_refused) {
  uint64_t bytes;
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    const wick_type_facts *facts = type_facts(type_cases[i].type);
    const kernel_type_ops *ops = &scalar()->types[type_cases[i].type];
    CHECK(!ops->matrix_bytes(8, 0, &bytes));
    if (facts->block_values > 1) CHECK(!ops->matrix_bytes(8, facts->block_values + 1, &bytes));
    CHECK(ops->matrix_bytes(9, facts->block_values * 3u, &bytes));
    CHECK_EQ_UINT(bytes, 16u * 3 * facts->block_bytes);
  }
}

// ---- attention ----

typedef struct attention_case {
  uint32_t group, head_dim, tokens, first;
  kernel_kv_type k_type, v_type;
} attention_case;

// Softmax attention in double precision over what the pages hold. q and out: [group][head_dim].
static void attention_reference(const attention_case *c, const float *q, const float *k,
                                const float *v, double *out) {
  for (uint32_t h = 0; h < c->group; h++) {
    double scores[64], most = -INFINITY, sum = 0;
    for (uint32_t t = c->first; t < c->tokens; t++) {
      scores[t] = 0;
      for (uint32_t d = 0; d < c->head_dim; d++) {
        scores[t] += (double)q[h * c->head_dim + d] * (double)k[t * c->head_dim + d];
      }
      most = fmax(most, scores[t]);
    }
    for (uint32_t d = 0; d < c->head_dim; d++) out[h * c->head_dim + d] = 0;
    for (uint32_t t = c->first; t < c->tokens; t++) {
      const double p = exp(scores[t] - most);
      sum += p;
      for (uint32_t d = 0; d < c->head_dim; d++) {
        out[h * c->head_dim + d] += p * (double)v[t * c->head_dim + d];
      }
    }
    for (uint32_t d = 0; d < c->head_dim; d++) out[h * c->head_dim + d] /= sum;
  }
}

static void attention_run(const wick_kernels *kernels, const attention_case *c, const float *q,
                          uint8_t *const *k_pages, uint8_t *const *v_pages, float *out) {
  const size_t n = (size_t)c->group * c->head_dim;
  float *acc = malloc(n * sizeof(float));
  float max[16], sum[16];
  const kernel_attention state = {c->group, c->head_dim, q, acc, max, sum, {{0}, 0}};
  kernels->attention_begin(&state);
  for (uint32_t t = 0; t < c->tokens; t += KERNEL_PAGE_TOKENS) {
    const uint32_t first = c->first > t ? c->first - t : 0;
    const uint32_t last = c->tokens - t < 16 ? c->tokens - t : 16;
    if (first >= last) continue;
    kernels->attention_page[c->k_type][c->v_type](&state, k_pages[t / 16], v_pages[t / 16], first,
                                                  last);
  }
  kernels->attention_end(&state, out);
  free(acc);
}

static void check_attention(const attention_case *c) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list), n = (size_t)c->group * c->head_dim;
  const kernel_kv_ops *k_ops = &scalar()->kv[c->k_type], *v_ops = &scalar()->kv[c->v_type];
  const size_t k_bytes = k_ops->k_bytes(c->head_dim), v_bytes = v_ops->v_bytes(c->head_dim);
  uint8_t *k_pages[4], *v_pages[4];
  float *q = malloc(n * sizeof(float)), *first_out = malloc(n * sizeof(float));
  float *k = malloc(64 * c->head_dim * sizeof(float)),
        *v = malloc(64 * c->head_dim * sizeof(float));
  random_floats(q, n, 1.0f / sqrtf((float)c->head_dim));
  for (uint32_t p = 0; p < 4; p++) {
    k_pages[p] = aligned_alloc(64, align_size(k_bytes, 64));
    v_pages[p] = aligned_alloc(64, align_size(v_bytes, 64));
    memset(k_pages[p], 0xff, k_bytes);  // what is not written is NaN
    memset(v_pages[p], 0xff, v_bytes);
  }
  for (uint32_t t = c->first; t < c->tokens; t++) {
    float *k_row = k + t * c->head_dim, *v_row = v + t * c->head_dim;
    random_floats(k_row, c->head_dim, 1.0f);
    random_floats(v_row, c->head_dim, 1.0f);
    CHECK_EQ_UINT(k_ops->k_write(k_pages[t / 16], t % 16, k_row, c->head_dim), 0);
    CHECK_EQ_UINT(v_ops->v_write(v_pages[t / 16], t % 16, v_row, c->head_dim), 0);
    k_ops->k_read(k_pages[t / 16], t % 16, k_row, c->head_dim);
    v_ops->v_read(v_pages[t / 16], t % 16, v_row, c->head_dim);
  }
  double *wanted = malloc(n * sizeof(double));
  float *out = malloc(n * sizeof(float));
  attention_reference(c, q, k, v, wanted);
  for (size_t i = 0; i < count; i++) {
    attention_run(list[i], c, q, k_pages, v_pages, out);
    if (i == 0) memcpy(first_out, out, n * sizeof(float));
    for (size_t d = 0; d < n; d++) {
      CHECK_NEAR((double)out[d], wanted[d], 3e-6);
      if (is_exact(list[i])) CHECK_EQ_F32(out[d], first_out[d]);
    }
  }
  for (uint32_t p = 0; p < 4; p++) free(k_pages[p]);
  for (uint32_t p = 0; p < 4; p++) free(v_pages[p]);
  free(q);
  free(first_out);
  free(k);
  free(v);
  free(wanted);
  free(out);
}

TEST(attention_over_pages) {
  for (uint32_t round = 0; round < 128; round++) {
    attention_case c = {.group = 1 + random_below(9), .head_dim = 4 * (1 + random_below(40))};
    c.tokens = 1 + random_below(64);
    c.first = round % 2 ? random_below(c.tokens) : 0;
    c.k_type = (kernel_kv_type)(round / 2 % KERNEL_KV_TYPE_COUNT);
    c.v_type = (kernel_kv_type)(round / 8 % KERNEL_KV_TYPE_COUNT);
    check_attention(&c);
  }
}

TEST(attention_gives_nan_for_nan) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const attention_case c = {1, 8, 16, 0, KERNEL_KV_F32, KERNEL_KV_F32};
  float q[8] = {1, 2, 3, f32_of_bits(0x7fc12345u)}, out[8];
  _Alignas(64) float k[128] = {0}, v[128] = {1};
  uint8_t *k_page = (uint8_t *)k, *v_page = (uint8_t *)v;
  for (size_t i = 0; i < count; i++) {
    attention_run(list[i], &c, q, &k_page, &v_page, out);
    CHECK(isnan(out[0]));
  }
}

TEST(pages_count_what_does_not_fit) {
  const float row[8] = {1, INFINITY, 70000, -70000, 65504, NAN, 65519.9f, -1e-9f};
  _Alignas(64) uint8_t page[16 * 8 * 4];
  float back[8];
  const kernel_kv_ops *f16 = &scalar()->kv[KERNEL_KV_F16], *f32 = &scalar()->kv[KERNEL_KV_F32];
  CHECK_EQ_UINT(f16->k_write(page, 3, row, 8), 4);
  f16->k_read(page, 3, back, 8);
  CHECK_EQ_F32(back[2], 65504);
  CHECK_EQ_F32(back[3], -65504);
  CHECK_EQ_F32(back[5], 0);
  CHECK_EQ_UINT(f32->v_write(page, 15, row, 8), 2);
  f32->v_read(page, 15, back, 8);
  CHECK_EQ_F32(back[1], 0);
  CHECK_EQ_F32(back[2], 70000);
}

// ---- the rest ----

TEST(exp_is_within_its_bound) {
  double worst = 0;
  for (float x = EXP_LEAST; x < EXP_MOST; x += 0.00371f) {
    const double wanted = exp((double)x);
    worst = fmax(worst, fabs((double)exp_f32(x) - wanted) / wanted);
  }
  CHECK(worst < 3e-7);
  CHECK_EQ_F32(exp_f32(-88), 0);
  CHECK_EQ_F32(exp_f32(-INFINITY), 0);
  CHECK_EQ_F32(exp_f32(INFINITY), INFINITY);
  CHECK_EQ_F32(exp_f32(0), 1);
  CHECK(isnan(exp_f32(NAN)));
}

TEST(norms) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_below(300);
    float x[300], weight[300], out[VARIANTS_MAX][300];
    random_floats(x, n, round % 3 ? 1.0f : 1e-3f);
    random_floats(weight, n, 1.0f);
    double square = 0;
    for (uint32_t i = 0; i < n; i++) square += (double)x[i] * (double)x[i];
    const double factor = 1 / sqrt(square / n + 1e-5);
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->rms_norm(v % 2 ? out[v] : x, weight, n, 1e-5f, out[v]);
      for (uint32_t i = 0; i < n; i++) {
        const double wanted = (double)x[i] * factor * (double)weight[i];
        CHECK_NEAR((double)out[v][i], wanted, 2e-6 * fabs(wanted));
        if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
      }
    }
  }
}

TEST(rotations) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t heads = 1 + random_below(4), n_rot = 2 * (1 + random_below(40));
    const uint32_t head_dim = n_rot + 2 * random_below(9);
    const bool interleaved = round % 2 == 0;
    float x[400], cos_sin[80], out[VARIANTS_MAX][400];
    random_floats(x, (size_t)heads * head_dim, 1.0f);
    for (uint32_t i = 0; i < n_rot; i++) cos_sin[i] = random_normal();
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->rope(out[v], heads, head_dim, n_rot, cos_sin, interleaved);
    }
    for (uint32_t i = 0; i < heads * head_dim; i++) {
      const uint32_t d = i % head_dim, pairs = n_rot / 2;
      const uint32_t pair = interleaved ? d / 2 : d % pairs, base = i - d;
      const uint32_t second = interleaved ? d % 2 : d / pairs;
      const double a = (double)x[base + (interleaved ? pair * 2 : pair)];
      const double b = (double)x[base + (interleaved ? pair * 2 + 1 : pair + pairs)];
      double wanted = (double)x[i];
      if (d < n_rot) {
        const double c = (double)cos_sin[2 * pair], s = (double)cos_sin[2 * pair + 1];
        wanted = second ? a * s + b * c : a * c - b * s;
      }
      for (size_t v = 0; v < count; v++) {
        CHECK_NEAR((double)out[v][i], wanted, 1e-6 * (1 + fabs(a) + fabs(b)));
        if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
      }
    }
  }
}

// A value does not depend on where the vector begins: threads cut rows anywhere.
TEST(activation_function_and_sums) {
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_below(100), cut = random_below(n);
    float gate[100], up[100], out[VARIANTS_MAX][100], cut_out[100], sums[100];
    random_floats(gate, n, round % 4 ? 5.0f : 60.0f);
    random_floats(up, n, 1.0f);
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], gate, sizeof gate);
      memcpy(cut_out, gate, sizeof gate);
      list[v]->silu_mul(out[v], up, n);
      list[v]->silu_mul(cut_out, up, cut);
      list[v]->silu_mul(cut_out + cut, up + cut, n - cut);
      CHECK_EQ_MEM(cut_out, out[v], n * sizeof(float));
      memcpy(sums, gate, sizeof gate);
      list[v]->add(sums, up, n);
      list[v]->scale(sums, 0.3f, n);
      for (uint32_t i = 0; i < n; i++) {
        const double wanted = (double)gate[i] / (1 + exp(-(double)gate[i])) * (double)up[i];
        CHECK_NEAR((double)out[v][i], wanted, 1e-6 * fabs(wanted) + 1e-35);
        if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
        CHECK_EQ_F32(sums[i], (gate[i] + up[i]) * 0.3f);
      }
    }
  }
}

// ---- measuring ----

enum {
  BENCH_COLS = 2048,
  BENCH_BYTES = 96 << 20,
  BENCH_STRIP_ROWS = 256,
  BENCH_ROUNDS = 9,
  BENCH_LEAST_US = 20000
};

typedef void bench_function(void *context);

// The shortest time of a call in seconds, after one call to warm up: others share the machine.
static double bench_seconds(bench_function *run, void *context) {
  double least = 1e9;
  run(context);
  const uint64_t begin_us = platform_now_us();
  for (int i = 0; i < BENCH_ROUNDS || platform_now_us() - begin_us < BENCH_LEAST_US; i++) {
    const uint64_t start_us = platform_now_us();
    run(context);
    least = fmin(least, (double)(platform_now_us() - start_us) * 1e-6);
  }
  return least;
}

static bool bench_is_wanted(void) {
  const char *wanted = getenv("WICK_BENCH");
  return wanted != NULL && wanted[0] == '1';
}

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

// 8 independent sums, one operand changing: what the relaxed dots can do, in registers.
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
  printf("#   dot peak in GMAC/s: quads %.1f, pairs (and an and) %.1f\n",
         macs / bench_seconds(peak_quads, bytes), macs / bench_seconds(peak_pairs, bytes));
}
#else
static void bench_peaks(void) {}
#endif

typedef struct bench_product {
  const wick_kernels *kernels;
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

// A matrix of `bytes` at most, 64 random rows again and again.
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

static double bench_one(const wick_kernels *kernels, const test_matrix *w, uint32_t tokens) {
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

static void bench_type(const wick_kernels *kernels, const type_case *type, const uint8_t *memory) {
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
  printf("#   %-14s %-6s %6.2f GB/s (%3.0f %% of reading, in cache %6.2f)  GMAC/s: ", kernels->name,
         type_facts(type->type)->name, rate, 100 * rate / read, cached);
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

TEST(bench_products) {
  if (!bench_is_wanted()) return;
  const wick_kernels *list[VARIANTS_MAX];
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

enum { BENCH_PAGES = 256, BENCH_HEAD_DIM = 64, BENCH_GROUP = 3 };

typedef struct bench_attention {
  const wick_kernels *kernels;
  kernel_kv_type kv;
  kernel_attention state;
  uint8_t *pages;
  size_t page_bytes;
} bench_attention;

static void bench_attend(void *context) {
  const bench_attention *b = context;
  float out[BENCH_GROUP * BENCH_HEAD_DIM];
  b->kernels->attention_begin(&b->state);
  for (size_t p = 0; p < BENCH_PAGES; p++) {
    const uint8_t *k = b->pages + 2 * p * b->page_bytes;
    b->kernels->attention_page[b->kv][b->kv](&b->state, k, k + b->page_bytes, 0, 16);
  }
  b->kernels->attention_end(&b->state, out);
}

// 4096 tokens of one KV head that three query heads share.
TEST(bench_attention_of_a_long_context) {
  if (!bench_is_wanted()) return;
  const wick_kernels *list[VARIANTS_MAX];
  const size_t count = variants(list);
  float q[BENCH_GROUP * BENCH_HEAD_DIM], acc[BENCH_GROUP * BENCH_HEAD_DIM];
  float max[BENCH_GROUP], sum[BENCH_GROUP], row[BENCH_HEAD_DIM];
  random_floats(q, BENCH_GROUP * BENCH_HEAD_DIM, 0.1f);
  for (size_t v = 0; v < count; v++) {
    for (kernel_kv_type kv = KERNEL_KV_F32; kv < KERNEL_KV_TYPE_COUNT; kv++) {
      static const char *const names[] = {"F32", "F16", "Q8", "Q4"};
      const kernel_kv_ops *ops = &list[v]->kv[kv];
      bench_attention b = {list[v],
                           kv,
                           {BENCH_GROUP, BENCH_HEAD_DIM, q, acc, max, sum, {{0}, 0}},
                           NULL,
                           ops->k_bytes(BENCH_HEAD_DIM)};
      b.pages = aligned_alloc(64, 2 * BENCH_PAGES * b.page_bytes);
      for (uint32_t i = 0; i < 2 * BENCH_PAGES * 16; i++) {
        random_floats(row, BENCH_HEAD_DIM, 1.0f);
        (i / 16 % 2 ? ops->v_write : ops->k_write)(b.pages + i / 16 * b.page_bytes, i % 16, row,
                                                   BENCH_HEAD_DIM);
      }
      const double seconds = bench_seconds(bench_attend, &b);
      printf("#   %-14s attention, %s: %.2f GB/s of keys and values, %.1f GMAC/s\n", list[v]->name,
             names[kv], 2.0 * (double)BENCH_PAGES * (double)b.page_bytes / seconds * 1e-9,
             (double)(2 * BENCH_PAGES * 16 * BENCH_HEAD_DIM * BENCH_GROUP) / seconds * 1e-9);
      free(b.pages);
    }
  }
}

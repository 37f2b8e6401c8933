// See kernel_cases.h.
#include "kernel_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "check.h"
#include "platform/platform.h"
#include "random.h"

// ---- random values ----

static uint64_t random_state = 1;

uint32_t random_u32(void) { return (uint32_t)(random_u64(&random_state) >> 32); }

uint32_t random_u32_below(uint32_t end) { return random_u32() % end; }

float random_normal(void) {
  float sum = 0;
  for (int i = 0; i < 6; i++) sum += (float)random_u32() * 0x1p-32f - 0.5f;
  return sum * 1.41421356f;
}

void random_floats(float *x, size_t n, float deviation) {
  for (size_t i = 0; i < n; i++) x[i] = random_normal() * deviation;
}

// ---- the types ----

const type_case type_cases[] = {
    {GGML_TYPE_F32, {0}, 0},     {GGML_TYPE_F16, {0}, 1},     {GGML_TYPE_BF16, {0}, 0},
    {GGML_TYPE_Q4_0, {0}, 1},    {GGML_TYPE_Q4_1, {0, 2}, 2}, {GGML_TYPE_Q5_0, {0}, 1},
    {GGML_TYPE_Q5_1, {0, 2}, 2}, {GGML_TYPE_Q8_0, {0}, 1},    {GGML_TYPE_Q4_K, {0, 2}, 2},
    {GGML_TYPE_Q5_K, {0, 2}, 2}, {GGML_TYPE_Q6_K, {208}, 1},  {GGML_TYPE_Q2_K, {80, 82}, 2},
    {GGML_TYPE_Q3_K, {108}, 1},  {GGML_TYPE_IQ4_NL, {0}, 1},  {GGML_TYPE_IQ4_XS, {0}, 1},
    {GGML_TYPE_IQ1_S, {0}, 1},   {GGML_TYPE_IQ1_M, {0}, 0},   {GGML_TYPE_IQ2_XXS, {0}, 1},
    {GGML_TYPE_IQ2_XS, {0}, 1},  {GGML_TYPE_IQ2_S, {0}, 1},   {GGML_TYPE_IQ3_XXS, {0}, 1},
    {GGML_TYPE_IQ3_S, {0}, 1},   {GGML_TYPE_TQ1_0, {52}, 1},  {GGML_TYPE_TQ2_0, {64}, 1},
    {GGML_TYPE_Q1_0, {0}, 1},    {GGML_TYPE_Q2_0, {0}, 1},    {GGML_TYPE_MXFP4, {0}, 0},
    {GGML_TYPE_NVFP4, {0}, 0},
};
_Static_assert(sizeof type_cases == TYPE_CASES * sizeof type_cases[0], "every case has its row");

static uint16_t random_half(scales_kind kind, uint32_t row) {
  const uint32_t sign = random_u32() & 0x8000u;
  switch (kind) {
    case SCALES_TINY:
      return (uint16_t)(sign | random_u32_below(0x400));
    case SCALES_EXTREME:
      return (uint16_t)(sign | random_u32_below(0x7c00));
    case SCALES_ZERO:
      if (row % 2 == 0) return 0;
      break;
    case SCALES_WILD:
      if (random_u32_below(40) == 0)
        return (uint16_t)(sign | 0x7c00u | random_u32_below(2) * 0x155u);
      break;
    default:
      break;
  }
  return (uint16_t)(sign | (0x2000u + random_u32_below(0x800)));
}

// IQ1_M has its 16-bit float in the highest 4 bits of four words.
static void iq1_m_scale(uint16_t half, uint8_t *words) {
  for (uint32_t i = 0; i < 4; i++) {
    words[2 * i + 1] = (uint8_t)((words[2 * i + 1] & 15) | (half >> (4 * i) & 15) << 4);
  }
}

// Returns the exponent of MXFP4's scale, bias 128, which is never large enough for a weight to
// overflow.
static uint8_t mxfp4_exponent(scales_kind kind, uint32_t row) {
  switch (kind) {
    case SCALES_TINY:
      return (uint8_t)random_u32_below(30);
    case SCALES_EXTREME:
      return (uint8_t)random_u32_below(245);
    case SCALES_ZERO:
      return row % 2 == 0 ? 0 : 120;
    default:
      return (uint8_t)(110 + random_u32_below(20));
  }
}

static void random_block(const type_case *type, scales_kind kind, uint32_t row, bool minus_128,
                         uint8_t *block) {
  const uint32_t bytes = type_facts(type->type)->block_bytes;
  for (uint32_t i = 0; i < bytes; i++) block[i] = (uint8_t)random_u32();
  if (type->type == GGML_TYPE_F32) {
    const float value = kind == SCALES_ZERO && row % 2 == 0 ? 0 : random_normal();
    memcpy(block, &value, sizeof value);
  }
  if (type->type == GGML_TYPE_BF16) {
    const uint16_t half = (uint16_t)(bits_of_f32(random_normal()) >> 16);
    memcpy(block, &half, sizeof half);
  }
  if (type->type == GGML_TYPE_IQ1_M) iq1_m_scale(random_half(kind, row), block + 48);
  if (type->type == GGML_TYPE_MXFP4) block[0] = mxfp4_exponent(kind, row);
  for (uint32_t i = 0; i < type->scale_count; i++) {
    const uint16_t half = random_half(kind, row);
    memcpy(block + type->scale_offsets[i], &half, sizeof half);
  }
  for (uint32_t i = 2; type->type == GGML_TYPE_Q8_0 && !minus_128 && i < bytes; i++) {
    if (block[i] == 0x80) block[i] = 0x81;
  }
}

// ---- matrices and variants ----

const kernel_table *scalar(void) { return kernels_by_name("scalar"); }

test_matrix matrix_make(const type_case *type, uint32_t rows, uint32_t cols, scales_kind kind,
                        bool minus_128) {
  const kernel_type_ops *ops = &scalar()->types[type->type];
  const ggml_type_facts *facts = type_facts(type->type);
  test_matrix made = {.matrix = {.rows = rows, .cols = cols, .type = type->type}};
  CHECK(ops->matrix_bytes(rows, cols, &made.bytes));
  made.data = aligned_alloc(64, align_size((size_t)made.bytes, 64));
  memset(made.data, 0, align_size((size_t)made.bytes, 64));
  const uint32_t blocks = cols / facts->block_values;
  uint8_t *file = malloc((size_t)blocks * facts->block_bytes);
  const uint32_t start = random_u32_below(rows);
  for (uint32_t i = 0; i < rows; i++) {
    const uint32_t row = (start + rows - i) % rows;
    for (uint32_t b = 0; b < blocks; b++) {
      random_block(type, kind, row, minus_128, file + (size_t)b * facts->block_bytes);
    }
    const uint32_t cut = random_u32_below(blocks + 1);
    made.matrix.flags |= ops->repack(made.data, cols, row, cut, blocks - cut,
                                     file + (size_t)cut * facts->block_bytes);
    made.matrix.flags |= ops->repack(made.data, cols, row, 0, cut, file);
  }
  free(file);
  made.matrix.data = made.data;
  return made;
}

size_t variants(const kernel_table *list[VARIANTS_MAX]) {
  static const char *const names[] = {
      "scalar",        "simd128",       "sse2",         "neon",      "avx2",      "avxvnni",
      "relaxed-pairs", "relaxed-quads", "simd128-long", "sse2-long", "neon-long", "relaxed-signed"};
  size_t count = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const kernel_table *kernels = kernels_by_name(names[i]);
    // only correct if the host's dot instruction takes signed codes, and only chosen then
    const bool is_elsewhere = strcmp(names[i], "relaxed-signed") == 0 && kernels != kernels_bind();
    if (kernels != NULL && !is_elsewhere) list[count++] = kernels;
  }
  return count;
}

bool is_exact(const kernel_table *kernels) { return strncmp(kernels->name, "relaxed", 7) != 0; }

// ---- measuring ----

enum { BENCH_ROUNDS = 9, BENCH_LEAST_US = 20000 };

double bench_seconds(bench_function *run, void *context) {
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

// Pages of keys with an offset and a scale for each channel: each decoded key is within half a step
// of the original, and a step is as small as the channel's range allows.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernel_cases.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

enum { DIM_MAX = 160, TOKENS = KERNEL_PAGE_TOKENS };

typedef struct page_case {
  const kernel_kv_ops *ops, *halves;
  uint32_t dims, first, last;
  float levels;  // number of steps from the offset to the largest key
  float keys[TOKENS][DIM_MAX];
  _Alignas(64) uint8_t page[DIM_MAX * 64], open[DIM_MAX * 64];
} page_case;

static page_case page;

static void make_page(kernel_kv_type type, uint32_t dims, uint32_t first, uint32_t last) {
  const kernel_table *kernels = kernels_by_name("scalar");
  page.ops = &kernels->kv[type];
  page.halves = &kernels->kv[KERNEL_KV_F16];
  page.dims = dims;
  page.first = first;
  page.last = last;
  page.levels = type == KERNEL_KV_C8 ? 127 : 15;
}

// Encodes the page; unused slots contain large keys.
static void encode(void) {
  memset(page.page, 0xff, sizeof page.page);
  for (uint32_t t = 0; t < TOKENS; t++) {
    float row[DIM_MAX];
    const bool counts = t >= page.first && t < page.last;
    for (uint32_t d = 0; d < page.dims; d++) row[d] = counts ? page.keys[t][d] : 6e4f;
    CHECK_EQ_UINT(page.halves->k_write(page.open, t, row, page.dims), 0);
    page.halves->k_read(page.open, t, page.keys[t], page.dims);  // rounded to halves
  }
  page.ops->k_encode(page.page, page.open, page.first, page.last, page.dims);
}

// Returns half of the range of a channel's keys; for C4, the full range.
static float span_of(uint32_t d) {
  float least = INFINITY, most = -INFINITY;
  for (uint32_t t = page.first; t < page.last; t++) {
    least = fminf(least, page.keys[t][d]);
    most = fmaxf(most, page.keys[t][d]);
  }
  return page.levels == 127 ? (most - least) / 2 : most - least;
}

// widest: the largest range. offset_unit: offsets are multiples of it.
static void check_page(float widest, float offset_unit) {
  // scales have 7 bits relative to the largest one, and their unit has 8 bits
  const float scale_unit = (widest + 2 * offset_unit) / page.levels / (float)KV_SCALE_MOST * 1.01f;
  for (uint32_t t = page.first; t < page.last; t++) {
    float row[DIM_MAX];
    page.ops->k_read(page.page, t, row, page.dims);
    for (uint32_t d = 0; d < page.dims; d++) {
      const float step = (span_of(d) + 2 * offset_unit) / page.levels + scale_unit;
      CHECK_NEAR((double)row[d], (double)page.keys[t][d], 0.501 * (double)step);
    }
  }
}

static void check_random(kernel_kv_type type, uint32_t dims, uint32_t first, uint32_t last,
                         float outlier) {
  make_page(type, dims, first, last);
  for (uint32_t t = 0; t < TOKENS; t++) {
    random_floats(page.keys[t], dims, 1.0f);
    page.keys[t][1] = outlier + page.keys[t][1] / 8;
    page.keys[t][2] = -3;  // constant
  }
  encode();
  float widest = 0, most = 0;
  for (uint32_t d = 0; d < dims; d++) {
    widest = fmaxf(widest, span_of(d));
    for (uint32_t t = first; t < last; t++) most = fmaxf(most, fabsf(page.keys[t][d]));
  }
  check_page(widest, most / 32766 * 1.01f);
}

TEST(keys_are_decoded_within_half_a_step_of_their_channel) {
  static const float OUTLIERS[] = {0, 40, -300};
  for (uint32_t i = 0; i < 48; i++) {
    const kernel_kv_type type = i % 2 ? KERNEL_KV_C8 : KERNEL_KV_C4;
    const uint32_t dims = 4 * (1 + i * 7 % 40), first = i % 3 ? 0 : i % 7;
    check_random(type, dims, first, i % 5 ? TOKENS : 9 + i % 7, OUTLIERS[i % 3]);
  }
}

TEST(pages_of_zeros_and_of_one_value_are_exact) {
  static const float VALUES[] = {0, 1, -2};
  for (uint32_t i = 0; i < 6; i++) {
    const float value = VALUES[i / 2];
    make_page(i % 2 ? KERNEL_KV_C8 : KERNEL_KV_C4, 36, 0, TOKENS);
    for (uint32_t j = 0; j < TOKENS * 36; j++) page.keys[j / 36][j % 36] = value;
    encode();
    check_page(0, fabsf(value) / 32766 * 1.01f);
  }
}

// Saved states contain whole pages, so the padding must not keep earlier contents.
TEST(a_page_depends_only_on_its_keys) {
  static uint8_t first[sizeof page.page];
  for (uint32_t i = 0; i < 2; i++) {
    const kernel_kv_type type = i ? KERNEL_KV_C8 : KERNEL_KV_C4;
    check_random(type, 36, 0, 11, 0);
    memcpy(first, page.page, sizeof first);
    memset(page.page, 0, sizeof page.page);
    page.ops->k_encode(page.page, page.open, 0, 11, 36);
    CHECK_EQ_MEM(page.page, first, page.ops->k_bytes(36));
  }
}

// The unit of these scales is rounded down, so the scale would be slightly more than 127. Products
// with query factors fit 16 bits only up to KV_SCALE_MOST.
TEST(scales_are_limited_to_what_fits) {
  make_page(KERNEL_KV_C4, 4, 0, TOKENS);
  memset(page.keys, 0, sizeof page.keys);
  for (uint32_t t = 0; t < TOKENS; t++) page.keys[t][0] = t == 0 ? 0x1.1acp+13f : -0x1.804p-1f;
  encode();
  const kv_c4_block *block = (const kv_c4_block *)(const void *)page.page;
  CHECK_EQ_UINT(block->scales[0], KV_SCALE_MOST);
}

// All offsets are 0, but their lowest bits still store the unit of the scales.
TEST(keys_around_zero_and_above_zero_keep_their_scales) {
  for (uint32_t i = 0; i < 2; i++) {
    make_page(i ? KERNEL_KV_C8 : KERNEL_KV_C4, 36, 0, TOKENS);
    for (uint32_t j = 0; j < TOKENS * 36; j++) {
      const float key = (float)(j / 36) / (TOKENS - 1);
      page.keys[j / 36][j % 36] = i ? 2 * key - 1 : key;
    }
    encode();
    check_page(1, 0);
  }
}

TEST(a_rotation_keeps_lengths_and_is_its_own_inverse) {
  for (uint32_t dims = 4; dims <= DIM_MAX; dims += 4) {
    float row[DIM_MAX], rotated[DIM_MAX];
    double before = 0, after = 0;
    random_floats(row, dims, 1.0f);
    memcpy(rotated, row, sizeof row);
    kv_rotate(rotated, dims);
    for (uint32_t d = 0; d < dims; d++) before += (double)row[d] * (double)row[d];
    for (uint32_t d = 0; d < dims; d++) after += (double)rotated[d] * (double)rotated[d];
    CHECK_NEAR(after, before, 1e-5 * before);
    CHECK(fabsf(rotated[0] - row[0]) > 1e-6f);
    kv_rotate(rotated, dims);
    for (uint32_t d = 0; d < dims; d++) CHECK_NEAR((double)rotated[d], (double)row[d], 1e-5);
  }
}

enum { VALUE_DIMS_MAX = 1100 };

// Rows longer than a rotation are rotated in pieces, both when written and when read.
TEST(rotated_values_are_read_back) {
  static const uint32_t DIMS[] = {4, 32, 36, 64, 80, 160, 512, 576, VALUE_DIMS_MAX};
  static _Alignas(64) uint8_t values[TOKENS * VALUE_DIMS_MAX];
  static float row[VALUE_DIMS_MAX], back[VALUE_DIMS_MAX];
  const kernel_kv_ops *ops = &kernels_by_name("scalar")->kv[KERNEL_KV_R4];
  for (uint32_t i = 0; i < sizeof DIMS / sizeof *DIMS; i++) {
    const uint32_t dims = DIMS[i];
    REQUIRE(ops->v_bytes(dims) <= sizeof values);
    double length = 0, error = 0;
    random_floats(row, dims, 1.0f);
    CHECK_EQ_UINT(ops->v_write(values, 3, row, dims), 0);
    ops->v_read(values, 3, back, dims);
    for (uint32_t d = 0; d < dims; d++) {
      length += (double)row[d] * (double)row[d];
      error += (double)(row[d] - back[d]) * (double)(row[d] - back[d]);
    }
    CHECK(error < 0.03 * length);
    row[1] = NAN;
    row[dims - 1] = -INFINITY;
    CHECK_EQ_UINT(ops->v_write(values, 3, row, dims), 2);
    ops->v_read(values, 3, back, dims);
    for (uint32_t d = 0; d < dims; d++) CHECK(isfinite(back[d]));
  }
}

// ---- Keys of extreme sizes ----

enum { EXTREMES = 10 };

// Returns a key of a channel of this kind: zeros of both signs, the largest and the smallest
// halves, alone or next to ordinary keys, in one slot or in all.
static float extreme_key(uint32_t kind, uint32_t slot) {
  const float usual = random_normal();
  const bool is_odd = random_u32_below(2);
  switch (kind) {
    case 0:
      return is_odd ? -0.0f : 0.0f;
    case 1:
      return 65504;
    case 2:
      return is_odd ? -65504 : 65504;
    case 3:
      return slot == 5 ? -65504 : usual;
    case 4:
      return 0x1p-24f;
    case 5:
      return is_odd ? -0x1p-24f : 0x3p-24f;
    case 6:
      return slot == 5 ? 65504 : -65504;
    case 7:
      return -65504 + (float)slot * 32;
    case 8:
      return usual * 0x1p-14f;
    default:
      return usual;
  }
}

static void check_extremes(kernel_kv_type type, uint32_t dims, uint32_t first, uint32_t kinds) {
  make_page(type, dims, first, TOKENS);
  for (uint32_t i = 0; i < TOKENS * dims; i++) {
    const uint32_t d = i % dims, kind = (kinds >> d % 3 * 4 & 15) % EXTREMES;
    page.keys[i / dims][d] = extreme_key(kind, i / dims);
  }
  encode();
  float widest = 0, most = 0;
  for (uint32_t d = 0; d < dims; d++) {
    widest = fmaxf(widest, span_of(d));
    for (uint32_t t = first; t < TOKENS; t++) most = fmaxf(most, fabsf(page.keys[t][d]));
  }
  check_page(widest, most / 32766 * 1.01f);
}

TEST(keys_of_any_size_are_decoded_within_half_a_step) {
  for (uint32_t kinds = 0; kinds < 16 * 16 * 16; kinds += 1 + random_u32_below(7)) {
    const kernel_kv_type type = kinds % 2 ? KERNEL_KV_C8 : KERNEL_KV_C4;
    check_extremes(type, 4 * (1 + kinds % 40), kinds % 5 == 0 ? 9 : 0, kinds);
  }
}

// Checks the scores of one page: each kernel must be bit-identical to the scalar one, for any
// queries.
static void check_scores(kernel_kv_type type, uint32_t dims, float size) {
  enum { HEADS = 3 };
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static _Alignas(64) float q[HEADS * DIM_MAX], wanted[HEADS * DIM_MAX], values[TOKENS * DIM_MAX];
  static _Alignas(64) uint8_t factors[HEADS * (64 + 4 * DIM_MAX + 64)];
  random_floats(q, (size_t)HEADS * dims, size);
  q[1] = -0.0f;
  random_floats(values, (size_t)TOKENS * dims, 1.0f);
  const kernel_page pages[] = {{.k = page.page, .v = (const uint8_t *)values, .last = TOKENS}};
  REQUIRE(HEADS * kv_factor_bytes(dims) <= sizeof factors);
  for (size_t i = 0; i < count; i++) {
    static _Alignas(64) float acc[HEADS * DIM_MAX];
    float max[HEADS], sum[HEADS];
    const kernel_attention state = {.group = HEADS,
                                    .head_dim = dims,
                                    .q = q,
                                    .acc = acc,
                                    .max = max,
                                    .sum = sum,
                                    .factors = factors};
    list[i]->kv[type].factors_make(q, HEADS, dims, factors);
    list[i]->attention_begin(&state);
    list[i]->attention_step[type][KERNEL_KV_F32](&state, pages, 1);
    if (i == 0) memcpy(wanted, acc, sizeof wanted);
    if (is_exact(list[i])) CHECK_EQ_MEM(acc, wanted, (size_t)HEADS * dims * sizeof *acc);
    for (uint32_t h = 0; h < HEADS; h++) CHECK(sum[h] >= 1 && sum[h] <= 16);
  }
}

TEST(scores_of_extreme_keys_and_queries_match_the_scalar_kernel) {
  static const float SIZES[] = {0, 1e-38f, 1e-20f, 1, 1e4f, 1e20f};
  for (uint32_t i = 0; i < 120; i++) {
    const kernel_kv_type type = i % 2 ? KERNEL_KV_C8 : KERNEL_KV_C4;
    const uint32_t dims = 4 * (1 + i * 7 % 40);
    check_extremes(type, dims, 0, i * 2654435761u >> 12);
    check_scores(type, dims, SIZES[i % 6]);
  }
}

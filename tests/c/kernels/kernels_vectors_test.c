// The kernels other than matrix products, in every variant, compared with sums in double precision:
// attention over KV pages, exp, norms, rotations, activation functions.
//
// With WICK_BENCH=1 in the environment, bench_attention_of_a_long_context measures attention.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/math.h"
#include "check.h"
#include "kernel_cases.h"
#include "kernels/exp.h"
#include "kernels/kv_pages.h"

// ---- attention ----

typedef struct attention_case {
  uint32_t group, head_dim, tokens, first, step_pages;
  kernel_kv_type k_type, v_type;
  float cap;
  bool has_biases;
  kernel_bias biases[16];
  const uint8_t *open;  // F16 keys of the last page, or NULL
} attention_case;

enum { FIRST_POSITION = 1000 };  // position of the first token

// Computes softmax attention in double precision over the contents of the pages. q and out:
// [group][head_dim].
static void attention_reference(const attention_case *c, const float *q, const float *k,
                                const float *v, double *out) {
  for (uint32_t h = 0; h < c->group; h++) {
    double scores[64], most = -INFINITY, sum = 0;
    for (uint32_t t = c->first; t < c->tokens; t++) {
      scores[t] = 0;
      for (uint32_t d = 0; d < c->head_dim; d++) {
        scores[t] += (double)q[h * c->head_dim + d] * (double)k[t * c->head_dim + d];
      }
      if (c->cap != 0) scores[t] = (double)c->cap * tanh(scores[t] / (double)c->cap);
      if (c->has_biases) {
        scores[t] += (double)c->biases[h].slope *
                     ((double)(FIRST_POSITION + t) - (double)c->biases[h].position);
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

static void attention_run(const kernel_table *kernels, const attention_case *c, const float *q,
                          uint8_t *const *k_pages, uint8_t *const *v_pages, float *out) {
  const size_t n = (size_t)c->group * c->head_dim;
  float *acc = malloc(n * sizeof(float)), *made = malloc(n * sizeof(float));
  float max[16], sum[16];
  memcpy(made, q, n * sizeof(float));
  if (kernels->kv[c->k_type].queries_make != NULL) {
    kernels->kv[c->k_type].queries_make(made, c->group, c->head_dim);
  }
  uint8_t *factors = NULL;
  if (kernels->kv[c->k_type].factors_make != NULL) {
    factors = aligned_alloc(64, align_size(c->group * kv_factor_bytes(c->head_dim), 64));
    kernels->kv[c->k_type].factors_make(made, c->group, c->head_dim, factors);
  }
  const kernel_attention state = {.group = c->group,
                                  .head_dim = c->head_dim,
                                  .factors = factors,
                                  .q = made,
                                  .acc = acc,
                                  .max = max,
                                  .sum = sum,
                                  .cap = c->cap,
                                  .biases = c->has_biases ? c->biases : NULL};
  const kernel_attention_step step = kernels->attention_step[c->k_type][c->v_type];
  kernel_page pages[KERNEL_STEP_PAGES];
  uint32_t count = 0;
  kernels->attention_begin(&state);
  for (uint32_t t = 0; t < c->tokens; t += KERNEL_PAGE_TOKENS) {
    const uint32_t first = c->first > t ? c->first - t : 0;
    const uint32_t last = c->tokens - t < 16 ? c->tokens - t : 16;
    if (first >= last) continue;
    pages[count++] =
        (kernel_page){k_pages[t / 16], v_pages[t / 16], first, last, FIRST_POSITION + t, false};
    if (c->open != NULL && t + KERNEL_PAGE_TOKENS > c->tokens) {
      pages[count - 1].k = c->open;
      pages[count - 1].is_open = true;
    }
    if (count < c->step_pages && t + KERNEL_PAGE_TOKENS < c->tokens) continue;
    step(&state, pages, count);
    count = 0;
  }
  kernels->attention_end(&state, out);
  if (kernels->kv[c->v_type].values_end != NULL) {
    kernels->kv[c->v_type].values_end(out, c->group, c->head_dim);
  }
  free(factors);
  free(made);
  free(acc);
}

// Rounds queries as C8 and C4 do before they are multiplied by the channel scales.
static void round_queries(float *q, uint32_t heads, uint32_t head_dim) {
  for (float *end = q + (size_t)heads * head_dim; q < end; q += head_dim) {
    float most = 0;
    for (uint32_t d = 0; d < head_dim; d++) most = fmaxf(most, fabsf(q[d]));
    const float unit = most / (float)KV_COARSE_MOST;
    for (uint32_t d = 0; d < head_dim; d++) q[d] = roundf(q[d] / unit) * unit;
  }
}

static void check_attention(attention_case *c) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list), n = (size_t)c->group * c->head_dim;
  const kernel_kv_ops *k_ops = &scalar()->kv[c->k_type], *v_ops = &scalar()->kv[c->v_type];
  const size_t k_bytes = k_ops->k_bytes(c->head_dim), v_bytes = v_ops->v_bytes(c->head_dim);
  const bool is_coded = k_ops->k_encode != NULL;
  const kernel_kv_ops *rows = is_coded ? &scalar()->kv[KERNEL_KV_F16] : k_ops;
  uint8_t *k_pages[4], *v_pages[4], *open[4];
  float *q = malloc(n * sizeof(float)), *first_out = malloc(n * sizeof(float));
  float *k = malloc(64 * c->head_dim * sizeof(float)),
        *v = malloc(64 * c->head_dim * sizeof(float));
  random_floats(q, n, 1.0f / sqrtf((float)c->head_dim));
  if (is_coded) round_queries(q, c->group, c->head_dim);
  for (uint32_t p = 0; p < 4; p++) {
    k_pages[p] = aligned_alloc(64, align_size(k_bytes, 64));
    v_pages[p] = aligned_alloc(64, align_size(v_bytes, 64));
    open[p] = aligned_alloc(64, align_size(rows->k_bytes(c->head_dim), 64));
    memset(open[p], 0xff, rows->k_bytes(c->head_dim));
    memset(k_pages[p], 0xff, k_bytes);  // unwritten values are NaN
    memset(v_pages[p], 0xff, v_bytes);
  }
  for (uint32_t t = c->first; t < c->tokens; t++) {
    float *k_row = k + t * c->head_dim, *v_row = v + t * c->head_dim;
    random_floats(k_row, c->head_dim, 1.0f);
    random_floats(v_row, c->head_dim, 1.0f);
    uint8_t *k_page = is_coded ? open[t / 16] : k_pages[t / 16];
    CHECK_EQ_UINT(rows->k_write(k_page, t % 16, k_row, c->head_dim), 0);
    CHECK_EQ_UINT(v_ops->v_write(v_pages[t / 16], t % 16, v_row, c->head_dim), 0);
    rows->k_read(k_page, t % 16, k_row, c->head_dim);
    v_ops->v_read(v_pages[t / 16], t % 16, v_row, c->head_dim);
  }
  for (uint32_t t = c->first; t < c->tokens && is_coded; t++) {
    const uint32_t begin = t / 16 * 16, last = c->tokens - begin < 16 ? c->tokens - begin : 16;
    if (last < 16) break;  // the last page stays open
    if (t == begin || t == c->first) {
      k_ops->k_encode(k_pages[t / 16], open[t / 16], t - begin, 16, c->head_dim);
    }
    k_ops->k_read(k_pages[t / 16], t % 16, k + t * c->head_dim, c->head_dim);
  }
  c->open = is_coded && c->tokens % 16 != 0 ? open[c->tokens / 16] : NULL;
  double *wanted = malloc(n * sizeof(double));
  float *out = malloc(n * sizeof(float));
  // the factors of codes are rounded to 16 bits
  const bool has_codes = c->k_type >= KERNEL_KV_Q8 || c->v_type >= KERNEL_KV_Q8;
  attention_reference(c, q, k, v, wanted);
  for (size_t i = 0; i < count; i++) {
    attention_run(list[i], c, q, k_pages, v_pages, out);
    if (i == 0) memcpy(first_out, out, n * sizeof(float));
    for (size_t d = 0; d < n; d++) {
      CHECK_NEAR((double)out[d], wanted[d], has_codes ? 2e-4 : 3e-6);
      if (is_exact(list[i])) CHECK_EQ_F32(out[d], first_out[d]);
    }
  }
  for (uint32_t p = 0; p < 4; p++) free(k_pages[p]);
  for (uint32_t p = 0; p < 4; p++) free(v_pages[p]);
  for (uint32_t p = 0; p < 4; p++) free(open[p]);
  free(q);
  free(first_out);
  free(k);
  free(v);
  free(wanted);
  free(out);
}

TEST(attention_over_pages_matches_the_reference) {
  for (uint32_t round = 0; round < 392; round++) {
    attention_case c = {.group = 1 + random_u32_below(9),
                        .head_dim = 4 * (1 + random_u32_below(40))};
    c.tokens = 1 + random_u32_below(64);
    c.first = round % 2 ? random_u32_below(c.tokens) : 0;
    c.step_pages = 1 + round / 98 % KERNEL_STEP_PAGES;
    c.k_type = (kernel_kv_type)(round / 2 % KERNEL_KV_TYPE_COUNT);
    c.v_type = (kernel_kv_type)(round / 14 % KERNEL_KV_TYPE_COUNT);
    if (scalar()->attention_step[c.k_type][c.v_type] == NULL) continue;
    if (round % 3 == 1) c.cap = 0.5f + (float)random_u32_below(8);
    c.has_biases = round % 5 < 2;
    for (uint32_t h = 0; h < c.group; h++) {
      c.biases[h] = (kernel_bias){1.0f / (float)(1 + random_u32_below(64)),
                                  FIRST_POSITION + random_u32_below(c.tokens)};
    }
    check_attention(&c);
  }
}

TEST(attention_gives_nan_for_nan) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const attention_case c = {.group = 1, .head_dim = 8, .tokens = 16, .step_pages = 1};
  float q[8] = {1, 2, 3, f32_of_bits(0x7fc12345u)}, out[8];
  _Alignas(64) float k[128] = {0}, v[128] = {1};
  uint8_t *k_page = (uint8_t *)k, *v_page = (uint8_t *)v;
  for (size_t i = 0; i < count; i++) {
    attention_run(list[i], &c, q, &k_page, &v_page, out);
    CHECK(isnan(out[0]));
  }
}

TEST(pages_count_values_that_do_not_fit) {
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

// Different threads store different tokens at the same time, so their bytes must not overlap.
static void check_rows_are_separate(size_t bytes,
                                    uint32_t (*write)(void *, uint32_t, const float *, uint32_t),
                                    uint32_t head_dim) {
  uint8_t *page = malloc(bytes), *owner = calloc(bytes, 1);
  float row[96];
  random_floats(row, head_dim, 1.0f);
  for (uint32_t slot = 0; slot < KERNEL_PAGE_TOKENS; slot++) {
    // a written byte differs from one of the two fill values
    for (int fill = 0; fill < 256; fill += 255) {
      memset(page, fill, bytes);
      write(page, slot, row, head_dim);
      for (size_t i = 0; i < bytes; i++) {
        if (page[i] == fill) continue;
        CHECK(owner[i] == 0 || owner[i] == slot + 1);
        owner[i] = (uint8_t)(slot + 1);
      }
    }
  }
  free(page);
  free(owner);
}

TEST(no_byte_of_a_page_belongs_to_two_tokens) {
  for (uint32_t type = 0; type < KERNEL_KV_TYPE_COUNT; type++) {
    const kernel_kv_ops *ops = &scalar()->kv[type];
    for (uint32_t head_dim = 4; head_dim <= 96; head_dim += 92) {
      if (ops->k_write != NULL)
        check_rows_are_separate(ops->k_bytes(head_dim), ops->k_write, head_dim);
      if (ops->v_write != NULL)
        check_rows_are_separate(ops->v_bytes(head_dim), ops->v_write, head_dim);
    }
  }
}

// ---- other operations ----

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
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_u32_below(300);
    float x[300], weight[300], out[VARIANTS_MAX][300];
    random_floats(x, n, round % 3 ? 1.0f : 1e-3f);
    random_floats(weight, n, 1.0f);
    double square = 0;
    for (uint32_t i = 0; i < n; i++) square += (double)x[i] * (double)x[i];
    const double factor = 1 / sqrt(square / n + 1e-5);
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->rms_norm(v % 2 ? out[v] : x, round % 2 ? weight : NULL, n, 1e-5f, out[v]);
      for (uint32_t i = 0; i < n; i++) {
        const double wanted = (double)x[i] * factor * (round % 2 ? (double)weight[i] : 1);
        CHECK_NEAR((double)out[v][i], wanted, 2e-6 * fabs(wanted));
        if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
      }
    }
  }
}

TEST(layer_norms) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_u32_below(300);
    float x[300], weight[300], bias[300], out[VARIANTS_MAX][300];
    random_floats(x, n, 1.0f);
    random_floats(weight, n, 1.0f);
    random_floats(bias, n, 1.0f);
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < n; i++) mean += (double)x[i] / n;
    for (uint32_t i = 0; i < n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double factor = 1 / sqrt(square / n + 1e-3);
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->layer_norm(v % 2 ? out[v] : x, weight, round % 2 ? bias : NULL, n, 1e-3f, out[v]);
      for (uint32_t i = 0; i < n; i++) {
        const double scaled = ((double)x[i] - mean) * factor * (double)weight[i];
        const double wanted = round % 2 ? scaled + (double)bias[i] : scaled;
        CHECK_NEAR((double)out[v][i], wanted, 4e-6);
        if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
      }
    }
  }
}

TEST(rotations) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t heads = 1 + random_u32_below(4), pairs = 1 + round % 40, n_rot = 2 * pairs;
    const uint32_t head_dim = n_rot + 2 * random_u32_below(9);
    const bool interleaved = random_u32_below(2) == 0;
    float x[400], cos_sin[80], out[VARIANTS_MAX][400];
    random_floats(x, (size_t)heads * head_dim, 1.0f);
    for (uint32_t i = 0; i < n_rot; i++) cos_sin[i] = random_normal();
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->rope(out[v], heads, head_dim, n_rot, cos_sin, interleaved);
    }
    for (uint32_t i = 0; i < heads * head_dim; i++) {
      const uint32_t d = i % head_dim;
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

// A value does not depend on where the vector begins, because threads split rows anywhere.
TEST(silu_and_sums_match_their_definition) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_u32_below(100), cut = random_u32_below(n);
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

static double gelu_of(double x) {
  return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

TEST(xielu_matches_its_definition) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const kernel_xielu curve = {1.3f, 0.9f, 0.5f, -1e-6f};
  float x[99], out[VARIANTS_MAX][99];
  random_floats(x, 99, 2.0f);
  x[7] = 0;
  for (size_t v = 0; v < count; v++) {
    memcpy(out[v], x, sizeof x);
    list[v]->xielu(out[v], &curve, 99);
    for (uint32_t i = 0; i < 99; i++) {
      const double at = (double)x[i], low = expm1(fmin(at, (double)curve.most)) - at;
      const double bent = at > 0 ? (double)curve.grow * at * at : (double)curve.shrink * low;
      CHECK_NEAR((double)out[v][i], bent + (double)curve.slope * at, 1e-6 * (1 + at * at));
      if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
    }
  }
}

TEST(clamped_swiglu_matches_its_definition) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  float gate[99], up[99], out[VARIANTS_MAX][99];
  random_floats(gate, 99, 6.0f);
  random_floats(up, 99, 6.0f);
  for (size_t v = 0; v < count; v++) {
    memcpy(out[v], gate, sizeof gate);
    list[v]->swiglu_clamped(out[v], up, 99);
    for (uint32_t i = 0; i < 99; i++) {
      const double g = fmin((double)gate[i], 7), u = fmax(fmin((double)up[i], 7), -7);
      const double wanted = g / (1 + exp(-(double)SWIGLU_SLOPE * g)) * (u + 1);
      CHECK_NEAR((double)out[v][i], wanted, 2e-6 * (fabs(wanted) + 1e-6));
      if (is_exact(list[v])) CHECK_EQ_F32(out[v][i], out[0][i]);
    }
  }
}

TEST(other_activation_functions_match_their_definitions) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (uint32_t round = 0; round < 40; round++) {
    const uint32_t n = 1 + random_u32_below(100), cut = random_u32_below(n);
    const float cap = 1 + (float)random_u32_below(30);
    float x[100], up[100], gelu[VARIANTS_MAX][100], exact[VARIANTS_MAX][100];
    float capped[VARIANTS_MAX][100], other[100];
    random_floats(x, n, round % 4 ? 3.0f : 60.0f);
    random_floats(up, n, 1.0f);
    for (size_t v = 0; v < count; v++) {
      memcpy(gelu[v], x, sizeof x);
      memcpy(exact[v], x, sizeof x);
      memcpy(capped[v], x, sizeof x);
      list[v]->gelu_mul(gelu[v], round % 2 ? up : NULL, cut);
      list[v]->gelu_mul(gelu[v] + cut, round % 2 ? up + cut : NULL, n - cut);
      list[v]->gelu_erf_mul(exact[v], round % 2 ? up : NULL, cut);
      list[v]->gelu_erf_mul(exact[v] + cut, round % 2 ? up + cut : NULL, n - cut);
      list[v]->soft_cap(capped[v], cap, n);
      for (uint32_t i = 0; i < n; i++) {
        const double factor = round % 2 ? (double)up[i] : 1, g = (double)x[i];
        const double wanted = gelu_of(g) * factor, by_erf = g / 2 * (1 + erf(g / sqrt(2))) * factor;
        CHECK_NEAR((double)gelu[v][i], wanted, 1e-6 * (fabs(wanted) + fabs((double)x[i])));
        CHECK_NEAR((double)exact[v][i], by_erf, 3e-7 * (1 + fabs(g)));
        CHECK_NEAR((double)capped[v][i], (double)cap * tanh(g / (double)cap), 5e-7 * (double)cap);
        if (!is_exact(list[v])) continue;
        CHECK_EQ_F32(gelu[v][i], gelu[0][i]);
        CHECK_EQ_F32(exact[v][i], exact[0][i]);
        CHECK_EQ_F32(capped[v][i], capped[0][i]);
      }
    }
    memcpy(other, x, sizeof x);
    scalar()->relu_mul(other, up, n);
    for (uint32_t i = 0; i < n; i++) CHECK_EQ_F32(other[i], (x[i] < 0 ? 0 : x[i]) * up[i]);
    memcpy(other, x, sizeof x);
    scalar()->relu_square(other, n);
    for (uint32_t i = 0; i < n; i++) CHECK_EQ_F32(other[i], x[i] < 0 ? 0 : x[i] * x[i]);
    memcpy(other, x, sizeof x);
    scalar()->clamp(other, 2, n);
    scalar()->multiply(other, up, n);
    for (uint32_t i = 0; i < n; i++) CHECK_EQ_F32(other[i], fminf(fmaxf(x[i], -2), 2) * up[i]);
  }
}

// ---- measuring ----

// The number of query heads per KV head: those of one token, or of all tokens of a tile
// (whole_attention.c).
enum { BENCH_PAGES = 256, BENCH_HEAD_DIM = 64, BENCH_GROUPS_MAX = 32 };
static const uint32_t BENCH_GROUPS[] = {3, BENCH_GROUPS_MAX};

typedef struct bench_attention {
  const kernel_table *kernels;
  kernel_kv_type kv;
  kernel_attention state;
  uint8_t *pages;
  size_t page_bytes;
} bench_attention;

static void bench_attend(void *context) {
  const bench_attention *b = context;
  float out[BENCH_GROUPS_MAX * BENCH_HEAD_DIM];
  b->kernels->attention_begin(&b->state);
  for (size_t p = 0; p < BENCH_PAGES; p += KERNEL_STEP_PAGES) {
    kernel_page pages[KERNEL_STEP_PAGES];
    for (size_t i = 0; i < KERNEL_STEP_PAGES; i++) {
      const uint8_t *k = b->pages + 2 * (p + i) * b->page_bytes;
      pages[i] = (kernel_page){k, k + b->page_bytes, 0, 16, 0, false};
    }
    b->kernels->attention_step[b->kv][b->kv](&b->state, pages, KERNEL_STEP_PAGES);
  }
  b->kernels->attention_end(&b->state, out);
}

static void bench_group(const kernel_table *kernels, kernel_kv_type kv, uint32_t group) {
  static const char *const names[] = {"F32", "F16", "Q8", "Q4"};
  static float q[BENCH_GROUPS_MAX * BENCH_HEAD_DIM], acc[BENCH_GROUPS_MAX * BENCH_HEAD_DIM];
  float max[BENCH_GROUPS_MAX], sum[BENCH_GROUPS_MAX], row[BENCH_HEAD_DIM];
  const kernel_kv_ops *ops = &kernels->kv[kv];
  bench_attention b = {kernels,
                       kv,
                       {group, BENCH_HEAD_DIM, q, acc, max, sum, 0, NULL, NULL, {{0}, 0}},
                       NULL,
                       ops->k_bytes(BENCH_HEAD_DIM)};
  random_floats(q, BENCH_GROUPS_MAX * BENCH_HEAD_DIM, 0.1f);
  b.pages = aligned_alloc(64, 2 * BENCH_PAGES * b.page_bytes);
  for (uint32_t i = 0; i < 2 * BENCH_PAGES * 16; i++) {
    random_floats(row, BENCH_HEAD_DIM, 1.0f);
    (i / 16 % 2 ? ops->v_write : ops->k_write)(b.pages + i / 16 * b.page_bytes, i % 16, row,
                                               BENCH_HEAD_DIM);
  }
  const double seconds = bench_seconds(bench_attend, &b);
  printf("#   %-14s attention of %2u heads, %s: %.2f GB/s of keys and values, %.1f GMAC/s\n",
         kernels->name, (unsigned)group, names[kv],
         2.0 * (double)BENCH_PAGES * (double)b.page_bytes / seconds * 1e-9,
         (double)(2 * BENCH_PAGES * 16 * BENCH_HEAD_DIM * group) / seconds * 1e-9);
  free(b.pages);
}

// Measures 4096 tokens of one KV head, shared by several query heads.
BENCH(attention_of_a_long_context) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  for (size_t v = 0; v < count; v++) {
    for (kernel_kv_type kv = KERNEL_KV_F32; kv <= KERNEL_KV_Q4; kv++) {
      for (uint32_t i = 0; i < 2; i++) bench_group(list[v], kv, BENCH_GROUPS[i]);
    }
  }
}

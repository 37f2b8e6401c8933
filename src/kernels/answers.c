// kernels/answers.c — known-answer tests; see answers.h. The expected values are computed here, one
// by one. Comparing with the scalar kernels instead would make the modules 10 KB larger.
#include "kernels/answers.h"

#include <string.h>

#include "base/math.h"
#include "kernels/act.h"
#include "kernels/exp.h"
#include "kernels/families.h"
#include "kernels/kv_pages.h"

// Rows: four ranges of groups and one group with missing rows. 33 tokens are multiplied four at a
// time.
enum { ROWS = 37, ROWS_PADDED = 40, TOKENS = 5, BATCH = 33, COLS_FEW = 64, COLS_MAX = 256 };
enum { WEIGHT_BYTES_MAX = ROWS_PADDED * 256, ACT_BYTES_MAX = COLS_MAX * 4 };

#define TOLERANCE 1e-4f
// The tolerance for codes; it is larger because queries and probabilities are rounded to 16 bits.
#define TOLERANCE_CODES 1e-3f

// The initial state of each case's pseudo-random numbers.
enum { STATE_FIRST = 1 };

static uint32_t draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void draw_floats(uint32_t *state, uint32_t n, float *out) {
  for (uint32_t i = 0; i < n; i++) out[i] = (float)(draw(state) % 2001) * 1e-3f - 1.0f;
}

// Returns whether values are close, relative to the largest expected value. A NaN is not close.
static bool is_near(const float *found, const float *wanted, uint32_t n, float tolerance) {
  float most = 0;
  bool near = true;
  for (uint32_t i = 0; i < n; i++) {
    const float size = wanted[i] < 0 ? -wanted[i] : wanted[i];
    if (size > most) most = size;
  }
  for (uint32_t i = 0; i < n; i++) {
    const float off = found[i] - wanted[i];
    near = near && off <= tolerance * most && -off <= tolerance * most;
  }
  return near;
}

static wick_status fail(const kernel_table *kernels, wick_error *error, const char *what,
                        const char *of) {
  return fail_with(
      error, WICK_E_UNSUPPORTED, WICK_NO_OFFSET,
      "this machine or runtime computes incorrectly: the kernels '%s' return wrong results "
      "for %s%s%s",
      kernels->name, what, of,
      kernels->dots_are_right == NULL ? "" : "; the module with plain SIMD may be right");
}

wick_status kernels_fail_dots(const kernel_table *kernels, wick_error *error) {
  return fail(kernels, error, "the relaxed dot", "");
}

// ---- products ----

// The offset of 16-bit floats in the blocks of a type: 0, except for these types.
static const struct {
  uint8_t type, offset, count;
} halves_at[] = {
    {GGML_TYPE_F32, 0, 0},    {GGML_TYPE_Q4_1, 0, 2},   {GGML_TYPE_Q5_1, 0, 2},
    {GGML_TYPE_Q4_K, 0, 2},   {GGML_TYPE_Q5_K, 0, 2},   {GGML_TYPE_Q2_K, 80, 2},
    {GGML_TYPE_Q3_K, 108, 1}, {GGML_TYPE_Q6_K, 208, 1}, {GGML_TYPE_TQ1_0, 52, 1},
    {GGML_TYPE_TQ2_0, 64, 1}, {GGML_TYPE_IQ1_M, 0, 0},  {GGML_TYPE_MXFP4, 0, 0},
    {GGML_TYPE_NVFP4, 0, 0},
};

// Draws random codes with scales of the same size. Excludes cases that the relaxed kernels pass to
// other kernels: Inf and NaN, and the code -128 of Q8_0.
static void draw_block(uint32_t type, uint32_t bytes, uint32_t *state, uint8_t *block) {
  uint32_t offset = 0, count = 1;
  for (uint32_t i = 0; i < bytes; i++) {
    block[i] = (uint8_t)draw(state);
    if (type == GGML_TYPE_Q8_0 && block[i] == 0x80) block[i] = 1;
  }
  for (uint32_t i = 0; i < sizeof halves_at / sizeof halves_at[0]; i++) {
    if (halves_at[i].type != type) continue;
    offset = halves_at[i].offset;
    count = halves_at[i].count;
  }
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t half = 0x2c00u + (draw(state) & 0x83ffu);
    block[offset + 2 * i] = (uint8_t)half;
    block[offset + 2 * i + 1] = (uint8_t)(half >> 8);
  }
  if (type == GGML_TYPE_F32) {
    float value;
    draw_floats(state, 1, &value);
    memcpy(block, &value, sizeof value);
  }
  if (type == GGML_TYPE_MXFP4) block[0] = 120;
  // the half 0x2c00, four bits in the top of each of four words
  for (uint32_t i = 0; type == GGML_TYPE_IQ1_M && i < 4; i++) {
    block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (0x2c00u >> (4 * i) & 15) << 4);
  }
}

typedef struct product_case {
  _Alignas(64) uint8_t weights[WEIGHT_BYTES_MAX];
  _Alignas(64) uint8_t act[BATCH * ACT_BYTES_MAX];
  float x[TOKENS][COLS_MAX], rounded[TOKENS][COLS_MAX];
  float wanted[TOKENS * ROWS], found[BATCH * ROWS];
  kernel_matrix matrix;
} product_case;

// Makes the case of a type. Returns false if the matrix does not fit, which does not happen for any
// type.
static bool product_make(product_case *p, uint32_t type, const kernel_table *kernels) {
  const kernel_type_ops *ops = &kernels->types[type];
  const ggml_type_facts *facts = type_facts(type);
  const uint32_t cols = facts->block_values > 32 ? COLS_MAX : COLS_FEW;
  uint32_t state = STATE_FIRST;
  uint64_t bytes;
  if (kernels->act_bytes(ops->act_form, cols) > ACT_BYTES_MAX) return false;
  if (!ops->matrix_bytes(ROWS, cols, &bytes) || bytes > sizeof p->weights) return false;
  memset(p->weights, 0, (size_t)bytes);
  p->matrix = (kernel_matrix){.data = p->weights, .rows = ROWS, .cols = cols, .type = type};
  for (uint32_t i = 0; i < ROWS * (cols / facts->block_values); i++) {
    uint8_t block[GGML_TYPE_BLOCK_BYTES_MAX];
    const uint32_t per_row = cols / facts->block_values;
    draw_block(type, facts->block_bytes, &state, block);
    p->matrix.flags |= ops->repack(p->weights, cols, i / per_row, i % per_row, 1, block);
  }
  for (uint32_t t = 0; t < TOKENS; t++) draw_floats(&state, cols, p->x[t]);
  return true;
}

// Computes y[tokens][ROWS]; the same tokens of x are repeated.
static void product_run(product_case *p, const kernel_table *kernels, uint32_t tokens, float *y) {
  const kernel_type_ops *ops = &kernels->types[p->matrix.type];
  const size_t stride = kernels->act_bytes(ops->act_form, p->matrix.cols);
  for (uint32_t t = 0; t < tokens; t++) {
    uint8_t *row = p->act + t * stride;
    if (t < TOKENS) {
      kernels->act_make(ops->act_form, p->x[t], p->matrix.cols, row);
    } else {
      memcpy(row, row - TOKENS * stride, stride);
    }
  }
  ops->matmul(&p->matrix, 0, ROWS, p->act, stride, tokens, y, ROWS);
}

// Computes rounded[cols]: x as the kernels use it, that is, converted to codes of activations and
// back if the kernels use codes.
static void product_round(product_case *p, const kernel_type_ops *ops, const float *x,
                          float *rounded) {
  const uint32_t cols = p->matrix.cols;
  memcpy(rounded, x, cols * sizeof *x);
  if (ops->act_form != KERNEL_ACT_Q8) return;
  act_block *blocks = (act_block *)(void *)p->act;
  act_make_scalar(KERNEL_ACT_Q8, x, cols, blocks);
  for (uint32_t c = 0; c < cols; c++) {
    const act_block *block = &blocks[c / ACT_BLOCK];
    rounded[c] = (float)block->codes[c % ACT_BLOCK] * block->scale;
  }
}

// Computes wanted[TOKENS][ROWS].
static void product_want(product_case *p, const kernel_type_ops *ops) {
  const uint32_t cols = p->matrix.cols;
  float weights[COLS_MAX];
  for (uint32_t t = 0; t < TOKENS; t++) product_round(p, ops, p->x[t], p->rounded[t]);
  for (uint32_t r = 0; r < ROWS; r++) {
    ops->row_dequant(&p->matrix, r, weights);
    for (uint32_t t = 0; t < TOKENS; t++) {
      float sum = 0;
      for (uint32_t c = 0; c < cols; c++) sum += weights[c] * p->rounded[t][c];
      p->wanted[t * ROWS + r] = sum;
    }
  }
}

static __attribute__((noinline)) wick_status check_product(const kernel_table *kernels,
                                                           uint32_t type, wick_error *error) {
  static const uint8_t batches[] = {1, 2, TOKENS, BATCH};
  product_case p;
  if (!product_make(&p, type, kernels))
    return fail(kernels, error, "a case of ", type_facts(type)->name);
  product_want(&p, &kernels->types[type]);
  for (uint32_t i = 0; i < sizeof batches; i++) {
    product_run(&p, kernels, batches[i], p.found);
    for (uint32_t t = 0; t < batches[i]; t++) {
      if (!is_near(p.found + t * ROWS, p.wanted + t % TOKENS * ROWS, ROWS, TOLERANCE)) {
        return fail(kernels, error, "products of ", type_facts(type)->name);
      }
    }
  }
  return WICK_OK;
}

// ---- attention ----

enum { FACTOR_BYTES_MAX = 64 * 4 + 16 };
enum { HEAD_DIM = 64, GROUP = 3, PAGES = 2, PAGE_BYTES_MAX = KERNEL_PAGE_TOKENS * HEAD_DIM * 4 };

typedef struct attention_case {
  _Alignas(64) uint8_t factors[GROUP * FACTOR_BYTES_MAX];
  _Alignas(64) uint8_t k[PAGES][PAGE_BYTES_MAX], v[PAGES][PAGE_BYTES_MAX], open[PAGE_BYTES_MAX];
  float q[GROUP * HEAD_DIM], acc[GROUP * HEAD_DIM];
  float wanted[GROUP * HEAD_DIM], found[GROUP * HEAD_DIM];
  kernel_page pages[PAGES];
} attention_case;

// Makes the case. halves: the operations of F16, because pages are F16 until they are encoded.
static void attention_make(attention_case *a, const kernel_kv_ops *keys,
                           const kernel_kv_ops *values, const kernel_kv_ops *halves) {
  uint32_t state = STATE_FIRST;
  float row[HEAD_DIM];
  for (uint32_t i = 0; i < PAGES * KERNEL_PAGE_TOKENS; i++) {
    const uint32_t page = i / KERNEL_PAGE_TOKENS, slot = i % KERNEL_PAGE_TOKENS;
    draw_floats(&state, HEAD_DIM, row);
    if (keys->k_encode == NULL) {
      keys->k_write(a->k[page], slot, row, HEAD_DIM);
    } else {
      halves->k_write(a->open, slot, row, HEAD_DIM);
      if (slot + 1 == KERNEL_PAGE_TOKENS) {
        keys->k_encode(a->k[page], a->open, 0, KERNEL_PAGE_TOKENS, HEAD_DIM);
      }
    }
    draw_floats(&state, HEAD_DIM, row);
    values->v_write(a->v[page], slot, row, HEAD_DIM);
  }
  draw_floats(&state, GROUP * HEAD_DIM, a->q);
  // scales per channel are multiplied by queries of 9 bits; these values fit without rounding
  for (uint32_t i = 0; i < GROUP * HEAD_DIM; i++) {
    const int32_t factor =
        i % HEAD_DIM == 0 ? KV_COARSE_MOST : (int32_t)(a->q[i] * (float)KV_COARSE_MOST);
    a->q[i] = (float)factor * (1.0f / (float)KV_COARSE_MOST);
  }
  a->pages[0] = (kernel_page){a->k[0], a->v[0], 2, KERNEL_PAGE_TOKENS, 0, false};
  a->pages[1] = (kernel_page){a->k[1], a->v[1], 0, 11, KERNEL_PAGE_TOKENS, false};
  if (keys->k_encode != NULL) {
    a->pages[1].k = a->open;
    a->pages[1].is_open = true;
  }
}

static void attention_run(attention_case *a, const kernel_table *kernels, const kernel_needs *needs,
                          float *out) {
  float max[GROUP], sum[GROUP];
  const bool is_coded = kernels->kv[needs->k_type].factors_make != NULL;
  const kernel_attention attention = {.group = GROUP,
                                      .head_dim = HEAD_DIM,
                                      .q = a->q,
                                      .acc = a->acc,
                                      .max = max,
                                      .sum = sum,
                                      .factors = is_coded ? a->factors : NULL};
  kernels->attention_begin(&attention);
  kernels->attention_step[needs->k_type][needs->v_type](&attention, a->pages, PAGES);
  kernels->attention_end(&attention, out);
}

// Computes the softmax of q k over the tokens that count, times v, for one head.
static void attention_want(const attention_case *a, const kernel_kv_ops *keys,
                           const kernel_kv_ops *values, const kernel_kv_ops *halves, const float *q,
                           float *out) {
  float row[HEAD_DIM], sum = 0;
  for (uint32_t d = 0; d < HEAD_DIM; d++) out[d] = 0;
  for (const kernel_page *page = a->pages; page < a->pages + PAGES; page++) {
    for (uint32_t slot = page->first; slot < page->last; slot++) {
      float score = 0;
      (page->is_open ? halves : keys)->k_read(page->k, slot, row, HEAD_DIM);
      for (uint32_t d = 0; d < HEAD_DIM; d++) score += q[d] * row[d];
      const float p = exp_f32(score);
      sum += p;
      values->v_read(page->v, slot, row, HEAD_DIM);
      for (uint32_t d = 0; d < HEAD_DIM; d++) out[d] += p * row[d];
    }
  }
  for (uint32_t d = 0; d < HEAD_DIM; d++) out[d] /= sum;
}

static __attribute__((noinline)) wick_status check_attention(const kernel_table *kernels,
                                                             const kernel_needs *needs,
                                                             wick_error *error) {
  attention_case a;
  memset(&a, 0, sizeof a);
  const kernel_kv_ops *keys = &kernels->kv[needs->k_type], *values = &kernels->kv[needs->v_type];
  const kernel_kv_ops *halves = &kernels->kv[KERNEL_KV_F16];
  const bool has_codes = needs->k_type >= KERNEL_KV_Q8 || needs->v_type >= KERNEL_KV_Q8;
  attention_make(&a, keys, values, halves);
  for (uint32_t h = 0; h < GROUP * HEAD_DIM; h += HEAD_DIM) {
    attention_want(&a, keys, values, halves, a.q + h, a.wanted + h);
  }
  if (keys->queries_make != NULL) keys->queries_make(a.q, GROUP, HEAD_DIM);
  if (keys->factors_make != NULL) keys->factors_make(a.q, GROUP, HEAD_DIM, a.factors);
  attention_run(&a, kernels, needs, a.found);
  if (values->values_end != NULL) values->values_end(a.found, GROUP, HEAD_DIM);
  if (is_near(a.found, a.wanted, GROUP * HEAD_DIM, has_codes ? TOLERANCE_CODES : TOLERANCE)) {
    return WICK_OK;
  }
  return fail(kernels, error, "attention", "");
}

// ---- rows ----

enum { VALUES = 75, HEADS = 2, ROPE_DIM = 32, ROW_OPS = 10 };

static const char *const row_ops[ROW_OPS] = {
    "rms_norm", "rope of halves", "rope of pairs", "silu_mul",    "add",
    "scale",    "l2_norm",        "silu",          "sigmoid_mul", "softplus",
};

static const kernel_table rows_reference = {.rms_norm = rms_norm_scalar,
                                            .rope = rope_scalar,
                                            .silu_mul = silu_mul_scalar,
                                            .add = add_scalar,
                                            .scale = scale_scalar,
                                            .l2_norm = l2_norm_scalar,
                                            .silu = silu_scalar,
                                            .sigmoid_mul = sigmoid_mul_scalar,
                                            .softplus = softplus_scalar};

static void rows_run(const kernel_table *kernels, float out[ROW_OPS][VALUES]) {
  uint32_t state = STATE_FIRST;
  float other[VALUES], angles[ROPE_DIM];
  for (uint32_t i = 0; i < ROW_OPS; i++) draw_floats(&state, VALUES, out[i]);
  draw_floats(&state, VALUES, other);
  draw_floats(&state, ROPE_DIM, angles);
  kernels->rms_norm(out[0], other, VALUES, 1e-5f, out[0]);
  kernels->rope(out[1], HEADS, ROPE_DIM, ROPE_DIM, angles, false);
  kernels->rope(out[2], HEADS, ROPE_DIM, ROPE_DIM, angles, true);
  kernels->silu_mul(out[3], other, VALUES);
  kernels->add(out[4], other, VALUES);
  kernels->scale(out[5], 0.3f, VALUES);
  kernels->l2_norm(out[6], VALUES, 1e-5f, out[6]);
  kernels->silu(out[7], VALUES);
  kernels->sigmoid_mul(out[8], other, VALUES);
  kernels->softplus(out[9], VALUES);
}

static wick_status check_rows(const kernel_table *kernels, wick_error *error) {
  float wanted[ROW_OPS][VALUES], found[ROW_OPS][VALUES];
  rows_run(&rows_reference, wanted);
  rows_run(kernels, found);
  for (uint32_t i = 0; i < ROW_OPS; i++) {
    if (!is_near(found[i], wanted[i], VALUES, TOLERANCE))
      return fail(kernels, error, row_ops[i], "");
  }
  return WICK_OK;
}

// ---- recurrent mixers ----

// The numbers of channels and columns leave a remainder of one, because kernels process several at
// a time.
enum { STEPS = 5, TAPS = 4, CHANNELS = 2 * KERNEL_CONV_CHANNELS + 1, KEY_DIM = 6, VALUE_DIM = 37 };

// Computes out: y, then the state.
static void conv_run(const kernel_table *kernels, float *out) {
  uint32_t state = STATE_FIRST;
  float weight[TAPS * CHANNELS], before[(TAPS - 1) * CHANNELS], x[STEPS * CHANNELS];
  draw_floats(&state, TAPS * CHANNELS, weight);
  draw_floats(&state, (TAPS - 1) * CHANNELS, before);
  draw_floats(&state, STEPS * CHANNELS, x);
  const kernel_conv conv = {.tokens = STEPS,
                            .channels = CHANNELS,
                            .width = TAPS,
                            .weight = weight,
                            .bias = weight,
                            .state_in = before,
                            .state_out = out + STEPS * CHANNELS,
                            .x = x,
                            .y = out,
                            .x_stride = CHANNELS,
                            .y_stride = CHANNELS};
  kernels->conv(&conv, 0, CHANNELS);
}

static void delta_run(const kernel_table *kernels, float *out) {
  uint32_t state = STATE_FIRST;
  float q[STEPS * KEY_DIM], k[STEPS * KEY_DIM], v[STEPS * VALUE_DIM], gates[2 * STEPS];
  float before[KEY_DIM * VALUE_DIM];
  draw_floats(&state, STEPS * KEY_DIM, q);
  draw_floats(&state, STEPS * KEY_DIM, k);
  draw_floats(&state, STEPS * VALUE_DIM, v);
  draw_floats(&state, 2 * STEPS, gates);
  draw_floats(&state, KEY_DIM * VALUE_DIM, before);
  for (uint32_t i = 0; i < 2 * STEPS; i++) gates[i] = 0.5f + 0.5f * gates[i];
  const kernel_delta delta = {.tokens = STEPS,
                              .key_dim = KEY_DIM,
                              .value_dim = VALUE_DIM,
                              .q = q,
                              .k = k,
                              .v = v,
                              .qk_stride = KEY_DIM,
                              .v_stride = VALUE_DIM,
                              .decay = gates,
                              .beta = gates + STEPS,
                              .gate_stride = 1,
                              .state_in = before,
                              .state_out = out + STEPS * VALUE_DIM,
                              .y = out,
                              .y_stride = VALUE_DIM};
  kernels->delta(&delta);
}

// The first channel is not computed.
enum { STATES = 8, FIRST = 1 };

// Runs scan and ssd; a channel of Mamba, and a head of Mamba 2, are columns.
static void scan_run(const kernel_table *kernels, float *out) {
  uint32_t state = STATE_FIRST;
  float x[STEPS * VALUE_DIM], dt[STEPS * VALUE_DIM], bc[STEPS * STATES], a[VALUE_DIM * STATES];
  float before[VALUE_DIM * STATES];
  draw_floats(&state, STEPS * VALUE_DIM, x);
  draw_floats(&state, STEPS * VALUE_DIM, dt);
  draw_floats(&state, STEPS * STATES, bc);
  draw_floats(&state, VALUE_DIM * STATES, a);
  draw_floats(&state, VALUE_DIM * STATES, before);
  const kernel_scan scan = {.tokens = STEPS - 1,
                            .channels = VALUE_DIM,
                            .states = STATES,
                            .x = x,
                            .dt = dt,
                            .x_stride = VALUE_DIM,
                            .dt_stride = VALUE_DIM,
                            .b = bc,
                            .c = bc + STATES,
                            .bc_stride = STATES,
                            .a = a,
                            .d = x,
                            .state_in = before,
                            .state_out = out + STEPS * VALUE_DIM,
                            .y = out,
                            .y_stride = VALUE_DIM};
  kernels->scan(&scan, FIRST, VALUE_DIM);
}

static void ssd_run(const kernel_table *kernels, float *out) {
  uint32_t state = STATE_FIRST;
  float x[STEPS * VALUE_DIM], bc[(STEPS + 1) * KEY_DIM], gates[STEPS + 1];
  float before[KEY_DIM * VALUE_DIM];
  draw_floats(&state, STEPS * VALUE_DIM, x);
  draw_floats(&state, (STEPS + 1) * KEY_DIM, bc);
  draw_floats(&state, STEPS + 1, gates);
  draw_floats(&state, KEY_DIM * VALUE_DIM, before);
  const kernel_ssd ssd = {.tokens = STEPS,
                          .states = KEY_DIM,
                          .head_dim = VALUE_DIM,
                          .x = x,
                          .x_stride = VALUE_DIM,
                          .b = bc,
                          .c = bc + KEY_DIM,
                          .bc_stride = KEY_DIM,
                          .decay = gates,
                          .dt = gates + 1,
                          .gate_stride = 1,
                          .d = 0.5f,
                          .state_in = before,
                          .state_out = out + STEPS * VALUE_DIM,
                          .y = out,
                          .y_stride = VALUE_DIM};
  kernels->ssd(&ssd);
}

enum { DIM = 18, ROWS_OF = 6 };  // r, w, k, v, a, b

static void wkv_run(const kernel_table *kernels, float *out) {
  uint32_t state = STATE_FIRST;
  float rows[(STEPS + ROWS_OF) * DIM], before[DIM * DIM];
  draw_floats(&state, (STEPS + ROWS_OF) * DIM, rows);
  draw_floats(&state, DIM * DIM, before);
  // otherwise the state would grow at every step and hide errors in small values
  for (uint32_t i = 0; i < (STEPS + ROWS_OF) * DIM; i++) rows[i] *= 0.25f;
  const kernel_wkv wkv = {.tokens = STEPS,
                          .dim = DIM,
                          .r = rows,
                          .w = rows + DIM,
                          .k = rows + 2 * DIM,
                          .v = rows + 3 * DIM,
                          .a = rows + 4 * DIM,
                          .b = rows + 5 * DIM,
                          .state_in = before,
                          .state_out = out + STEPS * DIM,
                          .y = out,
                          .stride = DIM};
  kernels->wkv(&wkv);
}

static const struct {
  const char *name;
  void (*run)(const kernel_table *kernels, float *out);
} recurrent_ops[] = {{"conv", conv_run},
                     {"delta", delta_run},
                     {"scan", scan_run},
                     {"ssd", ssd_run},
                     {"wkv", wkv_run}};

static const kernel_table recurrent_reference = {.conv = conv_scalar,
                                                 .delta = delta_scalar,
                                                 .scan = scan_scalar,
                                                 .ssd = ssd_scalar,
                                                 .wkv = wkv_scalar};

enum { OUT = (STEPS + 8) * VALUE_DIM };

static __attribute__((noinline)) wick_status check_recurrent(const kernel_table *kernels,
                                                             wick_error *error) {
  float wanted[OUT] = {0}, found[OUT] = {0};
  _Static_assert((STEPS + TAPS - 1) * CHANNELS <= (int)OUT, "the output fits");
  for (size_t i = 0; i < sizeof recurrent_ops / sizeof *recurrent_ops; i++) {
    recurrent_ops[i].run(&recurrent_reference, wanted);
    recurrent_ops[i].run(kernels, found);
    if (!is_near(found, wanted, OUT, TOLERANCE)) {
      return fail(kernels, error, recurrent_ops[i].name, "");
    }
  }
  return WICK_OK;
}

wick_status kernels_check(const kernel_table *kernels, const kernel_needs *needs,
                          wick_error *error) {
  if (kernels->dots_are_right != NULL && !kernels->dots_are_right()) {
    return kernels_fail_dots(kernels, error);
  }
  wick_status status = check_rows(kernels, error);
  if (status == WICK_OK && needs->is_recurrent) status = check_recurrent(kernels, error);
  for (uint32_t type = 0; type < GGML_TYPE_COUNT && status == WICK_OK; type++) {
    if (needs->types[type] && kernels->types[type].matmul != NULL) {
      status = check_product(kernels, type, error);
    }
  }
  return status == WICK_OK ? check_attention(kernels, needs, error) : status;
}

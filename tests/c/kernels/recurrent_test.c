// Layers that carry a state, and their gates: every variant is compared with the scalar reference
// bit for bit, and the reference with sums in double precision. Also tests the invariants: any
// division of the tokens and any ranges give identical bits and write nothing else.
//
// With WICK_BENCH=1 in the environment, bench_mixers measures them (under Node with --no-liftoff,
// because a run ends before V8 has produced optimised code).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "check.h"
#include "kernel_cases.h"

static float *floats(size_t n) { return malloc((n + 1) * sizeof(float)); }

static float *random_row(size_t n, float deviation) {
  float *x = floats(n);
  random_floats(x, n, deviation);
  return x;
}

static float *copy_of(const float *x, size_t n) {
  float *copy = floats(n);
  memcpy(copy, x, n * sizeof(float));
  return copy;
}

static float *filled(size_t n, float value) {
  float *x = floats(n);
  for (size_t i = 0; i < n; i++) x[i] = value;
  return x;
}

// Keeps the first result of a round and compares every other one with it, bit for bit. Takes
// ownership of `floats`.
static void check_like_first(float **first, float *floats, size_t n) {
  if (*first == NULL) {
    *first = floats;
    return;
  }
  CHECK_EQ_MEM(floats, *first, n * sizeof(float));
  free(floats);
}

static uint32_t least_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

// ---- gates and norms of one row ----

enum { ROW_MAX = 150 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

TEST(gates_are_accurate_and_identical_in_all_variants) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static const float deviations[] = {1, 20, 1e-20f, 200};
  for (uint32_t round = 0; round < 80; round++) {
    const uint32_t n = random_u32_below(ROW_MAX);
    float x[ROW_MAX], gate[ROW_MAX], silu[VARIANTS_MAX][ROW_MAX], gated[VARIANTS_MAX][ROW_MAX];
    random_floats(x, ROW_MAX, deviations[round % 4]);
    random_floats(gate, ROW_MAX, deviations[round / 4 % 4]);
    for (size_t v = 0; v < count; v++) {
      memcpy(silu[v], x, sizeof x);
      memcpy(gated[v], x, sizeof x);
      list[v]->silu(silu[v], n);
      list[v]->sigmoid_mul(gated[v], gate, n);
      CHECK_EQ_MEM(silu[v], silu[0], sizeof x);
      CHECK_EQ_MEM(gated[v], gated[0], sizeof x);
    }
    for (uint32_t i = 0; i < ROW_MAX; i++) {
      const double value = (double)x[i];
      const double own = i < n ? value * sigmoid(value) : value;
      const double other = i < n ? value * sigmoid((double)gate[i]) : value;
      CHECK_NEAR((double)silu[0][i], own, 1e-6 * fabs(own) + 1e-30);
      CHECK_NEAR((double)gated[0][i], other, 1e-6 * fabs(other) + 1e-30);
    }
  }
}

TEST(softplus_is_accurate_and_identical_in_all_variants) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static const float deviations[] = {1, 8, 1e-20f, 60};
  for (uint32_t round = 0; round < 80; round++) {
    const uint32_t n = random_u32_below(ROW_MAX);
    float x[ROW_MAX], out[VARIANTS_MAX][ROW_MAX];
    random_floats(x, ROW_MAX, deviations[round % 4]);
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->softplus(out[v], n);
      CHECK_EQ_MEM(out[v], out[0], sizeof x);
    }
    for (uint32_t i = 0; i < ROW_MAX; i++) {
      const double value = (double)x[i], wanted = i < n ? log1p(exp(value)) : value;
      CHECK_NEAR((double)out[0][i], wanted, 1e-6 * fabs(wanted) + 1e-37);
    }
  }
}

TEST(non_finite_gates_saturate_or_give_nan) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const float inf = f32_of_bits(0x7f800000u), nan = f32_of_bits(0x7fc00000u);
  for (size_t v = 0; v < count; v++) {
    float x[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    const float gate[8] = {inf, -inf, nan, 0, 0, -inf, inf, nan};
    list[v]->sigmoid_mul(x, gate, 7);
    CHECK_EQ_F32(x[0], 2);
    CHECK_EQ_F32(x[1], 0);
    CHECK(isnan(x[2]));
    CHECK_EQ_F32(x[3], 1);
    CHECK_EQ_F32(x[5], 0);
    CHECK_EQ_F32(x[6], 2);
    CHECK_EQ_F32(x[7], 2);
  }
}

TEST(l2_norm_is_accurate_and_identical_in_all_variants) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  static const float deviations[] = {1, 1e-8f, 1e-4f, 1000, 0};
  for (uint32_t round = 0; round < 80; round++) {
    const uint32_t n = 1 + random_u32_below(ROW_MAX - 1);
    const float epsilon = round % 2 == 0 ? 1e-6f : 1e-2f;
    float x[ROW_MAX], out[VARIANTS_MAX][ROW_MAX];
    random_floats(x, ROW_MAX, deviations[round % 5]);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (size_t v = 0; v < count; v++) {
      memcpy(out[v], x, sizeof x);
      list[v]->l2_norm(v % 2 == 0 ? x : out[v], n, epsilon, out[v]);  // out may equal x
      CHECK_EQ_MEM(out[v], out[0], sizeof x);
    }
    for (uint32_t i = 0; i < ROW_MAX; i++) {
      const double wanted = (double)x[i] / (i < n ? fmax(sqrt(sum), (double)epsilon) : 1);
      CHECK_NEAR((double)out[0][i], wanted, 1e-6 * fabs(wanted) + 1e-40);
    }
  }
}

// ---- convolution ----

typedef struct conv_case {
  kernel_conv conv;  // y and state_out are NULL
  float *weight, *bias, *state, *x;
} conv_case;

static conv_case conv_make(uint32_t tokens, uint32_t channels, uint32_t width, bool has_bias) {
  const size_t stride = channels + random_u32_below(5);
  conv_case made = {.weight = random_row((size_t)width * channels, 1),
                    .bias = has_bias ? random_row(channels, 1) : NULL,
                    .state = random_row((width - 1) * (size_t)channels, 1),
                    .x = random_row(tokens * stride, 1)};
  made.conv = (kernel_conv){.tokens = tokens,
                            .channels = channels,
                            .width = width,
                            .weight = made.weight,
                            .bias = made.bias,
                            .state_in = made.state,
                            .x = made.x,
                            .x_stride = stride,
                            .y_stride = stride};
  return made;
}

static void conv_free(const conv_case *of) {
  free(of->weight);
  free(of->bias);
  free(of->state);
  free(of->x);
}

static float conv_input_of(const kernel_conv *conv, uint32_t at, uint32_t channel) {
  if (at + 1 < conv->width) return conv->state_in[(size_t)at * conv->channels + channel];
  return conv->x[conv->x_stride * (at + 1 - conv->width) + channel];
}

static void check_conv_against_double(const kernel_conv *conv) {
  for (uint32_t c = 0; c < conv->channels; c++) {
    for (uint32_t t = 0; t < conv->tokens; t++) {
      double sum = conv->bias != NULL ? (double)conv->bias[c] : 0, magnitude = fabs(sum);
      for (uint32_t k = 0; k < conv->width; k++) {
        const double product = (double)conv->weight[(size_t)k * conv->channels + c] *
                               (double)conv_input_of(conv, t + k, c);
        sum += product;
        magnitude += fabs(product);
      }
      CHECK_NEAR((double)conv->y[conv->y_stride * t + c], sum, 1e-6 * magnitude);
    }
    for (uint32_t k = 0; k + 1 < conv->width; k++) {
      CHECK_EQ_F32(conv->state_out[(size_t)k * conv->channels + c],
                   conv_input_of(conv, conv->tokens + k, c));
    }
  }
}

// Runs the convolution on the tokens in random pieces, each in random ranges of channels.
static void conv_in_pieces(const kernel_table *kernels, kernel_conv conv) {
  const uint32_t tokens = conv.tokens;
  const size_t state_floats = (conv.width - 1) * (size_t)conv.channels;
  float *states[2] = {copy_of(conv.state_in, state_floats), filled(state_floats, 7)};
  float *state_out = conv.state_out;
  for (uint32_t done = 0, turn = 0; done < tokens; done += conv.tokens, turn ^= 1) {
    conv.tokens = 1 + random_u32_below(tokens - done);
    conv.state_in = states[turn];
    conv.state_out = states[turn ^ 1];
    for (uint32_t first = 0; first < conv.channels;) {
      const uint32_t step = KERNEL_CONV_CHANNELS * (1 + random_u32_below(3));
      const uint32_t last = least_u32(conv.channels, first + step);
      kernels->conv(&conv, first, last);
      first = last;
    }
    conv.x += conv.x_stride * conv.tokens;
    conv.y += conv.y_stride * conv.tokens;
    memcpy(state_out, conv.state_out, state_floats * sizeof(float));
  }
  free(states[0]);
  free(states[1]);
}

static void check_conv(const conv_case *of) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const size_t state_floats = (of->conv.width - 1) * (size_t)of->conv.channels;
  const size_t y_floats = of->conv.y_stride * of->conv.tokens;
  float *wanted = NULL, *wanted_state = NULL;
  for (size_t v = 0; v < count; v++) {
    for (uint32_t way = 0; way < 4; way++) {
      kernel_conv conv = of->conv;
      // the bytes between the rows must stay unchanged
      float *y = copy_of(of->x, y_floats), *state = filled(state_floats, 3);
      conv.y = y;
      conv.state_out = state;
      if (way % 2 == 1) conv.x = y;
      if (way < 2) {
        list[v]->conv(&conv, 0, conv.channels);
      } else {
        conv_in_pieces(list[v], conv);
      }
      if (wanted == NULL) check_conv_against_double(&conv);
      check_like_first(&wanted, y, y_floats);
      check_like_first(&wanted_state, state, state_floats);
    }
  }
  free(wanted);
  free(wanted_state);
}

TEST(convolutions_are_identical_in_all_variants_and_pieces) {
  for (uint32_t round = 0; round < 120; round++) {
    const uint32_t width = 2 + round % (KERNEL_CONV_WIDTH_MAX - 1);
    const uint32_t tokens = 1 + random_u32_below(round % 4 == 0 ? 3 : 20);
    const conv_case of = conv_make(tokens, 1 + random_u32_below(130), width, round % 3 != 0);
    check_conv(&of);
    conv_free(&of);
  }
}

TEST(a_range_of_channels_writes_nothing_else) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const conv_case of = conv_make(9, 75, 4, true);
  for (size_t v = 0; v < count; v++) {
    kernel_conv conv = of.conv;
    float *y = filled(9 * conv.y_stride, 5), *state = filled((size_t)3 * 75, 5);
    conv.y = y;
    conv.state_out = state;
    list[v]->conv(&conv, 32, 48);
    for (uint32_t i = 0; i < 9 * conv.y_stride; i++) {
      const uint32_t c = i % (uint32_t)conv.y_stride;
      if (c < 32 || c >= 48) CHECK_EQ_F32(y[i], 5);
    }
    for (uint32_t i = 0; i < 3 * 75; i++) {
      if (i % 75 < 32 || i % 75 >= 48) CHECK_EQ_F32(state[i], 5);
    }
    free(y);
    free(state);
  }
  conv_free(&of);
}

// ---- gated delta rule ----

typedef struct delta_case {
  kernel_delta delta;  // y and state_out are NULL
  float *qk, *v, *gates, *state;
} delta_case;

static void scale_to_length(float *x, uint32_t n, float length) {
  scalar()->l2_norm(x, n, 1e-6f, x);
  scalar()->scale(x, length, n);
}

static delta_case delta_make(uint32_t tokens, uint32_t key_dim, uint32_t value_dim) {
  const size_t qk_stride = 2 * key_dim + random_u32_below(4);
  const size_t v_stride = value_dim + random_u32_below(4);
  const size_t gate_stride = 2 + random_u32_below(4);
  delta_case made = {.qk = random_row(tokens * qk_stride, 1),
                     .v = random_row(tokens * v_stride, 1),
                     .gates = random_row(tokens * gate_stride, 1),
                     .state = random_row((size_t)key_dim * value_dim, 1)};
  for (uint32_t t = 0; t < tokens; t++) {
    scale_to_length(made.qk + qk_stride * t, key_dim, 1 / sqrtf((float)key_dim));
    scale_to_length(made.qk + qk_stride * t + key_dim, key_dim, 1);
    for (uint32_t i = 0; i < 2; i++) {
      float *gate = made.gates + gate_stride * t + i;
      *gate = 1 / (1 + expf(-2 * *gate));
    }
  }
  made.delta = (kernel_delta){.tokens = tokens,
                              .key_dim = key_dim,
                              .value_dim = value_dim,
                              .q = made.qk,
                              .k = made.qk + key_dim,
                              .v = made.v,
                              .qk_stride = qk_stride,
                              .v_stride = v_stride,
                              .decay = made.gates,
                              .beta = made.gates + 1,
                              .gate_stride = gate_stride,
                              .state_in = made.state,
                              .y_stride = value_dim + random_u32_below(4)};
  return made;
}

static void delta_free(const delta_case *of) {
  free(of->qk);
  free(of->v);
  free(of->gates);
  free(of->state);
}

// Computes one token on a state of doubles, as written in the paper.
static void delta_token(const kernel_delta *delta, uint32_t t, double *state, double *y) {
  const float *k = delta->k + delta->qk_stride * t, *q = delta->q + delta->qk_stride * t;
  const double decay = (double)delta->decay[delta->gate_stride * t];
  const double beta = (double)delta->beta[delta->gate_stride * t];
  for (uint32_t c = 0; c < delta->value_dim; c++) {
    double known = 0;
    for (uint32_t i = 0; i < delta->key_dim; i++) {
      state[(size_t)i * delta->value_dim + c] *= decay;
      known += state[(size_t)i * delta->value_dim + c] * (double)k[i];
    }
    const double d = ((double)delta->v[delta->v_stride * t + c] - known) * beta;
    y[c] = 0;
    for (uint32_t i = 0; i < delta->key_dim; i++) {
      state[(size_t)i * delta->value_dim + c] += (double)k[i] * d;
      y[c] += state[(size_t)i * delta->value_dim + c] * (double)q[i];
    }
  }
}

static void check_delta_against_double(const kernel_delta *delta) {
  const size_t state_floats = (size_t)delta->key_dim * delta->value_dim;
  double *state = calloc(state_floats, sizeof(double));
  double *y = malloc(delta->value_dim * sizeof(double));
  // a few units in the last place of the sums: the states have a standard deviation of 1
  const double bound = 1e-6 * sqrt((double)delta->key_dim) + 2e-6;
  for (size_t i = 0; i < state_floats; i++) state[i] = (double)delta->state_in[i];
  for (uint32_t t = 0; t < delta->tokens; t++) {
    delta_token(delta, t, state, y);
    for (uint32_t c = 0; c < delta->value_dim; c++) {
      CHECK_NEAR((double)delta->y[delta->y_stride * t + c], y[c], bound);
    }
  }
  for (size_t i = 0; i < state_floats; i++) {
    CHECK_NEAR((double)delta->state_out[i], state[i], bound);
  }
  free(state);
  free(y);
}

static void delta_in_pieces(const kernel_table *kernels, kernel_delta delta) {
  const uint32_t tokens = delta.tokens;
  const size_t state_floats = (size_t)delta.key_dim * delta.value_dim;
  float *states[2] = {copy_of(delta.state_in, state_floats), filled(state_floats, 7)};
  float *state_out = delta.state_out;
  for (uint32_t done = 0, turn = 0; done < tokens; done += delta.tokens, turn ^= 1) {
    delta.tokens = 1 + random_u32_below(tokens - done);
    delta.state_in = states[turn];
    delta.state_out = states[turn ^ 1];
    kernels->delta(&delta);
    delta.q += delta.qk_stride * delta.tokens;
    delta.k += delta.qk_stride * delta.tokens;
    delta.v += delta.v_stride * delta.tokens;
    delta.decay += delta.gate_stride * delta.tokens;
    delta.beta += delta.gate_stride * delta.tokens;
    delta.y += delta.y_stride * delta.tokens;
    memcpy(state_out, delta.state_out, state_floats * sizeof(float));
  }
  free(states[0]);
  free(states[1]);
}

static void check_delta(const delta_case *of) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const size_t state_floats = (size_t)of->delta.key_dim * of->delta.value_dim;
  const size_t y_floats = of->delta.y_stride * of->delta.tokens;
  float *wanted = NULL, *wanted_state = NULL;
  for (size_t v = 0; v < count; v++) {
    for (uint32_t way = 0; way < 2; way++) {
      kernel_delta delta = of->delta;
      float *y = filled(y_floats, 3), *state = filled(state_floats, 3);
      delta.y = y;
      delta.state_out = state;
      if (way == 0) {
        list[v]->delta(&delta);
      } else {
        delta_in_pieces(list[v], delta);
      }
      if (wanted == NULL) check_delta_against_double(&delta);
      check_like_first(&wanted, y, y_floats);
      check_like_first(&wanted_state, state, state_floats);
    }
  }
  free(wanted);
  free(wanted_state);
}

TEST(delta_rules_are_identical_in_all_variants_and_pieces) {
  for (uint32_t round = 0; round < 100; round++) {
    const uint32_t tokens = 1 + random_u32_below(12);
    const delta_case of = round % 20 == 0
                              ? delta_make(tokens, 128, 128)
                              : delta_make(tokens, 1 + random_u32_below(40),
                                           1 + random_u32_below(round % 10 == 5 ? 600 : 70));
    check_delta(&of);
    delta_free(&of);
  }
}

// ---- Mamba's scans ----

typedef struct scan_case {
  kernel_scan scan;  // y and state_out are NULL
  float *x, *dt, *bc, *a, *d, *state;
} scan_case;

static float *positive_row(size_t n, float deviation) {
  float *x = random_row(n, deviation);
  for (size_t i = 0; i < n; i++) x[i] = fabsf(x[i]);
  return x;
}

static scan_case scan_make(uint32_t tokens, uint32_t channels, uint32_t states, bool has_d) {
  const size_t stride = channels + random_u32_below(5), bc_stride = 2 * states + 3;
  scan_case made = {.x = random_row(tokens * stride, 1),
                    .dt = positive_row(tokens * stride, 0.5f),
                    .bc = random_row(tokens * bc_stride, 1),
                    .a = positive_row((size_t)channels * states, 2),
                    .d = has_d ? random_row(channels, 1) : NULL,
                    .state = random_row((size_t)channels * states, 1)};
  scalar()->scale(made.a, -1, channels * states);
  made.scan = (kernel_scan){.tokens = tokens,
                            .channels = channels,
                            .states = states,
                            .x = made.x,
                            .dt = made.dt,
                            .x_stride = stride,
                            .dt_stride = stride,
                            .b = made.bc,
                            .c = made.bc + states,
                            .bc_stride = bc_stride,
                            .a = made.a,
                            .d = made.d,
                            .state_in = made.state,
                            .y_stride = stride};
  return made;
}

static void scan_free(const scan_case *of) {
  free(of->x);
  free(of->dt);
  free(of->bc);
  free(of->a);
  free(of->d);
  free(of->state);
}

static void check_scan_against_double(const kernel_scan *scan) {
  for (uint32_t ch = 0; ch < scan->channels; ch++) {
    double state[64];
    const size_t at = (size_t)ch * scan->states;
    for (uint32_t s = 0; s < scan->states; s++) state[s] = (double)scan->state_in[at + s];
    for (uint32_t t = 0; t < scan->tokens; t++) {
      const double dt = (double)scan->dt[scan->dt_stride * t + ch];
      const double x = (double)scan->x[scan->x_stride * t + ch];
      double sum = scan->d != NULL ? (double)scan->d[ch] * x : 0, magnitude = fabs(sum);
      for (uint32_t s = 0; s < scan->states; s++) {
        state[s] = exp(dt * (double)scan->a[at + s]) * state[s] +
                   dt * x * (double)scan->b[scan->bc_stride * t + s];
        sum += state[s] * (double)scan->c[scan->bc_stride * t + s];
        magnitude += fabs(state[s]) + 1;
      }
      CHECK_NEAR((double)scan->y[scan->y_stride * t + ch], sum, 4e-6 * magnitude);
    }
    for (uint32_t s = 0; s < scan->states; s++) {
      CHECK_NEAR((double)scan->state_out[at + s], state[s], 4e-6 * (fabs(state[s]) + 1));
    }
  }
}

// Runs the scan on the tokens in random pieces, each in random ranges of channels.
static void scan_in_pieces(const kernel_table *kernels, kernel_scan scan) {
  const uint32_t tokens = scan.tokens;
  const size_t state_floats = (size_t)scan.channels * scan.states;
  float *states[2] = {copy_of(scan.state_in, state_floats), filled(state_floats, 7)};
  float *state_out = scan.state_out;
  for (uint32_t done = 0, turn = 0; done < tokens; done += scan.tokens, turn ^= 1) {
    scan.tokens = 1 + random_u32_below(tokens - done);
    scan.state_in = states[turn];
    scan.state_out = states[turn ^ 1];
    for (uint32_t first = 0; first < scan.channels;) {
      const uint32_t last = least_u32(scan.channels, first + 1 + random_u32_below(30));
      kernels->scan(&scan, first, last);
      first = last;
    }
    scan.x += scan.x_stride * scan.tokens;
    scan.dt += scan.dt_stride * scan.tokens;
    scan.b += scan.bc_stride * scan.tokens;
    scan.c += scan.bc_stride * scan.tokens;
    scan.y += scan.y_stride * scan.tokens;
    memcpy(state_out, scan.state_out, state_floats * sizeof(float));
  }
  free(states[0]);
  free(states[1]);
}

static void check_scan(const scan_case *of) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const size_t state_floats = (size_t)of->scan.channels * of->scan.states;
  const size_t y_floats = of->scan.y_stride * of->scan.tokens;
  float *wanted = NULL, *wanted_state = NULL;
  for (size_t v = 0; v < count; v++) {
    for (uint32_t way = 0; way < 4; way++) {
      kernel_scan scan = of->scan;
      float *y = copy_of(of->x, y_floats), *state = filled(state_floats, 3);
      scan.y = y;
      scan.state_out = state;
      if (way % 2 == 1) scan.x = y;
      if (way < 2) {
        list[v]->scan(&scan, 0, scan.channels);
      } else {
        scan_in_pieces(list[v], scan);
      }
      if (wanted == NULL) {
        check_scan_against_double(&scan);
        wanted = copy_of(y, y_floats);
        wanted_state = copy_of(state, state_floats);
      }
      CHECK_EQ_MEM(y, wanted, y_floats * sizeof(float));
      CHECK_EQ_MEM(state, wanted_state, state_floats * sizeof(float));
      free(y);
      free(state);
    }
  }
  free(wanted);
  free(wanted_state);
}

TEST(selective_scans_are_identical_in_all_variants_and_pieces) {
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t states = round % 3 == 0 ? 1 + random_u32_below(64) : 4u << round % 4;
    const scan_case of =
        scan_make(1 + random_u32_below(12), 1 + random_u32_below(70), states, round % 5 != 0);
    check_scan(&of);
    scan_free(&of);
  }
}

typedef struct ssd_case {
  kernel_ssd ssd;  // y and state_out are NULL
  float *x, *bc, *gates, *state;
} ssd_case;

static ssd_case ssd_make(uint32_t tokens, uint32_t states, uint32_t head_dim) {
  const size_t stride = head_dim + random_u32_below(5), bc_stride = 2 * states + 3;
  ssd_case made = {.x = random_row(tokens * stride, 1),
                   .bc = random_row(tokens * bc_stride, 1),
                   .gates = positive_row(tokens * (size_t)3, 0.5f),
                   .state = random_row((size_t)states * head_dim, 1)};
  for (uint32_t t = 0; t < tokens; t++) made.gates[3 * t] = expf(-made.gates[3 * t]);
  made.ssd = (kernel_ssd){.tokens = tokens,
                          .states = states,
                          .head_dim = head_dim,
                          .x = made.x,
                          .x_stride = stride,
                          .b = made.bc,
                          .c = made.bc + states,
                          .bc_stride = bc_stride,
                          .decay = made.gates,
                          .dt = made.gates + 1,
                          .gate_stride = 3,
                          .d = random_normal(),
                          .state_in = made.state,
                          .y_stride = stride};
  return made;
}

static void ssd_free(const ssd_case *of) {
  free(of->x);
  free(of->bc);
  free(of->gates);
  free(of->state);
}

static void check_ssd_against_double(const kernel_ssd *ssd, const float *xs) {
  double *state = malloc(ssd->states * sizeof(double));
  for (uint32_t p = 0; p < ssd->head_dim; p++) {
    for (uint32_t s = 0; s < ssd->states; s++) {
      state[s] = (double)ssd->state_in[(size_t)s * ssd->head_dim + p];
    }
    for (uint32_t t = 0; t < ssd->tokens; t++) {
      const double decay = (double)ssd->decay[ssd->gate_stride * t];
      const double dt = (double)ssd->dt[ssd->gate_stride * t];
      const double x = (double)xs[ssd->x_stride * t + p];
      double sum = (double)ssd->d * x, magnitude = fabs(sum);
      for (uint32_t s = 0; s < ssd->states; s++) {
        state[s] = decay * state[s] + dt * x * (double)ssd->b[ssd->bc_stride * t + s];
        sum += state[s] * (double)ssd->c[ssd->bc_stride * t + s];
        magnitude += fabs(state[s]) + 1;
      }
      CHECK_NEAR((double)ssd->y[ssd->y_stride * t + p], sum, 2e-6 * magnitude);
    }
    for (uint32_t s = 0; s < ssd->states; s++) {
      CHECK_NEAR((double)ssd->state_out[(size_t)s * ssd->head_dim + p], state[s],
                 2e-6 * (fabs(state[s]) + 1));
    }
  }
  free(state);
}

static void ssd_in_pieces(const kernel_table *kernels, kernel_ssd ssd) {
  const uint32_t tokens = ssd.tokens;
  const size_t state_floats = (size_t)ssd.states * ssd.head_dim;
  float *states[2] = {copy_of(ssd.state_in, state_floats), filled(state_floats, 7)};
  float *state_out = ssd.state_out;
  for (uint32_t done = 0, turn = 0; done < tokens; done += ssd.tokens, turn ^= 1) {
    ssd.tokens = 1 + random_u32_below(tokens - done);
    ssd.state_in = states[turn];
    ssd.state_out = states[turn ^ 1];
    kernels->ssd(&ssd);
    ssd.x += ssd.x_stride * ssd.tokens;
    ssd.b += ssd.bc_stride * ssd.tokens;
    ssd.c += ssd.bc_stride * ssd.tokens;
    ssd.decay += ssd.gate_stride * ssd.tokens;
    ssd.dt += ssd.gate_stride * ssd.tokens;
    ssd.y += ssd.y_stride * ssd.tokens;
    memcpy(state_out, ssd.state_out, state_floats * sizeof(float));
  }
  free(states[0]);
  free(states[1]);
}

static void check_ssd(const ssd_case *of) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const size_t state_floats = (size_t)of->ssd.states * of->ssd.head_dim;
  const size_t y_floats = of->ssd.y_stride * of->ssd.tokens;
  float *wanted = NULL, *wanted_state = NULL;
  for (size_t v = 0; v < count; v++) {
    for (uint32_t way = 0; way < 4; way++) {
      kernel_ssd ssd = of->ssd;
      float *y = copy_of(of->x, y_floats), *state = filled(state_floats, 3);
      ssd.y = y;
      ssd.state_out = state;
      if (way % 2 == 1) ssd.x = y;
      if (way < 2) {
        list[v]->ssd(&ssd);
      } else {
        ssd_in_pieces(list[v], ssd);
      }
      if (wanted == NULL) {
        check_ssd_against_double(&ssd, of->x);
        wanted = copy_of(y, y_floats);
        wanted_state = copy_of(state, state_floats);
      }
      CHECK_EQ_MEM(y, wanted, y_floats * sizeof(float));
      CHECK_EQ_MEM(state, wanted_state, state_floats * sizeof(float));
      free(y);
      free(state);
    }
  }
  free(wanted);
  free(wanted_state);
}

TEST(mamba_2_scans_are_identical_in_all_variants_and_pieces) {
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t tokens = 1 + random_u32_below(12);
    const ssd_case of = round % 12 == 0
                            ? ssd_make(tokens, 128, 64)
                            : ssd_make(tokens, 1 + random_u32_below(40),
                                       1 + random_u32_below(round % 10 == 5 ? 600 : 70));
    check_ssd(&of);
    ssd_free(&of);
  }
}

// ---- RWKV-7 ----

typedef struct wkv_case {
  kernel_wkv wkv;  // y and state_out are NULL
  float *rows, *state;
} wkv_case;

// Makes inputs like those of the block: decays are in (0, 1), a = -kappa and b = kappa * rate,
// where kappa has length 1, so states stay bounded.
static wkv_case wkv_make(uint32_t tokens, uint32_t dim) {
  enum { ROWS = 6 };  // r, w, k, v, a, b
  const size_t stride = (size_t)ROWS * dim + random_u32_below(5);
  wkv_case made = {.rows = random_row(tokens * stride, 1),
                   .state = random_row((size_t)dim * dim, 1)};
  for (uint32_t t = 0; t < tokens; t++) {
    float *w = made.rows + stride * t + dim, *a = w + 3 * (size_t)dim, *b = a + dim;
    scale_to_length(a, dim, 1);
    for (uint32_t i = 0; i < dim; i++) {
      b[i] = -a[i] / (1 + expf(-b[i]));
      w[i] = expf(-0.6f / (1 + expf(-w[i])));
    }
  }
  made.wkv = (kernel_wkv){.tokens = tokens,
                          .dim = dim,
                          .r = made.rows,
                          .w = made.rows + dim,
                          .k = made.rows + 2 * (size_t)dim,
                          .v = made.rows + 3 * (size_t)dim,
                          .a = made.rows + 4 * (size_t)dim,
                          .b = made.rows + 5 * (size_t)dim,
                          .state_in = made.state,
                          .stride = stride};
  return made;
}

// Computes one token on a state of doubles, as written in the paper, with the state transposed: S =
// S (diag(w) + a^T b) + v^T k, y = S r.
static void wkv_token(const kernel_wkv *wkv, uint32_t t, double *state, double *y) {
  const uint32_t dim = wkv->dim;
  const size_t row = wkv->stride * t;
  for (uint32_t c = 0; c < dim; c++) {
    double known = 0;
    y[c] = 0;
    for (uint32_t i = 0; i < dim; i++) {
      known += state[(size_t)i * dim + c] * (double)wkv->a[row + i];
    }
    for (uint32_t i = 0; i < dim; i++) {
      double *at = state + (size_t)i * dim + c;
      *at = *at * (double)wkv->w[row + i] + known * (double)wkv->b[row + i] +
            (double)wkv->k[row + i] * (double)wkv->v[row + c];
      y[c] += *at * (double)wkv->r[row + i];
    }
  }
}

static void check_wkv_against_double(const kernel_wkv *wkv) {
  const size_t state_floats = (size_t)wkv->dim * wkv->dim;
  double *state = calloc(state_floats, sizeof(double));
  double *y = malloc(wkv->dim * sizeof(double));
  // a few units in the last place of the sums: the standard deviation of the states is small
  const double bound = 2e-6 * (double)wkv->dim + 2e-6;
  for (size_t i = 0; i < state_floats; i++) state[i] = (double)wkv->state_in[i];
  for (uint32_t t = 0; t < wkv->tokens; t++) {
    wkv_token(wkv, t, state, y);
    for (uint32_t c = 0; c < wkv->dim; c++) {
      CHECK_NEAR((double)wkv->y[wkv->stride * t + c], y[c], bound);
    }
  }
  for (size_t i = 0; i < state_floats; i++) {
    CHECK_NEAR((double)wkv->state_out[i], state[i], 2e-5);
  }
  free(state);
  free(y);
}

static void wkv_in_pieces(const kernel_table *kernels, kernel_wkv wkv) {
  const uint32_t tokens = wkv.tokens;
  const size_t state_floats = (size_t)wkv.dim * wkv.dim;
  float *states[2] = {copy_of(wkv.state_in, state_floats), filled(state_floats, 7)};
  float *state_out = wkv.state_out;
  for (uint32_t done = 0, turn = 0; done < tokens; done += wkv.tokens, turn ^= 1) {
    wkv.tokens = 1 + random_u32_below(tokens - done);
    wkv.state_in = states[turn];
    wkv.state_out = states[turn ^ 1];
    kernels->wkv(&wkv);
    const size_t step = wkv.stride * wkv.tokens;
    wkv.r += step;
    wkv.w += step;
    wkv.k += step;
    wkv.v += step;
    wkv.a += step;
    wkv.b += step;
    wkv.y += step;
    memcpy(state_out, wkv.state_out, state_floats * sizeof(float));
  }
  free(states[0]);
  free(states[1]);
}

static void check_wkv(const wkv_case *of) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  const size_t state_floats = (size_t)of->wkv.dim * of->wkv.dim;
  const size_t y_floats = of->wkv.stride * of->wkv.tokens;
  float *wanted = NULL, *wanted_state = NULL;
  for (size_t v = 0; v < count; v++) {
    for (uint32_t way = 0; way < 2; way++) {
      kernel_wkv wkv = of->wkv;
      float *y = filled(y_floats, 5), *state = filled(state_floats, 3);
      wkv.y = y;
      wkv.state_out = state;
      if (way == 0) {
        list[v]->wkv(&wkv);
      } else {
        wkv_in_pieces(list[v], wkv);
      }
      if (wanted == NULL) check_wkv_against_double(&wkv);
      for (size_t i = 0; i < y_floats; i++) {  // the bytes between the rows must stay unchanged
        if (i % wkv.stride >= wkv.dim) CHECK_EQ_F32(y[i], 5);
      }
      check_like_first(&wanted, y, y_floats);
      check_like_first(&wanted_state, state, state_floats);
    }
  }
  free(wanted);
  free(wanted_state);
}

TEST(rwkv_7_scans_are_identical_in_all_variants_and_pieces) {
  for (uint32_t round = 0; round < 60; round++) {
    const uint32_t tokens = 1 + random_u32_below(12);
    const wkv_case of = wkv_make(tokens, round % 12 == 0 ? 64 : 1 + random_u32_below(70));
    check_wkv(&of);
    free(of.rows);
    free(of.state);
  }
}

// ---- measuring ----

// The states of BENCH_HEADS exceed a core's caches, and a round over them is shorter than a time
// slice, because other processes share the machine.
enum { BENCH_DIM = 128, BENCH_HEADS = 48, BENCH_CHANNELS = 8192, BENCH_TOKENS = 64 };

typedef struct bench_delta {
  const kernel_table *kernels;
  kernel_delta delta;
  uint32_t heads;  // processed one after another, each with its own state
} bench_delta;

static void bench_delta_run(void *context) {
  const bench_delta *b = context;
  kernel_delta delta = b->delta;
  for (uint32_t h = 0; h < b->heads; h++) {
    b->kernels->delta(&delta);
    delta.state_in += BENCH_DIM * BENCH_DIM;
    delta.state_out += BENCH_DIM * BENCH_DIM;
  }
}

// Measures the machine's limit: reads and writes each state once.
static void bench_copy_run(void *context) {
  const bench_delta *b = context;
  memcpy(b->delta.state_out, b->delta.state_in, sizeof(float) * BENCH_DIM * BENCH_DIM * b->heads);
}

static void bench_delta_rule(const kernel_table *kernels, uint32_t tokens, uint32_t heads) {
  const delta_case of = delta_make(tokens, BENCH_DIM, BENCH_DIM);
  const size_t state_floats = (size_t)heads * BENCH_DIM * BENCH_DIM;
  float *from = random_row(state_floats, 1), *to = filled(state_floats, 0);
  float *y = filled(tokens * of.delta.y_stride, 0);
  bench_delta b = {kernels, of.delta, heads};
  b.delta.state_in = from;
  b.delta.state_out = to;
  b.delta.y = y;
  const double each = bench_seconds(bench_delta_run, &b) / tokens / heads;
  const double bytes = 2 * sizeof(float) * BENCH_DIM * BENCH_DIM;
  const double copy = bench_seconds(bench_copy_run, &b) / heads;
  printf(
      "#   %-14s delta, %3u heads of 128 x 128, %2u tokens: %6.0f ns per token and head, %5.2f "
      "GB/s of state read and written (a copy: %.2f)\n",
      kernels->name, heads, tokens, each * 1e9, bytes / each * 1e-9, bytes / copy * 1e-9);
  free(from);
  free(to);
  free(y);
  delta_free(&of);
}

typedef struct bench_scan {
  const kernel_table *kernels;
  kernel_scan scan;
} bench_scan;

static void bench_scan_run(void *context) {
  const bench_scan *b = context;
  b->kernels->scan(&b->scan, 0, b->scan.channels);
}

static void bench_selective_scan(const kernel_table *kernels, uint32_t tokens) {
  const scan_case of = scan_make(tokens, BENCH_CHANNELS, 16, true);
  bench_scan b = {kernels, of.scan};
  float *state = filled((size_t)16 * BENCH_CHANNELS, 0);
  b.scan.y = filled(tokens * of.scan.y_stride, 0);
  b.scan.state_out = state;
  printf("#   %-14s scan, 8192 channels of 16 states, %2u tokens: %6.0f ns per token\n",
         kernels->name, tokens, bench_seconds(bench_scan_run, &b) / tokens * 1e9);
  free(b.scan.y);
  free(state);
  scan_free(&of);
}

typedef struct bench_ssd {
  const kernel_table *kernels;
  kernel_ssd ssd;
} bench_ssd;

static void bench_ssd_run(void *context) {
  const bench_ssd *b = context;
  b->kernels->ssd(&b->ssd);
}

static void bench_mamba_2(const kernel_table *kernels, uint32_t tokens) {
  const ssd_case of = ssd_make(tokens, 128, 64);
  bench_ssd b = {kernels, of.ssd};
  float *state = filled((size_t)128 * 64, 0);
  b.ssd.y = filled(tokens * of.ssd.y_stride, 0);
  b.ssd.state_out = state;
  printf("#   %-14s ssd, a head of 64 x 128 states, %2u tokens: %6.0f ns per token\n",
         kernels->name, tokens, bench_seconds(bench_ssd_run, &b) / tokens * 1e9);
  free(b.ssd.y);
  free(state);
  ssd_free(&of);
}

typedef struct bench_conv {
  const kernel_table *kernels;
  kernel_conv conv;
} bench_conv;

static void bench_conv_run(void *context) {
  const bench_conv *b = context;
  b->kernels->conv(&b->conv, 0, b->conv.channels);
}

static void bench_convolution(const kernel_table *kernels, uint32_t tokens) {
  const conv_case of = conv_make(tokens, BENCH_CHANNELS, 4, false);
  bench_conv b = {kernels, of.conv};
  float *state = filled((size_t)3 * BENCH_CHANNELS, 0);
  b.conv.y = filled(tokens * of.conv.y_stride, 0);
  b.conv.state_out = state;
  printf("#   %-14s conv, 8192 channels of 4 taps, %2u tokens: %6.0f ns per token\n", kernels->name,
         tokens, bench_seconds(bench_conv_run, &b) / tokens * 1e9);
  free(b.conv.y);
  free(state);
  conv_free(&of);
}

BENCH(mixers) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = least_u32((uint32_t)variants(list), 2);  // the relaxed ones do not differ
  for (size_t v = 0; v < count; v++) {
    bench_delta_rule(list[v], 1, 1);
    bench_delta_rule(list[v], 1, BENCH_HEADS);
    bench_delta_rule(list[v], 8, 1);
    bench_delta_rule(list[v], BENCH_TOKENS, 1);
    bench_convolution(list[v], 1);
    bench_convolution(list[v], BENCH_TOKENS);
    bench_selective_scan(list[v], 1);
    bench_selective_scan(list[v], 8);
    bench_mamba_2(list[v], 1);
    bench_mamba_2(list[v], BENCH_TOKENS);
  }
}

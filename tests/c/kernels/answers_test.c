// Kernels that compute wrong results are detected: before a model's first pass, and, for the
// relaxed dot, also later, after 10,000 calls. Each case binds a deliberately wrong kernel.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture_model.h"
#include "kernel_cases.h"
#include "kernels/answers.h"
#include "platform/platform.h"

static kernel_needs needs_of_all(void) {
  kernel_needs needs = {.k_type = KERNEL_KV_F16, .v_type = KERNEL_KV_F16, .is_recurrent = true};
  for (uint32_t i = 0; i < TYPE_CASES; i++) needs.types[type_cases[i].type] = true;
  return needs;
}

TEST(every_variant_passes_the_check_for_every_type) {
  const kernel_table *list[VARIANTS_MAX];
  const size_t count = variants(list);
  kernel_needs needs = needs_of_all();
  for (size_t v = 0; v < count; v++) {
    for (int kv = 0; kv < KERNEL_KV_TYPE_COUNT * KERNEL_KV_TYPE_COUNT; kv++) {
      wick_error error = {0};
      needs.k_type = (kernel_kv_type)(kv / KERNEL_KV_TYPE_COUNT);
      needs.v_type = (kernel_kv_type)(kv % KERNEL_KV_TYPE_COUNT);
      if (list[v]->attention_step[needs.k_type][needs.v_type] == NULL) continue;
      CHECK_EQ_INT(kernels_check(list[v], &needs, &error), WICK_OK);
      CHECK_EQ_STR(error.message, "");
    }
  }
}

// Times are reported, but the limit is loose because of sanitizers and busy machines.
TEST(checking_a_type_takes_well_under_a_millisecond) {
  double most_ms = 0;
  for (uint32_t i = 0; i < TYPE_CASES; i++) {
    double least_ms = 1e9;
    for (int round = 0; round < 5; round++) {
      kernel_needs needs = {.k_type = KERNEL_KV_F16, .v_type = KERNEL_KV_F16};
      needs.types[type_cases[i].type] = true;
      const uint64_t start_us = platform_now_us();
      CHECK_EQ_INT(kernels_check(kernels_bind(), &needs, NULL), WICK_OK);
      least_ms = fmin(least_ms, (double)(platform_now_us() - start_us) * 1e-3);
    }
    most_ms = fmax(most_ms, least_ms);
  }
  printf("#   at most %.3f ms per type, %s\n", most_ms, kernels_bind()->name);
  CHECK(most_ms < 20);
}

// ---- wrong kernels ----

static kernel_table wrong;  // the best table, except for what a test replaces

// Adds an error of a thousandth of the largest value to the last row of the last token.
static void matmul_wrong(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                         const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                         size_t y_stride) {
  kernels_bind()->types[matrix->type].matmul(matrix, row_first, row_last, act, act_stride_bytes,
                                             tokens, y, y_stride);
  float most = 0;
  for (uint32_t r = row_first; r < row_last; r++) {
    most = fmaxf(most, fabsf(y[y_stride * (tokens - 1) + r]));
  }
  y[y_stride * (tokens - 1) + row_last - 1] += 1e-3f * most;
}

// Is correct only for a few tokens.
static void matmul_wrong_for_many(const kernel_matrix *matrix, uint32_t row_first,
                                  uint32_t row_last, const void *act, size_t act_stride_bytes,
                                  uint32_t tokens, float *y, size_t y_stride) {
  kernels_bind()->types[matrix->type].matmul(matrix, row_first, row_last, act, act_stride_bytes,
                                             tokens, y, y_stride);
  if (tokens > 32) y[row_first] = NAN;
}

// Changes one value, in any layout of the form.
static void act_make_wrong(kernel_act_form form, const float *x, uint32_t cols, void *act) {
  float changed[256];
  memcpy(changed, x, cols * sizeof *x);
  changed[3] += 0.5f;
  kernels_bind()->act_make(form, changed, cols, act);
}

static void attention_wrong(const kernel_attention *state, const kernel_page *pages,
                            uint32_t count) {
  kernels_bind()->attention_step[KERNEL_KV_F16][KERNEL_KV_F16](state, pages, count);
  state->acc[5] *= 1.01f;
}

static void add_wrong(float *x, const float *y, uint32_t n) { kernels_bind()->add(x, y, n - 1); }

static void silu_wrong(float *x, uint32_t n) {
  kernels_bind()->silu(x, n);
  x[n - 1] *= 1.01f;
}

static void sigmoid_mul_wrong(float *x, const float *gate, uint32_t n) {
  kernels_bind()->sigmoid_mul(x, gate, n - 1);
}

static void l2_norm_wrong(const float *x, uint32_t n, float epsilon, float *out) {
  kernels_bind()->l2_norm(x, n - 1, epsilon, out);
}

// Omits the last tap.
static void conv_wrong(const kernel_conv *conv, uint32_t channel_first, uint32_t channel_last) {
  kernels_bind()->conv(conv, channel_first, channel_last);
  for (uint32_t c = channel_first; c < channel_last; c++) conv->y[c] -= conv->x[c];
}

static void conv_state_wrong(const kernel_conv *conv, uint32_t channel_first,
                             uint32_t channel_last) {
  kernels_bind()->conv(conv, channel_first, channel_last);
  conv->state_out[conv->channels] += 0.01f;
}

static void delta_wrong(const kernel_delta *delta) {
  kernels_bind()->delta(delta);
  delta->y[delta->value_dim - 1] += 0.01f;
}

static void delta_state_wrong(const kernel_delta *delta) {
  kernels_bind()->delta(delta);
  delta->state_out[delta->value_dim] += 0.01f;
}

static void scan_wrong(const kernel_scan *scan, uint32_t channel_first, uint32_t channel_last) {
  kernels_bind()->scan(scan, channel_first, channel_last);
  scan->y[channel_last - 1] += 0.01f;
}

static void scan_state_wrong(const kernel_scan *scan, uint32_t channel_first,
                             uint32_t channel_last) {
  kernels_bind()->scan(scan, channel_first, channel_last);
  scan->state_out[(size_t)channel_first * scan->states] += 0.01f;
}

static void ssd_wrong(const kernel_ssd *ssd) {
  kernels_bind()->ssd(ssd);
  ssd->y[ssd->head_dim - 1] += 0.01f;
}

static void ssd_state_wrong(const kernel_ssd *ssd) {
  kernels_bind()->ssd(ssd);
  ssd->state_out[ssd->head_dim] += 0.01f;
}

static void wkv_wrong(const kernel_wkv *wkv) {
  kernels_bind()->wkv(wkv);
  wkv->y[wkv->dim - 1] += 0.01f;
}

static void wkv_state_wrong(const kernel_wkv *wkv) {
  kernels_bind()->wkv(wkv);
  wkv->state_out[wkv->dim] += 0.01f;
}

static void softplus_wrong(float *x, uint32_t n) { kernels_bind()->softplus(x, n - 1); }

static bool dots_wrong(void) { return false; }

static const kernel_needs NEEDS = {.types = {[GGML_TYPE_Q4_0] = true, [GGML_TYPE_Q8_0] = true},
                                   .k_type = KERNEL_KV_F16,
                                   .v_type = KERNEL_KV_F16,
                                   .is_recurrent = true};

static void check_found(const char *names) {
  wick_error error = {0};
  CHECK_EQ_INT(kernels_check(&wrong, &NEEDS, &error), WICK_E_UNSUPPORTED);
  CHECK(strstr(error.message, names) != NULL);
  CHECK(strstr(error.message, wrong.name) != NULL);
}

TEST(each_wrong_kernel_is_reported_by_name) {
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_Q8_0].matmul = matmul_wrong;
  check_found("products of Q8_0");
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_Q4_0].matmul = matmul_wrong_for_many;
  check_found("products of Q4_0");
  wrong = *kernels_bind();
  wrong.act_make = act_make_wrong;
  check_found("products of Q4_0");
  wrong = *kernels_bind();
  wrong.attention_step[KERNEL_KV_F16][KERNEL_KV_F16] = attention_wrong;
  check_found("attention");
  wrong = *kernels_bind();
  wrong.add = add_wrong;
  check_found("add");
  wrong = *kernels_bind();
  wrong.dots_are_right = dots_wrong;
  check_found("the relaxed dot");
}

TEST(each_wrong_recurrent_kernel_is_reported_by_name) {
  wrong = *kernels_bind();
  wrong.silu = silu_wrong;
  check_found("results for silu");
  wrong = *kernels_bind();
  wrong.sigmoid_mul = sigmoid_mul_wrong;
  check_found("sigmoid_mul");
  wrong = *kernels_bind();
  wrong.l2_norm = l2_norm_wrong;
  check_found("l2_norm");
  wrong = *kernels_bind();
  wrong.softplus = softplus_wrong;
  check_found("softplus");
  static void (*const CONVS[])(const kernel_conv *, uint32_t, uint32_t) = {conv_wrong,
                                                                           conv_state_wrong};
  static void (*const DELTAS[])(const kernel_delta *) = {delta_wrong, delta_state_wrong};
  static void (*const SCANS[])(const kernel_scan *, uint32_t, uint32_t) = {scan_wrong,
                                                                           scan_state_wrong};
  static void (*const SSDS[])(const kernel_ssd *) = {ssd_wrong, ssd_state_wrong};
  static void (*const WKVS[])(const kernel_wkv *) = {wkv_wrong, wkv_state_wrong};
  for (int i = 0; i < 2; i++) {
    wrong = *kernels_bind();
    wrong.conv = CONVS[i];
    check_found("conv");
    wrong = *kernels_bind();
    wrong.delta = DELTAS[i];
    check_found("delta");
    wrong = *kernels_bind();
    wrong.scan = SCANS[i];
    check_found("results for scan");
    wrong = *kernels_bind();
    wrong.ssd = SSDS[i];
    check_found("ssd");
    wrong = *kernels_bind();
    wrong.wkv = WKVS[i];
    check_found("wkv");
    // a model without such layers does not need the kernel
    kernel_needs needs = NEEDS;
    needs.is_recurrent = false;
    CHECK_EQ_INT(kernels_check(&wrong, &needs, NULL), WICK_OK);
  }
}

// ---- inputs of recurrent kernels ----

// Kernels that swap two inputs of the same size, and check the inputs they receive.
static uint32_t swapped[2];

static void swap_inputs(const float **const inputs[]) {
  const float *one = *inputs[swapped[0]];
  *inputs[swapped[0]] = *inputs[swapped[1]];
  *inputs[swapped[1]] = one;
}

static void conv_watched(const kernel_conv *conv, uint32_t first, uint32_t last) {
  CHECK_EQ_UINT(conv->tokens, 5);
  CHECK(first == 0 && last == conv->channels);
  kernels_bind()->conv(conv, first, last);
}

static void delta_swapped(const kernel_delta *delta) {
  kernel_delta other = *delta;
  CHECK_EQ_UINT(delta->tokens, 5);
  for (size_t t = 0; t < 5; t++) {
    CHECK(delta->decay[t * delta->gate_stride] >= 0 && delta->decay[t * delta->gate_stride] <= 1);
    CHECK(delta->beta[t * delta->gate_stride] >= 0 && delta->beta[t * delta->gate_stride] <= 1);
  }
  swap_inputs((const float **const[]){&other.q, &other.k, &other.decay, &other.beta});
  kernels_bind()->delta(&other);
}

static void scan_swapped(const kernel_scan *scan, uint32_t first, uint32_t last) {
  kernel_scan other = *scan;
  CHECK_EQ_UINT(scan->tokens, 4);
  CHECK(first == 1 && last == scan->channels);
  swap_inputs((const float **const[]){&other.x, &other.dt, &other.b, &other.c});
  kernels_bind()->scan(&other, first, last);
}

static void ssd_swapped(const kernel_ssd *ssd) {
  kernel_ssd other = *ssd;
  CHECK_EQ_UINT(ssd->tokens, 5);
  swap_inputs((const float **const[]){&other.b, &other.c, &other.decay, &other.dt});
  kernels_bind()->ssd(&other);
}

static void wkv_swapped(const kernel_wkv *wkv) {
  kernel_wkv other = *wkv;
  CHECK_EQ_UINT(wkv->tokens, 5);
  for (size_t i = 0; i < wkv->dim; i++) CHECK(fabsf(wkv->r[i]) <= 0.25f);
  swap_inputs((const float **const[]){&other.r, &other.w, &other.k, &other.v, &other.a, &other.b});
  kernels_bind()->wkv(&other);
}

TEST(kernels_that_swap_inputs_are_detected) {
  static const struct {
    const char *name;
    uint32_t first, last;  // range of inputs of the same size
  } GROUPS[] = {{"delta", 0, 1},
                {"delta", 2, 3},
                {"results for scan", 0, 1},
                {"results for scan", 2, 3},
                {"ssd", 0, 1},
                {"ssd", 2, 3},
                {"wkv", 0, 5}};
  wrong = *kernels_bind();
  wrong.conv = conv_watched;
  CHECK_EQ_INT(kernels_check(&wrong, &NEEDS, NULL), WICK_OK);
  for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++) {
    wrong = *kernels_bind();
    if (i < 2) wrong.delta = delta_swapped;
    if (i / 2 == 1) wrong.scan = scan_swapped;
    if (i / 2 == 2) wrong.ssd = ssd_swapped;
    if (i / 2 == 3) wrong.wkv = wkv_swapped;
    for (uint32_t a = GROUPS[i].first; a <= GROUPS[i].last; a++) {
      for (uint32_t b = a + 1; b <= GROUPS[i].last; b++) {
        swapped[0] = a;
        swapped[1] = b;
        check_found(GROUPS[i].name);
      }
    }
  }
}

TEST(kernels_that_a_model_does_not_need_are_not_checked) {
  wick_error error = {0};
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_Q6_K].matmul = matmul_wrong;
  CHECK_EQ_INT(kernels_check(&wrong, &NEEDS, &error), WICK_OK);
}

// ---- an engine ----

static wick_engine *engine_with(const kernel_table *kernels, const fixture_file *file,
                                wick_status *status, wick_error *error) {
  wick_config config;
  wick_engine *engine = NULL;
  wick_config_default(&config);
  *status = engine_create(&config, &(engine_hooks){.kernels = kernels}, &engine, error);
  if (*status == WICK_OK) *status = fixture_load(engine, file, 0, error);
  return engine;
}

// The first step reports the error, with or without requests; later calls return the same status.
static void check_refused(wick_engine *engine, const char *what) {
  const int32_t tokens[] = {1, 2, 3};
  const wick_request request = fixture_request(tokens, 3, 200);
  wick_error error = {0};
  uint32_t id;
  CHECK_EQ_INT(wick_step(engine, 0), WICK_STEP_IDLE);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_E_UNSUPPORTED);
  CHECK(strstr(error.message, what) != NULL);
}

TEST(a_model_is_rejected_at_its_first_step) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_error error = {0};
  wick_status status;
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_F32].matmul = matmul_wrong;
  wick_engine *engine = engine_with(&wrong, &file, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  check_refused(engine, "products of F32");
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_step_before_the_weights_arrive_ends_the_load_early) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_error error = {0};
  wick_status status;
  wick_engine *engine = NULL;
  wick_config config;
  size_t at = 0;
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_F32].matmul = matmul_wrong;
  wick_config_default(&config);
  status = engine_create(&config, &(engine_hooks){.kernels = &wrong}, &engine, &error);
  CHECK_EQ_INT(status, WICK_OK);
  while (status == WICK_OK && at < file.size_bytes) {  // a step after every 100 bytes
    const size_t length = file.size_bytes - at < 100 ? file.size_bytes - at : 100;
    status = wick_load_feed(engine, 0, at, file.bytes + at, length, &error);
    at += length;
    wick_step(engine, 0);
  }
  CHECK_EQ_INT(status, WICK_E_UNSUPPORTED);
  CHECK(strstr(error.message, "products of F32") != NULL);
  CHECK(at < file.size_bytes / 2);
  wick_engine_destroy(engine);
  free(file.bytes);
}

TEST(a_draft_with_wrong_kernels_is_rejected) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_error error = {0};
  wick_status status;
  wrong = *kernels_bind();
  wrong.types[GGML_TYPE_F32].matmul = matmul_wrong;
  wick_engine *engine = engine_with(kernels_bind(), &file, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  wick_engine *draft = engine_with(&wrong, &file, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  CHECK_EQ_INT(wick_engine_set_draft(engine, draft, &error), WICK_E_UNSUPPORTED);
  CHECK(strstr(error.message, "products of F32") != NULL);
  wick_engine_destroy(engine);
  wick_engine_destroy(draft);
  free(file.bytes);
}

static uint32_t dots_asked, dots_right_for;
static bool dots_wrong_later(void) { return dots_asked++ < dots_right_for; }
static uint32_t matmul_calls, matmul_right_for;

static void matmul_wrong_later(const kernel_matrix *matrix, uint32_t row_first, uint32_t row_last,
                               const void *act, size_t act_stride_bytes, uint32_t tokens, float *y,
                               size_t y_stride) {
  kernels_bind()->types[matrix->type].matmul(matrix, row_first, row_last, act, act_stride_bytes,
                                             tokens, y, y_stride);
  if (matmul_calls++ >= matmul_right_for) y[row_first] += 1;
}

typedef struct ending {
  uint32_t tokens, done;
  wick_finish finish;
  char message[WICK_ERROR_MESSAGE_BYTES];
} ending;

static void take_ending(void *context, const wick_event *event, const uint8_t *after) {
  ending *to = context;
  if (event->kind == WICK_EVENT_TOKEN) to->tokens++;
  if (event->kind != WICK_EVENT_DONE) return;
  to->done++;
  to->finish = (wick_finish)event->finish;
  if (event->finish == WICK_FINISH_ERROR) memcpy(to->message, after, event->text_bytes);
}

// Runs a request for 200 tokens and returns its result.
static ending run_request(const kernel_table *kernels) {
  fixture_file file = fixture_make(&FIXTURE_DEFAULT);
  wick_error error = {0};
  wick_status status;
  ending end = {0};
  uint32_t id;
  const int32_t tokens[] = {1, 2, 3};
  wick_engine *engine = engine_with(kernels, &file, &status, &error);
  CHECK_EQ_STR(error.message, "");
  const wick_request request = fixture_request(tokens, 3, 200);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  fixture_run(engine, take_ending, &end);
  fixture_take_all(engine, take_ending, &end);  // events of the last step
  wick_engine_destroy(engine);
  free(file.bytes);
  return end;
}

TEST(only_a_model_with_recurrent_layers_needs_their_kernels) {
  fixture_file plain = fixture_make(&FIXTURE_DEFAULT);
  fixture_file hybrid = fixture_make_hybrid(&FIXTURE_ODD, &FIXTURE_LFM2);
  const int32_t tokens[] = {1, 2, 3};
  wick_error error = {0};
  uint32_t id;
  wick_status status;
  wrong = *kernels_bind();
  wrong.conv = conv_wrong;
  wick_engine *engine = engine_with(&wrong, &plain, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  CHECK_EQ_INT(wick_step(engine, 0), WICK_STEP_IDLE);
  const wick_request request = fixture_request(tokens, 3, 2);
  CHECK_EQ_INT(wick_request_submit(engine, &request, &id, &error), WICK_OK);
  wick_engine_destroy(engine);
  engine = engine_with(&wrong, &hybrid, &status, &error);
  CHECK_EQ_INT(status, WICK_OK);
  check_refused(engine, "conv");
  wick_engine_destroy(engine);
  free(plain.bytes);
  free(hybrid.bytes);
}

TEST(a_dot_that_becomes_wrong_fails_the_requests) {
  wrong = *kernels_bind();
  wrong.dots_are_right = dots_wrong_later;
  dots_asked = 0;
  dots_right_for = UINT32_MAX;
  const ending all = run_request(&wrong);
  CHECK_EQ_UINT(all.tokens, 200);
  CHECK(dots_asked >= 100 && dots_asked < 110);
  dots_right_for = 99;
  dots_asked = 0;
  const ending cut = run_request(&wrong);
  CHECK_EQ_UINT(cut.done, 1);
  CHECK_EQ_INT(cut.finish, WICK_FINISH_ERROR);
  CHECK(cut.tokens < 200);
  CHECK(strstr(cut.message, "the relaxed dot") != NULL);
}

TEST(products_are_checked_again_with_the_last_dot_check) {
  wrong = *kernels_bind();
  wrong.dots_are_right = dots_wrong_later;
  wrong.types[GGML_TYPE_F32].matmul = matmul_wrong_later;
  dots_right_for = UINT32_MAX;
  matmul_right_for = 100;
  dots_asked = matmul_calls = 0;
  const ending cut = run_request(&wrong);
  CHECK_EQ_INT(cut.finish, WICK_FINISH_ERROR);
  CHECK(strstr(cut.message, "products of F32") != NULL);
}

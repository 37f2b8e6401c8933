// model/head.c — see head.h.
#include "model/head.h"

#include <string.h>

#include "base/math.h"
#include "model/binder.h"
#include "model/pass.h"

static void read_activation(model_keys *keys, model_head *head) {
  static const char *const NAMES[] = {"tanh", "silu", "relu", "gelu"};
  gguf_string name;
  if (!keys_text(keys, "classifier.activation", &name)) return;
  for (uint32_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (!gguf_string_equals(name, NAMES[i])) continue;
    head->activation = (head_activation)i;
    return;
  }
  KEYS_FAIL(keys, WICK_E_UNSUPPORTED, "classifier.activation",
            "the activation '%.*s' ('%s.classifier.activation') is not supported",
            name.size_bytes > 32 ? 32 : (int)name.size_bytes, name.bytes, keys->architecture);
}

// Reads the file's number, 0 to 4; otherwise returns `fallback`.
static wick_pooling read_pooling(model_keys *keys, const char *name, wick_pooling fallback) {
  const uint32_t number = keys_count_or_none(keys, name, WICK_POOLING_RANK - WICK_POOLING_NONE);
  if (keys_offset(keys, name) == WICK_NO_OFFSET) return fallback;
  return (wick_pooling)(WICK_POOLING_NONE + number);
}

void head_read(model_keys *keys, model_head *head) {
  head->pooling = read_pooling(keys, "pooling_type", WICK_POOLING_MODEL);
  head->score_pooling = read_pooling(keys, "classifier.pooling_type", head->score_pooling);
  read_activation(keys, head);
}

void head_bind(model_binder *binder, model_head *head) {
  const uint32_t hidden = binder->model->config.hidden;
  const uint32_t wide = binder_rows(binder, "dense_2.weight");
  const uint32_t last = binder_rows(binder, "dense_3.weight");
  const uint32_t dense = binder_rows(binder, "cls.weight");
  const uint32_t scores = binder_rows(binder, "cls.output.weight");
  const uint32_t input = dense == 0 ? hidden : dense;
  if ((wide | last) != 0) {
    bind_matrix(binder, "dense_2.weight", wide, hidden, BINDING_REQUIRED, &head->dense_2);
    bind_matrix(binder, "dense_3.weight", last, wide, BINDING_REQUIRED, &head->dense_3);
  }
  if (scores == 0) return;
  bind_matrix(binder, "cls.weight", dense, hidden, BINDING_OPTIONAL, &head->dense);
  bind_vector(binder, "cls.bias", input, BINDING_OPTIONAL, &head->dense_bias);
  if (binder_rows(binder, "cls.norm.weight") != 0) {
    bind_norm(binder, "cls.norm.weight", input, &head->norm, &head->norm_bias);
  }
  bind_matrix(binder, "cls.output.weight", scores, input, BINDING_REQUIRED, &head->output);
  bind_vector(binder, "cls.output.bias", scores, BINDING_OPTIONAL, &head->output_bias);
}

// Returns the length of the longest vector between the steps.
static uint32_t width_max(const model_head *head, uint32_t hidden) {
  const uint32_t widths[] = {head->dense_2.dims[1], head->dense_3.dims[1], head->dense.dims[1],
                             head->output.dims[1]};
  uint32_t most = hidden;
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    if (widths[i] > most) most = widths[i];
  }
  return arena_line_floats(most);
}

void head_reserve(const model_head *head, uint32_t hidden, scratch_arena *arena) {
  const uint64_t begin = arena_mark(arena);
  const uint32_t most = width_max(head, hidden);
  arena_take_floats(arena, 2ull * most);
  arena_take_act(arena, 1, most);
  arena_release(arena, begin);
}

uint32_t head_width(const model_head *head, uint32_t hidden, bool is_score) {
  if (is_score) return head->output.dims[1];
  return tensor_is_present(&head->dense_3) ? head->dense_3.dims[1] : hidden;
}

// Computes to = W from + bias.
static void multiply(model_pass *pass, const weight_tensor *matrix, const float *bias,
                     const float *from, float *to) {
  const uint64_t begin = arena_mark(&pass->arena);
  model_product product = {.kernels = pass->kernels,
                           .threads = pass->threads,
                           .x = from,
                           .x_stride = matrix->dims[0],
                           .cols = matrix->dims[0],
                           .tokens = 1,
                           .act = arena_take_act(&pass->arena, 1, matrix->dims[0])};
  product_add(&product, matrix, bias, to, matrix->dims[1]);
  product_run(&product);
  arena_release(&pass->arena, begin);
}

static void activate(const kernel_table *kernels, head_activation activation, float *x,
                     uint32_t n) {
  if (activation == HEAD_TANH) kernels->soft_cap(x, 1, n);
  if (activation == HEAD_SILU) kernels->silu(x, n);
  if (activation == HEAD_RELU) kernels->relu_mul(x, NULL, n);
  if (activation == HEAD_GELU) kernels->gelu_erf_mul(x, NULL, n);
}

static void soften(float *x, uint32_t n) {
  double sum = 0;
  float most = x[0];
  for (uint32_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
  for (uint32_t i = 0; i < n; i++) sum += math_exp((double)x[i] - most);
  for (uint32_t i = 0; i < n; i++) x[i] = (float)(math_exp((double)x[i] - most) / sum);
}

// Computes the scores. Returns the buffer that contains them, `from` or `to`.
static float *score(const model_head *head, model_pass *pass, float *from, float *to) {
  if (tensor_is_present(&head->dense)) {
    const uint32_t rows = head->dense.dims[1];
    multiply(pass, &head->dense, head->dense_bias, from, to);
    activate(pass->kernels, head->activation, to, rows);
    if (head->norm != NULL) norm_row(pass, to, head->norm, head->norm_bias, rows, to);
    float *swap = from;
    from = to;
    to = swap;
  }
  multiply(pass, &head->output, head->output_bias, from, to);
  if (head->is_softmax) soften(to, head->output.dims[1]);
  return to;
}

void head_run(const model_head *head, model_pass *pass, const float *vector, bool is_score,
              float *out) {
  const uint32_t hidden = pass->model->config.hidden, most = width_max(head, hidden);
  const uint64_t begin = arena_mark(&pass->arena);
  float *from = arena_take_floats(&pass->arena, 2ull * most), *to = from + most;
  memcpy(from, vector, hidden * sizeof *from);
  if (is_score) {
    from = score(head, pass, from, to);
  } else if (tensor_is_present(&head->dense_3)) {
    multiply(pass, &head->dense_2, NULL, from, to);
    multiply(pass, &head->dense_3, NULL, to, from);
  }
  memcpy(out, from, head_width(head, hidden, is_score) * sizeof *out);
  arena_release(&pass->arena, begin);
}

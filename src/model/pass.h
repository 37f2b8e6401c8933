// model/pass.h — the state of a forward pass that its blocks use.
#ifndef WICK_MODEL_PASS_H
#define WICK_MODEL_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "metrics/ops.h"
#include "model/adapter.h"
#include "model/arena.h"
#include "model/media.h"
#include "model/product.h"
#include "model/weights.h"
#include "store/store.h"
#include "thread/pool.h"

// One token of a batch. Its row must be prepared (store_begin_rows); positions of one sequence are
// consecutive and follow its stored tokens.
typedef struct model_input {
  int32_t token;
  uint32_t position;
  uint32_t sequence;
  bool wants_logits;
  const adapter_set *adapters;  // NULL: none
  uint32_t turned;              // position minus rotary position (media_list_find)
  uint32_t last;  // last position that it attends to in layers that attend to whole images; ignored
                  // if it is before its own position
  const media_place *media;  // the media that this row belongs to (`token` is 0); NULL: a token
} model_input;

struct model_pass {
  const loaded_model *model;
  const kernel_table *kernels;
  thread_pool *threads;
  seq_store *store;
  op_records *ops;               // NULL: not recorded
  model_input *inputs;           // [batch_tokens]
  const adapter_set **adapters;  // [batch_tokens]: of the rows of `hidden`
  bool has_adapters;             // whether any row has adapters
  uint32_t *wanted;              // [batch_tokens] indexes of the inputs that need logits
  uint32_t count;  // rows of `hidden`: all inputs; after the mixer of the last layer, only the
                   // wanted ones
  uint32_t wanted_count;
  uint32_t layer;  // current or next layer
  uint32_t hidden_stride;
  float *hidden;        // [batch_tokens, hidden], the residual stream
  float *normed;        // [batch_tokens, hidden]
  float *aside;         // [batch_tokens, hidden] if the model keeps_inputs, or NULL
  float *streams;       // [batch_tokens, model's streams, hidden], or NULL
  float *layer_inputs;  // [batch_tokens, layers, layer_inputs_dim], by input
  const float *trunk;   // [count, hidden]: a predictor's input in addition to embeddings
  bool keeps_rows;      // all rows pass through the last layer (forward_keep_rows)
  float *cos_sin[MODEL_ROPES_MAX];  // [batch_tokens, dims] of each rope
  bool has_frequencies;  // the ropes' frequencies are computed; false before the first pass
  uint8_t *open[MODEL_GROUPS_MAX];  // one layer's keys of the pages that the pass fills; or NULL
  scratch_arena arena;              // buffers of blocks
};

// Computes out[n] = the model's norm of x[n]: RMS or layer norm; `bias` may be NULL.
void norm_row(const model_pass *pass, const float *x, const float *weight, const float *bias,
              uint32_t n, float *out);
// Computes [rope->dims] cosines and sines of the input's rotary position plus `delta`.
void input_rope_table(const model_rope *rope, const model_input *input, int32_t delta,
                      float *cos_sin);
// Computes normed[t] = norm(rows[t])   [tokens, hidden]; `rows` are hidden_stride apart.
void pass_norm(model_pass *pass, const float *rows, const float *weight, const float *bias);
// Computes hidden[t] += scale * norm(normed[t]); if weight is NULL, without a norm.
void pass_add_normed(model_pass *pass, const float *weight, float scale);
// Computes y[t] = x[t] W^T + bias, counted as `op`; bias may be NULL. Takes activations from the
// arena.
void pass_multiply(model_pass *pass, op_kind op, const weight_tensor *matrix, const float *bias,
                   const float *x, uint32_t x_stride, float *y, uint32_t y_stride);
// A block's projection onto the hidden rows.
typedef struct pass_output {
  const weight_tensor *matrix;  // [hidden, cols]
  const float *bias;            // [hidden] or NULL
  const float *post_norm;       // [hidden] or NULL
  float scale;
  op_kind op;  // op to count it as
} pass_output;

// Computes hidden[t] += scale * norm(rows[t] W^T + bias), with rows [tokens, cols] `stride` floats
// apart. Takes activations of `cols` values from the arena.
void pass_add_output(model_pass *pass, const pass_output *output, const float *rows,
                     uint32_t stride);
// Computes hidden[t] = norm(hidden[t]), or norm(hidden[t] + aside[t]) (post-norm). If weight is
// NULL, does nothing.
void pass_norm_sums(model_pass *pass, bool with_aside, const float *weight, const float *bias);
// Stores rows [tokens, hidden] as input for the feed-forward of the layer, which then runs in
// parallel with the mixer.
void pass_set_aside(model_pass *pass, const float *rows);
// Returns a product over the rows of `x`. Its activations are taken from the arena: release them
// with arena_release.
model_product pass_product(model_pass *pass, const float *x, uint32_t x_stride, uint32_t cols);
// In the last layer, only rows that need logits continue after the mixer has read all rows:
// compacts `hidden`, `aside`, `streams` and `rows` [count, width] to these rows and lowers count.
// Does nothing in other layers. Returns false if no row continues.
bool pass_keep_wanted(model_pass *pass, float *rows, uint32_t stride, uint32_t width);

#endif

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

// One token of a batch. Its room is prepared (store_begin_rows); positions of one sequence are
// consecutive and follow its stored tokens.
typedef struct model_input {
  int32_t token;
  uint32_t position;
  uint32_t sequence;
  bool wants_logits;
  const adapter_set *adapters;  // NULL: none
  uint32_t turned;              // subtracted from the rotary position (media_list_find)
  uint32_t last;  // position to which it attends in layers whose images are read at once; or less
  const media_place *media;  // the media whose row it is (`token` is 0 then); NULL: it is a token
} model_input;

struct model_pass {
  const loaded_model *model;
  const kernel_table *kernels;
  thread_pool *threads;
  seq_store *store;
  op_records *ops;               // NULL: nothing is recorded
  model_input *inputs;           // [batch_tokens]
  const adapter_set **adapters;  // [batch_tokens] of rows of `hidden`
  bool has_adapters;             // any of them
  uint32_t *wanted;              // [batch_tokens] inputs that need logits
  uint32_t count;  // rows of `hidden`: the inputs; after the mixer of the last layer, only the
                   // wanted ones
  uint32_t wanted_count;
  uint32_t layer;  // the current or next layer
  uint32_t hidden_stride;
  float *hidden;        // [batch_tokens, hidden], the residual stream
  float *normed;        // [batch_tokens, hidden]
  float *aside;         // [batch_tokens, hidden] when the model keeps_inputs, or NULL
  float *streams;       // [batch_tokens, model's streams, hidden], or NULL
  float *layer_inputs;  // [batch_tokens, layers, layer_inputs_dim], of each input
  const float *trunk;   // [count, hidden], the input of a predictor in addition to embeddings
  bool keeps_rows;      // all rows go through the last layer (forward_keep_rows)
  float *cos_sin[MODEL_ROPES_MAX];  // [batch_tokens, dims] of each rope
  bool has_frequencies;             // of the ropes; false before the first pass
  uint8_t *open[MODEL_GROUPS_MAX];  // keys of pages that the pass fills, of a layer; or NULL
  scratch_arena arena;              // buffers of blocks
};

// out[n] = the model's norm of x[n]: RMS or layer norm, with a bias or NULL.
void norm_row(const model_pass *pass, const float *x, const float *weight, const float *bias,
              uint32_t n, float *out);
// Cosines and sines of the input's rotary position, moved by `delta`: [rope->dims].
void input_rope_table(const model_rope *rope, const model_input *input, int32_t delta,
                      float *cos_sin);
// normed[t] = norm(rows[t])   [tokens, hidden]; `rows` are hidden_stride apart
void pass_norm(model_pass *pass, const float *rows, const float *weight, const float *bias);
// hidden[t] += scale * norm(normed[t]); a NULL weight: without a norm
void pass_add_normed(model_pass *pass, const float *weight, float scale);
// y[t] = x[t] W^T + bias, counted as `op`; bias may be NULL. Takes activations from the arena.
void pass_multiply(model_pass *pass, op_kind op, const weight_tensor *matrix, const float *bias,
                   const float *x, uint32_t x_stride, float *y, uint32_t y_stride);
// The projection of a block onto the hidden rows.
typedef struct pass_output {
  const weight_tensor *matrix;  // [hidden, cols]
  const float *bias;            // [hidden] or NULL
  const float *post_norm;       // [hidden] or NULL
  float scale;
  op_kind op;  // the op that it is counted as
} pass_output;

// hidden[t] += scale * norm(rows[t] W^T + bias), rows [tokens, cols] `stride` floats apart. Takes
// activations of `cols` values from the arena.
void pass_add_output(model_pass *pass, const pass_output *output, const float *rows,
                     uint32_t stride);
// hidden[t] = norm(hidden[t]), or norm(hidden[t] + aside[t]) (post-norm); a NULL weight: nothing
void pass_norm_sums(model_pass *pass, bool with_aside, const float *weight, const float *bias);
// Stores rows [tokens, hidden] as input for the feed-forward of the layer, which then runs in
// parallel with the mixer.
void pass_set_aside(model_pass *pass, const float *rows);
// A product over the rows of `x`, whose activations come from the arena: release them with
// arena_release.
model_product pass_product(model_pass *pass, const float *x, uint32_t x_stride, uint32_t cols);
// In the last layer, only rows whose logits are needed continue after the mixer has read all rows:
// compacts `hidden`, `aside`, `streams` and `rows` [count, width] to these rows and lowers count.
// In other layers it does nothing. Returns false if no row continues.
bool pass_keep_wanted(model_pass *pass, float *rows, uint32_t stride, uint32_t width);

#endif

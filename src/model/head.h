// model/head.h — the part after the last layer of an embedder or a reranker: combines the vectors
// of an input's tokens into one, and applies the remaining layers to it. Names and meanings are
// those of llama.cpp's files.
#ifndef WICK_MODEL_HEAD_H
#define WICK_MODEL_HEAD_H

#include "model/arena.h"
#include "model/block.h"
#include "model/keys.h"
#include "tensor/tensor.h"
#include "wick.h"

typedef enum head_activation {
  HEAD_TANH = 0,
  HEAD_SILU,
  HEAD_RELU,
  HEAD_GELU  // the exact form
} head_activation;

// A vector passes through dense_2 and dense_3, if the file has them (sentence-transformers' Dense).
// A score is output(norm(act(dense(vector)))); all parts except output are optional.
typedef struct model_head {
  wick_pooling pooling;        // specified in the file, or WICK_POOLING_MODEL
  wick_pooling score_pooling;  // for the vector that scores are computed from
  head_activation activation;
  bool is_softmax;          // scores are probabilities
  weight_tensor dense_2;    // [width, hidden]
  weight_tensor dense_3;    // [width, rows of dense_2]
  weight_tensor dense;      // [rows, hidden]: "cls"
  float *dense_bias;        // or NULL
  float *norm, *norm_bias;  // or NULL: "cls.norm"
  weight_tensor output;     // [scores, hidden or rows of dense]: "cls.output"
  float *output_bias;       // or NULL
} model_head;

// Reads "pooling_type", "classifier.pooling_type" and "classifier.activation".
void head_read(model_keys *keys, model_head *head);
void head_bind(model_binder *binder, model_head *head);
// Reserves the arena memory that head_run uses.
void head_reserve(const model_head *head, uint32_t hidden, scratch_arena *arena);
// Returns the number of values that head_run computes for a vector. With is_score, 0 if the model
// has no scores.
uint32_t head_width(const model_head *head, uint32_t hidden, bool is_score);
// Computes out [head_width] from vector [hidden].
void head_run(const model_head *head, model_pass *pass, const float *vector, bool is_score,
              float *out);

#endif

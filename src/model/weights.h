// model/weights.h — a model's named tensors, bound to places in one weights segment and filled as
// their bytes arrive. Names: the GGUF specification's "Standardized tensor names".
#ifndef WICK_MODEL_WEIGHTS_H
#define WICK_MODEL_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "kernels/kernels.h"
#include "model/config.h"

// Matrices have data == NULL and vectors are NULL where a model has none.
typedef struct model_layer {
  float *attn_norm;       // [hidden]
  kernel_matrix q, k, v;  // [q_dim or kv_dim, hidden]
  float *q_bias, *k_bias, *v_bias;
  kernel_matrix attn_output;  // [hidden, q_dim]
  float *attn_output_bias;
  float *ffn_norm;         // [hidden]
  kernel_matrix gate, up;  // [ffn, hidden]
  float *gate_bias, *up_bias;
  kernel_matrix down;  // [hidden, ffn]
  float *down_bias;
} model_layer;

enum { MODEL_LAYER_NONE = -1 };

// What a tensor of the file fills: a matrix, or a vector's pointer; neither: it is not wanted.
typedef struct model_binding {
  kernel_matrix *matrix;
  float **vector;
  uint8_t *data;        // its place, once the weights are allocated
  uint64_t size_bytes;  // there, a multiple of a cache line
  int32_t layer;        // MODEL_LAYER_NONE: embedding, output, final norm
} model_binding;

typedef struct wick_model {
  wick_memory *memory;
  const wick_kernels *kernels;
  wick_model_config config;
  model_layer *layers;
  kernel_matrix embedding;  // [vocab, hidden]
  kernel_matrix output;     // [vocab, hidden]; the embedding itself when tied
  float *output_norm;       // [hidden]
  float *output_bias;
  float *rope_factors;  // [rope_dims / 2], divide the frequencies
  bool is_tied;
  uint8_t *weights;  // the segment
  uint64_t weights_bytes;
  model_binding *bindings;  // one a tensor of the file
  uint32_t binding_count;
  uint32_t *layer_missing;  // [layers + 1] tensors still to come; the last: outside of layers
  bool is_embedding_ready;
} wick_model;

// The tensors of a model, over all its files.
typedef struct model_tensors {
  void *context;
  uint32_t count;
  const gguf_tensor *(*at)(void *context, uint32_t index);
  int32_t (*find)(void *context, const char *name);  // -1: absent
} model_tensors;

// Reads the hyper-parameters, checks every tensor's shape and type, and sums what the weights will
// take; allocates the lists, not the weights.
wick_status model_create(wick_memory *memory, const wick_kernels *kernels,
                         const gguf_directory *directory, const model_tensors *tensors,
                         wick_model **out, wick_error *error);
void model_destroy(wick_model *model);
// Takes the weights segment (weights_bytes) and points the tensors into it.
wick_status model_allocate_weights(wick_model *model, wick_error *error);

bool model_wants(const wick_model *model, uint32_t tensor);
// Whole file blocks of one row (see loader_sink.place).
wick_status model_place(wick_model *model, uint32_t tensor, uint32_t type, uint32_t row,
                        uint32_t first_block, uint32_t block_count, const uint8_t *blocks);
void model_tensor_done(wick_model *model, uint32_t tensor);
// How many layers can run: 0 until the embedding is there, then the complete ones from the first.
uint32_t model_layers_ready(const wick_model *model);
bool model_is_ready(const wick_model *model);

#endif

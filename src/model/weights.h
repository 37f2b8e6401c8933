// model/weights.h — a model: its blocks, and their tensors in one weights segment, which is filled
// as their bytes arrive.
#ifndef WICK_MODEL_WEIGHTS_H
#define WICK_MODEL_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/gguf.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/config.h"
#include "model/head.h"
#include "model/rope.h"
#include "tensor/tensor.h"

enum { MODEL_LAYER_NONE = -1, MODEL_ROPES_MAX = 4, MODEL_GROUPS_MAX = 4 };

// The target of a tensor of the file: a matrix, or a vector's pointer; neither if the tensor is not
// needed.
typedef struct model_binding {
  weight_tensor *matrix;
  float **vector;
  uint64_t size_bytes;   // in the weights segment, a multiple of a cache line
  uint32_t cols;         // of a vector's rows
  uint32_t turned_rows;  // not 0: a vector's [rows, cols] are transposed
  int32_t layer;         // MODEL_LAYER_NONE: embedding, output, final norm
  bool is_adaptable;     // a matrix that rows of a pass are multiplied by
} model_binding;

// Layers whose keys and values have one shape and keep the same range of positions share pages.
typedef struct model_group {
  uint32_t layers, kv_heads, head_dim;
  uint32_t window;  // tokens that a layer attends to, including the current one; 0: all
} model_group;

// The position of a layer's keys and values: in the pages of a group, after those of other layers.
typedef struct model_pages {
  uint32_t group, layer;
} model_pages;

typedef struct model_family model_family;  // model/family.h

typedef struct loaded_model {
  memory_gate *memory;
  const kernel_table *kernels;
  const model_family *family;
  model_config config;
  model_layer *layers;
  model_rope ropes[MODEL_ROPES_MAX];
  uint32_t rope_count;
  model_group groups[MODEL_GROUPS_MAX];
  uint32_t group_count;
  uint64_t state_bytes;  // recurrent state of a sequence, for all layers; 0: none
  bool has_open_pages;   // keys are encoded page by page (kv/open.h)
  // A layer after the others that predicts the token after the next (model/blocks/predictor.h), in
  // separate pages; if first is NULL, it is not used.
  model_layer predictor;
  model_group predictor_group;
  float *predictor_norm, *predictor_norm_bias;  // [hidden]; NULL: the model's own
  uint32_t logits_rows_max;                     // rows of logits per round; 0: FORWARD_LOGITS_ROWS
  weight_tensor embedding;                      // [vocab, hidden]
  weight_tensor output;                         // [vocab, hidden]; the embedding itself if tied
  weight_tensor positions;  // [context_trained, hidden], learned positions; or absent
  bool has_positions;       // the family requires them
  weight_tensor types;      // [types, hidden], the first is added to every token; or absent
  float *embedding_norm, *embedding_norm_bias;  // [hidden] or NULL
  const char *embedding_norm_name;              // NULL: none
  float *output_norm, *output_norm_bias;        // [hidden]
  const char *output_norm_name;                 // NULL: none
  const char *layer_prefix;   // before "blk.N." in the names of layer tensors; NULL: none
  bool keeps_inputs;          // blocks read inputs stored by another block (pass_set_aside)
  uint32_t streams;           // rows of model_pass.streams per token (blocks/altup.h); 0: none
  uint32_t layer_inputs_dim;  // floats of model_pass.layer_inputs per token and layer; 0: none
  uint32_t context_tokens;    // context of the engine; 0 until it is known
  float *output_bias;
  bool is_tied;
  bool has_axes;        // rotary positions have time, y, x and z
  bool media_sees_all;  // in some layers, the rows of an image attend to later rows of the same
                        // image
  bool is_encoder;      // tokens attend to their whole sequence, so passes have whole sequences
                        // (whole_attention.h)
  model_head head;
  uint8_t *weights;  // the segment
  uint64_t weights_bytes;
  uint64_t outside_bytes;            // of tables that stay in the file (tables.h)
  const wick_reader *tables_reader;  // reads their rows
  model_binding *bindings;           // one per tensor of the file
  uint32_t binding_count;
  uint32_t *layer_missing;  // [layers + 1] tensors that have not arrived; last item: tensors
                            // outside of layers
  bool is_embedding_ready;
} loaded_model;

// The tensors of a model, over all its files.
typedef struct model_tensors {
  void *context;
  uint32_t count;
  const gguf_tensor *(*at)(void *context, uint32_t index);
  int32_t (*find)(void *context, const char *name);  // -1: absent
} model_tensors;

// Reads the hyperparameters, lets the family plan its layers, checks every tensor's shape and type,
// and sums the size of the weights. Allocates the lists, not the weights. With `with_predictor`,
// uses a layer that predicts later tokens, if the file has one. WICK_E_UNSUPPORTED, with the
// architecture or feature that this build does not support; WICK_E_FORMAT for keys that are
// missing, invalid, or out of range; WICK_E_SHAPE; WICK_E_NOMEM.
wick_status model_create(memory_gate *memory, const kernel_table *kernels,
                         const gguf_directory *directory, const model_tensors *tensors,
                         bool with_predictor, loaded_model **out, wick_error *error);
void model_destroy(loaded_model *model);
// Allocates the weights segment (weights_bytes) and points the tensors into it.
wick_status model_allocate_weights(loaded_model *model, wick_error *error);

// The functions of a loader_sink that fills a loaded_model.
bool model_wants(void *model, uint32_t tensor);
wick_status model_place(void *model, uint32_t tensor, uint32_t type, uint32_t row,
                        uint32_t first_block, uint32_t block_count, const uint8_t *blocks,
                        wick_error *error);
void model_tensor_done(void *receiver, uint32_t tensor);
// Returns the number of layers that can run: 0 until the embedding has arrived, then the number of
// complete layers before the first incomplete one.
uint32_t model_layers_ready(const loaded_model *model);
bool model_is_ready(const loaded_model *model);

#endif

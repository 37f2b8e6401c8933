// model/family.h — architectures. A family is one file of model/families/: it reads its keys and
// defines the blocks of each layer.
#ifndef WICK_MODEL_FAMILY_H
#define WICK_MODEL_FAMILY_H

#include "model/keys.h"
#include "model/weights.h"

// The input of a family: the model, whose config.layers, hidden and vocab have already been read.
typedef struct model_plan {
  loaded_model *model;
  model_keys *keys;  // plan functions store their failures here
  const model_tensors *tensors;
  bool with_predictor;
  // The page groups of the layers, saved while the predictor is planned.
  model_group groups[MODEL_GROUPS_MAX];
  uint32_t group_count;
} model_plan;

struct model_family {
  const char *name;  // general.architecture
  // Adds config.layers layers with plan_layer, unless a key fails.
  void (*plan)(model_plan *plan);
  bool has_layer_norms;  // with "attention.layer_norm_epsilon", otherwise RMS norms with their own
                         // key
};

// Returns the family of an architecture, or NULL if it is not supported.
const model_family *family_find(gguf_string name);

// Adds the next layer. The model takes ownership of the blocks; a block is NULL if creating it has
// failed.
void plan_layer(model_plan *plan, uint32_t layer, model_block *mixer, model_block *feed_forward);
// Adds a block that runs before all other blocks of a layer that has been planned. It keeps all
// rows. A mixer stores its input for the other mixer (pass_set_aside).
void plan_first(model_plan *plan, uint32_t layer, model_block *first);
// Adds a block that runs after all other blocks of a layer that has been planned.
void plan_last(model_plan *plan, uint32_t layer, model_block *last);
// Allocates a zeroed block of `size_bytes`, whose struct begins with a model_block.
void *plan_block(model_plan *plan, const model_block_ops *ops, size_t size_bytes);
// Reads rotary positions: the "rope.*" keys, with head_dim rotated values per head if the file does
// not specify a number. Returns the index of the rope.
uint32_t plan_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved);
// Reads "rope.dimension_sections": pairs of the rope that are rotated by the positions of time, y,
// x and z, in this order or alternately. Without the key, or with zeros, there is one position.
void plan_axes(model_plan *plan, uint32_t rope, bool is_alternating);
// Plans the rope of layers with a sliding window that differs from `rope`, the rope of the other
// layers, only by its base: "rope.freq_base_swa". Returns `rope` if the file has no such key.
uint32_t plan_window_rope_like(model_plan *plan, uint32_t rope, uint32_t head_dim);
// Plans the rope of layers with a sliding window that has a different base ("rope.freq_base_swa",
// else 10000; "rope.dimension_count_swa") and no scaling except "rope.scaling.attn_factor".
uint32_t plan_window_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved);
// Adds a layer with keys and values of this shape. Returns its position in the pages.
model_pages plan_pages(model_plan *plan, uint32_t kv_heads, uint32_t head_dim, uint32_t window);
// Reads "attention.head_count_kv" of a layer of a hybrid model; 0: it is recurrent. Returns 1 if
// the key is absent.
uint32_t plan_kv_heads(model_plan *plan, uint32_t layer);
// Reads "feed_forward_length", which must exist.
uint32_t plan_ffn(model_plan *plan);
// Reads "feed_forward_length" of one layer: an item of a list, or one number for all layers.
uint32_t plan_ffn_of_layer(model_plan *plan, uint32_t layer);
// Reserves space in the recurrent state of a sequence. Returns its offset in bytes.
uint64_t plan_state(model_plan *plan, uint64_t size_bytes);
// Returns whether the file has a tensor with this full name, for architectures whose files differ.
bool plan_has_tensor(const model_plan *plan, const char *name);
// Leaves out the last "nextn_predict_layers" layers, which predict later tokens, so that they take
// no memory.
void plan_leave_out_predictors(model_plan *plan);
// Returns whether the first of these layers will be used as the predictor. If so, the caller
// creates its blocks, whose pages form a separate group, and then calls plan_predictor.
bool plan_begins_predictor(model_plan *plan);
void plan_predictor(model_plan *plan, model_block *input, model_block *mixer,
                    model_block *feed_forward);
// Rejects windows, with an error that names the key.
void plan_refuse_window(model_plan *plan);
// Rejects a mixture of experts, with an error that names the key.
void plan_refuse_experts(model_plan *plan);

#endif

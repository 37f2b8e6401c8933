// model/family.h — architectures. A family is one file of model/families/: it reads its keys and
// defines the blocks of each layer.
#ifndef WICK_MODEL_FAMILY_H
#define WICK_MODEL_FAMILY_H

#include "model/keys.h"
#include "model/weights.h"

// The input of a family: the model, of which config.layers, hidden and vocab have been read.
typedef struct model_plan {
  loaded_model *model;
  model_keys *keys;  // plan functions store their failures here
  const model_tensors *tensors;
  bool with_predictor;
  // Blocks of the layers, while the predictor is planned.
  model_group groups[MODEL_GROUPS_MAX];
  uint32_t group_count;
} model_plan;

struct model_family {
  const char *name;  // general.architecture
  // Adds config.layers layers with plan_layer, unless a key fails.
  void (*plan)(model_plan *plan);
  bool has_layer_norms;  // with "attention.layer_norm_epsilon", else RMS norms with their own key
};

// NULL: not supported.
const model_family *family_find(gguf_string name);

// The next layer. The model takes ownership of the blocks; NULL if creating one has failed.
void plan_layer(model_plan *plan, uint32_t layer, model_block *mixer, model_block *feed_forward);
// A block that runs before all others of a layer which has been planned. It keeps all rows. A mixer
// stores its input for the other one (pass_set_aside).
void plan_first(model_plan *plan, uint32_t layer, model_block *first);
// A block that runs after all others of a layer which has been planned.
void plan_last(model_plan *plan, uint32_t layer, model_block *last);
// A zeroed block of `size_bytes`, whose struct begins with a model_block.
void *plan_block(model_plan *plan, const model_block_ops *ops, size_t size_bytes);
// Rotary positions: "rope.*" keys, with `dims` of a head if the file does not specify a number.
// Returns the rope's number.
uint32_t plan_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved);
// "rope.dimension_sections": pairs of the rope that are rotated by the positions of time, y, x and
// z, in this order or alternately. Without the key, or with zeros, there is one position.
void plan_axes(model_plan *plan, uint32_t rope, bool is_alternating);
// The same for layers with a sliding window that differ from others, whose rope is `rope`, only by
// their base: "rope.freq_base_swa". Returns `rope` if the file has no such key.
uint32_t plan_window_rope_like(model_plan *plan, uint32_t rope, uint32_t head_dim);
// For layers with a sliding window that have a different base ("rope.freq_base_swa", else 10000;
// "rope.dimension_count_swa") and no scaling except "rope.scaling.attn_factor".
uint32_t plan_window_rope(model_plan *plan, uint32_t head_dim, bool is_interleaved);
// Adds a layer with keys and values of that shape. Returns its place in the pages.
model_pages plan_pages(model_plan *plan, uint32_t kv_heads, uint32_t head_dim, uint32_t window);
// "attention.head_count_kv" of a layer of a hybrid model; 0: it is recurrent. 1 if the key is
// absent.
uint32_t plan_kv_heads(model_plan *plan, uint32_t layer);
// "feed_forward_length", which exists.
uint32_t plan_ffn(model_plan *plan);
// The same, for one layer if it is a list.
uint32_t plan_ffn_of_layer(model_plan *plan, uint32_t layer);
// Reserves room in the recurrent state of a sequence. Returns its offset in bytes.
uint64_t plan_state(model_plan *plan, uint64_t size_bytes);
// Whether the file has a tensor of that full name, for architectures whose files differ.
bool plan_has_tensor(const model_plan *plan, const char *name);
// The last "nextn_predict_layers" layers are for predicting further tokens: they take no memory.
void plan_leave_out_predictors(model_plan *plan);
// Whether the first of them will be used. If so, its blocks are created, whose pages are a separate
// group, and plan_predictor follows.
bool plan_begins_predictor(model_plan *plan);
void plan_predictor(model_plan *plan, model_block *input, model_block *mixer,
                    model_block *feed_forward);
// Refuses windows by the name of their key.
void plan_refuse_window(model_plan *plan);
// Refuses a mixture of experts by the name of its key.
void plan_refuse_experts(model_plan *plan);

#endif

// model/blocks/layer_inputs.h — per-layer embeddings (Gemma 3n, Gemma 4; Google DeepMind 2025):
// each token has a short row for each layer, looked up and projected from its embedding x:
//
//   inputs[layer] = (table[token][layer] * sqrt(dim) + norm(proj(x)[layer] / sqrt(hidden))) /
//   sqrt(2)
//
// After the feed-forward of a layer: hidden += norm(up(gelu(gate(hidden)) * inputs[layer])). In a
// model with streams (blocks/altup.h), the gate reads scale * hidden, and the result is added to
// all streams except the first.
#ifndef WICK_MODEL_BLOCKS_LAYER_INPUTS_H
#define WICK_MODEL_BLOCKS_LAYER_INPUTS_H

#include "model/family.h"

// Reads "embedding_length_per_layer_input": floats per token and layer. 0 or absent: none.
uint32_t layer_inputs_read(model_plan *plan);
// Creates the block that computes the inputs of all layers, as the first mixer of layer 0. Tensors:
// per_layer_token_embd [vocab, layers * dim], per_layer_model_proj [layers * dim, hidden],
// per_layer_proj_norm [dim].
model_block *layer_inputs_make(model_plan *plan, uint32_t dim);
// Creates the block that adds these inputs to a layer, and then multiplies the layer's output by
// layer_output_scale [1], if the file has this tensor. Tensors: inp_gate [dim, hidden], proj
// [hidden, dim], post_norm [hidden], or none if dim is 0; with streams, altup_correct_scale
// [hidden].
model_block *layer_end_make(model_plan *plan, uint32_t dim);

#endif

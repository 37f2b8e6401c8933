// model/families/gemma_layers.h — common parts of Gemma 3n and Gemma 4: layers with and without
// a window, unscaled scores, normalised values, and layers that read the keys and values of earlier
// layers.
#ifndef WICK_MODEL_FAMILIES_GEMMA_LAYERS_H
#define WICK_MODEL_FAMILIES_GEMMA_LAYERS_H

#include "model/blocks/attention.h"

#define GEMMA_PATTERN "attention.sliding_window_pattern"

typedef struct gemma_layers {
  model_plan *plan;
  uint32_t own;     // number of first layers with separate keys and values
  uint32_t period;  // the last of this many layers has no window; 0: GEMMA_PATTERN is a list
  bool has_window_heads;
  uint32_t window, window_rope, rope;
} gemma_layers;

// Reads the metadata keys of both families and sets the scale of embeddings. `heads`: the heads of
// a layer without a window.
gemma_layers gemma_layers_read(model_plan *plan, attention_settings *heads);
// Returns the attention settings of a layer.
attention_settings gemma_layers_attention(const gemma_layers *gemma, uint32_t layer);
// Returns the layer whose keys and values are read by a layer after the first `own`: the last of
// those first layers, or the second to last for a layer with a window. Both layers must have the
// same shape.
const model_block *gemma_layers_source(const gemma_layers *gemma, uint32_t layer,
                                       const attention_settings *is);

#endif

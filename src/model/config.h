// model/config.h — settings of a model as a whole. The structure and sizes of a layer belong to
// its blocks (model/block.h).
#ifndef WICK_MODEL_CONFIG_H
#define WICK_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

// Limits: several times the values of current models, but small enough that products fit 32 bits.
enum {
  MODEL_LAYERS_MAX = 1024,
  MODEL_HIDDEN_MAX = 1 << 16,
  MODEL_FFN_MAX = 1 << 18,
  MODEL_HEADS_MAX = 1024,
  MODEL_HEAD_DIM_MAX = 1024,
  MODEL_WINDOW_MAX = 1 << 30,
  MODEL_EXPERTS_MAX = 1024,
  MODEL_VOCAB_MAX = 1 << 21,
  MODEL_CONTEXT_DEFAULT = 4096
};

typedef struct model_config {
  uint32_t layers, hidden, vocab;
  uint32_t context_trained;  // tokens
  float norm_epsilon;
  bool has_layer_norms;       // norms subtract the mean (Ba et al. 2016), otherwise RMS norms
  float embedding_scale;      // factor of the looked-up rows
  float logit_scale;          // of the logits
  bool scales_media;          // media rows are also multiplied by embedding_scale
  uint32_t deepstack_layers;  // number of first layers after which a row is added to media rows
  float logit_cap;            // not 0: logits become cap * tanh(logit / cap), after the scale
  // For display only: the values of the first layer that has them; 0 if there is none.
  uint32_t heads, kv_heads, head_dim, ffn;
} model_config;

#endif

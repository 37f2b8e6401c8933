// model/config.h — hyper-parameters of a model, read from a GGUF's metadata and checked before a
// byte of weights is asked for. Key names: the GGUF specification's "LLM" section.
#ifndef WICK_MODEL_CONFIG_H
#define WICK_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"

// Limits: several times what is in use today, small enough that products fit 32 bits.
enum {
  MODEL_LAYERS_MAX = 1024,
  MODEL_HIDDEN_MAX = 1 << 16,
  MODEL_FFN_MAX = 1 << 18,
  MODEL_HEADS_MAX = 1024,
  MODEL_HEAD_DIM_MAX = 1024,
  MODEL_VOCAB_MAX = 1 << 21,
  MODEL_CONTEXT_DEFAULT = 4096
};

// What a family of architectures does differently from the others.
typedef struct model_family {
  const char *name;       // general.architecture
  bool rope_interleaved;  // rotates pairs (2i, 2i+1), as the converter permuted them
} model_family;

typedef struct wick_model_config {
  const model_family *family;
  uint32_t layers, hidden, ffn;
  uint32_t heads, kv_heads, head_dim;
  uint32_t rope_dims;  // of a head, the first ones
  uint32_t vocab;
  uint32_t context_trained;
  float norm_epsilon;
  double rope_theta;
  double rope_scale;  // positions are divided by it (linear scaling), 1: none
} wick_model_config;

// `embedding` is the tensor 'token_embd.weight' (in any file of a split model) or NULL: its rows
// are the vocabulary. WICK_E_UNSUPPORTED for an architecture or a feature that this build does not
// run (by name: yarn, experts, …), WICK_E_FORMAT for keys that are missing, wrong, or out of range.
wick_status model_config_read(const gguf_directory *directory, const gguf_tensor *embedding,
                              wick_model_config *config, wick_error *error);

uint32_t wick_q_dim(const wick_model_config *config);   // heads * head_dim
uint32_t wick_kv_dim(const wick_model_config *config);  // kv_heads * head_dim

#endif

// cli/synth_shape.h — shapes of known models, and which type llama-quantize gives to each tensor.
#ifndef WICK_CLI_SYNTH_SHAPE_H
#define WICK_CLI_SYNTH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/types.h"

typedef struct synth_shape {
  const char *name, *architecture;
  uint32_t layers, hidden, ffn, heads, kv_heads, vocab, context;  // all with tied embeddings
  float rope_theta, norm_epsilon;
  const char *pre_tokenizer;
  uint32_t flags;     // SYNTH_HAS_*
  uint32_t head_dim;  // 0: hidden / heads
  uint32_t window;    // 0: none
} synth_shape;

enum {
  SYNTH_HAS_QKV_BIAS = 1,
  SYNTH_HAS_ROPE_FACTORS = 2,  // Llama 3's
  SYNTH_HAS_QK_NORMS = 4,
  SYNTH_HAS_POST_NORMS = 8  // behind attention and behind the feed-forward, too
};

// A way to quantise a whole model: the name that llama-quantize has for it.
typedef struct synth_mix {
  const char *name;
  ggml_type type;      // of most matrices
  uint32_t file_type;  // general.file_type
  bool has_more_bits;  // the "_M" of Q4_K_M: Q6_K for some of attn_v and ffn_down
  bool is_whole;       // the embedding has no type of its own
} synth_mix;

typedef enum synth_content {
  SYNTH_MATRIX,
  SYNTH_NORM,
  SYNTH_BIAS,
  SYNTH_ROPE_FACTORS
} synth_content;

typedef struct synth_tensor {
  char name[64];
  synth_content content;
  ggml_type type;
  uint64_t dims[2];
  uint32_t dim_count;
  float deviation;  // standard deviation of the values of matrices and biases
} synth_tensor;

// NULL when there is no such name; `index` counts from 0 for listing them.
const synth_shape *synth_find_shape(const char *name);
const synth_mix *synth_find_mix(const char *name);
const synth_shape *synth_shape_at(uint32_t index);
const synth_mix *synth_mix_at(uint32_t index);

uint32_t synth_head_dim(const synth_shape *shape);

uint32_t synth_tensor_count(const synth_shape *shape);
// In the order of a converted file: embedding, layers, final norm.
void synth_tensor_at(const synth_shape *shape, const synth_mix *mix, uint32_t index,
                     synth_tensor *tensor);

#endif

// lab/synth_shape.h — shapes of known models, and the type that llama-quantize chooses for each
// tensor.
#ifndef WICK_LAB_SYNTH_SHAPE_H
#define WICK_LAB_SYNTH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/types.h"

// The blocks that mix positions in a layer; a sum of values is a set of blocks.
typedef enum synth_mixer {
  SYNTH_ATTENTION = 1,
  SYNTH_SHORT_CONV = 2,  // LFM2
  SYNTH_MAMBA2 = 4,      // Granite 4 H
  SYNTH_DELTA_NET = 8    // Qwen3.5
} synth_mixer;

// Layers without attention.
typedef struct synth_hybrid {
  synth_mixer mixer;
  uint64_t attention_layers;  // bit i: layer i always has attention
  uint32_t conv_kernel;
  uint32_t heads, head_dim;     // heads of a layer's state; short convolutions have none
  uint32_t groups, state_size;  // groups of its keys
} synth_hybrid;

typedef struct synth_experts {
  uint32_t count, used, ffn;
} synth_experts;

typedef struct synth_shape {
  const char *name, *architecture;
  uint32_t layers, hidden, ffn, heads, kv_heads, vocab, context;
  float rope_theta, norm_epsilon;
  const char *pre_tokenizer;
  uint32_t flags;                // SYNTH_HAS_*
  uint32_t head_dim;             // 0: hidden / heads
  uint32_t window;               // 0: no sliding window
  const synth_hybrid *hybrid;    // NULL: all layers have attention
  const synth_experts *experts;  // NULL: dense
} synth_shape;

enum {
  SYNTH_HAS_QKV_BIAS = 1,
  SYNTH_HAS_ROPE_FACTORS = 2,  // as in Llama 3
  SYNTH_HAS_QK_NORMS = 4,
  SYNTH_HAS_POST_NORMS = 8,    // norms also after attention and after the feed-forward
  SYNTH_HAS_QUERY_GATES = 16,  // attn_q has a gate for each query
  SYNTH_HAS_SINKS = 32,
  SYNTH_HAS_OUTPUT = 64,            // the embedding is not the output
  SYNTH_HAS_POST_NAMES = 128,       // the feed-forward's norm is named post_attention_norm
  SYNTH_HAS_EMBEDDING_NAMES = 256,  // the final norm is named token_embd_norm
  SYNTH_HAS_YARN = 512,             // as in GPT-OSS
  SYNTH_HAS_QUARTER_ROPE = 1024,    // RoPE rotates a quarter of a head
  SYNTH_HAS_NO_ROPE = 2048,
  SYNTH_HAS_PREDICTOR = 4096  // the last layer predicts the token after the next
};

// A way to quantise a whole model, under llama-quantize's name.
typedef struct synth_mix {
  const char *name;
  ggml_type type;  // type of most matrices
  ggml_type expert_type;
  uint32_t file_type;  // general.file_type
  bool has_more_bits;  // the "_M" of Q4_K_M: Q6_K for some of attn_v and ffn_down
  bool is_whole;       // the embedding has no separate type
} synth_mix;

typedef enum synth_content {
  SYNTH_MATRIX,
  SYNTH_NORM,
  SYNTH_BIAS,   // biases, and weights of convolutions and routers: F32, mean 0
  SYNTH_DECAY,  // negative values
  SYNTH_ROPE_FACTORS
} synth_content;

typedef struct synth_tensor {
  char name[64];
  synth_content content;
  ggml_type type;
  uint64_t dims[3];
  uint32_t dim_count;
  float deviation;  // standard deviation of matrix values; half the range of other values
} synth_tensor;

// Find a shape or a mix. Return NULL for an unknown name or index; `index` counts from 0.
const synth_shape *synth_find_shape(const char *name);
const synth_mix *synth_find_mix(const char *name);
const synth_shape *synth_shape_at(uint32_t index);
const synth_mix *synth_mix_at(uint32_t index);

uint32_t synth_head_dim(const synth_shape *shape);
synth_mixer synth_mixer_at(const synth_shape *shape, uint32_t layer);

// A position in the list of a model's tensors; all zeros: the beginning.
typedef struct synth_cursor {
  uint32_t part, layer;
} synth_cursor;

// Gets the next tensor in the order of a converted file: embedding, layers, final norm. Returns
// false after the last one.
bool synth_next_tensor(const synth_shape *shape, const synth_mix *mix, synth_cursor *at,
                       synth_tensor *tensor);

#endif

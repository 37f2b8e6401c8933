// media/weights.h — the weights of an encoder in memory, and functions that read them from an
// mmproj file.
#ifndef WICK_MEDIA_WEIGHTS_H
#define WICK_MEDIA_WEIGHTS_H

#include "media/kinds.h"
#include "media/layout.h"
#include "media/media.h"
#include "tensor/tensor.h"

enum { MEDIA_STEPS_MAX = 12, MEDIA_FEATURES_MAX = 16, MEDIA_LAYERS_MAX = 256 };

typedef struct media_norm {
  float *weight, *bias;  // NULL: absent
} media_norm;

// Limits of the values before and after a matrix product.
typedef struct media_clamps {
  float input_min, input_max, output_min, output_max;
} media_clamps;

typedef struct media_linear {
  weight_tensor matrix;  // dims 0: absent
  float *bias;           // or NULL
  media_clamps *clamps;  // or NULL
} media_linear;

static inline bool linear_is_present(const media_linear *linear) {
  return tensor_is_present(&linear->matrix);
}

typedef struct media_feed_forward {
  media_linear gate, up, down;  // gate may be absent
  uint32_t width;               // between up and down
} media_feed_forward;

// A step after the layers (kinds.h), and its weights.
typedef struct media_bound_step {
  const media_step *step;
  media_norm norm;
  media_linear linear;
  media_feed_forward gated;
  uint32_t in, out;  // values per row before and after the step
} media_bound_step;

typedef struct media_projector {
  media_bound_step steps[MEDIA_STEPS_MAX];
  uint32_t count;
  uint32_t out;  // values per row
} media_projector;

typedef struct vision_attention {
  media_norm norm;
  media_linear qkv, q, k, v, out;  // qkv, or q, k and v
  float *q_norm, *k_norm;          // [head width] or NULL
} vision_attention;

typedef struct vision_layer {
  vision_attention attention;
  media_norm norm;  // before the feed-forward
  media_feed_forward feed_forward;
  float *attention_scale, *ffn_scale, *scale;  // [width] or NULL
  float *attention_post, *ffn_post;            // norm weights, or NULL
  bool is_windowed;
  media_projector *deepstack;  // or NULL
} vision_layer;

// MiniCPM's reduction of the rows to a quarter, in the middle of the layers.
typedef struct vision_reduction {
  vision_attention attention;  // within a block
  media_projector projector;
  uint32_t after;  // index of the layer before it
} vision_reduction;

struct audio_kind;
struct audio_weights;

struct media_model {
  memory_gate *memory;
  const kernel_table *kernels;
  struct media_block *blocks;  // all memory for weights
  uint64_t weight_bytes, fingerprint;
  media_options options;
  media_text text;
  const vision_kind *kind;
  const struct audio_kind *audio;  // NULL: images
  struct audio_weights *sound;
  uint32_t bands, stack;  // of audio: bands of a spectrum, joined rows
  layout_settings layout;
  float mean[3], std[3];
  float epsilon;
  media_activation activation;
  bool has_rms_norms;
  uint32_t width, heads, kv_heads, head_dim;
  uint32_t head_room;    // head_dim as required by the kernels: a multiple of 4
  uint32_t layer_count;  // layers that run
  uint32_t merge;        // patches per side, for the projector
  uint32_t window;       // patches per side; 0: none
  uint32_t features[MEDIA_FEATURES_MAX], feature_count;
  vision_layer *layers;
  vision_reduction *reduction;  // or NULL
  media_linear patches;         // [width][3 * patch * patch]
  float *class_row;             // [width] or NULL
  float *positions;             // [position_rows][width], [2] for two tables, or NULL
  uint32_t position_rows;
  media_norm pre_norm, post_norm, embedding_norm;
  float *std_bias, *std_scale;  // [width] or NULL
  float *line_break;            // [row width]: a row after each line of the grid except the last
  media_projector projector;
  uint32_t deepstack_count;
};

// ---- reading (weights.c) ----

// Reads tensors by name. All functions return false after the first failure.
typedef struct weight_reader {
  media_model *model;
  const gguf_directory *directory;
  const media_reader *source;
  wick_error *error;
  uint8_t *piece;        // room for rows of the file
  const char *modality;  // prefix of keys: "vision."
  const char *root;      // prefix of tensors: "v."
} weight_reader;

// ---- metadata (metadata.c): NAME is clip.MODALITY.NAME, or begins with clip ----

// Fails with an error about a key; always returns false. A name that begins with "tensor " is used
// unchanged.
bool metadata_fail_key(const weight_reader *reader, wick_status status, const char *name,
                       const char *why);
bool metadata_u32(const weight_reader *reader, const char *name, uint32_t low, uint32_t high,
                  bool is_optional, uint32_t *out);
bool metadata_flag(const weight_reader *reader, const char *name, bool *out);
// Sets *out to NULL if the file has no such list.
bool metadata_list(const weight_reader *reader, const char *name, const gguf_value **out);
bool metadata_projector(const weight_reader *reader, gguf_string *out);
bool metadata_unknown_projector(const weight_reader *reader, gguf_string name);  // always false
bool metadata_epsilon(weight_reader *reader);
bool metadata_heads(weight_reader *reader);

// ---- both kinds of media ----

bool vision_open(weight_reader *reader);
bool audio_open(weight_reader *reader);
// Reads the attention PREFIX + NORM, attn_q ... of the model's heads (layers.c).
bool layers_read_attention(weight_reader *reader, const char *prefix, const char *norm,
                           vision_attention *out);
// Reads model->layers[index], without a deepstack. ffn 0: any width.
bool layers_read(weight_reader *reader, uint32_t index, uint32_t ffn);

enum { WEIGHT_NAME_BYTES = 80 };

// Allocates zeroed memory that is freed with the model. NULL after a failure.
void *weights_take(weight_reader *reader, uint64_t size_bytes);
const gguf_tensor *weights_find(const weight_reader *reader, const char *prefix, const char *name);
// Reads tensor PREFIX + NAME as `count` floats. If the tensor is absent: NULL if it is optional,
// otherwise WICK_E_NODATA.
bool weights_floats(weight_reader *reader, const char *prefix, const char *name, uint64_t count,
                    bool is_optional, float **out);
// Reads a required tensor into the caller's memory.
bool weights_read(weight_reader *reader, const char *prefix, const char *name, uint64_t count,
                  float *out);
// Reads NAME.weight, and NAME.bias if the file has it, of `count` values.
bool weights_norm(weight_reader *reader, const char *prefix, const char *name, uint32_t count,
                  bool is_optional, media_norm *out);
// Reads NAME.weight [out][in], NAME.bias and the clamps of NAME. If *out is 0, any number is
// accepted and stored there.
bool weights_linear(weight_reader *reader, const char *prefix, const char *name, uint32_t in,
                    uint32_t *out, bool is_optional, media_linear *linear);
// Converts a matrix [rows][cols] of floats to the kernels' layout.
bool weights_pack(weight_reader *reader, const float *values, uint32_t rows, uint32_t cols,
                  weight_tensor *out);
// Reads the steps with names PREFIX + NAME for rows of `in` values.
bool weights_projector(weight_reader *reader, const media_step *steps, const char *prefix,
                       uint32_t in, uint32_t merge, media_projector *out);
// Reads the feed-forward PREFIX + {gate,up,down}. *width 0: any.
bool weights_feed_forward(weight_reader *reader, const char *prefix, uint32_t in, uint32_t out,
                          uint32_t width, bool may_swap, media_feed_forward *ffn);

#endif

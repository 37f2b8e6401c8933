// media/audio.h — the properties of each audio encoder of mmproj files, and audio weights.
#ifndef WICK_MEDIA_AUDIO_H
#define WICK_MEDIA_AUDIO_H

#include "media/sound.h"
#include "media/weights.h"

typedef enum audio_stem {
  STEM_WHISPER,  // two convolutions over time
  STEM_QWEN3A,   // three convolutions over bands and time, piece by piece
  STEM_GEMMA4A,  // two convolutions over time and bands, norms of channels
  STEM_LFM2A,    // three convolutions; the later ones are per channel, then across channels
  STEM_GRANITE   // a matrix product
} audio_stem;

enum { STEM_STAGES_MAX = 5, WHISPER_FRAMES = 3000, QWEN3A_FRAMES = 100 };

typedef struct audio_kind {
  const char *name;
  sound_front front;
  audio_stem stem;
  bool is_conformer;
  bool has_rms_norms;
  float epsilon;  // 0: use the file's value
  const media_step *steps;
  const char *before, *after;
  vision_kind rules;  // of the transformer, which has no positions and no rotation
} audio_kind;

// Returns the encoder with this name, or NULL for an unknown type.
const audio_kind *audio_kind_find(gguf_string name);

typedef struct conformer_layer {
  media_norm ffn_norm[2], attention_norm, conv_norm, conv_inner, last_norm;
  float *ffn_post[2], *attention_post;  // norm weights, or NULL
  media_feed_forward ffn[2];
  media_linear q, k, v, out, relative, conv_in, conv_out;
  float *bias_u, *bias_v;  // added to queries: [heads * head_dim] or NULL
  float *query_scale;      // [head_dim] or NULL
  float *table;            // [2 * farthest + 1][head_dim], Granite only
  float *taps;             // [channels][conv_taps]
  float *taps_bias;        // [channels] or NULL
} conformer_layer;

typedef struct qformer_attention {
  media_linear q, k, v, out;
  media_norm norm;
} qformer_attention;

typedef struct qformer_layer {
  qformer_attention self, cross;
  media_feed_forward ffn;
  media_norm norm;
} qformer_layer;

// Granite's Q-Former: learned queries attend to windows of rows.
typedef struct audio_qformer {
  uint32_t window, queries, heads, width, in, blocks;
  float *query;  // [queries][width]
  media_norm norm;
  qformer_layer *layers;
} audio_qformer;

typedef struct audio_weights {
  sound_front front;  // the kind's front end, adjusted by the options
  media_linear convolutions[STEM_STAGES_MAX];
  float *by_channel[STEM_STAGES_MAX], *by_channel_bias[STEM_STAGES_MAX];  // [channels][3][3]
  media_norm norms[STEM_STAGES_MAX];
  uint32_t channels[STEM_STAGES_MAX];
  media_linear input;
  conformer_layer *layers;
  uint32_t conv_channels, conv_taps;
  uint32_t attended, farthest;  // rows that a row attends to (Granite: its block); largest distance
  media_linear aside, back;     // Granite: to classes after half of the layers, and back
  audio_qformer qformer;
} audio_weights;

// Return the rows of the transformer and the rows of the result for a chunk of frames.
uint32_t audio_inner_rows(const media_model *model, uint32_t frames);
uint32_t audio_rows(const media_model *model, uint32_t frames);

#endif

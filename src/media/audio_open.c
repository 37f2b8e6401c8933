// media/audio_open.c — reads the settings and weights of an audio encoder (weights.h), and rejects
// invalid files.
#include "base/text.h"
#include "media/audio.h"

enum { WIDTH_MAX = 1 << 16, FFN_MAX = 1 << 18, GEMMA_ATTENDED = 12, SINUSOID_WIDTH = 512 };

static bool read_kind(weight_reader *reader) {
  gguf_string name;
  if (!metadata_projector(reader, &name)) return false;
  if (gguf_string_equals(name, "qwen2.5o")) name = (gguf_string){"qwen2a", 6};
  reader->model->audio = audio_kind_find(name);
  if (reader->model->audio == NULL) return metadata_unknown_projector(reader, name);
  reader->model->kind = &reader->model->audio->rules;
  return true;
}

static bool read_settings(weight_reader *reader) {
  media_model *model = reader->model;
  const audio_kind *kind = model->audio;
  const bool has_stack = kind->stem == STEM_GRANITE;
  uint32_t projected;
  model->merge = model->stack = 1;
  if (!metadata_u32(reader, "embedding_length", 1, WIDTH_MAX, false, &model->width) ||
      !metadata_u32(reader, "block_count", 1, MEDIA_LAYERS_MAX, false, &model->layer_count) ||
      !metadata_u32(reader, "projection_dim", 0, UINT32_MAX, false, &projected) ||
      !metadata_u32(reader, "num_mel_bins", has_stack ? 2 : 1, SOUND_MELS_MAX, false,
                    &model->bands) ||
      !metadata_u32(reader, "projector.stack_factor", 1, 64, true, &model->stack) ||
      !metadata_epsilon(reader) || !metadata_heads(reader)) {
    return false;
  }
  if (has_stack) model->bands /= 2;
  if (kind->epsilon != 0) model->epsilon = kind->epsilon;
  model->has_rms_norms = kind->has_rms_norms;
  model->activation = kind->is_conformer ? ACTIVATION_SILU : ACTIVATION_GELU_ERF;
  return true;
}

// ---- stems ----

static bool read_convolution(weight_reader *reader, const char *name, uint32_t stage, uint32_t in,
                             uint32_t taps) {
  audio_weights *sound = reader->model->sound;
  uint32_t *channels = &sound->channels[stage];
  *channels = 0;
  return weights_linear(reader, "", name, in * taps, channels, false, &sound->convolutions[stage]);
}

// Reads the filters of each channel, then the product across channels.
static bool read_by_channel(weight_reader *reader, uint32_t stage, uint32_t before, uint32_t after,
                            uint32_t channels) {
  audio_weights *sound = reader->model->sound;
  char weight[WEIGHT_NAME_BYTES], bias[WEIGHT_NAME_BYTES], across[WEIGHT_NAME_BYTES];
  text_format(weight, sizeof weight, "a.conv1d.%u.weight", (unsigned)before);
  text_format(bias, sizeof bias, "a.conv1d.%u.bias", (unsigned)before);
  text_format(across, sizeof across, "a.conv1d.%u", (unsigned)after);
  return weights_floats(reader, "", weight, 9ull * channels, false, &sound->by_channel[stage]) &&
         weights_floats(reader, "", bias, channels, true, &sound->by_channel_bias[stage]) &&
         read_convolution(reader, across, stage, channels, 1);
}

static uint32_t halved(uint32_t value) { return (value - 1) / 2 + 1; }

static bool read_table(weight_reader *reader, uint32_t least) {
  media_model *model = reader->model;
  const gguf_tensor *tensor = weights_find(reader, "a.", "position_embd.weight");
  if (tensor == NULL || tensor->dims[1] < least || tensor->dims[1] > 1u << 20) {
    return metadata_fail_key(reader, WICK_E_SHAPE, "tensor a.position_embd.weight",
                             "is missing or too short");
  }
  model->position_rows = (uint32_t)tensor->dims[1];
  return weights_floats(reader, "a.", "position_embd.weight",
                        (uint64_t)model->position_rows * model->width, false, &model->positions);
}

static bool check_width(weight_reader *reader, uint32_t channels, const char *name) {
  return channels == reader->model->width ||
         metadata_fail_key(reader, WICK_E_SHAPE, name, "does not have embedding_length outputs");
}

static bool read_whisper(weight_reader *reader) {
  const media_model *model = reader->model;
  return read_convolution(reader, "a.conv1d.1", 0, model->bands, 3) &&
         read_convolution(reader, "a.conv1d.2", 1, model->sound->channels[0], 3) &&
         check_width(reader, model->sound->channels[1], "tensor a.conv1d.2.weight") &&
         read_table(reader, WHISPER_FRAMES / 2);
}

static bool read_input(weight_reader *reader, const char *name, uint32_t in) {
  uint32_t width = reader->model->width;
  return weights_linear(reader, "a.", name, in, &width, false, &reader->model->sound->input);
}

static bool read_qwen3a(weight_reader *reader) {
  const media_model *model = reader->model;
  const uint32_t *channels = model->sound->channels;
  const uint32_t height = halved(halved(halved(model->bands)));
  return read_convolution(reader, "a.conv2d.1", 0, 1, 9) &&
         read_convolution(reader, "a.conv2d.2", 1, channels[0], 9) &&
         read_convolution(reader, "a.conv2d.3", 2, channels[1], 9) &&
         read_input(reader, "conv_out", channels[2] * height) &&
         read_table(reader, halved(halved(halved(QWEN3A_FRAMES))));
}

static bool read_gemma4a(weight_reader *reader) {
  const media_model *model = reader->model;
  audio_weights *sound = model->sound;
  return read_convolution(reader, "a.conv1d.0", 0, 1, 9) &&
         weights_norm(reader, "a.", "conv1d.0.norm", sound->channels[0], false, &sound->norms[0]) &&
         read_convolution(reader, "a.conv1d.1", 1, sound->channels[0], 9) &&
         weights_norm(reader, "a.", "conv1d.1.norm", sound->channels[1], false, &sound->norms[1]) &&
         read_input(reader, "input_projection", halved(halved(model->bands)) * sound->channels[1]);
}

static bool read_lfm2a(weight_reader *reader) {
  const media_model *model = reader->model;
  const uint32_t *channels = model->sound->channels;
  return read_convolution(reader, "a.conv1d.0", 0, 1, 9) &&
         read_by_channel(reader, 1, 2, 3, channels[0]) &&
         read_by_channel(reader, 2, 5, 6, channels[1]) &&
         read_input(reader, "pre_encode.out", halved(halved(halved(model->bands))) * channels[2]);
}

static bool read_stem(weight_reader *reader) {
  switch (reader->model->audio->stem) {
    case STEM_WHISPER:
      return read_whisper(reader);
    case STEM_QWEN3A:
      return read_qwen3a(reader);
    case STEM_GEMMA4A:
      return read_gemma4a(reader);
    case STEM_LFM2A:
      return read_lfm2a(reader);
    default:
      return read_input(reader, "input_projection", 2 * reader->model->bands);
  }
}

// ---- conformers ----

static bool read_conformer_ffn(weight_reader *reader, const char *prefix, const char *ending,
                               uint32_t width, media_feed_forward *ffn) {
  char up[WEIGHT_NAME_BYTES], down[WEIGHT_NAME_BYTES];
  uint32_t out = reader->model->width;
  text_format(up, sizeof up, "ffn_up%s", ending);
  text_format(down, sizeof down, "ffn_down%s", ending);
  ffn->width = width;
  return weights_linear(reader, prefix, up, out, &ffn->width, false, &ffn->up) &&
         weights_linear(reader, prefix, down, ffn->width, &out, false, &ffn->down);
}

static bool read_conformer_attention(weight_reader *reader, const char *prefix,
                                     conformer_layer *layer) {
  const media_model *model = reader->model;
  const audio_stem stem = model->audio->stem;
  const bool is_gemma = stem == STEM_GEMMA4A, is_lfm2 = stem == STEM_LFM2A;
  uint32_t heads = model->heads * model->head_dim, width = model->width;
  const char *norm = is_gemma ? "attn_pre_norm" : "ln1";
  if (!weights_norm(reader, prefix, norm, width, false, &layer->attention_norm) ||
      !weights_linear(reader, prefix, "attn_q", width, &heads, false, &layer->q) ||
      !weights_linear(reader, prefix, "attn_k", width, &heads, false, &layer->k) ||
      !weights_linear(reader, prefix, "attn_v", width, &heads, false, &layer->v) ||
      !weights_linear(reader, prefix, "attn_out", heads, &width, false, &layer->out)) {
    return false;
  }
  if (is_gemma) {
    return weights_linear(reader, prefix, "attn_k_rel", width, &heads, false, &layer->relative) &&
           weights_floats(reader, prefix, "per_dim_scale.weight", model->head_dim, false,
                          &layer->query_scale) &&
           weights_floats(reader, prefix, "attn_post_norm.weight", width, false,
                          &layer->attention_post);
  }
  if (is_lfm2) {
    return weights_linear(reader, prefix, "linear_pos", SINUSOID_WIDTH, &heads, false,
                          &layer->relative) &&
           weights_floats(reader, prefix, "pos_bias_u", heads, false, &layer->bias_u) &&
           weights_floats(reader, prefix, "pos_bias_v", heads, false, &layer->bias_v);
  }
  return weights_floats(reader, prefix, "attn_rel_pos_emb",
                        (2ull * model->sound->farthest + 1) * model->head_dim, false,
                        &layer->table);
}

static bool read_conformer_convolution(weight_reader *reader, const char *prefix,
                                       conformer_layer *layer) {
  const media_model *model = reader->model;
  audio_weights *sound = model->sound;
  const bool is_gemma = model->audio->stem == STEM_GEMMA4A;
  const gguf_tensor *taps = weights_find(reader, prefix, "conv_dw.weight");
  uint32_t both = 0, width = model->width;
  if (!weights_norm(reader, prefix, is_gemma ? "conv_norm" : "norm_conv", width, false,
                    &layer->conv_norm) ||
      !weights_linear(reader, prefix, "conv_pw1", width, &both, false, &layer->conv_in)) {
    return false;
  }
  const bool is_first = layer == sound->layers;
  if (taps == NULL || taps->dims[0] == 0 || taps->dims[0] > 255 || both % 2 != 0 ||
      (!is_first && (taps->dims[0] != sound->conv_taps || both / 2 != sound->conv_channels))) {
    return metadata_fail_key(reader, WICK_E_SHAPE, "tensor conv_dw.weight", "is missing or wrong");
  }
  sound->conv_channels = both / 2;
  sound->conv_taps = (uint32_t)taps->dims[0];
  return weights_floats(reader, prefix, "conv_dw.weight",
                        (uint64_t)sound->conv_taps * sound->conv_channels, false, &layer->taps) &&
         weights_floats(reader, prefix, "conv_dw.bias", sound->conv_channels, true,
                        &layer->taps_bias) &&
         weights_norm(reader, prefix, is_gemma ? "norm_conv" : "conv_norm", sound->conv_channels,
                      false, &layer->conv_inner) &&
         weights_linear(reader, prefix, "conv_pw2", sound->conv_channels, &width, false,
                        &layer->conv_out);
}

static bool read_conformer(weight_reader *reader, uint32_t index, uint32_t ffn) {
  const media_model *model = reader->model;
  conformer_layer *layer = &model->sound->layers[index];
  const uint32_t width = model->width;
  char prefix[WEIGHT_NAME_BYTES];
  text_format(prefix, sizeof prefix, "a.blk.%u.", (unsigned)index);
  return weights_norm(reader, prefix, "ffn_norm", width, false, &layer->ffn_norm[0]) &&
         weights_norm(reader, prefix, "ffn_norm_1", width, false, &layer->ffn_norm[1]) &&
         weights_floats(reader, prefix, "ffn_post_norm.weight", width, true, &layer->ffn_post[0]) &&
         weights_floats(reader, prefix, "ffn_post_norm_1.weight", width, true,
                        &layer->ffn_post[1]) &&
         read_conformer_ffn(reader, prefix, "", ffn, &layer->ffn[0]) &&
         read_conformer_ffn(reader, prefix, "_1", ffn, &layer->ffn[1]) &&
         read_conformer_attention(reader, prefix, layer) &&
         read_conformer_convolution(reader, prefix, layer) &&
         weights_norm(reader, prefix, "ln2", width, false, &layer->last_norm);
}

static bool read_conformers(weight_reader *reader, uint32_t ffn) {
  media_model *model = reader->model;
  audio_weights *sound = model->sound;
  sound->attended = GEMMA_ATTENDED;
  if (model->audio->stem == STEM_GRANITE &&
      (!metadata_u32(reader, "chunk_size", 1, 1 << 16, false, &sound->attended) ||
       !metadata_u32(reader, "max_pos_emb", sound->attended - 1, 1 << 16, false,
                     &sound->farthest))) {
    return false;
  }
  sound->layers = weights_take(reader, model->layer_count * sizeof *sound->layers);
  if (sound->layers == NULL) return false;
  for (uint32_t i = 0; i < model->layer_count; i++) {
    if (!read_conformer(reader, i, ffn)) return false;
  }
  return true;
}

// ---- Granite's Q-Former ----

static bool read_qformer_attention(weight_reader *reader, const char *prefix, const char *name,
                                   uint32_t in, qformer_attention *out) {
  uint32_t width = reader->model->sound->qformer.width;
  char full[WEIGHT_NAME_BYTES];
  text_format(full, sizeof full, "%s%s_", prefix, name);
  return weights_linear(reader, full, "attn_q", width, &width, false, &out->q) &&
         weights_linear(reader, full, "attn_k", in, &width, false, &out->k) &&
         weights_linear(reader, full, "attn_v", in, &width, false, &out->v) &&
         weights_linear(reader, full, "attn_out", width, &width, false, &out->out) &&
         weights_norm(reader, full, "attn_norm", width, false, &out->norm);
}

static bool read_qformer_layer(weight_reader *reader, uint32_t index, qformer_layer *layer) {
  audio_qformer *former = &reader->model->sound->qformer;
  char prefix[WEIGHT_NAME_BYTES], inner[WEIGHT_NAME_BYTES];
  text_format(prefix, sizeof prefix, "a.proj_blk.%u.", (unsigned)index);
  text_format(inner, sizeof inner, "%sffn_", prefix);
  return read_qformer_attention(reader, prefix, "self", former->width, &layer->self) &&
         read_qformer_attention(reader, prefix, "cross", former->in, &layer->cross) &&
         weights_feed_forward(reader, inner, former->width, former->width, 0, false, &layer->ffn) &&
         weights_norm(reader, prefix, "ffn_norm", former->width, false, &layer->norm);
}

static bool read_qformer_settings(weight_reader *reader) {
  audio_qformer *former = &reader->model->sound->qformer;
  uint32_t factor;
  if (!metadata_u32(reader, "projector.window_size", 1, 4096, false, &former->window) ||
      !metadata_u32(reader, "projector.downsample_rate", 1, former->window, false, &factor) ||
      !metadata_u32(reader, "projector.head_count", 1, 256, false, &former->heads)) {
    return false;
  }
  former->queries = former->window / factor;
  const gguf_tensor *query = weights_find(reader, "a.", "proj_query");
  if (query == NULL || query->dims[0] > WIDTH_MAX || query->dims[0] % former->heads != 0 ||
      query->dims[1] != former->queries) {
    return metadata_fail_key(reader, WICK_E_SHAPE, "tensor a.proj_query", "is missing or wrong");
  }
  former->width = (uint32_t)query->dims[0];
  return true;
}

static bool read_qformer(weight_reader *reader) {
  media_model *model = reader->model;
  audio_qformer *former = &model->sound->qformer;
  if (!read_qformer_settings(reader) ||
      !weights_floats(reader, "a.", "proj_query", (uint64_t)former->queries * former->width, false,
                      &former->query) ||
      !weights_norm(reader, "a.", "proj_norm", former->width, false, &former->norm)) {
    return false;
  }
  former->in = model->width * (1 + model->feature_count);
  char name[WEIGHT_NAME_BYTES];
  for (;; former->blocks++) {
    text_format(name, sizeof name, "proj_blk.%u.ffn_up.weight", (unsigned)former->blocks);
    if (weights_find(reader, "a.", name) == NULL) break;
  }
  former->layers = weights_take(reader, (former->blocks + 1) * sizeof *former->layers);
  if (former->layers == NULL) return false;
  for (uint32_t i = 0; i < former->blocks; i++) {
    if (!read_qformer_layer(reader, i, &former->layers[i])) return false;
  }
  return true;
}

static bool read_granite(weight_reader *reader) {
  media_model *model = reader->model;
  uint32_t classes = 0, width = model->width;
  const gguf_value *list;
  if (!metadata_list(reader, "feature_layer", &list)) return false;
  for (uint32_t i = 0; list != NULL && i < list->count && i < MEDIA_FEATURES_MAX; i++) {
    const int64_t layer = gguf_array_i64(list, i);
    if (layer < 0 || layer > model->layer_count) {
      return metadata_fail_key(reader, WICK_E_FORMAT, "feature_layer", "lists a missing layer");
    }
    model->features[model->feature_count++] = (uint32_t)layer;
  }
  return weights_linear(reader, "a.", "enc_ctc_out", width, &classes, false,
                        &model->sound->aside) &&
         weights_linear(reader, "a.", "enc_ctc_out_mid", classes, &width, false,
                        &model->sound->back) &&
         read_qformer(reader);
}

// ---- the encoder ----

static bool read_layers(weight_reader *reader, uint32_t ffn) {
  media_model *model = reader->model;
  model->layers = weights_take(reader, model->layer_count * sizeof *model->layers);
  if (model->layers == NULL) return false;
  for (uint32_t i = 0; i < model->layer_count; i++) {
    if (!layers_read(reader, i, ffn)) return false;
  }
  return true;
}

bool audio_open(weight_reader *reader) {
  media_model *model = reader->model;
  uint32_t ffn = 0;
  if (!read_kind(reader) || !read_settings(reader) ||
      !metadata_u32(reader, "feed_forward_length", 0, FFN_MAX, false, &ffn)) {
    return false;
  }
  model->sound = weights_take(reader, sizeof *model->sound);
  if (model->sound == NULL) return false;
  sound_front *front = &model->sound->front;
  *front = model->audio->front;
  if (model->options.follows_llama_cpp && front->llama_cpp_floor != 0) {
    front->floor = front->llama_cpp_floor;
  }
  const bool is_granite = model->audio->stem == STEM_GRANITE;
  if (!read_stem(reader) ||
      !(model->audio->is_conformer ? read_conformers(reader, ffn) : read_layers(reader, ffn)) ||
      (is_granite && !read_granite(reader))) {
    return false;
  }
  const uint32_t width = is_granite ? model->sound->qformer.width : model->width;
  if (!weights_projector(reader, model->audio->steps, "", width, model->stack, &model->projector)) {
    return false;
  }
  if (reader->source == NULL && model->text.width == 0) model->text.width = model->projector.out;
  if (model->projector.out == model->text.width && model->text.deepstack_count == 0) return true;
  (void)fail_with(reader->error, WICK_E_SHAPE, WICK_NO_OFFSET,
                  "mmproj: audio rows have %u values, but the text model takes %u and %u "
                  "deepstack parts",
                  (unsigned)model->projector.out, (unsigned)model->text.width,
                  (unsigned)model->text.deepstack_count);
  return false;
}

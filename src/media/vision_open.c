// media/vision_open.c — reads the settings and weights of an image encoder (weights.h), and rejects
// invalid files.
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "base/text.h"
#include "media/weights.h"

enum {
  IMAGE_SIZE_MAX = 8192,
  WIDTH_MAX = 1 << 16,
  FFN_MAX = 1 << 18,
  HEADS_MAX = 1024,
  MERGE_MAX = 32,
  TILES_SETTING_MAX = 1024,
  BUCKETS = 70,
  WINDOW_PIXELS = 112,
  PIECE_ROOM_BYTES = 1 << 18
};

// ---- metadata of images ----

static bool read_colour(const weight_reader *reader, const char *key, float out[3]) {
  const gguf_value *list;
  if (!metadata_list(reader, key, &list)) return false;
  if (list == NULL) return metadata_fail_key(reader, WICK_E_NODATA, key, "is missing");
  if (list->count < 3)
    return metadata_fail_key(reader, WICK_E_FORMAT, key, "has fewer than 3 values");
  for (uint32_t i = 0; i < 3; i++) {
    out[i] = (float)gguf_array_f64(list, i);
    if (!math_is_finite_f32(out[i]))
      return metadata_fail_key(reader, WICK_E_FORMAT, key, "is not finite");
  }
  return true;
}

static bool read_kind(weight_reader *reader) {
  gguf_string name;
  bool has_images;
  if (!metadata_flag(reader, "clip.has_vision_encoder", &has_images)) return false;
  if (!has_images) {
    return metadata_fail_key(reader, WICK_E_FORMAT, "clip.has_vision_encoder", "is not set");
  }
  if (!metadata_projector(reader, &name)) return false;
  if (gguf_string_equals(name, "qwen2.5o")) name = (gguf_string){"qwen2.5vl_merger", 16};
  reader->model->kind = vision_kind_find(name);
  return reader->model->kind != NULL || metadata_unknown_projector(reader, name);
}

static bool read_activation(weight_reader *reader) {
  bool is_gelu, is_silu;
  if (!metadata_flag(reader, "clip.use_gelu", &is_gelu) ||
      !metadata_flag(reader, "clip.use_silu", &is_silu)) {
    return false;
  }
  if (is_gelu && is_silu) {
    return metadata_fail_key(reader, WICK_E_FORMAT, "clip.use_gelu",
                             "and clip.use_silu are both set");
  }
  media_model *model = reader->model;
  model->activation = is_gelu   ? ACTIVATION_GELU_TANH
                      : is_silu ? ACTIVATION_SILU
                                : ACTIVATION_GELU_QUICK;
  const bool is_gemma4 = model->kind->positions == POSITIONS_AXES;
  if (is_gemma4 && !model->options.follows_llama_cpp && !is_silu) {
    model->activation = ACTIVATION_GELU_TANH;
  }
  return true;
}

static bool read_shape(weight_reader *reader) {
  media_model *model = reader->model;
  uint32_t projected;
  if (!metadata_u32(reader, "embedding_length", 1, WIDTH_MAX, false, &model->width) ||
      !metadata_u32(reader, "block_count", 1, MEDIA_LAYERS_MAX, false, &model->layer_count) ||
      !metadata_u32(reader, "projection_dim", 0, UINT32_MAX, false, &projected)) {
    return false;
  }
  if (!metadata_epsilon(reader)) return false;
  // InternViT 6B, whose file does not specify these properties
  const bool is_large = model->width == 3200 && model->layer_count == 45;
  model->has_rms_norms =
      model->kind->has_rms_norms || (model->kind->sizing == SIZING_CANDIDATES && is_large);
  if (!metadata_heads(reader)) return false;
  return model->kind->rotary == ROTARY_NONE || model->head_dim % 4 == 0 ||
         metadata_fail_key(reader, WICK_E_UNSUPPORTED, "attention.head_count",
                           "has heads that cannot be rotated: width is not a multiple of 4");
}

static bool read_pinpoints(weight_reader *reader) {
  layout_settings *layout = &reader->model->layout;
  const char *key = "image_grid_pinpoints";
  const gguf_value *list;
  if (!metadata_list(reader, key, &list)) return false;
  if (list == NULL) return true;
  if (list->count % 2 != 0 || list->count / 2 > LAYOUT_PINPOINTS_MAX) {
    return metadata_fail_key(reader, WICK_E_FORMAT, key, "is not a list of pairs or too long");
  }
  layout->pinpoint_count = (uint32_t)(list->count / 2);
  for (uint32_t i = 0; i < 2 * layout->pinpoint_count; i++) {
    const int64_t side = gguf_array_i64(list, i);
    if (side < layout->image_size || side > IMAGE_SIZE_MAX || side % layout->image_size != 0) {
      return metadata_fail_key(reader, WICK_E_FORMAT, key,
                               "has a side that is not a multiple of image_size");
    }
    layout->pinpoints[i / 2][i % 2] = (uint32_t)side;
  }
  return true;
}

static bool read_merge(weight_reader *reader) {
  media_model *model = reader->model;
  uint32_t merge = model->kind->merge;
  if (!metadata_u32(reader, "spatial_merge_size", 1, MERGE_MAX, true, &merge) ||
      !metadata_u32(reader, "projector.scale_factor", 1, MERGE_MAX, true, &merge)) {
    return false;
  }
  if (model->kind->has_fixed_merge) merge = model->kind->merge;
  model->layout.merge = model->merge = merge;
  if (model->kind->sizing != SIZING_SLICES) return true;
  model->merge = 2;  // the remaining merging happens between the layers
  return merge == 2 || merge == 4 ||
         metadata_fail_key(reader, WICK_E_FORMAT, "projector.scale_factor", "is not 2 or 4");
}

static bool read_limits(weight_reader *reader) {
  layout_settings *layout = &reader->model->layout;
  const uint32_t align = layout->patch * layout->merge;
  if (layout->kind->blocks_max != 0) {
    layout->pixels_min = layout->kind->blocks_min * align * align;
    layout->pixels_max = layout->kind->blocks_max * align * align;
    return true;
  }
  if (layout->kind->sizing != SIZING_SMART) return true;
  return metadata_u32(reader, "image_min_pixels", 1, IMAGE_PIXELS_MAX, false,
                      &layout->pixels_min) &&
         metadata_u32(reader, "image_max_pixels", 1, IMAGE_PIXELS_MAX, false, &layout->pixels_max);
}

static bool read_layout(weight_reader *reader) {
  media_model *model = reader->model;
  layout_settings *layout = &model->layout;
  layout->kind = model->kind;
  layout->tiles_min = 1;
  layout->tiles_max = 12;
  layout->pictures_max = model->options.max_tiles;
  layout->pads = model->options.follows_llama_cpp;
  if (!metadata_u32(reader, "image_size", 1, IMAGE_SIZE_MAX, false, &layout->image_size) ||
      !metadata_u32(reader, "patch_size", 1, 256, false, &layout->patch) || !read_merge(reader) ||
      !metadata_u32(reader, "preproc_image_size", 0, IMAGE_SIZE_MAX, true, &layout->longest) ||
      !metadata_u32(reader, "preproc_min_tiles", 1, TILES_SETTING_MAX, true, &layout->tiles_min) ||
      !metadata_u32(reader, "preproc_max_tiles", layout->tiles_min, TILES_SETTING_MAX, true,
                    &layout->tiles_max) ||
      !read_limits(reader) || !read_pinpoints(reader) ||
      !read_colour(reader, "image_mean", model->mean) ||
      !read_colour(reader, "image_std", model->std)) {
    return false;
  }
  for (int i = 0; i < 3; i++) {
    if (model->std[i] == 0) return metadata_fail_key(reader, WICK_E_FORMAT, "image_std", "is 0");
  }
  return layout->image_size >= layout->patch ||
         metadata_fail_key(reader, WICK_E_FORMAT, "patch_size", "exceeds image_size");
}

// Determines the layers whose inputs the projector reads, and the number of layers to run.
static bool read_features(weight_reader *reader) {
  media_model *model = reader->model;
  const char *key = "feature_layer";
  const gguf_value *list;
  if (!metadata_list(reader, key, &list)) return false;
  if (!model->kind->leaves_last) return true;
  if (list == NULL) {
    if (model->layer_count > 1) model->layer_count--;
    return true;
  }
  if (list->count == 0 || list->count > MEDIA_FEATURES_MAX) {
    return metadata_fail_key(reader, WICK_E_FORMAT, key, "has no layers or too many");
  }
  uint32_t most = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const int64_t layer = gguf_array_i64(list, i);
    if (layer < 0 || layer > model->layer_count) {
      return metadata_fail_key(reader, WICK_E_FORMAT, key, "lists a layer that is not in the file");
    }
    model->features[i] = (uint32_t)layer;
    if (layer > most) most = (uint32_t)layer;
  }
  model->feature_count = (uint32_t)list->count;
  model->layer_count = most;
  return true;
}

// ---- tensors ----

static bool read_patches(weight_reader *reader) {
  media_model *model = reader->model;
  const uint32_t cols = 3 * model->layout.patch * model->layout.patch;
  const uint64_t count = (uint64_t)model->width * cols;
  const gguf_tensor *first = weights_find(reader, "v.", "patch_embd.weight");
  if (first == NULL)
    return metadata_fail_key(reader, WICK_E_NODATA, "tensor v.patch_embd.weight", "is missing");
  if (first->size_bytes / 2 < count / 2) {
    return metadata_fail_key(reader, WICK_E_SHAPE, "tensor v.patch_embd.weight", "is too small");
  }
  const bool is_two = weights_find(reader, "v.", "patch_embd.weight.1") != NULL;
  float *values = memory_alloc_wide(model->memory, 2 * count * sizeof *values);
  if (values == NULL) {
    (void)memory_fail(model->memory, reader->error, "weights of the image encoder");
    return false;
  }
  bool is_read =
      weights_read(reader, "v.", "patch_embd.weight", count, values) &&
      (!is_two || weights_read(reader, "v.", "patch_embd.weight.1", count, values + count));
  for (uint64_t i = 0; i < count && is_read && is_two; i++) values[i] += values[count + i];
  is_read =
      is_read && weights_pack(reader, values, model->width, cols, &model->patches.matrix) &&
      weights_floats(reader, "v.", "patch_embd.bias", model->width, true, &model->patches.bias);
  memory_free(model->memory, values);
  return is_read;
}

static uint32_t root_of_square(uint64_t value) {
  uint32_t root = 0;
  while ((uint64_t)(root + 1) * (root + 1) <= value) root++;
  return root;
}

// Returns whether a table of `rows` rows has the right size.
static bool fits_positions(const media_model *model, uint64_t rows, bool is_pair) {
  const uint64_t side = model->layout.image_size / model->layout.patch;
  const uint64_t root = root_of_square(rows);
  switch (model->kind->positions) {
    case POSITIONS_FIXED:
      return rows == side * side + (model->class_row != NULL);
    case POSITIONS_AXES:
      return is_pair && rows >= model->merge;
    case POSITIONS_BUCKETS:
      return rows == (uint64_t)BUCKETS * BUCKETS;
    default:
      return root * root == rows;
  }
}

static bool read_positions(weight_reader *reader) {
  media_model *model = reader->model;
  const char *name = "position_embd.weight";
  if (model->kind->positions == POSITIONS_NONE) return true;
  const gguf_tensor *tensor = weights_find(reader, "v.", name);
  if (tensor == NULL && model->kind->positions == POSITIONS_BICUBIC) return true;
  if (tensor == NULL)
    return metadata_fail_key(reader, WICK_E_NODATA, "tensor v.position_embd.weight", "is missing");
  const uint64_t rows = tensor->dims[1];
  const bool is_pair = tensor->dims[2] == 2;
  if (tensor->dims[0] != model->width || rows > 1u << 24 || !fits_positions(model, rows, is_pair)) {
    return metadata_fail_key(reader, WICK_E_SHAPE, "tensor v.position_embd.weight",
                             "does not match the patches of an image");
  }
  model->position_rows = (uint32_t)rows;
  return weights_floats(reader, "v.", name, rows * model->width * (is_pair ? 2 : 1), false,
                        &model->positions);
}

static bool read_deepstack(weight_reader *reader, uint32_t index, vision_layer *layer) {
  static const media_step STEPS[] = {STEP(SHUFFLE), STEP_LAYER_NORM("norm", 0),
                                     STEPS_MLP("fc1", GELU_TANH, "fc2"), STEPS_END};
  media_model *model = reader->model;
  char prefix[WEIGHT_NAME_BYTES];
  text_format(prefix, sizeof prefix, "v.deepstack.%u.", (unsigned)index);
  if (weights_find(reader, prefix, "fc1.weight") == NULL) return true;
  layer->deepstack = weights_take(reader, sizeof *layer->deepstack);
  if (layer->deepstack == NULL) return false;
  model->deepstack_count++;
  return weights_projector(reader, STEPS, prefix, model->width, model->merge, layer->deepstack);
}

static bool read_layers(weight_reader *reader) {
  media_model *model = reader->model;
  uint32_t ffn = 0, pattern = 0;
  if (!metadata_u32(reader, "feed_forward_length", 0, FFN_MAX, false, &ffn) ||
      !metadata_u32(reader, "n_wa_pattern", 0, MEDIA_LAYERS_MAX, true, &pattern)) {
    return false;
  }
  model->layers = weights_take(reader, (model->layer_count + 1) * sizeof *model->layers);
  if (model->layers == NULL) return false;
  if (model->kind->has_windows && pattern != 0) {
    const uint32_t blocks = WINDOW_PIXELS / model->layout.patch / model->merge;
    model->window = (blocks == 0 ? 1 : blocks) * model->merge;
  }
  for (uint32_t i = 0; i < model->layer_count; i++) {
    if (!layers_read(reader, i, ffn) || !read_deepstack(reader, i, &model->layers[i])) {
      return false;
    }
    model->layers[i].is_windowed = model->window != 0 && pattern != 0 && (i + 1) % pattern != 0;
  }
  return true;
}

static bool read_reduction(weight_reader *reader) {
  static const media_step STEPS[] = {STEP(SHUFFLE), STEP_LAYER_NORM("ds_ln", 0),
                                     STEPS_MLP("ds_ffn_up", GELU_TANH, "ds_ffn_down"), STEPS_END};
  media_model *model = reader->model;
  if (model->kind->sizing != SIZING_SLICES || model->layout.merge != 4) return true;
  const char *key = "wa_layer_indexes";
  const gguf_value *list;
  if (!metadata_list(reader, key, &list)) return false;
  if (list == NULL || list->count == 0)
    return metadata_fail_key(reader, WICK_E_NODATA, key, "is missing");
  const int64_t after = gguf_array_i64(list, 0);
  if (after < 0 || after >= model->layer_count) {
    return metadata_fail_key(reader, WICK_E_FORMAT, key, "lists a layer that is not in the file");
  }
  model->reduction = weights_take(reader, sizeof *model->reduction);
  if (model->reduction == NULL) return false;
  model->reduction->after = (uint32_t)after;
  model->window = 2;
  if (!layers_read_attention(reader, "v.vit_merger.", "ln1", &model->reduction->attention) ||
      !weights_projector(reader, STEPS, "v.vit_merger.", model->width, 2,
                         &model->reduction->projector)) {
    return false;
  }
  return model->reduction->projector.out == model->width ||
         metadata_fail_key(reader, WICK_E_SHAPE, "tensor v.vit_merger.ds_ffn_down.weight",
                           "does not have embedding_length outputs");
}

static bool read_rest(weight_reader *reader) {
  media_model *model = reader->model;
  const uint32_t width = model->width;
  const uint32_t features = model->feature_count == 0 ? 1 : model->feature_count;
  return weights_floats(reader, "v.", "class_embd", width, true, &model->class_row) &&
         read_positions(reader) &&
         weights_norm(reader, "v.", "pre_ln", width, true, &model->pre_norm) &&
         weights_norm(reader, "v.", "post_ln", width, true, &model->post_norm) &&
         weights_norm(reader, "v.", "norm_embd", width, true, &model->embedding_norm) &&
         weights_floats(reader, "v.", "std_bias", width, true, &model->std_bias) &&
         weights_floats(reader, "v.", "std_scale", width, true, &model->std_scale) &&
         weights_projector(reader, model->kind->steps, "", width * features, model->merge,
                           &model->projector);
}

// Disables merging if the projector's optional matrix is missing: the patches are then left
// unchanged.
static void settle_merge(media_model *model) {
  for (uint32_t i = 0; i < model->projector.count; i++) {
    const media_bound_step *bound = &model->projector.steps[i];
    if (bound->step->op == OP_GATHER && bound->in == bound->out) model->merge = 1;
  }
}

// Checks that the projector's rows fit the text model.
static bool check_rows(weight_reader *reader) {
  media_model *model = reader->model;
  media_text *text = &model->text;
  settle_merge(model);
  if (reader->source == NULL && text->width == 0) {  // without a text model
    text->width = model->projector.out;
    text->deepstack_count = model->deepstack_count;
  }
  bool fits =
      model->projector.out == text->width && model->deepstack_count == text->deepstack_count;
  for (uint32_t i = 0; i < model->layer_count; i++) {
    const media_projector *deepstack = model->layers[i].deepstack;
    if (deepstack != NULL && deepstack->out != text->width) fits = false;
  }
  if (fits) {
    const bool has_breaks =
        model->kind->sizing == SIZING_SMART && model->kind->rotary == ROTARY_NEIGHBOURS;
    return !has_breaks || weights_floats(reader, "v.", "token_embd.img_break", text->width, true,
                                         &model->line_break);
  }
  (void)fail_with(reader->error, WICK_E_SHAPE, WICK_NO_OFFSET,
                  "mmproj: rows have %u values and %u deepstack parts, but the text model takes %u "
                  "and %u",
                  (unsigned)model->projector.out, (unsigned)model->deepstack_count,
                  (unsigned)text->width, (unsigned)text->deepstack_count);
  return false;
}

bool vision_open(weight_reader *reader) {
  return read_kind(reader) && read_activation(reader) && read_shape(reader) &&
         read_layout(reader) && read_features(reader) && read_patches(reader) &&
         read_rest(reader) && read_layers(reader) && read_reduction(reader) && check_rows(reader);
}

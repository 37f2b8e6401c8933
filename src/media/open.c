// media/open.c — opens an mmproj file for one kind of media (media.h).
#include <string.h>

#include "base/hash.h"
#include "media/audio.h"

enum { PIECE_ROOM_BYTES = 1 << 18 };

// Mixes the settings into the fingerprint: they change results but are not in the tensors' bytes.
static void mix_settings(media_model *model) {
  const layout_settings *layout = &model->layout;
  const uint32_t numbers[] = {layout->image_size,
                              layout->patch,
                              layout->merge,
                              layout->longest,
                              layout->tiles_min,
                              layout->tiles_max,
                              layout->pixels_min,
                              layout->pixels_max,
                              model->heads,
                              model->layer_count,
                              model->activation,
                              model->window,
                              model->bands,
                              model->stack,
                              model->options.follows_llama_cpp,
                              model->options.max_tiles,
                              model->options.max_image_tokens};
  uint64_t hash = model->fingerprint;
  const char *name = model->audio != NULL ? model->audio->name : model->kind->name;
  hash = hash_bytes(name, strlen(name), hash);
  hash = hash_bytes(numbers, sizeof numbers, hash);
  hash = hash_bytes(layout->pinpoints, sizeof layout->pinpoints, hash);
  hash = hash_bytes(model->mean, sizeof model->mean, hash);
  hash = hash_bytes(model->std, sizeof model->std, hash);
  hash = hash_bytes(&model->epsilon, sizeof model->epsilon, hash);
  model->fingerprint = hash;
}

static wick_status check_architecture(const gguf_directory *directory, wick_error *error) {
  gguf_string name;
  char quoted[GGUF_QUOTE_BYTES];
  const wick_status status = gguf_get_string(directory, "general.architecture", &name, error);
  if (status == WICK_OK && gguf_string_equals(name, "clip")) return WICK_OK;
  if (status == WICK_E_FORMAT) return status;
  if (status == WICK_E_NODATA) name = (gguf_string){"", 0};
  return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                   "mmproj: general.architecture is '%s', not 'clip'", gguf_quote(name, quoted));
}

static bool has_encoder(const gguf_directory *directory, const char *key) {
  bool has = false;
  wick_error error;
  return gguf_get_bool(directory, key, &has, &error) == WICK_OK && has;
}

wick_status media_find_encoders(const gguf_directory *directory, bool *has_images, bool *has_audio,
                                wick_error *error) {
  const wick_status status = check_architecture(directory, error);
  if (status != WICK_OK) return status;
  *has_images = has_encoder(directory, "clip.has_vision_encoder");
  *has_audio = has_encoder(directory, "clip.has_audio_encoder");
  if (*has_images || *has_audio) return WICK_OK;
  return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                   "mmproj: neither clip.has_vision_encoder nor clip.has_audio_encoder is set");
}

wick_status media_open(memory_gate *memory, const kernel_table *kernels,
                       const gguf_directory *directory, media_kind kind, const media_text *text,
                       const media_reader *reader, const media_options *options, media_model **out,
                       wick_error *error) {
  *out = NULL;
  const wick_status status = check_architecture(directory, error);
  if (status != WICK_OK) return status;
  media_model *model = memory_alloc_zeroed(memory, sizeof *model);
  uint8_t *piece = memory_alloc(memory, PIECE_ROOM_BYTES);
  wick_error failure = {.status = WICK_OK};
  if (model == NULL || piece == NULL) {
    memory_free(memory, piece);
    memory_free(memory, model);
    return memory_fail(memory, error, "the media encoder");
  }
  model->memory = memory;
  model->kernels = kernels;
  model->weight_bytes = sizeof *model;
  model->text = *text;
  model->options = *options;
  const bool is_audio = kind == MEDIA_AUDIO;
  weight_reader state = {.model = model,
                         .directory = directory,
                         .source = reader,
                         .error = &failure,
                         .piece = piece,
                         .modality = is_audio ? "audio." : "vision.",
                         .root = is_audio ? "a." : "v."};
  const bool is_read = is_audio ? audio_open(&state) : vision_open(&state);
  memory_free(memory, piece);
  if (is_read) {
    mix_settings(model);
    *out = model;
    return WICK_OK;
  }
  media_close(model);
  if (error != NULL) *error = failure;
  return failure.status;
}

uint32_t media_row_width(const media_model *model) {
  return model->text.width * (1 + model->deepstack_count);
}

uint64_t media_weight_bytes(const media_model *model) { return model->weight_bytes; }

uint64_t media_fingerprint(const media_model *model) { return model->fingerprint; }

// media/text_model.c — reads the properties of the text model that an encoder needs.
#include "base/text.h"
#include "media/media.h"

enum { KEY_BYTES = 160 };

// Returns ARCHITECTURE + name.
static const char *key_of(char out[KEY_BYTES], gguf_string architecture, const char *name) {
  text_format(out, KEY_BYTES, "%.*s.%s", (int)architecture.size_bytes, architecture.bytes, name);
  return out;
}

wick_status media_text_read(const gguf_directory *directory, media_text *out, wick_error *error) {
  gguf_string name;
  char key[KEY_BYTES];
  *out = (media_text){0};
  wick_status status = gguf_get_string(directory, "general.architecture", &name, error);
  if (status == WICK_E_NODATA || (status == WICK_OK && name.size_bytes > 64)) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET,
                     "model: general.architecture is missing or too long");
  }
  if (status != WICK_OK) return status;
  status = gguf_get_u32(directory, key_of(key, name, "embedding_length"), &out->width, error);
  if (status == WICK_E_NODATA) {
    return fail_with(error, WICK_E_FORMAT, WICK_NO_OFFSET, "model: %s is missing", key);
  }
  if (status != WICK_OK) return status;
  status = gguf_get_u32(directory, key_of(key, name, "n_deepstack_layers"), &out->deepstack_count,
                        error);
  if (status != WICK_OK && status != WICK_E_NODATA) return status;
  const gguf_value *sections = gguf_find(directory, key_of(key, name, "rope.dimension_sections"));
  out->has_axes = sections != NULL && sections->type == GGUF_ARRAY &&
                  sections->item_type != GGUF_STRING && sections->count > 1 &&
                  gguf_array_i64(sections, 1) > 0;
  const bool is_small_gemma4 = out->width == 1536 || out->width == 2560;
  out->sees_both_ways = gguf_string_equals(name, "gemma3") ||
                        (gguf_string_equals(name, "gemma4") && !is_small_gemma4);
  return WICK_OK;
}

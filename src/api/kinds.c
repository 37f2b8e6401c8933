// api/kinds.c — rejects files that belong to a model but are not models. Called only for models
// that need the extras.
#include "api/insides.h"

wick_status engine_refuse_kind(const gguf_directory *directory, wick_error *error) {
  static const struct {
    const char *key, *value, *what;
  } KINDS[] = {
      {"general.type", "adapter", "an adapter: load it with its model (--lora)"},
      {"general.type", "mmproj", "an image or audio projector"},
      {"general.architecture", "clip", "an image or audio projector"},
  };
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    gguf_string text;
    wick_error ignored;
    if (gguf_get_string(directory, KINDS[i].key, &text, &ignored) != WICK_OK) continue;
    if (!gguf_string_equals(text, KINDS[i].value)) continue;
    return fail_with(error, WICK_E_UNSUPPORTED, gguf_find(directory, KINDS[i].key)->offset_bytes,
                     "the file is not a model: '%s' is '%s', %s", KINDS[i].key, KINDS[i].value,
                     KINDS[i].what);
  }
  return WICK_OK;
}

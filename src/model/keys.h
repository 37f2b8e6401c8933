// model/keys.h — hyper-parameters by name, from a GGUF's metadata ("ARCHITECTURE.name"; the GGUF
// specification's "LLM" section). The first failure is kept; reading continues with fallbacks.
#ifndef WICK_MODEL_KEYS_H
#define WICK_MODEL_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"

typedef struct model_keys {
  const gguf_directory *directory;
  const char *architecture;
  wick_error *error;
  wick_status status;  // of the first failure
} model_keys;

// A whole number within [1, most], which is required.
uint32_t keys_size(model_keys *keys, const char *name, uint32_t most);
// A whole number within [least, most]. Absent: `fallback`, or an error when that is 0.
uint32_t keys_count(model_keys *keys, const char *name, uint32_t least, uint32_t most,
                    uint32_t fallback);
// The same, or 0 if it is absent.
uint32_t keys_count_or_none(model_keys *keys, const char *name, uint32_t most);
// A layer's count: item `layer` of an array that has one for each of `layers`, or the number that
// applies to all. Absent: `fallback`.
uint32_t keys_count_of_layer(model_keys *keys, const char *name, uint32_t layer, uint32_t layers,
                             uint32_t most, uint32_t fallback);
// A number above 0 and below 1e30. Absent: `fallback`, or an error when that is 0.
double keys_number(model_keys *keys, const char *name, double fallback);
// The same, or 0 if it is absent or 0.
double keys_number_or_none(model_keys *keys, const char *name);
// True or false. Absent: `fallback`.
bool keys_flag(model_keys *keys, const char *name, bool fallback);
// Returns false, and leaves *text unchanged, if it is absent.
bool keys_text(model_keys *keys, const char *name, gguf_string *text);
// Whether it exists and is an array.
bool keys_is_list(const model_keys *keys, const char *name);
// The offset of the key in the file; WICK_NO_OFFSET if it is absent.
uint64_t keys_offset(const model_keys *keys, const char *name);
#endif

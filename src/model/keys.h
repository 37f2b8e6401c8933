// model/keys.h — reads hyperparameters by name from a GGUF's metadata ("ARCHITECTURE.name"; the
// GGUF specification's "LLM" section). The first failure is kept; reading continues with fallbacks.
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

// Reads a required whole number within [1, most].
uint32_t keys_size(model_keys *keys, const char *name, uint32_t most);
// Reads a whole number within [least, most]. If the key is absent: `fallback`, or an error if
// `fallback` is 0.
uint32_t keys_count(model_keys *keys, const char *name, uint32_t least, uint32_t most,
                    uint32_t fallback);
// Like keys_count, but returns 0 if the key is absent.
uint32_t keys_count_or_none(model_keys *keys, const char *name, uint32_t most);
// Reads a layer's count: item `layer` of an array of `layers` items, or a single number that
// applies to all layers. If absent: `fallback`.
uint32_t keys_count_of_layer(model_keys *keys, const char *name, uint32_t layer, uint32_t layers,
                             uint32_t most, uint32_t fallback);
// Reads a number above 0 and below 1e30. If the key is absent: `fallback`, or an error if
// `fallback` is 0.
double keys_number(model_keys *keys, const char *name, double fallback);
// Like keys_number, but returns 0 if the key is absent or 0.
double keys_number_or_none(model_keys *keys, const char *name);
// Reads a boolean. If absent: `fallback`.
bool keys_flag(model_keys *keys, const char *name, bool fallback);
// Reads a string. If the key is absent, returns false and leaves *text unchanged.
bool keys_text(model_keys *keys, const char *name, gguf_string *text);
// Returns whether the key exists and is an array.
bool keys_is_list(const model_keys *keys, const char *name);
// Returns the offset of the key in the file, or WICK_NO_OFFSET if it is absent.
uint64_t keys_offset(const model_keys *keys, const char *name);
// Fails at the key, with a message like that of fail_with.
#define KEYS_FAIL(keys, code, name, ...) \
  ((keys)->status = fail_with((keys)->error, code, keys_offset(keys, name), __VA_ARGS__))
#endif

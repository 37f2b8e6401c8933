// model/keys.c — see keys.h.
#include "model/keys.h"

#include "base/text.h"

enum { KEY_BYTES = 160 };

static void make_key(const model_keys *keys, const char *name, char key[KEY_BYTES]) {
  text_format(key, KEY_BYTES, "%s.%s", keys->architecture, name);
}

static uint64_t offset_of(const model_keys *keys, const char *key) {
  const gguf_value *value = gguf_find(keys->directory, key);
  return value == NULL ? WICK_NO_OFFSET : value->offset_bytes;
}

uint64_t keys_offset(const model_keys *keys, const char *name) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  return offset_of(keys, key);
}

bool keys_is_list(const model_keys *keys, const char *name) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  const gguf_value *value = gguf_find(keys->directory, key);
  return value != NULL && value->type == GGUF_ARRAY;
}

static void fail_missing(model_keys *keys, const char *key) {
  keys->status =
      fail_with(keys->error, WICK_E_FORMAT, WICK_NO_OFFSET, "the key '%s' is missing", key);
}

static void check_count(model_keys *keys, const char *key, uint32_t value, uint32_t least,
                        uint32_t most) {
  if (value >= least && value <= most) return;
  keys->status = fail_with(keys->error, WICK_E_FORMAT, offset_of(keys, key),
                           "'%s' is %u, which is not between %u and %u", key, value, least, most);
}

// Reads a count. Some files store an array with one number per layer instead of a single number.
static wick_status get_count(const model_keys *keys, const char *key, uint32_t *out) {
  const gguf_value *value = gguf_find(keys->directory, key);
  const bool is_list = value != NULL && value->type == GGUF_ARRAY && value->count != 0 &&
                       value->item_type != GGUF_STRING && value->item_type != GGUF_ARRAY;
  if (!is_list) return gguf_get_u32(keys->directory, key, out, keys->error);
  const int64_t first = gguf_array_i64(value, 0);
  for (uint64_t i = 1; i < value->count; i++) {
    const int64_t item = gguf_array_i64(value, i);
    if (item == first) continue;
    return fail_with(keys->error, WICK_E_UNSUPPORTED, value->offset_bytes,
                     "'%s' is %lld in the first layer and %lld in layer %llu. This architecture "
                     "needs one number for all layers.",
                     key, (long long)first, (long long)item, (unsigned long long)i);
  }
  if (first < 0 || first > UINT32_MAX) {
    return fail_with(keys->error, WICK_E_FORMAT, value->offset_bytes,
                     "'%s' is %lld in every layer, which is not a count", key, (long long)first);
  }
  *out = (uint32_t)first;
  return WICK_OK;
}

uint32_t keys_count(model_keys *keys, const char *name, uint32_t least, uint32_t most,
                    uint32_t fallback) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  uint32_t value = fallback;
  if (keys->status != WICK_OK) return value;
  const wick_status status = get_count(keys, key, &value);
  if (status == WICK_E_NODATA && fallback == 0) {
    fail_missing(keys, key);
  } else if (status != WICK_OK && status != WICK_E_NODATA) {
    keys->status = status;
  } else {
    check_count(keys, key, value, least, most);
  }
  return value;
}

uint32_t keys_size(model_keys *keys, const char *name, uint32_t most) {
  return keys_count(keys, name, 1, most, 0);
}

uint32_t keys_count_or_none(model_keys *keys, const char *name, uint32_t most) {
  if (keys->status != WICK_OK || keys_offset(keys, name) == WICK_NO_OFFSET) return 0;
  return keys_count(keys, name, 0, most, 1);
}

uint32_t keys_count_of_layer(model_keys *keys, const char *name, uint32_t layer, uint32_t layers,
                             uint32_t most, uint32_t fallback) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  if (keys->status != WICK_OK) return fallback;
  const gguf_value *value = gguf_find(keys->directory, key);
  if (value == NULL) return fallback;
  if (value->type != GGUF_ARRAY) return keys_count(keys, name, 0, most, 1);
  if (value->count < layers) {
    keys->status = fail_with(keys->error, WICK_E_FORMAT, value->offset_bytes,
                             "'%s' has %llu items, but the model has %u layers", key,
                             (unsigned long long)value->count, layers);
    return fallback;
  }
  if (value->item_type == GGUF_STRING || value->item_type == GGUF_ARRAY) {
    keys->status = fail_with(keys->error, WICK_E_FORMAT, value->offset_bytes,
                             "'%s' is not an array of numbers", key);
    return fallback;
  }
  const int64_t item = gguf_array_i64(value, layer);
  if (item >= 0 && item <= most) return (uint32_t)item;
  keys->status = fail_with(keys->error, WICK_E_FORMAT, value->offset_bytes,
                           "item %u of '%s' is %lld, which is not between 0 and %u", layer, key,
                           (long long)item, most);
  return fallback;
}

static double number_above(model_keys *keys, const char *name, double least, double fallback) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  double value = fallback;
  if (keys->status != WICK_OK) return value;
  const wick_status status = gguf_get_f64(keys->directory, key, &value, keys->error);
  if (status == WICK_E_NODATA && fallback == 0) {
    fail_missing(keys, key);
  } else if (status != WICK_OK && status != WICK_E_NODATA) {
    keys->status = status;
  } else if (!(value > least && value < 1e30)) {
    keys->status =
        fail_with(keys->error, WICK_E_FORMAT, offset_of(keys, key),
                  "'%s' is %g, must be a number above %g and below 1e30", key, value, least);
  }
  return value;
}

double keys_number(model_keys *keys, const char *name, double fallback) {
  return number_above(keys, name, 0, fallback);
}

double keys_number_or_none(model_keys *keys, const char *name) {
  if (keys->status != WICK_OK || keys_offset(keys, name) == WICK_NO_OFFSET) return 0;
  return number_above(keys, name, -1e-300, 0);
}

bool keys_flag(model_keys *keys, const char *name, bool fallback) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  bool value = fallback;
  if (keys->status != WICK_OK) return value;
  const wick_status status = gguf_get_bool(keys->directory, key, &value, keys->error);
  if (status != WICK_OK && status != WICK_E_NODATA) keys->status = status;
  return value;
}

bool keys_text(model_keys *keys, const char *name, gguf_string *text) {
  char key[KEY_BYTES];
  make_key(keys, name, key);
  if (keys->status != WICK_OK) return false;
  const wick_status status = gguf_get_string(keys->directory, key, text, keys->error);
  if (status != WICK_OK && status != WICK_E_NODATA) keys->status = status;
  return status == WICK_OK;
}

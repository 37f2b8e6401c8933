// format/gguf.c — creates, destroys and reads a complete GGUF directory.
#include "format/gguf.h"

#include <string.h>

#include "base/text.h"
#include "format/gguf_directory.h"

wick_status gguf_directory_create(memory_gate *memory, gguf_directory **out, wick_error *error) {
  gguf_directory *directory = memory_alloc_zeroed(memory, sizeof *directory);
  if (directory == NULL) {
    return memory_fail(memory, error, "a model's directory");
  }
  directory->memory = memory;
  directory->need_bytes = 4;
  *out = directory;
  return WICK_OK;
}

void gguf_directory_destroy(gguf_directory *directory) {
  if (directory == NULL) return;
  memory_gate *memory = directory->memory;
  memory_free(memory, directory->bytes);
  memory_free(memory, directory->values);
  memory_free(memory, directory->tensors);
  memory_free(memory, directory->value_index.slots);
  memory_free(memory, directory->tensor_index.slots);
  memory_free(memory, directory->by_offset);
  memory_free(memory, directory);
}

void gguf_directory_set_file(gguf_directory *directory, uint32_t file) { directory->file = file; }

bool gguf_directory_is_complete(const gguf_directory *directory) {
  return directory->stage == GGUF_AT_END && directory->failure.status == WICK_OK;
}

uint32_t gguf_version(const gguf_directory *directory) { return directory->version; }

uint64_t gguf_directory_bytes(const gguf_directory *directory) { return directory->position; }

uint64_t gguf_data_offset(const gguf_directory *directory) { return directory->data_offset; }

uint32_t gguf_alignment(const gguf_directory *directory) { return directory->alignment; }

size_t gguf_value_count(const gguf_directory *directory) { return directory->value_count; }

const gguf_value *gguf_value_at(const gguf_directory *directory, size_t index) {
  return &directory->values[index];
}

size_t gguf_tensor_count(const gguf_directory *directory) { return directory->tensor_count; }

const gguf_tensor *gguf_tensor_at(const gguf_directory *directory, size_t index) {
  return &directory->tensors[index];
}

// ---- Types ----

uint32_t gguf_type_bytes(uint32_t type) {
  static const uint8_t BYTES[GGUF_F64 + 1] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type <= GGUF_F64 ? BYTES[type] : 0;
}

static const char *type_name(gguf_value_type type) {
  static const char *const NAMES[GGUF_F64 + 1] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                  "i32", "f32", "bool", "string", "array",
                                                  "u64", "i64", "f64"};
  return NAMES[type];
}

static wick_status fail_type(const gguf_value *value, const char *wanted, wick_error *error) {
  char key[GGUF_QUOTE_BYTES];
  const bool is_array = value->type == GGUF_ARRAY;
  return fail_with(error, WICK_E_FORMAT, value->offset_bytes, "key '%s' is of type %s%s, not %s",
                   gguf_quote(value->key, key), is_array ? "array of " : "",
                   type_name(is_array ? value->item_type : value->type), wanted);
}

// ---- Numbers ----

typedef struct gguf_integer {
  uint64_t bits;  // two's complement when negative
  bool is_negative;
} gguf_integer;

// Reads a whole number of any type. Returns false for other types.
static bool read_integer(gguf_value_type type, const uint8_t *data, gguf_integer *out) {
  const bool is_signed =
      type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
  if (!is_signed && type != GGUF_U8 && type != GGUF_U16 && type != GGUF_U32 && type != GGUF_U64) {
    return false;
  }
  const uint32_t bytes = gguf_type_bytes(type), unused_bits = 64 - 8 * bytes;
  uint64_t bits = 0;
  memcpy(&bits, data, bytes);
  const int64_t value = (int64_t)(bits << unused_bits) >> unused_bits;
  *out = (gguf_integer){is_signed ? (uint64_t)value : bits, is_signed && value < 0};
  return true;
}

static bool read_number(gguf_value_type type, const uint8_t *data, double *out) {
  gguf_integer integer;
  if (type == GGUF_F32) {
    float value;
    memcpy(&value, data, sizeof value);
    *out = (double)value;
  } else if (type == GGUF_F64) {
    memcpy(out, data, sizeof *out);
  } else if (read_integer(type, data, &integer)) {
    *out = integer.is_negative ? (double)(int64_t)integer.bits : (double)integer.bits;
  } else {
    return false;
  }
  return true;
}

wick_status gguf_get_u32(const gguf_directory *directory, const char *key, uint32_t *out,
                         wick_error *error) {
  const gguf_value *value = gguf_find(directory, key);
  if (value == NULL) return WICK_E_NODATA;
  gguf_integer integer;
  if (!read_integer(value->type, value->data, &integer)) {
    return fail_type(value, "an integer", error);
  }
  if (integer.is_negative || integer.bits > UINT32_MAX) {
    return fail_with(error, WICK_E_FORMAT, value->offset_bytes,
                     "key '%s' is %s%llu, which does not fit in 32 bits", key,
                     integer.is_negative ? "-" : "",
                     (unsigned long long)(integer.is_negative ? 0 - integer.bits : integer.bits));
  }
  *out = (uint32_t)integer.bits;
  return WICK_OK;
}

wick_status gguf_get_f64(const gguf_directory *directory, const char *key, double *out,
                         wick_error *error) {
  const gguf_value *value = gguf_find(directory, key);
  if (value == NULL) return WICK_E_NODATA;
  if (!read_number(value->type, value->data, out)) return fail_type(value, "a number", error);
  return WICK_OK;
}

wick_status gguf_get_bool(const gguf_directory *directory, const char *key, bool *out,
                          wick_error *error) {
  const gguf_value *value = gguf_find(directory, key);
  if (value == NULL) return WICK_E_NODATA;
  if (value->type != GGUF_BOOL) return fail_type(value, "bool", error);
  *out = *value->data != 0;
  return WICK_OK;
}

// ---- Strings and arrays ----

gguf_string gguf_next_string(const uint8_t **cursor) {
  gguf_string string;
  memcpy(&string.size_bytes, *cursor, sizeof string.size_bytes);
  string.bytes = (const char *)*cursor + sizeof string.size_bytes;
  *cursor += sizeof string.size_bytes + string.size_bytes;
  return string;
}

wick_status gguf_get_string(const gguf_directory *directory, const char *key, gguf_string *out,
                            wick_error *error) {
  const gguf_value *value = gguf_find(directory, key);
  if (value == NULL) return WICK_E_NODATA;
  if (value->type != GGUF_STRING) return fail_type(value, "string", error);
  const uint8_t *cursor = value->data;
  *out = gguf_next_string(&cursor);
  return WICK_OK;
}

wick_status gguf_get_array(const gguf_directory *directory, const char *key,
                           gguf_value_type item_type, const gguf_value **out, wick_error *error) {
  const gguf_value *value = gguf_find(directory, key);
  if (value == NULL) return WICK_E_NODATA;
  if (value->type != GGUF_ARRAY || value->item_type != item_type) {
    char wanted[32];
    text_format(wanted, sizeof wanted, "array of %s", type_name(item_type));
    return fail_type(value, wanted, error);
  }
  *out = value;
  return WICK_OK;
}

double gguf_array_f64(const gguf_value *array, uint64_t index) {
  const uint8_t *item = array->data + index * gguf_type_bytes(array->item_type);
  double value = 0;
  if (array->item_type == GGUF_BOOL) return *item;
  read_number(array->item_type, item, &value);
  return value;
}

int64_t gguf_array_i64(const gguf_value *array, uint64_t index) {
  const uint8_t *item = array->data + index * gguf_type_bytes(array->item_type);
  gguf_integer integer;
  if (read_integer(array->item_type, item, &integer)) {
    const bool fits = integer.is_negative || integer.bits <= INT64_MAX;
    return fits ? (int64_t)integer.bits : INT64_MAX;
  }
  const double value = gguf_array_f64(array, index);
  if (value != value) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return (int64_t)value;
}

bool gguf_string_equals(gguf_string string, const char *text) {
  return string.size_bytes == strlen(text) &&
         memcmp(string.bytes, text, (size_t)string.size_bytes) == 0;
}

const char *gguf_quote(gguf_string string, char out[GGUF_QUOTE_BYTES]) {
  enum { SHOWN_BYTES_MAX = 80 };
  const uint8_t *bytes = (const uint8_t *)string.bytes;
  size_t at = 0, used = 0;
  while (at < string.size_bytes) {
    const uint64_t left = string.size_bytes - at;
    uint32_t code_point = 0;
    const int length = utf8_decode(bytes + at, left < 4 ? (size_t)left : 4, &code_point);
    const size_t step = length > 0 ? (size_t)length : 1;
    if (used + step > SHOWN_BYTES_MAX) break;
    if (length <= 0 || code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) {
      out[used++] = '?';
    } else {
      memcpy(out + used, bytes + at, step);
      used += step;
    }
    at += step;
  }
  memcpy(out + used, at < string.size_bytes ? "..." : "", at < string.size_bytes ? 4 : 1);
  return out;
}

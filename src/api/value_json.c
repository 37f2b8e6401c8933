// api/value_json.c — values of a GGUF file's metadata as JSON.
#include "api/value_json.h"

#include <string.h>

const char *value_type_name(gguf_value_type type) {
  static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
  return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "?";
}

static void write_item(json_writer *json, const char *key, gguf_value_type type,
                       const gguf_value *numbers, uint64_t index) {
  if (type == GGUF_F32) {
    json_f32(json, key, (float)gguf_array_f64(numbers, index));
  } else if (type == GGUF_F64) {
    json_f64(json, key, gguf_array_f64(numbers, index));
  } else if (type == GGUF_BOOL) {
    json_bool(json, key, numbers->data[index] != 0);
  } else if (type == GGUF_U64) {
    uint64_t value;
    memcpy(&value, numbers->data + 8 * index, sizeof value);
    json_u64(json, key, value);
  } else {
    json_i64(json, key, gguf_array_i64(numbers, index));
  }
}

static void write_array(json_writer *json, const char *key, const gguf_value *value,
                        uint64_t count) {
  json_open(json, key, '[');
  const uint8_t *cursor = value->data;
  for (uint64_t i = 0; i < count && i < value->count; i++) {
    if (value->item_type == GGUF_ARRAY) break;  // for an array of arrays, only the length is shown
    if (value->item_type == GGUF_STRING) {
      const gguf_string text = gguf_next_string(&cursor);
      json_string(json, NULL, text.bytes, (size_t)text.size_bytes);
    } else {
      write_item(json, NULL, value->item_type, value, i);
    }
  }
  json_close(json, '[');
}

void value_json(json_writer *json, const char *key, const gguf_value *value, uint64_t count) {
  if (value->type == GGUF_ARRAY) {
    write_array(json, key, value, count);
  } else if (value->type == GGUF_STRING) {
    const uint8_t *cursor = value->data;
    const gguf_string text = gguf_next_string(&cursor);
    json_string(json, key, text.bytes, (size_t)text.size_bytes);
  } else {
    gguf_value number = *value;  // treated as an array of one item
    number.item_type = value->type;
    write_item(json, key, value->type, &number, 0);
  }
}

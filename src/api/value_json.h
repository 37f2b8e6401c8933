// api/value_json.h — values of a GGUF file's metadata as JSON.
#ifndef WICK_API_VALUE_JSON_H
#define WICK_API_VALUE_JSON_H

#include "base/json.h"
#include "format/gguf.h"

// Returns the name of a type: "u32", "string", ...
const char *value_type_name(gguf_value_type type);
// Writes items [0, count) of an array as JSON values; of any other value, the value itself.
void value_json(json_writer *json, const char *key, const gguf_value *value, uint64_t count);

#endif

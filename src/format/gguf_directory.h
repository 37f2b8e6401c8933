// format/gguf_directory.h — the directory in the form that the files of the GGUF reader share,
// during and after parsing. Only src/format/gguf*.c include this header.
//
//   bytes of the file: [ parsed | waiting for the rest of the step's need_bytes ]
//                      0        position                            size_bytes
//
// The buffer may move while it grows, so entries hold offsets until gguf_complete() sets pointers.
#ifndef WICK_FORMAT_GGUF_DIRECTORY_H
#define WICK_FORMAT_GGUF_DIRECTORY_H

#include "format/gguf.h"

// The kind of bytes at `position`. Each step waits until all of its bytes have arrived, so a retry
// costs O(1) and all feeds together cost O(bytes).
typedef enum gguf_stage {
  GGUF_AT_MAGIC = 0,  // the initial state of a zeroed directory
  GGUF_AT_VERSION,
  GGUF_AT_COUNTS,
  GGUF_AT_KEY_LENGTH,
  GGUF_AT_KEY,  // key and value type
  GGUF_AT_NUMBER,
  GGUF_AT_STRING_LENGTH,
  GGUF_AT_STRING,
  GGUF_AT_ARRAY_HEAD,  // item type and count
  GGUF_AT_ARRAY_NUMBERS,
  GGUF_AT_ARRAY_STRING,  // length and bytes of the next item
  GGUF_AT_NAME_LENGTH,
  GGUF_AT_NAME,   // tensor name and number of dimensions
  GGUF_AT_SHAPE,  // dimensions, type, offset
  GGUF_AT_END
} gguf_stage;

// An open-addressing table of entry numbers; a slot contains number + 1, or 0 if it is free.
typedef struct gguf_index {
  uint32_t *slots;
  uint32_t mask;
} gguf_index;

struct gguf_directory {
  memory_gate *memory;
  uint8_t *bytes;
  size_t size_bytes;
  size_t capacity_bytes;
  size_t position;
  size_t need_bytes;  // at `position`, for the next step
  gguf_stage stage;
  uint32_t file;
  wick_error failure;  // WICK_OK until something fails

  uint32_t version;
  uint32_t alignment;
  uint64_t data_offset;
  size_t values_declared;
  size_t tensors_declared;
  gguf_value *values;  // values[value_count] is the value being read
  size_t value_count;
  size_t value_capacity;
  gguf_tensor *tensors;  // offsets are relative to the data until gguf_complete()
  size_t tensor_count;
  size_t tensor_capacity;
  uint64_t items_left;  // strings of the array being read

  gguf_index value_index;
  gguf_index tensor_index;
  uint32_t *by_offset;  // tensor numbers sorted by offset; NULL if they already are
};

// Returns the size of a number or bool of a GGUF value type, 0 for strings, arrays and unknown
// types.
uint32_t gguf_type_bytes(uint32_t type);

// Called after the last entry. Sets pointers and indexes, and checks alignment and the layout of
// the data. Fills directory->failure on failure.
void gguf_complete(gguf_directory *directory);

#endif

// format/gguf.h — the directory of a GGUF file (v2, v3, little-endian): metadata and tensor list,
// parsed incrementally from chunks of any size. Source: ggml/docs/gguf.md of the ggml repository.
// The loader (load/) reads the bytes of tensors.
#ifndef WICK_FORMAT_GGUF_H
#define WICK_FORMAT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "format/types.h"

typedef enum gguf_value_type {
  GGUF_U8 = 0,
  GGUF_I8 = 1,
  GGUF_U16 = 2,
  GGUF_I16 = 3,
  GGUF_U32 = 4,
  GGUF_I32 = 5,
  GGUF_F32 = 6,
  GGUF_BOOL = 7,
  GGUF_STRING = 8,
  GGUF_ARRAY = 9,
  GGUF_U64 = 10,
  GGUF_I64 = 11,
  GGUF_F64 = 12
} gguf_value_type;

// Limits, well above what real models need. A file that exceeds one is rejected as WICK_E_FORMAT.
enum {
  GGUF_KEYS_MAX = 65536,
  GGUF_TENSORS_MAX = 65536,
  GGUF_KEY_BYTES_MAX = 65535,
  GGUF_TENSOR_NAME_BYTES_MAX = 63,
  GGUF_DIMS_MAX = 4,
  GGUF_ALIGNMENT_MAX = 1024 * 1024,
  GGUF_DIRECTORY_BYTES_MAX = 512 * 1024 * 1024
};
// A tensor must have fewer than 2^32 rows of fewer than 2^32 blocks. Arrays of arrays are rejected
// as WICK_E_UNSUPPORTED. A bool that is neither 0 nor 1 is WICK_E_FORMAT.

// A view of bytes in the directory, not NUL-terminated. It is valid until the directory is
// destroyed.
typedef struct gguf_string {
  const char *bytes;
  uint64_t size_bytes;
} gguf_string;

typedef struct gguf_value {
  gguf_string key;
  gguf_value_type type;
  gguf_value_type item_type;  // of an array
  uint64_t count;             // items of an array, 1 otherwise
  const uint8_t *data;        // first byte of the value; array: first byte of the first item
  uint64_t offset_bytes;      // of the entry (the key's length) in the file, for error messages
} gguf_value;

typedef struct gguf_tensor {
  gguf_string name;
  uint32_t type;                 // a known ggml_type
  uint32_t dim_count;            // 1..4 (0 in the file becomes one dimension of size 1)
  uint64_t dims[GGUF_DIMS_MAX];  // dims[0] is the row length (fastest); unused ones are 1
  uint64_t offset_bytes;         // of the first byte, from the start of the file
  uint64_t size_bytes;
  uint32_t file;                // index of the file in a split model, from 0
  uint64_t entry_offset_bytes;  // of its entry in the directory, for error messages
} gguf_tensor;

typedef struct gguf_directory gguf_directory;

wick_status gguf_directory_create(memory_gate *memory, gguf_directory **out, wick_error *error);
// Called before the first feed: marks this directory as that of file `file` in a split model
// (gguf_tensor.file).
void gguf_directory_set_file(gguf_directory *directory, uint32_t file);
void gguf_directory_destroy(gguf_directory *directory);

// Accepts the next bytes of the file, in order and in pieces of any size. *used is the number of
// bytes that belong to the directory: fewer than size_bytes once it is complete. After a failure,
// every call fails. All calls together cost O(bytes), regardless of their sizes.
wick_status gguf_directory_feed(gguf_directory *directory, const void *bytes, size_t size_bytes,
                                size_t *used, wick_error *error);
bool gguf_directory_is_complete(const gguf_directory *directory);
// Called when the file has ended. Returns WICK_OK if the directory is complete, else
// WICK_E_TRUNCATED; the message names the part that was being read.
wick_status gguf_directory_finish(const gguf_directory *directory, wick_error *error);
// Returns a lower bound of the file's size, which grows while the file is read.
uint64_t gguf_directory_needs(const gguf_directory *directory);

// The functions below need a complete directory. Strings, values and tensors are valid until it is
// destroyed.

uint32_t gguf_version(const gguf_directory *directory);
uint64_t gguf_directory_bytes(const gguf_directory *directory);  // header to last tensor entry
uint64_t gguf_data_offset(const gguf_directory *directory);      // aligned start of tensor data
uint32_t gguf_alignment(const gguf_directory *directory);

size_t gguf_value_count(const gguf_directory *directory);
const gguf_value *gguf_value_at(const gguf_directory *directory, size_t index);
size_t gguf_tensor_count(const gguf_directory *directory);
const gguf_tensor *gguf_tensor_at(const gguf_directory *directory, size_t index);
// Returns the index of the tensor with rank `rank` by file offset (no two overlap).
size_t gguf_tensor_by_offset(const gguf_directory *directory, size_t rank);
// Looks up a name. Returns NULL if it is absent. O(1) on average.
const gguf_value *gguf_find(const gguf_directory *directory, const char *key);
const gguf_tensor *gguf_find_tensor(const gguf_directory *directory, const char *name);
const gguf_tensor *gguf_find_tensor_string(const gguf_directory *directory, gguf_string name);

// Typed access. Numbers are converted between all integer types if the value fits, and from F32/F64
// by gguf_get_f64. An absent key returns WICK_E_NODATA, leaves *out unchanged and sets no error,
// because the key may be optional. A wrong type or a value that does not fit is WICK_E_FORMAT, with
// the key and offset in the error.
wick_status gguf_get_u32(const gguf_directory *directory, const char *key, uint32_t *out,
                         wick_error *error);
wick_status gguf_get_f64(const gguf_directory *directory, const char *key, double *out,
                         wick_error *error);
wick_status gguf_get_bool(const gguf_directory *directory, const char *key, bool *out,
                          wick_error *error);
wick_status gguf_get_string(const gguf_directory *directory, const char *key, gguf_string *out,
                            wick_error *error);
// Returns an array of `item_type`; WICK_E_FORMAT if it has a different type.
wick_status gguf_get_array(const gguf_directory *directory, const char *key,
                           gguf_value_type item_type, const gguf_value **out, wick_error *error);
// Returns an item of an array of numbers (any integer type or F32/F64), index < count.
double gguf_array_f64(const gguf_value *array, uint64_t index);
// Like gguf_array_f64, for integers. A value that does not fit saturates. Floats are truncated
// towards zero; NaN is 0.
int64_t gguf_array_i64(const gguf_value *array, uint64_t index);
// Returns the next string of an array. Start with cursor = array->data and call `count` times.
gguf_string gguf_next_string(const uint8_t **cursor);

bool gguf_string_equals(gguf_string string, const char *text);

// Writes the string as messages show it: at most its first 80 bytes, with '?' for bytes that are
// not printable.
enum { GGUF_QUOTE_BYTES = 96 };
const char *gguf_quote(gguf_string string, char out[GGUF_QUOTE_BYTES]);

#endif

// format/gguf_parse.c — the incremental parser. Each kind of item in a directory has a step, which
// runs when all bytes of the item have arrived.
#include <string.h>

#include "base/checked.h"
#include "format/gguf_directory.h"

enum {
  MAGIC_BYTES = 4,
  LENGTH_BYTES = 8,
  TYPE_BYTES = 4,
  // Input is processed in slices, so that only a few bytes after the directory are copied.
  SLICE_BYTES = 65536,
  BUFFER_BYTES_MIN = 4096,
  ENTRIES_MIN = 16,
  // The longest item that a step waits for; it ensures that 32-bit sums of positions do not wrap.
  ITEM_BYTES_MAX = GGUF_DIRECTORY_BYTES_MAX
};

static uint32_t read_u32(const gguf_directory *directory, size_t at) {
  uint32_t value;
  memcpy(&value, directory->bytes + at, sizeof value);
  return value;
}

static uint64_t read_u64(const gguf_directory *directory, size_t at) {
  uint64_t value;
  memcpy(&value, directory->bytes + at, sizeof value);
  return value;
}

// Returns the key or tensor name whose length is at `entry`, for messages.
static const char *quote_entry(const gguf_directory *directory, uint64_t entry,
                               char out[GGUF_QUOTE_BYTES]) {
  const size_t at = (size_t)entry;
  const gguf_string name = {(const char *)directory->bytes + at + LENGTH_BYTES,
                            read_u64(directory, at)};
  return gguf_quote(name, out);
}

static const char *quote_key(const gguf_directory *directory, char out[GGUF_QUOTE_BYTES]) {
  return quote_entry(directory, directory->values[directory->value_count].offset_bytes, out);
}

static const char *quote_tensor(const gguf_directory *directory, char out[GGUF_QUOTE_BYTES]) {
  return quote_entry(directory, directory->tensors[directory->tensor_count].entry_offset_bytes,
                     out);
}

// Fills `error`, including the item that was being read when the file ended.
static wick_status fail_at_item(const gguf_directory *directory, wick_status status,
                                uint64_t offset_bytes, const char *problem, wick_error *error) {
  char name[GGUF_QUOTE_BYTES];
  const gguf_stage stage = directory->stage;
  const unsigned long long number =
      1 + (stage < GGUF_AT_NAME_LENGTH ? directory->value_count : directory->tensor_count);
  if (stage <= GGUF_AT_COUNTS) {
    return fail_with(error, status, offset_bytes, "%s in the header", problem);
  }
  if (stage <= GGUF_AT_KEY) {
    return fail_with(error, status, offset_bytes, "%s in key %llu of %zu", problem, number,
                     directory->values_declared);
  }
  if (stage < GGUF_AT_NAME_LENGTH) {
    return fail_with(error, status, offset_bytes, "%s in the value of key '%s' (%llu of %zu)",
                     problem, quote_key(directory, name), number, directory->values_declared);
  }
  if (stage <= GGUF_AT_NAME) {
    return fail_with(error, status, offset_bytes, "%s in tensor entry %llu of %zu", problem, number,
                     directory->tensors_declared);
  }
  return fail_with(error, status, offset_bytes, "%s in the entry of tensor '%s' (%llu of %zu)",
                   problem, quote_tensor(directory, name), number, directory->tensors_declared);
}

// Sets the next stage, which needs `bytes` bytes.
static wick_status expect(gguf_directory *directory, gguf_stage stage, uint64_t bytes) {
  directory->stage = stage;
  if (bytes > ITEM_BYTES_MAX || directory->position + bytes > GGUF_DIRECTORY_BYTES_MAX) {
    return fail_at_item(directory, WICK_E_FORMAT, directory->position,
                        "the directory exceeds 512 MiB", &directory->failure);
  }
  directory->need_bytes = (size_t)bytes;
  return WICK_OK;
}

// ---- Header ----

static wick_status read_magic(gguf_directory *directory) {
  if (memcmp(directory->bytes, "GGUF", MAGIC_BYTES) != 0) {
    char found[GGUF_QUOTE_BYTES];
    return fail_with(&directory->failure, WICK_E_FORMAT, 0, "not a GGUF file: it begins with '%s'",
                     gguf_quote((gguf_string){(const char *)directory->bytes, MAGIC_BYTES}, found));
  }
  directory->position += MAGIC_BYTES;
  return expect(directory, GGUF_AT_VERSION, sizeof(uint32_t));
}

static wick_status read_version(gguf_directory *directory) {
  const uint32_t version = read_u32(directory, directory->position);
  if (version == 0) {
    return fail_with(&directory->failure, WICK_E_FORMAT, directory->position,
                     "GGUF version 0 is invalid");
  }
  if ((version & 0xffffu) == 0) {
    return fail_with(&directory->failure, WICK_E_UNSUPPORTED, directory->position,
                     "a big-endian GGUF file (version 0x%x), which is not supported", version);
  }
  if (version != 2 && version != 3) {
    return fail_with(&directory->failure, WICK_E_UNSUPPORTED, directory->position,
                     "GGUF version %u, must be 2 or 3", version);
  }
  directory->version = version;
  directory->position += sizeof(uint32_t);
  return expect(directory, GGUF_AT_COUNTS, 2 * sizeof(uint64_t));
}

// Selects the stage after an entry or the header.
static wick_status expect_entry(gguf_directory *directory) {
  if (directory->value_count < directory->values_declared) {
    return expect(directory, GGUF_AT_KEY_LENGTH, LENGTH_BYTES);
  }
  if (directory->tensor_count < directory->tensors_declared) {
    return expect(directory, GGUF_AT_NAME_LENGTH, LENGTH_BYTES);
  }
  directory->stage = GGUF_AT_END;
  directory->need_bytes = 0;
  return WICK_OK;
}

static wick_status read_counts(gguf_directory *directory) {
  const size_t at = directory->position;
  const uint64_t tensors = read_u64(directory, at);
  const uint64_t values = read_u64(directory, at + sizeof tensors);
  if (tensors > GGUF_TENSORS_MAX) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at, "%llu tensors; the limit is %d",
                     (unsigned long long)tensors, GGUF_TENSORS_MAX);
  }
  if (values > GGUF_KEYS_MAX) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at + sizeof tensors,
                     "%llu metadata keys; the limit is %d", (unsigned long long)values,
                     GGUF_KEYS_MAX);
  }
  directory->tensors_declared = (size_t)tensors;
  directory->values_declared = (size_t)values;
  directory->position += sizeof tensors + sizeof values;
  return expect_entry(directory);
}

// Grows the list for one more entry. Declared counts are not trusted: memory grows with the bytes
// that were read.
static wick_status reserve_entry(gguf_directory *directory, void **entries, size_t count,
                                 size_t *capacity, size_t entry_bytes) {
  if (count < *capacity) return WICK_OK;
  const size_t wanted = count == 0 ? ENTRIES_MIN : 2 * count;
  void *moved = memory_resize(directory->memory, *entries, wanted * entry_bytes);
  if (moved == NULL) {
    return memory_fail(directory->memory, &directory->failure, "a model's directory");
  }
  *entries = moved;
  *capacity = wanted;
  return WICK_OK;
}

// ---- Metadata ----

static wick_status read_key_length(gguf_directory *directory) {
  const size_t at = directory->position;
  const uint64_t length = read_u64(directory, at);
  if (length == 0 || length > GGUF_KEY_BYTES_MAX) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at,
                     "key %zu of %zu is %llu bytes long; it must be 1 to %d",
                     directory->value_count + 1, directory->values_declared,
                     (unsigned long long)length, GGUF_KEY_BYTES_MAX);
  }
  void *values = directory->values;
  const wick_status status = reserve_entry(directory, &values, directory->value_count,
                                           &directory->value_capacity, sizeof(gguf_value));
  directory->values = values;
  if (status != WICK_OK) return status;
  directory->values[directory->value_count] =
      (gguf_value){.key = {NULL, length}, .count = 1, .offset_bytes = at};
  directory->position += LENGTH_BYTES;
  return expect(directory, GGUF_AT_KEY, length + TYPE_BYTES);
}

static wick_status end_value(gguf_directory *directory) {
  directory->value_count++;
  return expect_entry(directory);
}

static wick_status read_key(gguf_directory *directory) {
  gguf_value *value = &directory->values[directory->value_count];
  const size_t at = directory->position + (size_t)value->key.size_bytes;
  const uint32_t type = read_u32(directory, at);
  if (type > GGUF_F64) {
    char key[GGUF_QUOTE_BYTES];
    return fail_with(&directory->failure, WICK_E_FORMAT, at,
                     "key '%s' has value type %u, which is not a GGUF type",
                     quote_key(directory, key), type);
  }
  value->type = (gguf_value_type)type;
  value->item_type = value->type;
  directory->position = at + TYPE_BYTES;
  if (type == GGUF_STRING) return expect(directory, GGUF_AT_STRING_LENGTH, LENGTH_BYTES);
  if (type == GGUF_ARRAY) return expect(directory, GGUF_AT_ARRAY_HEAD, TYPE_BYTES + LENGTH_BYTES);
  return expect(directory, GGUF_AT_NUMBER, gguf_type_bytes(type));
}

// Reads numbers, which need no check, and bools, which may have invalid values.
static wick_status read_numbers(gguf_directory *directory) {
  const gguf_value *value = &directory->values[directory->value_count];
  if (value->item_type == GGUF_BOOL) {
    for (size_t i = 0; i < directory->need_bytes; i++) {
      const size_t at = directory->position + i;
      if (directory->bytes[at] > 1) {
        char key[GGUF_QUOTE_BYTES];
        return fail_with(&directory->failure, WICK_E_FORMAT, at, "key '%s' has bool value %u",
                         quote_key(directory, key), directory->bytes[at]);
      }
    }
  }
  directory->position += directory->need_bytes;
  return end_value(directory);
}

static wick_status read_string_length(gguf_directory *directory) {
  const uint64_t length = read_u64(directory, directory->position);
  directory->position += LENGTH_BYTES;
  return expect(directory, GGUF_AT_STRING, length);
}

static wick_status read_string(gguf_directory *directory) {
  directory->position += directory->need_bytes;
  return end_value(directory);
}

static wick_status read_array_head(gguf_directory *directory) {
  gguf_value *value = &directory->values[directory->value_count];
  const size_t at = directory->position;
  const uint32_t type = read_u32(directory, at);
  const uint64_t count = read_u64(directory, at + TYPE_BYTES);
  char key[GGUF_QUOTE_BYTES];
  if (type > GGUF_F64) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at,
                     "key '%s' is an array of type %u, which is not a GGUF type",
                     quote_key(directory, key), type);
  }
  if (type == GGUF_ARRAY) {
    return fail_with(&directory->failure, WICK_E_UNSUPPORTED, at,
                     "key '%s' is an array of arrays, which is not supported",
                     quote_key(directory, key));
  }
  const uint64_t item_bytes_min = type == GGUF_STRING ? LENGTH_BYTES : gguf_type_bytes(type);
  if (count > GGUF_DIRECTORY_BYTES_MAX / item_bytes_min) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at + TYPE_BYTES,
                     "key '%s' is an array of %llu items, more than a directory may hold",
                     quote_key(directory, key), (unsigned long long)count);
  }
  value->item_type = (gguf_value_type)type;
  value->count = count;
  directory->position += TYPE_BYTES + LENGTH_BYTES;
  if (count == 0) return end_value(directory);
  directory->items_left = count;
  if (type == GGUF_STRING) return expect(directory, GGUF_AT_ARRAY_STRING, LENGTH_BYTES);
  return expect(directory, GGUF_AT_ARRAY_NUMBERS, count * item_bytes_min);
}

// Reads all strings that have arrived, in one step: vocabularies have hundreds of thousands of
// strings.
static wick_status read_array_strings(gguf_directory *directory) {
  while (directory->items_left > 0) {
    const size_t held_bytes = directory->size_bytes - directory->position;
    if (held_bytes < LENGTH_BYTES) return expect(directory, GGUF_AT_ARRAY_STRING, LENGTH_BYTES);
    const uint64_t length = read_u64(directory, directory->position);
    if (length > held_bytes - LENGTH_BYTES) {
      if (length > ITEM_BYTES_MAX - LENGTH_BYTES) {
        return expect(directory, GGUF_AT_ARRAY_STRING, ITEM_BYTES_MAX + UINT64_C(1));
      }
      return expect(directory, GGUF_AT_ARRAY_STRING, LENGTH_BYTES + length);
    }
    directory->position += LENGTH_BYTES + (size_t)length;
    directory->items_left--;
  }
  return end_value(directory);
}

// ---- Tensors ----

static wick_status read_name_length(gguf_directory *directory) {
  const size_t at = directory->position;
  const uint64_t length = read_u64(directory, at);
  if (length == 0 || length > GGUF_TENSOR_NAME_BYTES_MAX) {
    return fail_with(&directory->failure, WICK_E_FORMAT, at,
                     "the name of tensor %zu of %zu is %llu bytes long; it must be 1 to %d",
                     directory->tensor_count + 1, directory->tensors_declared,
                     (unsigned long long)length, GGUF_TENSOR_NAME_BYTES_MAX);
  }
  void *tensors = directory->tensors;
  const wick_status status = reserve_entry(directory, &tensors, directory->tensor_count,
                                           &directory->tensor_capacity, sizeof(gguf_tensor));
  directory->tensors = tensors;
  if (status != WICK_OK) return status;
  directory->tensors[directory->tensor_count] =
      (gguf_tensor){.name = {NULL, length}, .file = directory->file, .entry_offset_bytes = at};
  directory->position += LENGTH_BYTES;
  return expect(directory, GGUF_AT_NAME, length + sizeof(uint32_t));
}

static wick_status read_name(gguf_directory *directory) {
  gguf_tensor *tensor = &directory->tensors[directory->tensor_count];
  const size_t at = directory->position + (size_t)tensor->name.size_bytes;
  const uint32_t dim_count = read_u32(directory, at);
  if (dim_count > GGUF_DIMS_MAX) {
    char name[GGUF_QUOTE_BYTES];
    return fail_with(&directory->failure, WICK_E_SHAPE, at,
                     "tensor '%s' has %u dimensions; the limit is %d",
                     quote_tensor(directory, name), dim_count, GGUF_DIMS_MAX);
  }
  tensor->dim_count = dim_count;
  directory->position = at + sizeof dim_count;
  return expect(directory, GGUF_AT_SHAPE,
                dim_count * sizeof(uint64_t) + TYPE_BYTES + sizeof(uint64_t));
}

static wick_status read_dims(gguf_directory *directory, gguf_tensor *tensor) {
  char name[GGUF_QUOTE_BYTES];
  for (uint32_t i = 0; i < GGUF_DIMS_MAX; i++) tensor->dims[i] = 1;
  for (uint32_t i = 0; i < tensor->dim_count; i++) {
    const size_t at = directory->position + i * sizeof(uint64_t);
    tensor->dims[i] = read_u64(directory, at);
    if (tensor->dims[i] == 0 || tensor->dims[i] > INT64_MAX) {
      return fail_with(&directory->failure, WICK_E_SHAPE, at, "dimension %u of tensor '%s' is %lld",
                       i, quote_tensor(directory, name), (long long)tensor->dims[i]);
    }
  }
  if (tensor->dim_count == 0) tensor->dim_count = 1;
  return WICK_OK;
}

// Computes tensor->size_bytes from dimensions and type.
static wick_status measure_tensor(gguf_directory *directory, gguf_tensor *tensor,
                                  size_t type_offset) {
  char name[GGUF_QUOTE_BYTES];
  const ggml_type_facts *facts = type_facts(tensor->type);
  if (facts == NULL) {
    return fail_with(&directory->failure, WICK_E_UNSUPPORTED, type_offset,
                     "tensor '%s' has type %u, which GGML has removed or this build does not know",
                     quote_tensor(directory, name), tensor->type);
  }
  const uint64_t entry = tensor->entry_offset_bytes;
  if (tensor->dims[0] % facts->block_values != 0) {
    return fail_with(&directory->failure, WICK_E_SHAPE, entry,
                     "tensor '%s' has rows of %llu values; %s needs a multiple of %u",
                     quote_tensor(directory, name), (unsigned long long)tensor->dims[0],
                     facts->name, facts->block_values);
  }
  uint64_t rows = 1;
  uint64_t row_bytes;
  bool fits = type_row_bytes(tensor->type, tensor->dims[0], &row_bytes);
  for (uint32_t i = 1; i < GGUF_DIMS_MAX; i++) {
    fits = fits && checked_mul_u64(rows, tensor->dims[i], &rows);
  }
  if (!fits || !checked_mul_u64(rows, row_bytes, &tensor->size_bytes)) {
    return fail_with(&directory->failure, WICK_E_OVERFLOW, entry,
                     "the size of tensor '%s' does not fit in 64 bits",
                     quote_tensor(directory, name));
  }
  if (rows > UINT32_MAX || tensor->dims[0] / facts->block_values > UINT32_MAX) {
    return fail_with(&directory->failure, WICK_E_SHAPE, entry,
                     "tensor '%s' has %llu rows of %llu values, which is too many",
                     quote_tensor(directory, name), (unsigned long long)rows,
                     (unsigned long long)tensor->dims[0]);
  }
  return WICK_OK;
}

static wick_status read_shape(gguf_directory *directory) {
  gguf_tensor *tensor = &directory->tensors[directory->tensor_count];
  const size_t at = directory->position + directory->need_bytes - sizeof(uint64_t) - TYPE_BYTES;
  wick_status status = read_dims(directory, tensor);
  if (status != WICK_OK) return status;
  tensor->type = read_u32(directory, at);
  tensor->offset_bytes = read_u64(directory, at + TYPE_BYTES);
  status = measure_tensor(directory, tensor, at);
  if (status != WICK_OK) return status;
  directory->position += directory->need_bytes;
  directory->tensor_count++;
  return expect_entry(directory);
}

// ---- The loop ----

static wick_status (*const STEPS[GGUF_AT_END])(gguf_directory *) = {
    [GGUF_AT_MAGIC] = read_magic,
    [GGUF_AT_VERSION] = read_version,
    [GGUF_AT_COUNTS] = read_counts,
    [GGUF_AT_KEY_LENGTH] = read_key_length,
    [GGUF_AT_KEY] = read_key,
    [GGUF_AT_NUMBER] = read_numbers,
    [GGUF_AT_STRING_LENGTH] = read_string_length,
    [GGUF_AT_STRING] = read_string,
    [GGUF_AT_ARRAY_HEAD] = read_array_head,
    [GGUF_AT_ARRAY_NUMBERS] = read_numbers,
    [GGUF_AT_ARRAY_STRING] = read_array_strings,
    [GGUF_AT_NAME_LENGTH] = read_name_length,
    [GGUF_AT_NAME] = read_name,
    [GGUF_AT_SHAPE] = read_shape,
};

static wick_status take_steps(gguf_directory *directory) {
  while (directory->stage != GGUF_AT_END &&
         directory->size_bytes - directory->position >= directory->need_bytes) {
    const wick_status status = STEPS[directory->stage](directory);
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

static wick_status append(gguf_directory *directory, const uint8_t *bytes, size_t size_bytes) {
  const size_t wanted = directory->size_bytes + size_bytes;
  if (wanted > directory->capacity_bytes) {
    size_t capacity = 2 * directory->capacity_bytes;
    if (capacity < BUFFER_BYTES_MIN) capacity = BUFFER_BYTES_MIN;
    if (capacity < wanted) capacity = wanted;
    uint8_t *moved = memory_resize(directory->memory, directory->bytes, capacity);
    if (moved == NULL) {
      return memory_fail(directory->memory, &directory->failure, "a model's directory");
    }
    directory->bytes = moved;
    directory->capacity_bytes = capacity;
  }
  memcpy(directory->bytes + directory->size_bytes, bytes, size_bytes);
  directory->size_bytes = wanted;
  return WICK_OK;
}

// Processes slices until the directory is complete or the input is used up. *taken is the number of
// bytes used.
static wick_status take_input(gguf_directory *directory, const uint8_t *bytes, size_t size_bytes,
                              size_t *taken) {
  while (directory->stage != GGUF_AT_END && *taken < size_bytes) {
    const size_t left = size_bytes - *taken;
    const size_t slice = left < SLICE_BYTES ? left : SLICE_BYTES;
    wick_status status = append(directory, bytes + *taken, slice);
    if (status != WICK_OK) return status;
    *taken += slice;
    status = take_steps(directory);
    if (status != WICK_OK) return status;
  }
  return WICK_OK;
}

wick_status gguf_directory_feed(gguf_directory *directory, const void *bytes, size_t size_bytes,
                                size_t *used, wick_error *error) {
  *used = 0;
  if (directory->failure.status == WICK_OK && directory->stage != GGUF_AT_END) {
    const wick_status status = take_input(directory, bytes, size_bytes, used);
    if (status == WICK_OK && directory->stage == GGUF_AT_END) {
      *used -= directory->size_bytes - directory->position;
      directory->size_bytes = directory->position;
      gguf_complete(directory);
    }
  }
  if (directory->failure.status != WICK_OK && error != NULL) *error = directory->failure;
  return directory->failure.status;
}

wick_status gguf_directory_finish(const gguf_directory *directory, wick_error *error) {
  if (directory->failure.status != WICK_OK) {
    if (error != NULL) *error = directory->failure;
    return directory->failure.status;
  }
  if (directory->stage == GGUF_AT_END) return WICK_OK;
  if (directory->size_bytes == 0) return fail_with(error, WICK_E_TRUNCATED, 0, "the file is empty");
  return fail_at_item(directory, WICK_E_TRUNCATED, directory->size_bytes, "the file ends", error);
}

uint64_t gguf_directory_needs(const gguf_directory *directory) {
  return (uint64_t)directory->position + directory->need_bytes;
}

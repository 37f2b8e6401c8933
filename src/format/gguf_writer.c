// format/gguf_writer.c — the streaming GGUF writer. The directory has two buffers, one for metadata
// and one for tensors, because metadata and tensors may be declared in any order.
#include "format/gguf_writer.h"

#include <string.h>

#include "base/checked.h"
#include "format/gguf_directory.h"

enum { VERSION = 3, HEADER_BYTES = 24, ALIGNMENT_DEFAULT = 32, ALIGNMENT_MIN = 8 };

typedef struct gguf_buffer {
  uint8_t *bytes;
  size_t size_bytes;
  size_t capacity_bytes;
} gguf_buffer;

struct gguf_writer {
  memory_gate *memory;
  gguf_write write;
  void *context;
  uint32_t alignment;
  bool is_header_written;
  wick_error failure;  // the first failure; WICK_OK until then
  gguf_buffer values;
  gguf_buffer tensors;
  uint64_t *tensor_bytes;  // sizes without padding
  size_t tensor_count, tensor_capacity;
  uint64_t value_count;
  size_t items_left;          // left in the array of strings that is being added
  uint64_t data_bytes;        // declared so far, with each tensor padded
  size_t tensor_now;          // index of the tensor whose data is being written
  uint64_t tensor_now_bytes;  // number of bytes of that tensor written so far
};

static void fail(gguf_writer *writer, wick_status status, const char *what, const char *name) {
  if (writer->failure.status != WICK_OK) return;
  fail_with(&writer->failure, status, WICK_NO_OFFSET, "GGUF writer: '%s' %s", name, what);
}

// Reports a call that is out of order.
static void fail_call(gguf_writer *writer, wick_status status, const char *what) {
  if (writer->failure.status != WICK_OK) return;
  fail_with(&writer->failure, status, WICK_NO_OFFSET, "GGUF writer: %s", what);
}

static void append(gguf_writer *writer, gguf_buffer *buffer, const void *bytes, size_t size_bytes) {
  if (writer->failure.status != WICK_OK || size_bytes == 0) return;
  size_t wanted;
  if (!checked_add_size(buffer->size_bytes, size_bytes, &wanted)) wanted = SIZE_MAX;
  if (wanted > buffer->capacity_bytes) {
    size_t capacity = 2 * buffer->capacity_bytes;
    if (capacity < wanted) capacity = wanted;
    uint8_t *moved = memory_resize(writer->memory, buffer->bytes, capacity);
    if (moved == NULL) {
      memory_fail(writer->memory, &writer->failure, "the directory of a GGUF file");
      return;
    }
    buffer->bytes = moved;
    buffer->capacity_bytes = capacity;
  }
  memcpy(buffer->bytes + buffer->size_bytes, bytes, size_bytes);
  buffer->size_bytes = wanted;
}

static void append_u32(gguf_writer *writer, gguf_buffer *buffer, uint32_t value) {
  append(writer, buffer, &value, sizeof value);
}

static void append_u64(gguf_writer *writer, gguf_buffer *buffer, uint64_t value) {
  append(writer, buffer, &value, sizeof value);
}

static void append_string(gguf_writer *writer, gguf_buffer *buffer, const char *bytes,
                          size_t size_bytes) {
  append_u64(writer, buffer, size_bytes);
  append(writer, buffer, bytes, size_bytes);
}

wick_status gguf_writer_create(memory_gate *memory, gguf_write write, void *context,
                               uint32_t alignment, gguf_writer **out, wick_error *error) {
  if (alignment < ALIGNMENT_MIN || (alignment & (alignment - 1)) != 0 ||
      alignment > GGUF_ALIGNMENT_MAX) {
    return fail_with(error, WICK_E_ARG, WICK_NO_OFFSET, "GGUF writer: alignment %u is invalid",
                     alignment);
  }
  gguf_writer *writer = memory_alloc_zeroed(memory, sizeof *writer);
  if (writer == NULL) return memory_fail(memory, error, "a GGUF writer");
  writer->memory = memory;
  writer->write = write;
  writer->context = context;
  writer->alignment = alignment;
  if (alignment != ALIGNMENT_DEFAULT) gguf_writer_add_u32(writer, "general.alignment", alignment);
  *out = writer;
  return WICK_OK;
}

void gguf_writer_destroy(gguf_writer *writer) {
  if (writer == NULL) return;
  memory_gate *memory = writer->memory;
  memory_free(memory, writer->values.bytes);
  memory_free(memory, writer->tensors.bytes);
  memory_free(memory, writer->tensor_bytes);
  memory_free(memory, writer);
}

// ---- Metadata ----

static void begin_value(gguf_writer *writer, const char *key, gguf_value_type type) {
  const size_t length = strlen(key);
  if (writer->is_header_written) fail(writer, WICK_E_ARG, "was added after the header", key);
  if (writer->items_left > 0)
    fail(writer, WICK_E_ARG, "was added before an array was complete", key);
  if (length == 0 || length > GGUF_KEY_BYTES_MAX)
    fail(writer, WICK_E_ARG, "is not a valid key", key);
  if (writer->value_count == GGUF_KEYS_MAX) fail(writer, WICK_E_ARG, "exceeds the key limit", key);
  append_string(writer, &writer->values, key, length);
  append_u32(writer, &writer->values, type);
  writer->value_count++;
}

void gguf_writer_add_number(gguf_writer *writer, const char *key, gguf_value_type type,
                            const void *value) {
  if (gguf_type_bytes(type) == 0) fail(writer, WICK_E_ARG, "is not a number", key);
  begin_value(writer, key, type);
  append(writer, &writer->values, value, gguf_type_bytes(type));
}

void gguf_writer_add_u32(gguf_writer *writer, const char *key, uint32_t value) {
  gguf_writer_add_number(writer, key, GGUF_U32, &value);
}

void gguf_writer_add_f32(gguf_writer *writer, const char *key, float value) {
  gguf_writer_add_number(writer, key, GGUF_F32, &value);
}

void gguf_writer_add_bool(gguf_writer *writer, const char *key, bool value) {
  const uint8_t byte = value ? 1 : 0;
  gguf_writer_add_number(writer, key, GGUF_BOOL, &byte);
}

void gguf_writer_add_string(gguf_writer *writer, const char *key, const char *bytes,
                            size_t size_bytes) {
  begin_value(writer, key, GGUF_STRING);
  append_string(writer, &writer->values, bytes, size_bytes);
}

void gguf_writer_add_array(gguf_writer *writer, const char *key, gguf_value_type item_type,
                           const void *items, size_t count) {
  size_t size_bytes = 0;
  if (gguf_type_bytes(item_type) == 0 ||
      !checked_mul_size(count, gguf_type_bytes(item_type), &size_bytes)) {
    fail(writer, WICK_E_ARG, "is not an array of numbers", key);
  }
  begin_value(writer, key, GGUF_ARRAY);
  append_u32(writer, &writer->values, item_type);
  append_u64(writer, &writer->values, count);
  append(writer, &writer->values, items, size_bytes);
}

void gguf_writer_add_strings(gguf_writer *writer, const char *key, size_t count) {
  begin_value(writer, key, GGUF_ARRAY);
  append_u32(writer, &writer->values, GGUF_STRING);
  append_u64(writer, &writer->values, count);
  writer->items_left = count;
}

void gguf_writer_add_item(gguf_writer *writer, const char *bytes, size_t size_bytes) {
  if (writer->items_left == 0) {
    fail_call(writer, WICK_E_ARG, "array of strings has more items than declared");
    return;
  }
  writer->items_left--;
  append_string(writer, &writer->values, bytes, size_bytes);
}

// ---- Tensors ----

static bool measure(ggml_type type, const uint64_t *dims, uint32_t dim_count, uint64_t *bytes) {
  if (dim_count == 0 || dim_count > GGUF_DIMS_MAX) return false;
  if (dims[0] == 0 || !type_row_bytes(type, dims[0], bytes)) return false;
  for (uint32_t i = 1; i < dim_count; i++) {
    if (dims[i] == 0 || !checked_mul_u64(*bytes, dims[i], bytes)) return false;
  }
  return *bytes <= INT64_MAX;
}

static bool reserve_tensor(gguf_writer *writer) {
  if (writer->tensor_count < writer->tensor_capacity) return true;
  const size_t capacity = writer->tensor_count == 0 ? 64 : 2 * writer->tensor_count;
  uint64_t *moved =
      memory_resize(writer->memory, writer->tensor_bytes, capacity * sizeof *writer->tensor_bytes);
  if (moved == NULL) {
    memory_fail(writer->memory, &writer->failure, "the directory of a GGUF file");
    return false;
  }
  writer->tensor_bytes = moved;
  writer->tensor_capacity = capacity;
  return true;
}

void gguf_writer_add_tensor(gguf_writer *writer, const char *name, ggml_type type,
                            const uint64_t *dims, uint32_t dim_count) {
  uint64_t size_bytes = 0, padded_bytes = 0, data_bytes = 0;
  const size_t length = strlen(name);
  if (writer->is_header_written) fail(writer, WICK_E_ARG, "was added after the header", name);
  if (length == 0 || length > GGUF_TENSOR_NAME_BYTES_MAX) {
    fail(writer, WICK_E_ARG, "is not a valid tensor name", name);
  }
  if (writer->tensor_count == GGUF_TENSORS_MAX)
    fail(writer, WICK_E_ARG, "exceeds the tensor limit", name);
  if (!measure(type, dims, dim_count, &size_bytes) ||
      !checked_align_u64(size_bytes, writer->alignment, &padded_bytes) ||
      !checked_add_u64(writer->data_bytes, padded_bytes, &data_bytes)) {
    fail(writer, WICK_E_ARG, "has an impossible shape", name);
  }
  if (writer->failure.status != WICK_OK || !reserve_tensor(writer)) return;
  append_string(writer, &writer->tensors, name, length);
  append_u32(writer, &writer->tensors, dim_count);
  append(writer, &writer->tensors, dims, dim_count * sizeof *dims);
  append_u32(writer, &writer->tensors, type);
  append_u64(writer, &writer->tensors, writer->data_bytes);
  writer->tensor_bytes[writer->tensor_count++] = size_bytes;
  writer->data_bytes = data_bytes;
}

// ---- Output ----

static uint64_t directory_bytes(const gguf_writer *writer) {
  return HEADER_BYTES + (uint64_t)writer->values.size_bytes + writer->tensors.size_bytes;
}

static uint64_t padding_of(const gguf_writer *writer, uint64_t size_bytes) {
  return (0 - size_bytes) & (writer->alignment - 1);
}

uint64_t gguf_writer_file_bytes(const gguf_writer *writer) {
  const uint64_t bytes = directory_bytes(writer);
  return bytes + padding_of(writer, bytes) + writer->data_bytes;
}

static void put(gguf_writer *writer, const void *bytes, size_t size_bytes) {
  if (writer->failure.status != WICK_OK || size_bytes == 0) return;
  if (!writer->write(writer->context, bytes, size_bytes)) {
    fail_with(&writer->failure, WICK_E_IO, WICK_NO_OFFSET, "a GGUF file could not be written");
  }
}

static void put_padding(gguf_writer *writer, uint64_t after_bytes) {
  static const uint8_t zeros[256];
  uint64_t left = padding_of(writer, after_bytes);
  while (left > 0 && writer->failure.status == WICK_OK) {
    const size_t step = left < sizeof zeros ? (size_t)left : sizeof zeros;
    put(writer, zeros, step);
    left -= step;
  }
}

static wick_status outcome(const gguf_writer *writer, wick_error *error) {
  if (writer->failure.status != WICK_OK && error != NULL) *error = writer->failure;
  return writer->failure.status;
}

wick_status gguf_writer_write_header(gguf_writer *writer, wick_error *error) {
  if (writer->items_left > 0)
    fail_call(writer, WICK_E_ARG, "array of strings has fewer items than declared");
  if (writer->is_header_written) fail_call(writer, WICK_E_ARG, "the header was already written");
  const uint32_t version = VERSION;
  const uint64_t counts[2] = {writer->tensor_count, writer->value_count};
  put(writer, "GGUF", 4);
  put(writer, &version, sizeof version);
  put(writer, counts, sizeof counts);
  put(writer, writer->values.bytes, writer->values.size_bytes);
  put(writer, writer->tensors.bytes, writer->tensors.size_bytes);
  put_padding(writer, directory_bytes(writer));
  writer->is_header_written = true;
  return outcome(writer, error);
}

wick_status gguf_writer_write_data(gguf_writer *writer, const void *bytes, size_t size_bytes,
                                   wick_error *error) {
  const uint8_t *from = bytes;
  if (!writer->is_header_written)
    fail_call(writer, WICK_E_ARG, "data was written before the header");
  while (size_bytes > 0 && writer->failure.status == WICK_OK) {
    if (writer->tensor_now == writer->tensor_count) {
      fail_call(writer, WICK_E_RANGE, "data is longer than declared");
      break;
    }
    const uint64_t tensor_bytes = writer->tensor_bytes[writer->tensor_now];
    const uint64_t left = tensor_bytes - writer->tensor_now_bytes;
    const size_t step = size_bytes < left ? size_bytes : (size_t)left;
    put(writer, from, step);
    from += step;
    size_bytes -= step;
    writer->tensor_now_bytes += step;
    if (writer->tensor_now_bytes == tensor_bytes) {
      put_padding(writer, tensor_bytes);
      writer->tensor_now++;
      writer->tensor_now_bytes = 0;
    }
  }
  return outcome(writer, error);
}

wick_status gguf_writer_finish(gguf_writer *writer, wick_error *error) {
  if (!writer->is_header_written) fail_call(writer, WICK_E_ARG, "the header was not written");
  if (writer->tensor_now < writer->tensor_count) {
    fail_call(writer, WICK_E_NODATA, "tensor data is missing");
  }
  return outcome(writer, error);
}

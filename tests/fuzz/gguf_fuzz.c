// Fuzzes the GGUF reader. Input: a byte for the chunk size, a byte for the allocation that fails
// (0: none), then the file. Asserts that a file gives the same result in chunks and in one piece,
// that reads stay within it, and that nothing leaks.
#include <string.h>

#include "format/gguf.h"
#include "platform/platform.h"

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

static volatile uint64_t read_sum;  // prevents the reads from being optimized away

static bool is_inside(const uint8_t *data, uint64_t bytes, const gguf_string *whole) {
  const uint8_t *first = (const uint8_t *)whole->bytes;
  return data >= first && bytes <= whole->size_bytes && data + bytes <= first + whole->size_bytes;
}

static void read_value(const gguf_directory *directory, const gguf_value *value,
                       const gguf_string *whole) {
  char quoted[GGUF_QUOTE_BYTES];
  wick_error error;
  REQUIRE(is_inside((const uint8_t *)value->key.bytes, value->key.size_bytes, whole));
  REQUIRE(strlen(gguf_quote(value->key, quoted)) < GGUF_QUOTE_BYTES);
  const uint8_t *cursor = value->data;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < value->count; i++) {
    if (value->item_type == GGUF_STRING) {
      const gguf_string item = gguf_next_string(&cursor);
      REQUIRE(is_inside((const uint8_t *)item.bytes, item.size_bytes, whole));
      sum += item.size_bytes > 0 ? (uint8_t)item.bytes[item.size_bytes - 1] : 0;
    } else {
      sum += (uint64_t)gguf_array_i64(value, i) + (gguf_array_f64(value, i) > 0);
    }
  }
  read_sum += sum;
  char key[32];
  if (value->key.size_bytes < sizeof key &&
      memchr(value->key.bytes, 0, (size_t)value->key.size_bytes) == NULL) {
    memcpy(key, value->key.bytes, (size_t)value->key.size_bytes);
    key[value->key.size_bytes] = 0;
    uint32_t number;
    double real;
    REQUIRE(gguf_find(directory, key) == value);
    gguf_get_u32(directory, key, &number, &error);
    gguf_get_f64(directory, key, &real, &error);
  }
}

static void read_all(const gguf_directory *directory, const gguf_string *whole) {
  for (size_t i = 0; i < gguf_value_count(directory); i++) {
    read_value(directory, gguf_value_at(directory, i), whole);
  }
  uint64_t end = 0;
  for (size_t rank = 0; rank < gguf_tensor_count(directory); rank++) {
    const gguf_tensor *tensor = gguf_tensor_at(directory, gguf_tensor_by_offset(directory, rank));
    REQUIRE(is_inside((const uint8_t *)tensor->name.bytes, tensor->name.size_bytes, whole));
    REQUIRE(gguf_find_tensor_string(directory, tensor->name) == tensor);
    REQUIRE(tensor->offset_bytes >= end && tensor->offset_bytes >= gguf_data_offset(directory));
    REQUIRE(tensor->offset_bytes % gguf_alignment(directory) ==
            gguf_data_offset(directory) % gguf_alignment(directory));
    REQUIRE(tensor->size_bytes > 0);
    end = tensor->offset_bytes + tensor->size_bytes;
  }
}

// Reads a file in chunks of `chunk` bytes; the error's status is WICK_OK if it is complete.
static wick_error read_file(const uint8_t *bytes, size_t size_bytes, size_t chunk,
                            uint64_t fail_at_call) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  memory.fail_at_call = fail_at_call;
  wick_error error = {.status = WICK_OK};
  gguf_directory *directory = NULL;
  wick_status status = gguf_directory_create(&memory, &directory, &error);
  size_t total = 0;
  for (size_t at = 0; at < size_bytes && status == WICK_OK; at += chunk) {
    const size_t left = size_bytes - at;
    size_t used;
    status = gguf_directory_feed(directory, bytes + at, left < chunk ? left : chunk, &used, &error);
    total += used;
  }
  if (status == WICK_OK) status = gguf_directory_finish(directory, &error);
  if (status == WICK_OK) {
    REQUIRE(gguf_directory_is_complete(directory));
    REQUIRE(total == gguf_directory_bytes(directory) && total <= size_bytes);
    const gguf_value *first = gguf_value_count(directory) > 0 ? gguf_value_at(directory, 0) : NULL;
    const gguf_tensor *tensor =
        gguf_tensor_count(directory) > 0 ? gguf_tensor_at(directory, 0) : NULL;
    const char *start = first != NULL    ? first->key.bytes - first->offset_bytes - 8
                        : tensor != NULL ? tensor->name.bytes - tensor->entry_offset_bytes - 8
                                         : NULL;
    const gguf_string whole = {start, total};
    read_all(directory, &whole);
  } else {
    REQUIRE(error.status == status && strlen(error.message) > 0);
  }
  gguf_directory_destroy(directory);
  REQUIRE(memory.blocks_now == 0);
  return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes < 2) return 0;
  const size_t chunk = data[0] < 128 ? data[0] + 1u : (size_t)(data[0] - 127) * 100;
  const uint64_t fail_at_call = data[1];
  data += 2;
  size_bytes -= 2;
  const wick_error whole = read_file(data, size_bytes, size_bytes + 1, 0);
  const wick_error cut = read_file(data, size_bytes, chunk, fail_at_call);
  if (cut.status == WICK_E_NOMEM && fail_at_call != 0) return 0;
  REQUIRE(whole.status == cut.status);
  if (whole.status != WICK_OK) {
    REQUIRE(whole.offset_bytes == cut.offset_bytes && strcmp(whole.message, cut.message) == 0);
  }
  return 0;
}

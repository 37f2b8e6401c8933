// Fuzzes the quantizer with any bytes as its input file. Input: a byte for the type, a byte for the
// size of the pieces, a byte for the allocation that fails (0: none), then the file. Asserts that
// it returns a status, that a completely written file is a model file with the same tensors, and
// that nothing leaks.
#include <string.h>

#include "../c/support/gguf_files.h"
#include "platform/platform.h"
#include "quantize/quantize.h"

#define REQUIRE(condition)              \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (0)

enum { HEADER_BYTES = 3 };

static gguf_directory *parse(memory_gate *memory, const uint8_t *bytes, size_t size_bytes) {
  gguf_directory *directory = NULL;
  size_t used;
  REQUIRE(gguf_directory_create(memory, &directory, NULL) == WICK_OK);
  REQUIRE(gguf_directory_feed(directory, bytes, size_bytes, &used, NULL) == WICK_OK);
  REQUIRE(gguf_directory_finish(directory, NULL) == WICK_OK);
  return directory;
}

static void compare(const memory_file *out, const uint8_t *bytes, size_t size_bytes) {
  memory_gate memory;
  memory_init(&memory, 0, platform_alloc, platform_free);
  gguf_directory *before = parse(&memory, bytes, size_bytes);
  gguf_directory *after = parse(&memory, out->bytes, out->size_bytes);
  REQUIRE(gguf_tensor_count(before) == gguf_tensor_count(after));
  for (size_t i = 0; i < gguf_tensor_count(before); i++) {
    const gguf_tensor *tensor = gguf_tensor_at(before, i);
    const gguf_tensor *written = gguf_find_tensor_string(after, tensor->name);
    REQUIRE(written != NULL);
    REQUIRE(memcmp(written->dims, tensor->dims, sizeof tensor->dims) == 0);
    REQUIRE(written->offset_bytes + written->size_bytes <= out->size_bytes);
  }
  gguf_directory_destroy(before);
  gguf_directory_destroy(after);
  REQUIRE(memory.blocks_now == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  if (size_bytes < HEADER_BYTES) return 0;
  uint32_t mixes = 0;
  while (quantize_mix_at(mixes) != NULL) mixes++;
  memory_gate memory;
  memory_init(&memory, 64 * 1024 * 1024, platform_alloc, platform_free);
  memory.fail_at_call = data[2];
  memory_file out = {0};
  const quantize_settings settings = {
      quantize_mix_at(data[0] % mixes), 1, data[0] >= 128, file_write, NULL, &out};
  const uint8_t *file = data + HEADER_BYTES;
  const size_t file_bytes = size_bytes - HEADER_BYTES, piece = 1 + (size_t)data[1] * 3;
  quantizer *made = NULL;
  wick_error error;
  wick_status status = quantizer_create(&memory, &settings, &made, &error);
  for (size_t at = 0; status == WICK_OK && at < file_bytes; at += piece) {
    const size_t left = file_bytes - at;
    status = quantizer_feed(made, file + at, left < piece ? left : piece, &error);
  }
  if (status == WICK_OK) status = quantizer_finish(made, &error);
  quantizer_destroy(made);
  REQUIRE(memory.blocks_now == 0);
  if (status == WICK_OK) compare(&out, file, file_bytes);
  file_free(&out);
  return 0;
}
